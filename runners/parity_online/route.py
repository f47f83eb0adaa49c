"""Where an inference request goes."""

from __future__ import annotations

from dataclasses import dataclass

from parity_online.call import Protocol
from parity_online.models import VERSION_HEADER, Versions
from parity_online.problems import ProblemError
from parity_online.request import Request
from parity_online.served import ServedModel


@dataclass(frozen=True, slots=True)
class Route:
    """Where an inference request goes: a protocol, and a name's versions or one of them."""

    protocol: Protocol
    versions: Versions
    version: str | None = None

    @property
    def name(self) -> str:
        """The protocol's name."""
        return self.protocol.name

    @property
    def nominal(self) -> ServedModel:
        """The model whose settings hold, and whose metrics count, before one has been picked."""
        return self.versions.default if self.version is None else self.versions.version(self.version)

    def pick(self, request: Request) -> ServedModel:
        """The model that answers a request.

        Raises:
            ProblemError: (404) the version that a header asks for is not there; (400) the path asks for
            another.
        """
        version = self.version
        if request.version is not None:
            if version is not None and version != request.version:
                raise ProblemError(
                    400,
                    "header",
                    f"the path asks for version {version!r}, the header {VERSION_HEADER} for "
                    f"{request.version!r}; leave one out",
                )
            version = request.version
        return self.versions.pick(version, request.id)
