"""One column of a batch: the values of one field, as numpy and as Arrow, each built when first asked for.

A column is immutable. Its numpy arrays are read-only views; its torch tensors are new memory. Nothing here
converts a value to another dtype: that is `parity.codec`'s work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.errors import SchemaError, shown
from parity.schema import BFLOAT16, Date, Field, Image, List, Struct, Tensor, Timestamp

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

    __slots__ = ("__dict__", "_arrow", "_numpy", "field")

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

    def __len__(self) -> int:
        """The number of rows."""
        return len(cast("Any", self._arrow if self._numpy is None else self._numpy))

    def __repr__(self) -> str:
        return f"Column({self.field.describe()}, {len(self)} rows)"

    @property
    def arrow(self) -> pa.Array[Any]:
        """The values as an Arrow array of the field's canonical type."""
        if self._arrow is None:
            self._arrow = _arrow_from_numpy(self.field, cast("Any", self._numpy))
        return self._arrow

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
        return _rows_as_arrays(field, self.arrow)

    def torch(self, device: str | torch.device = "cpu") -> torch.Tensor:
        """The values as a new tensor on `device`, shape (rows, *row_shape), its memory 64-byte aligned.

        The tensor is the caller's own: writing into it changes nothing else. Timestamps and dates are int64
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
        stored: object = value
        if isinstance(value, np.generic) and value.dtype.kind != "M":
            stored = value.item()
        try:
            if isinstance(value, np.datetime64):
                stored = int(value.astype(cast("Any", field.numpy_dtype)).astype(np.int64))
            scalar = pa.scalar(cast("Any", stored), type=field.arrow_type)
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
        if self._numpy is not None and self._arrow is None:
            return Column(self.field, numpy=self._numpy[start:stop])
        return Column(self.field, arrow=self.arrow.slice(start, max(0, stop - start)))

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
                    f"row {row} is null ({arrow.null_count} are) in a {self.field.describe()} column: numpy "
                    "has no null; use .fill_null(value) for a stand-in, or .valid to tell the rows apart"
                )
            if field.row_shape is None:
                raise SchemaError(f"rows of {self.field.describe()} differ in shape; use .arrays()")
            values = _flat_numpy(field, arrow).reshape(len(arrow), *field.row_shape)
        values.flags.writeable = False
        return values


def _required(field: Field) -> Field:
    return field if not field.nullable or isinstance(field, Struct) else replace(field, nullable=False)


def _flat_numpy(field: Field, arrow: pa.Array[Any]) -> np.ndarray[Any, Any]:
    """All elements of a column without nulls as one flat array; a view where the layouts agree."""
    return _elements(field, cast("Any", arrow).flatten() if isinstance(field, Tensor) else arrow)


def _elements(field: Field, flat: Any) -> np.ndarray[Any, Any]:
    dtype = cast("np.dtype[Any]", field.numpy_dtype)
    if pa.types.is_boolean(flat.type):
        return flat.to_numpy(zero_copy_only=False)
    if pa.types.is_date32(flat.type):
        return flat.view(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64).view(dtype)
    stored = np.dtype(np.float32) if dtype == BFLOAT16 else dtype
    buffer = flat.buffers()[1]
    if buffer is None or len(flat) == 0:
        return np.empty(0, dtype=dtype)
    values = np.frombuffer(buffer, dtype=stored, count=len(flat), offset=flat.offset * stored.itemsize)
    return values.astype(BFLOAT16) if dtype == BFLOAT16 else values


def _arrow_from_numpy(field: Field, values: np.ndarray[Any, Any]) -> pa.Array[Any]:
    rows = len(values)
    flat = np.ascontiguousarray(values).reshape(-1)
    if flat.dtype == BFLOAT16:
        flat = flat.astype(np.float32)
    if flat.dtype == np.dtype("datetime64[D]"):
        flat = flat.view(np.int64).astype(np.int32)
    value_type = field.value_type if isinstance(field, Tensor) else field.arrow_type
    if flat.dtype == np.bool_:
        items: pa.Array[Any] = pa.array(flat)
    else:
        items = pa.Array.from_buffers(value_type, len(flat), [None, pa.py_buffer(cast("Any", flat))])
    if not isinstance(field, Tensor):
        return items
    if not field.size:
        offsets = pa.py_buffer(cast("Any", np.zeros(rows + 1, dtype=np.int32)))
        return pa.Array.from_buffers(field.arrow_type, rows, [None, offsets], children=[items])
    return pa.Array.from_buffers(field.arrow_type, rows, [None], children=[items])


def python_values(field: Field, arrow: pa.Array[Any], *, zoned_as_text: bool = False) -> list[Any]:
    """The rows of a canonical Arrow array as `Column.to_pylist` gives them.

    Args:
        field: what the values are.
        arrow: the array.
        zoned_as_text: give ISO 8601 text, which has a zone, where a zoned time would be a numpy datetime64,
            which has none.
    """
    if isinstance(field, Image) and field.form == "array":
        field = field.as_tensor
    if isinstance(field, Tensor):
        return list(_rows_as_arrays(field, arrow))
    if isinstance(field, List):
        items = python_values(field.of, cast("Any", arrow).flatten(), zoned_as_text=zoned_as_text)
        lengths = cast("Any", arrow).value_lengths().to_pylist()
        ends = np.cumsum([length or 0 for length in lengths]).tolist()
        return [
            None if length is None else items[end - length : end]
            for length, end in zip(lengths, ends, strict=True)
        ]
    if isinstance(field, Struct):
        members = [
            python_values(member, child, zoned_as_text=zoned_as_text)
            for member, child in zip(field.members.values(), cast("Any", arrow).flatten(), strict=True)
        ]
        present = arrow.is_valid().to_pylist()
        return [
            dict(zip(field.members, values, strict=True)) if valid else None
            for valid, values in zip(present, zip(*members, strict=True), strict=True)
        ]
    if isinstance(field, Timestamp | Date):
        return _times(field, arrow, zoned_as_text)
    return arrow.to_pylist()


def _times(field: Timestamp | Date, arrow: pa.Array[Any], zoned_as_text: bool) -> list[Any]:
    if not (isinstance(field, Timestamp) and field.unit == "ns"):
        try:
            return arrow.to_pylist()
        except (ValueError, OverflowError):
            pass  # a year that Python does not know is among them: value by value
    found: list[Any] = []
    unit = field.unit if isinstance(field, Timestamp) else "D"
    as_text = zoned_as_text and isinstance(field, Timestamp) and field.tz is not None
    for row, tick in enumerate(arrow.view(pa.int32() if unit == "D" else pa.int64()).to_pylist()):
        if tick is None:
            found.append(None)
            continue
        value: Any = None
        if unit != "ns":
            with contextlib.suppress(ValueError, OverflowError):
                value = arrow[row].as_py()
        if value is None:
            value = np.datetime64(tick, unit)
            value = f"{np.datetime_as_string(value)}Z" if as_text else value
        found.append(value)
    return found


def _rows_as_arrays(field: Tensor, arrow: pa.Array[Any]) -> list[np.ndarray[Any, Any] | None]:
    """One view for each row that is not null, out of one flat array of all elements."""
    whole = cast("Any", arrow)
    present = np.ones(len(arrow), np.bool_) if arrow.null_count == 0 else _is_valid(arrow)
    rows = np.flatnonzero(present).tolist()
    if field.variable_dims > 1:
        data, shapes = (child.filter(arrow.is_valid()) for child in whole.flatten())
        dims = shapes.flatten().to_numpy(zero_copy_only=False).reshape(-1, len(field.shape)).tolist()
    else:
        data, dims = whole, None
    flat = _elements(field, data.flatten()).view()
    flat.flags.writeable = False
    found: list[np.ndarray[Any, Any] | None] = [None] * len(arrow)
    start = 0
    lengths = [field.size] * len(rows) if field.row_shape is not None else _lengths(data)
    for place, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        if dims is not None:
            shape = dims[place]
        else:
            shape = [length // field.size if size is None else size for size in field.shape]
        found[row] = flat[start : start + length].reshape(shape)
        start += length
    return found


def _is_valid(arrow: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return arrow.is_valid().to_numpy(zero_copy_only=False)


def _lengths(lists: Any) -> list[int]:
    return [length for length in lists.value_lengths().to_pylist() if length is not None]
