"""A handler as it travels to the worker processes of a distributed engine, and how it is loaded there."""

from __future__ import annotations

import inspect
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from parity.distributed.environment import LENIENT_VARIABLE, differences, environment, lenient
from parity.errors import FingerprintError
from parity.handler import Handler, LoadedHandler
from parity.profile import Profile
from parity.registry import load_handler, load_handler_anew

_log = logging.getLogger(__name__)

AnyHandler = str | Path | type[Handler] | LoadedHandler


@dataclass(frozen=True)
class Placement:
    """A handler and a profile in a form that other processes, on other machines too, can load.

    Attributes:
        ref: the handler's reference, its path absolute; empty for a class that lives in no folder.
        app_dir: the folder to import `package.module` from, absolute; None where it is installed.
        cls: the class itself, where there is no reference; the engine's own pickling carries it.
        profile: the profile's name.
        settings: the profile's settings.
        digests: of the handler's source and artifacts; a worker that finds others refuses.
        environment: of the process that made this; a worker with other libraries refuses.
        lenient: tell of other libraries, and go on.
    """

    ref: str
    app_dir: str | None
    cls: type[Handler] | None
    profile: str
    settings: tuple[str, ...]
    digests: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...] = ()
    lenient: bool = False

    @staticmethod
    def of(loaded: LoadedHandler, profile: Profile) -> Placement:
        """The placement of a handler under a profile."""
        ref, app_dir = _absolute(loaded)
        return Placement(
            ref=ref,
            app_dir=app_dir,
            cls=None if ref else loaded.cls,
            profile=profile.name,
            settings=tuple(profile.to_settings()),
            digests=tuple(sorted(loaded.digests.items())),
            environment=tuple(sorted(environment().items())),
            lenient=lenient(),
        )

    def load(self) -> LoadedHandler:
        """The handler, loaded in this process; not yet initialized.

        Raises:
            ReferenceNotFoundError: it is not here; the message says where it was looked for.
            FingerprintError: another version of it is here, or of a library.
        """
        self._check_environment()
        if self.cls is not None:
            return LoadedHandler.of(self.cls)
        loaded = load_handler_anew(self.ref, app_dir=self.app_dir)
        different = [kind for kind, digest in self.digests if loaded.digests.get(kind) != digest]
        if different:
            raise FingerprintError(
                f"handler {self.ref}: its {' and '.join(different)} on this worker is not what the job was "
                "started with; bring all machines to one version of it, then start the job again"
            )
        return loaded

    def doubts(self) -> list[str]:
        """What of this process is another than where the placement was made, and is let be."""
        refused, told = self._differences()
        return [*refused, *told]

    def _check_environment(self) -> None:
        refused, told = self._differences()
        if refused and not self.lenient:
            raise FingerprintError(
                f"handler {self.ref or cast('Any', self.cls).__name__}: this worker's environment is not the "
                f"one that the job was started in, and its answers would differ: {', '.join(refused)}; give "
                f"all machines the same versions, or set {LENIENT_VARIABLE}=warn where the job is started"
            )
        for text in (*refused, *told):
            _log.warning("worker environment differs: %s", text)

    def _differences(self) -> tuple[list[str], list[str]]:
        return differences(dict(self.environment), environment()) if self.environment else ([], [])

    def to_profile(self, device: str | None = None) -> Profile:
        """The profile, on another device where one is given."""
        profile = Profile(self.profile).with_settings(self.settings)
        return profile if device is None else profile.override({"device": device})


def loaded_handler(handler: AnyHandler, app_dir: str | Path | None = None) -> LoadedHandler:
    """A handler given by reference, as a class, or loaded already."""
    if isinstance(handler, LoadedHandler):
        return handler
    if isinstance(handler, str | Path):
        return load_handler(handler, app_dir=app_dir)
    return LoadedHandler.of(handler)


def _absolute(loaded: LoadedHandler) -> tuple[str, str | None]:
    """The reference and the folder to import from, such that the working folder does not matter."""
    ref = loaded.ref
    if not ref:
        return "", None
    target, name = _split(ref)
    if Path(target).exists():
        return f"{Path(target).resolve()}{f':{name}' if name else ''}", None
    folder = Path(loaded.app_dir or "").resolve()
    source = inspect.getsourcefile(cast("Any", loaded.cls))
    inside = source is not None and Path(source).resolve().is_relative_to(folder)
    return ref, str(folder) if inside else None


def _split(ref: str) -> tuple[str, str]:
    head, colon, tail = ref.rpartition(":")
    return (head, tail) if colon and tail.isidentifier() and len(head) > 1 else (ref, "")
