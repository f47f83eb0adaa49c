"""What a protocol is given to answer a request, and what makes one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol as Shape

from parity.capture import Origin, Refused
from parity.errors import RowError
from parity_online.problems import Answer, ProblemError
from parity_online.request import Request
from parity_online.served import ServedModel
from parity_online.works import RowsWork, Texts


@dataclass(slots=True)
class Call:
    """What a protocol needs beside the body; not frozen, which would cost each request a microsecond.

    Attributes:
        model: the model asked for.
        request: what the headers told.
        deadline: on `time.monotonic`.
        show_failures: see `ServerSettings`.
        origin: the request as a capture knows it; None where nothing is captured.
        body_limit_bytes: the largest body, also once it is decoded; None for none.
    """

    model: ServedModel
    request: Request
    deadline: float
    show_failures: bool
    origin: Origin | None = None
    body_limit_bytes: int | None = None

    def refuse(self, errors: Sequence[RowError], body: bytes) -> None:
        """Count rows of this body that do not fit the schema, and record them. For any thread."""
        refused = None
        capture = self.model.settings.capture
        if self.origin is not None and capture.refused_kb:
            refused = Refused.of(
                self.origin,
                errors,
                body,
                most_bytes=capture.refused_kb * 1024,
                content_type=self.request.content_type.decode("latin-1"),
                json_length=self.request.json_length,
            )
        self.model.refuse(refused, len(errors))


class Render(Shape):
    """Makes the answer to a request with a problem; see `parity_online.problems.render`."""

    def __call__(
        self, problem: ProblemError, request_id: str, *, show_failures: bool = False, close: bool = False
    ) -> Answer:
        """The answer."""
        ...


@dataclass(frozen=True, slots=True)
class OneRow:
    """How a protocol answers a request of one row that waits for nothing but its batch.

    Attributes:
        read: the row of a body, None where the body is to be left to `Protocol.answer`; raises what that
            raises.
        tell: the answer; raises what `Protocol.answer` raises.
    """

    read: Callable[[Call, bytes], RowsWork | None]
    tell: Callable[[Call, Texts], Answer]


@dataclass(frozen=True, slots=True)
class Protocol:
    """A way to ask for inference over HTTP.

    Attributes:
        name: what metrics and logs call it.
        wire: what a capture calls its form.
        path: where the default version answers; `{name}` stands for the model's name.
        version_path: where a version answers; `{version}` stands for it.
        answer: the answer to one body.
        render: its form of an error.
        verbs: the verbs that its paths take.
        one_row: a quicker way for requests of one row, where it has one.
    """

    name: str
    wire: str
    path: str
    version_path: str
    answer: Callable[[Call, bytes], Awaitable[Answer]]
    render: Render
    verbs: tuple[str, ...] = ("POST",)
    one_row: OneRow | None = None
