"""The error tree: one base class, an exit code for each branch, and the record of one bad row.

ParityError                     exit 2: usage, configuration, unreadable input
├── ReferenceNotFoundError      a handler or runner that cannot be found under the given name
├── ConfigError                 handler.toml, a profile, a tolerance or an option is wrong
├── SchemaError                 a schema is wrong, or a whole table does not fit it
├── MalformedError              bytes that are not the wire form they claim to be
├── StageError                  a stage of a handler raised
│   └── OutputError             a stage returned something that the schema does not allow
├── InputMutatedError           a handler wrote into its inputs
├── DatasetError                a dataset that cannot be read or written
│   └── ResumeError             the work on disk belongs to another job
├── RowsError                   some rows failed where the caller asked for all of them
├── DivergenceError       (1)   answers differ
├── GoldenError           (3)   a golden case is missing, stale or orphaned
├── FingerprintError      (4)   refused: not the machine or build that was proven
│   └── CertificateError        refused: exact mode without a certificate that holds here
├── NothingComparedError  (5)   a proof that compared no row
├── RunnerError           (6)   a runner failed to start or crashed
└── NondeterministicError (7)   a handler differs from itself under identical conditions
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar, Literal

RowErrorKind = Literal["invalid", "rejected", "failed"]

_NAME_CHARS = 200
_MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class RowError:
    """Why one row has no answer.

    Attributes:
        row: position of the row in the input it came from, from 0.
        kind: "invalid" (does not fit the input schema), "rejected" (the handler refused it with
            `batch.reject`, or by an exception with `rejects_rows = True`) or "failed" (a stage raised, or
            its output does not fit the schema).
        message: what was wrong, what was expected, where, and what to do next; text that UTF-8 can hold.
        field: the input or output field at fault, when there is one.
        stage: the stage that rejected or failed, when there is one.
        type: the exception's type name, when there was an exception.
    """

    row: int
    kind: RowErrorKind
    message: str
    field: str | None = None
    stage: str | None = None
    type: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", encodable(self.message))

    def at(self, row: int) -> RowError:
        """The same error for another row position."""
        return replace(self, row=row)


class ParityError(Exception):
    """Base of every error that this library raises on purpose."""

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str = "") -> None:
        super().__init__(encodable(message))


class ReferenceNotFoundError(ParityError):
    """No handler or runner is found under the given reference."""


class ConfigError(ParityError):
    """A configuration file, profile, tolerance or option is wrong."""


class SchemaError(ParityError):
    """A schema is wrong in itself, or a whole table does not fit it."""


class MalformedError(ParityError):
    """Bytes that are not the wire form they claim to be."""


class CompileError(ConfigError):
    """A model cannot be compiled as its profile asks: no fault of any row, so it ends what was asked for."""


class StageError(ParityError):
    """A stage of a handler raised; the original exception is the cause.

    Attributes:
        handler: the handler's name.
        stage: "initialize", "preprocess", "inference" or "postprocess".
    """

    def __init__(self, message: str, *, handler: str = "", stage: str = "") -> None:
        super().__init__(message)
        self.handler = handler
        self.stage = stage


class OutputError(StageError):
    """A stage returned something that the output schema does not allow.

    Attributes:
        field: the output field at fault, when there is one.
        rows: the rows of that field whose values are at fault, ascending; empty when the field as a whole is.
    """

    def __init__(
        self,
        message: str,
        *,
        handler: str = "",
        stage: str = "",
        field: str | None = None,
        rows: Sequence[int] = (),
    ) -> None:
        super().__init__(message, handler=handler, stage=stage)
        self.field = field
        self.rows = tuple(rows)


class InputMutatedError(ParityError):
    """A handler wrote into its inputs, which are shared with other readers."""


class DatasetError(ParityError):
    """A dataset that cannot be read or written."""


class ResumeError(DatasetError):
    """The output folder holds the work of another job: other inputs, handler or profile."""


class RowsError(ParityError):
    """Some rows failed where the caller asked for an answer to each.

    Attributes:
        errors: one `RowError` for each failed row, in row order.
    """

    def __init__(self, message: str, errors: Sequence[RowError] = ()) -> None:
        super().__init__(message)
        self.errors = tuple(errors)


class DivergenceError(ParityError):
    """Answers that should agree differ."""

    exit_code: ClassVar[int] = 1


class GoldenError(ParityError):
    """A golden case is missing, stale or orphaned."""

    exit_code: ClassVar[int] = 3


class FingerprintError(ParityError):
    """Refused: this is not the machine, build or profile that was proven."""

    exit_code: ClassVar[int] = 4


class CertificateError(FingerprintError):
    """Refused: exact mode was asked for, and no certificate of `parity probe` holds here."""


class NothingComparedError(ParityError):
    """A proof that compared no row proves nothing."""

    exit_code: ClassVar[int] = 5


class RunnerError(ParityError):
    """A runner failed to start or crashed."""

    exit_code: ClassVar[int] = 6


class NondeterministicError(ParityError):
    """A handler gave two answers under identical conditions."""

    exit_code: ClassVar[int] = 7


def encodable(text: str) -> str:
    r"""The same text, halves of surrogate pairs, which UTF-8 does not have, as `\udc00`."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint that names near candidates, or all of them when few; empty when there are none.

    Either may be a caller's text, so it costs little whatever they are: of a long name the beginning is
    looked up, and among more than 1000 names nothing is.
    """
    names = sorted(islice(known, _MOST_NAMES + 1))
    if len(names) > _MOST_NAMES:
        return ""
    near = difflib.get_close_matches(name[:_NAME_CHARS], names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(_name(n) for n in near)}?"
    if 0 < len(names) <= 20:
        return f"known: {', '.join(_name(n) for n in names)}"
    return ""


def _name(name: str) -> str:
    return shown(name[: 2 * _NAME_CHARS], _NAME_CHARS)


def counted(count: int, one: str, many: str = "") -> str:
    """A count with its noun, and its verb where it has one: "1 case", "1,250 cases", "1 row differs".

    Args:
        count: how many.
        one: what follows 1.
        many: what follows every other count; `one` and an "s" when not given.
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def shown(value: object, limit: int = 60) -> str:
    """`repr(value)` cut to `limit` characters, for use in error messages."""
    try:
        text = repr(value)
    except Exception as exc:  # noqa: BLE001 - a broken __repr__ must not hide the error being reported
        text = f"<{type(value).__name__} whose repr raises {type(exc).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
