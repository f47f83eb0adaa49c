"""A batch: named columns of one length, immutable, with a note of the rows that the handler rejected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from parity.column import Column
from parity.errors import SchemaError, did_you_mean
from parity.numerics import current_device
from parity.schema import Schema

if TYPE_CHECKING:
    from parity.frame import Frame


class Batch(Mapping[str, Column]):
    """Rows of one schema, as columns.

    Args:
        schema: the fields, in order.
        columns: one column for each field.
        num_rows: the number of rows; needed only when there is no column to tell it.

    Raises:
        SchemaError: a column is missing or superfluous, or the columns differ in length.
    """

    __slots__ = ("_columns", "_rejections", "num_rows", "schema")

    def __init__(self, schema: Schema, columns: Mapping[str, Column], num_rows: int | None = None) -> None:
        if tuple(columns) != schema.names:
            missing = [name for name in schema.names if name not in columns]
            extra = [name for name in columns if name not in schema]
            if missing or extra:
                raise SchemaError(
                    f"batch columns do not fit the schema: missing {missing}, superfluous {extra}"
                )
            columns = {name: columns[name] for name in schema.names}
        lengths = {len(column) for column in columns.values()} | (
            {num_rows} if num_rows is not None else set()
        )
        if len(lengths) > 1:
            found = {name: len(column) for name, column in columns.items()}
            raise SchemaError(f"batch columns differ in length: {found}")
        self.schema = schema
        self._columns = dict(columns)
        self.num_rows = lengths.pop() if lengths else 0
        self._rejections: dict[int, str] = {}

    def __getitem__(self, name: str) -> Column:
        """The column called `name`; raises SchemaError with near names when there is none."""
        try:
            return self._columns[name]
        except KeyError:
            raise SchemaError(
                f"no column {name!r} in this batch; {did_you_mean(name, self._columns)}"
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """The number of rows (not of columns, as a mapping would say)."""
        return self.num_rows

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {column.field.describe()}" for name, column in self._columns.items())
        return f"Batch({self.num_rows} rows; {columns})"

    def reject(self, row: int, reason: str) -> None:
        """Refuse one row: it gets this reason instead of an answer, its neighbours are not touched.

        The stage still returns something for the row; it is thrown away.

        Args:
            row: position in this batch, from 0.
            reason: what is wrong with the row, for the person who sent it.

        Raises:
            IndexError: there is no such row.
        """
        if not 0 <= row < self.num_rows:
            raise IndexError(f"reject: row {row} of a batch of {self.num_rows} rows")
        self._rejections.setdefault(int(row), str(reason))

    @property
    def rejections(self) -> Mapping[int, str]:
        """The rows rejected so far, with their reasons."""
        return dict(self._rejections)

    def slice(self, start: int, stop: int) -> Batch:
        """Rows start to stop (exclusive), a view without rejections."""
        start, stop = max(0, start), min(stop, self.num_rows)
        stop = max(start, stop)
        piece = object.__new__(Batch)  # its columns are of one length as these are
        piece.schema, piece.num_rows, piece._rejections = self.schema, stop - start, {}
        piece._columns = {name: column.slice(start, stop) for name, column in self._columns.items()}
        return piece

    def take(self, rows: Sequence[int] | np.ndarray[Any, Any]) -> Batch:
        """The named rows in the named order, a copy without rejections."""
        columns = {name: column.take(rows) for name, column in self._columns.items()}
        return Batch(self.schema, columns, len(rows))

    def split(self, rows: int) -> list[Batch]:
        """The batch in pieces of at most `rows` rows, in order; a batch of no rows is one empty piece."""
        return [self.slice(start, start + rows) for start in range(0, max(1, self.num_rows), rows)]

    @staticmethod
    def concat(batches: Sequence[Batch]) -> Batch:
        """The rows of several batches of one schema, one after the other.

        Raises:
            SchemaError: there is no batch, or the schemas differ.
        """
        if not batches:
            raise SchemaError("concat needs at least one batch")
        first = batches[0]
        if any(batch.schema != first.schema for batch in batches[1:]):
            raise SchemaError("concat: the batches have different schemas")
        columns = {name: Column.concat([batch[name] for batch in batches]) for name in first.schema.names}
        return Batch(first.schema, columns, sum(batch.num_rows for batch in batches))

    def frame(self, device: str | None = None) -> Frame:
        """The columns as a Frame, with verbs of one meaning on host and device; see `parity.frame`.

        A verb that mixes rows is refused until `frame.across_rows()` says that it is meant.

        Args:
            device: where numbers are held; by default the device of the profile that a stage runs under.
        """
        from parity.frame import Frame

        columns = {name: column.arrow for name, column in self._columns.items()}
        return Frame(columns, device=current_device() if device is None else device, of_batch=True)

    def to_table(self) -> pa.Table:
        """The rows as an Arrow table of the schema's canonical types, without a copy."""
        if not self._columns:
            return pa.table({})
        return pa.Table.from_arrays(
            [column.arrow for column in self._columns.values()], schema=self.schema.to_arrow()
        )
