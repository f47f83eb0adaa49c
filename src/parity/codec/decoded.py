"""What every decoder returns: the good rows as a batch, their source positions, and the others' errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from parity.batch import Batch
from parity.codec.build import build_column
from parity.column import Column
from parity.errors import MalformedError, ParityError, RowError
from parity.schema import Schema


class RowInvalidError(ParityError):
    """One row does not fit the schema.

    Attributes:
        field: the field at fault; None when the row as a whole is.
        message: what was wrong, what was expected, what to do next.
    """

    def __init__(self, field: str | None, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message

    def at(self, row: int) -> RowError:
        """The record of this error for the row at position `row`."""
        return RowError(row=row, kind="invalid", message=self.message, field=self.field)


class TooManyRowsError(MalformedError):
    """A body has more rows than are taken at a time; told before any of them is decoded."""


def require_rows(num_rows: int, most_rows: int | None) -> None:
    """Raise TooManyRowsError where there are more rows than `most_rows`; None takes any number."""
    if most_rows is not None and num_rows > most_rows:
        raise TooManyRowsError(
            f"the request has {num_rows} rows: expected at most {most_rows}, what the queue holds; send "
            "fewer rows at a time, or score them with `parity batch`"
        )


@dataclass(frozen=True, slots=True)
class Decoded:
    """Input rows after decoding.

    Attributes:
        num_rows: how many rows came in.
        batch: the rows that fit the schema, in their order.
        index: the source position of each row of `batch`, ascending; int64, read-only.
        errors: one error for each row that does not fit, in row order.
    """

    num_rows: int
    batch: Batch
    index: np.ndarray[Any, np.dtype[np.int64]]
    errors: tuple[RowError, ...] = ()

    @staticmethod
    def of(batch: Batch) -> Decoded:
        """A batch all of whose rows are good."""
        return Decoded(batch.num_rows, batch, _positions(batch.num_rows))

    @staticmethod
    def around(batch: Batch, num_rows: int, errors: Mapping[int, RowError]) -> Decoded:
        """A batch of the good rows among `num_rows`, the others having an error each."""
        if not errors:
            return Decoded.of(batch)
        return Decoded(num_rows, batch, _rest(num_rows, errors), tuple(errors[row] for row in sorted(errors)))

    @staticmethod
    def sifted(
        schema: Schema,
        columns: Mapping[str, Column | list[Any]],
        num_rows: int,
        errors: Mapping[int, RowError],
    ) -> Decoded:
        """The rows of full-length columns, or lists of canonical values, without those that have an error.

        What they hold in the rows with an error does not matter.
        """
        rest = _rest(num_rows, errors) if errors else _NONE
        found: dict[str, Column] = {}
        for name, field in schema.items():
            column = columns[name]
            if isinstance(column, list):
                kept = [column[row] for row in rest.tolist()] if errors else column
                found[name] = build_column(field, kept)
            else:
                found[name] = column.take(rest) if errors else column
        return Decoded.around(Batch(schema, found, len(rest) if errors else num_rows), num_rows, errors)


_NONE = np.empty(0, dtype=np.int64)


def _rest(num_rows: int, errors: Mapping[int, RowError]) -> np.ndarray[Any, np.dtype[np.int64]]:
    keep = np.ones(num_rows, dtype=np.bool_)
    keep[list(errors)] = False
    index = np.flatnonzero(keep).astype(np.int64)
    index.flags.writeable = False
    return index


def _positions(num_rows: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    index = np.arange(num_rows, dtype=np.int64)
    index.flags.writeable = False
    return index
