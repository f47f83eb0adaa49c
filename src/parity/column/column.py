"""One column of a batch: the values of one field, as numpy and as Arrow, each built when first asked for.

A column is immutable. Its numpy arrays are read-only views; its torch tensors are new memory. Nothing here
converts a value to another dtype: that is `parity.codec`'s work.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.column.forms import arrow_from_numpy, flat_numpy, python_values, rows_as_arrays
from parity.errors import SchemaError, shown
from parity.schema import BFLOAT16, Field, Floating, Image, Integer, List, Struct, Tensor, Timestamp
from parity.staging import send

if TYPE_CHECKING:
    import torch


class Column:
    """The values of one field for the rows of a batch.

    Built from a canonical Arrow array (`field.arrow_type`) or from a numpy array of `field.numpy_dtype` with
    shape (rows, *field.row_shape); the other form is made on demand, without a copy where that is possible.

    Args:
        field: what the values are.
        arrow: the values as an Arrow array of exactly `field.arrow_type`.
        numpy: the values as a numpy array, without nulls.

    Raises:
        SchemaError: neither or both forms are given, or a form is not the field's canonical one.
    """

    __slots__ = ("__dict__", "_arrow", "_numpy", "_sliced_as_numpy", "field")

    def __init__(
        self, field: Field, *, arrow: pa.Array[Any] | None = None, numpy: np.ndarray[Any, Any] | None = None
    ) -> None:
        if (arrow is None) == (numpy is None):
            raise SchemaError("a Column needs exactly one of arrow and numpy")
        if arrow is not None and arrow.type != field.arrow_type:
            raise SchemaError(
                f"a {field.describe()} column needs Arrow type {field.arrow_type}, got {arrow.type}"
            )
        if numpy is not None:
            if (
                field.row_shape is None
                or numpy.dtype != field.numpy_dtype
                or numpy.shape[1:] != field.row_shape
            ):
                raise SchemaError(
                    f"a {field.describe()} column needs numpy dtype {field.numpy_dtype} and rows of shape "
                    f"{field.row_shape}, got {numpy.dtype} and {numpy.shape[1:]}"
                )
            numpy = numpy.view()
            numpy.flags.writeable = False
        self.field = field
        self._arrow = arrow
        self._numpy = numpy
        self._sliced_as_numpy = arrow is None

    def __len__(self) -> int:
        """The number of rows."""
        return len(cast("Any", self._arrow if self._numpy is None else self._numpy))

    def __repr__(self) -> str:
        return f"Column({self.field.describe()}, {len(self)} rows)"

    @property
    def arrow(self) -> pa.Array[Any]:
        """The values as an Arrow array of the field's canonical type."""
        if self._arrow is None:
            self._arrow = arrow_from_numpy(self.field, cast("Any", self._numpy))
        return self._arrow

    @property
    def nbytes(self) -> int:
        """The bytes that the values take in the form they have now; nothing is converted to tell."""
        return int(cast("Any", self._arrow if self._numpy is None else self._numpy).nbytes)

    @property
    def null_count(self) -> int:
        """How many rows are null."""
        return 0 if self._arrow is None else int(self._arrow.null_count)

    @cached_property
    def valid(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """True where a row holds a value, False where it is null; shape (rows,), read-only."""
        if self.null_count == 0:
            mask = np.ones(len(self), dtype=np.bool_)
        else:
            mask = self.arrow.is_valid().to_numpy(zero_copy_only=False)
        mask.flags.writeable = False
        return mask

    def numpy(self) -> np.ndarray[Any, Any]:
        """The values as a read-only array of the field's dtype, shape (rows, *row_shape).

        Timestamps are datetime64 in the field's unit (UTC for zoned fields), dates datetime64[D]; strings,
        bytes, decimals, lists and structs are an object array of Python values.

        Raises:
            SchemaError: a row is null (numpy has no null: use `fill_null(value)` or `valid` first), or the
                tensors have variable shapes (use `arrays()`).
        """
        if self._numpy is None:
            self._numpy = self._numpy_from_arrow()
        return self._numpy

    def arrays(self) -> list[np.ndarray[Any, Any] | None]:
        """One read-only array for each row of a tensor (or image array) column, None where it is null."""
        field = self.field.as_tensor if isinstance(self.field, Image) else self.field
        if not isinstance(field, Tensor):
            raise SchemaError(f"arrays() is for Tensor columns, this one is {self.field.describe()}")
        if field.variable_dims == 0 and self.null_count == 0:
            return list(self.numpy())
        return rows_as_arrays(field, self.arrow)

    def torch(self, device: str | torch.device = "cpu") -> torch.Tensor:
        """The values as a new tensor on `device`, shape (rows, *row_shape), its memory 64-byte aligned.

        The tensor is the caller's own: writing into it changes nothing else. To a CUDA device it goes through
        pinned memory, and the host does not wait for it. Timestamps and dates are int64
        ticks of the field's unit.

        Raises:
            SchemaError: a row is null, or the values have no tensor dtype.
        """
        import torch

        values = self.numpy()
        if values.dtype.kind == "M":
            values = values.view(np.int64)
        if values.dtype == object:
            raise SchemaError(
                f"a {self.field.describe()} column has no tensor dtype; encode its values first"
            )
        if torch.device(device).type == "cuda":
            return send([values], device)[0]
        if values.dtype == BFLOAT16:
            tensor = torch.empty(values.shape, dtype=torch.bfloat16)
            np.copyto(tensor.view(torch.int16).numpy(), values.view(np.int16))
        else:
            tensor = torch.empty(values.shape, dtype=getattr(torch, values.dtype.name))
            np.copyto(tensor.numpy(), values)
        return tensor.to(device)

    def fill_null(self, value: object) -> Column:
        """The column with `value` in place of null, its field no longer nullable.

        Raises:
            SchemaError: the value does not fit the field, or the field is a list, struct or tensor.
        """
        field = _required(self.field)
        if isinstance(field, Tensor | List | Struct):
            raise SchemaError(f"fill_null is for scalar columns, this one is {self.field.describe()}")
        if self.null_count == 0:
            return self.with_field(field)
        try:
            scalar = pa.scalar(_stored(field, value), type=field.arrow_type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
            raise SchemaError(f"fill_null({shown(value)}) does not fit {field.describe()}: {exc}") from exc
        return Column(field, arrow=cast("Any", pc.fill_null(self.arrow, scalar)))

    def with_field(self, field: Field) -> Column:
        """The same values under another field of the same canonical type."""
        return (
            Column(field, arrow=self._arrow) if self._arrow is not None else Column(field, numpy=self._numpy)
        )

    def to_pylist(self) -> list[Any]:
        """The rows as Python values, None for null.

        int, float, str, bytes, bool, datetime, date, Decimal, list, dict; tensors are read-only numpy arrays.
        Timestamps of nanoseconds, and times that Python's calendar (years 1 to 9999) does not know, are numpy
        datetime64, in UTC where the field is zoned.
        """
        return python_values(self.field, self.arrow)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_pylist())

    def __getitem__(self, row: int) -> Any:
        """The value of one row as `to_pylist` gives it."""
        position = row + len(self) if row < 0 else row
        if not 0 <= position < len(self):
            raise IndexError(f"row {row} of a column of {len(self)} rows")
        return self.slice(position, position + 1).to_pylist()[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        values = self.numpy()
        return np.array(values, dtype=dtype) if copy or dtype is not None else values

    def slice(self, start: int, stop: int) -> Column:
        """Rows start to stop (exclusive), a view."""
        if not self._sliced_as_numpy and self._is_memory_of_numpy:
            self.numpy()
            self._sliced_as_numpy = True
        piece = object.__new__(Column)
        piece.field = self.field
        piece._sliced_as_numpy = self._sliced_as_numpy
        if self._sliced_as_numpy:
            piece._numpy, piece._arrow = cast("Any", self._numpy)[start:stop], None
        else:
            piece._numpy, piece._arrow = None, self.arrow.slice(start, max(0, stop - start))
        return piece

    @property
    def _is_memory_of_numpy(self) -> bool:
        """Whether the Arrow form's memory is the numpy form's: it can be looked at once for all slices."""
        field = self.field
        if not isinstance(field, Integer | Floating) or field.numpy_dtype == BFLOAT16:
            return False
        return self.arrow.null_count == 0

    def take(self, rows: Sequence[int] | np.ndarray[Any, Any]) -> Column:
        """The named rows in the named order, a copy; a row may be named more than once."""
        indices = np.asarray(rows, dtype=np.int64)
        if self._numpy is not None and self._arrow is None:
            return Column(self.field, numpy=self._numpy[indices])
        return Column(self.field, arrow=self.arrow.take(cast("Any", pa.array(indices))))

    @staticmethod
    def concat(columns: Sequence[Column]) -> Column:
        """The rows of several columns of one field, one after the other."""
        first = columns[0]
        if len(columns) == 1:
            return first
        if all(column._numpy is not None and column._arrow is None for column in columns):
            return Column(
                first.field, numpy=np.concatenate([cast("Any", column._numpy) for column in columns])
            )
        return Column(first.field, arrow=pa.concat_arrays([column.arrow for column in columns]))

    def _numpy_from_arrow(self) -> np.ndarray[Any, Any]:
        field, arrow = self.field, self.arrow
        if isinstance(field, Image) and field.form == "array":
            field = field.as_tensor
        if field.numpy_dtype is None:
            values: np.ndarray[Any, Any] = np.empty(len(arrow), dtype=object)
            for row, value in enumerate(self.to_pylist()):  # at once, numpy would look into lists
                values[row] = value
        else:
            if arrow.null_count:
                row = int(np.flatnonzero(~self.valid)[0])
                raise SchemaError(
                    f"row {row} is null (rows that are: {arrow.null_count}) in a column of "
                    f"{self.field.describe()}: numpy has no null; use .fill_null(value) for a stand-in, or "
                    ".valid to tell the rows apart"
                )
            if field.row_shape is None:
                raise SchemaError(f"rows of {self.field.describe()} differ in shape; use .arrays()")
            values = flat_numpy(field, arrow).reshape(len(arrow), *field.row_shape)
        values.flags.writeable = False
        return values


def _stored(field: Field, value: Any) -> Any:
    """What Arrow is to store for `value`; by itself it would cut 1.5 to 1, and take a naive time for UTC."""
    if isinstance(field, Integer | Floating):
        if isinstance(value, bool) or not isinstance(value, int | float | np.number | BFLOAT16.type):
            raise TypeError("it is not a number")
        if isinstance(field, Integer):
            return operator.index(cast("Any", value))
        with np.errstate(over="ignore"):
            stored = float(field.numpy_dtype.type(value))
        if math.isinf(stored) and not math.isinf(value):
            raise OverflowError("it is out of range")
        return stored
    if isinstance(value, np.datetime64) and field.numpy_dtype is not None:
        ticks = value.astype(field.numpy_dtype)
        if np.isnat(value) or ticks != value:
            raise ValueError("it is NaT, or finer than the field's unit")
        return int(ticks.astype(np.int64))
    wants_zone = isinstance(field, Timestamp) and field.tz is not None
    if isinstance(value, datetime.datetime) and (value.tzinfo is not None) != wants_zone:
        raise ValueError("one of the two has a zone, the other none")
    return value.item() if isinstance(value, np.generic) else value


def _required(field: Field) -> Field:
    return field if not field.nullable or isinstance(field, Struct) else replace(field, nullable=False)
