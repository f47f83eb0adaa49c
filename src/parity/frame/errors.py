"""What goes wrong with a frame: verbs that are not there, values that do not fit, rows that would mix."""

from __future__ import annotations

from collections.abc import Sequence

from parity.errors import ParityError


class FrameError(ParityError):
    """A verb of a frame cannot do what was asked; the message says why and what to do.

    Raised from `preprocess` with rows, it fails these rows only: the engine asks the others again.

    Attributes:
        failing_rows: the rows whose values are at fault; empty when the call itself is.
    """

    def __init__(self, message: str, rows: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.failing_rows = tuple(rows)


class UnknownVerbError(FrameError, AttributeError):
    """A frame or series has no verb of this name; near names are given."""


def rows_shown(rows: Sequence[int]) -> str:
    """The first rows in words: "row 3", "rows 3, 7 and 12 more"."""
    if len(rows) == 1:
        return f"row {rows[0]}"
    most = 5
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return f"rows {', '.join(str(row) for row in rows[:most])}{more}"
