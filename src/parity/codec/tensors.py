"""Tensors from untyped values: nested lists of numbers, or arrays. Strict about shape and element type."""

from __future__ import annotations

import array
import math
import struct
from itertools import chain
from typing import Any, Final, cast

import numpy as np

from parity.codec.foreign import as_numpy
from parity.codec.numbers import (
    exact_cast,
    finite_limit,
    float_of_int,
    is_float,
    kind_problem,
    nearest,
    plain_number,
)
from parity.codec.rejection import ValueRejectedError, brief, brief_json, wrong_type
from parity.schema import Tensor

Array = np.ndarray[Any, Any]

_FLOATS: Final[frozenset[type]] = frozenset({float})
_INTS: Final[frozenset[type]] = frozenset({int})
_BOOLS: Final[frozenset[type]] = frozenset({bool})
_BEYOND_64_BITS: Final = float(2**63)
"""JSON integers of more than 64 bits are read as floats."""
_NON_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_ARRAY_CODES: Final = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I",
    "uint64": "Q",
}  # fmt: skip


def tensor_decoder(field: Tensor) -> TensorDecoder:
    """The decoder of one tensor field."""
    return TensorDecoder(field)


class TensorDecoder:
    """Reads one row's tensor; the result is a read-only array of exactly the field's dtype and shape."""

    def __init__(self, field: Tensor) -> None:
        self._field = field
        self._dtype = field.numpy_dtype
        self._shape = field.shape
        self._vector = field.shape[0] if len(field.shape) == 1 else None
        size = self._vector
        single = self._dtype == np.float32 and size is not None and size <= 4096
        self._pack = struct.Struct(f"={size}f").pack if single else None

    def decode(self, value: Any) -> Array:
        """A nested list, tuple or array as a numpy array; raises ValueRejectedError."""
        pack = self._pack
        if type(value) is list and pack and len(value) == self._vector and set(map(type, value)) <= _FLOATS:
            try:
                return np.frombuffer(pack(*value), np.float32)
            except OverflowError:
                pass  # told with its position below
        if isinstance(value, list | tuple):
            flat, shape = self._flatten(cast("list[Any]", value))
            return self.from_flat(flat, shape)
        found = as_numpy(value)
        if found is None:
            raise wrong_type(
                self._field, value, "" if value is None else "send a list, nested as the shape says"
            )
        return self._from_array(found)

    def from_flat(self, flat: list[Any], shape: tuple[int, ...]) -> Array:
        """A row-major list of elements as an array of `shape`; a refusal tells the index path."""
        kinds = set(map(type, flat))
        dtype = self._dtype
        try:
            if dtype == np.bool_:
                if kinds <= _BOOLS:
                    return _frozen(np.array(flat, dtype=np.bool_), shape)
            elif dtype.kind in "iu":
                if kinds <= _INTS:
                    return _frozen(np.frombuffer(array.array(_ARRAY_CODES[dtype.name], flat), dtype), shape)
            elif kinds <= _FLOATS and dtype == np.float32:
                return _frozen(np.frombuffer(struct.pack(f"={len(flat)}f", *flat), dtype), shape)
            elif kinds <= _FLOATS:
                return self._round(np.array(flat, dtype=np.float64), shape)
        except OverflowError:
            pass  # an element is out of range; the slow path says which
        elements = [self._element(item, position, shape) for position, item in enumerate(flat)]
        if is_float(dtype):
            return self._round(np.array(elements, dtype=np.float64), shape)
        return _frozen(np.array(elements, dtype=dtype), shape)

    def _flatten(self, value: list[Any]) -> tuple[list[Any], tuple[int, ...]]:
        """All elements in row-major order, and the shape; raises where the nesting is not the field's."""
        level, shape = value, (len(value),)
        for _ in self._shape[1:]:
            kinds = set(map(type, level))
            if not kinds <= {list, tuple}:
                raise self._ragged(value)
            lengths = set(map(len, level))
            if len(lengths) > 1:
                raise self._ragged(value)
            shape = (*shape, lengths.pop() if lengths else 0)
            level = list(chain.from_iterable(level))
        if 0 in shape:  # what lies inside an empty dimension cannot be told; take what the schema says
            cut = shape.index(0)
            shape = shape[: cut + 1] + tuple(size or 0 for size in self._shape[cut + 1 :])
        if level and isinstance(level[0], list | tuple):
            raise self._ragged(value)
        self._check_shape(shape)
        return level, shape

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) != len(self._shape):
            hint = "add or remove a dimension; a batch is a list of rows, not one row"
            raise ValueRejectedError(
                f"shape {list(shape)} has {len(shape)} dimensions, the schema says {len(self._shape)}",
                self._field.describe(),
                hint,
            )
        if any(want is not None and want != got for want, got in zip(self._shape, shape, strict=True)):
            raise ValueRejectedError(f"shape {list(shape)} is not the field's", self._field.describe())

    def _ragged(self, value: list[Any]) -> ValueRejectedError:
        """The refusal of a nested list that is no array of the right depth, with the first place at fault."""
        return _first_fault(value, self._shape, self._field) or ValueRejectedError(
            f"{brief_json(value)} is nested otherwise than the shape says", self._field.describe()
        )

    def _round(self, wide: Array, shape: tuple[int, ...]) -> Array:
        """float64 elements rounded to the field's dtype; a finite one beyond its range is refused."""
        limit = finite_limit(self._dtype)
        if limit != math.inf:
            over = (np.abs(wide) >= limit) & np.isfinite(wide)
            if over.any():
                position = int(np.flatnonzero(over)[0])
                raise ValueRejectedError(
                    f"{wide[position]} is beyond the range of {self._dtype.name}",
                    self._field.describe(),
                    path=_path(position, shape),
                )
        return _frozen(nearest(wide, self._dtype), shape)

    def _element(self, value: Any, position: int, shape: tuple[int, ...]) -> Any:
        dtype = self._dtype
        number = plain_number(value)
        if dtype == np.bool_:
            if isinstance(value, bool | np.bool_):
                return value
        elif dtype.kind in "iu":
            if type(number) is int:
                info = np.iinfo(dtype)
                if int(info.min) <= number <= int(info.max):
                    return number
                raise self._refused(
                    f"{brief_json(number)} is out of range {info.min} to {info.max}", position, shape
                )
            if number is not None and abs(number) >= _BEYOND_64_BITS and math.isfinite(number):
                info = np.iinfo(dtype)
                said = f"the integer {number:.17g} is out of range {info.min} to {info.max}"
                raise self._refused(said, position, shape)
        elif type(number) is int:
            try:
                return float(number) if dtype == np.float64 else float_of_int(number)
            except OverflowError:
                raise self._refused("the integer is beyond the range of a float", position, shape) from None
        elif number is not None:
            return number
        elif type(value) is str and value in _NON_FINITE:
            return _NON_FINITE[value]
        if value is None:
            raise self._refused("null is no element of a tensor", position, shape)
        raise wrong_type(self._field, value).inside(_path(position, shape))

    def _refused(self, what: str, position: int, shape: tuple[int, ...]) -> ValueRejectedError:
        return ValueRejectedError(what, self._field.describe(), path=_path(position, shape))

    def _from_array(self, values: Array) -> Array:
        self._check_shape(values.shape)
        if values.dtype == object:
            return self.from_flat(values.reshape(-1).tolist(), values.shape)
        problem = kind_problem(values.dtype, self._dtype)
        if problem:
            raise ValueRejectedError(f"an array of dtype {values.dtype} {problem}", self._field.describe())
        cast_values, exact = exact_cast(values, self._dtype)
        if exact is not None:
            position = int(np.flatnonzero(~exact.reshape(-1))[0])
            shown_value = brief(values.reshape(-1)[position].item())
            raise ValueRejectedError(
                f"{shown_value} of dtype {values.dtype} is no {self._dtype.name}",
                self._field.describe(),
                f"cast the array, as you mean it, or declare dtype {values.dtype.name!r}",
                _path(position, values.shape),
            )
        found = np.ascontiguousarray(cast_values)
        if found is values or found.base is not None or np.may_share_memory(found, values):
            found = found.copy()
        found.flags.writeable = False
        return found


def _first_fault(value: Any, shape: tuple[int | None, ...], field: Tensor) -> ValueRejectedError | None:
    """The first place, in row-major order, where nested lists are not an array of the wanted depth."""
    if not isinstance(value, list | tuple):
        what = (
            "null stands where a list belongs"
            if value is None
            else f"{brief_json(value)} stands where a list belongs"
        )
        return ValueRejectedError(what, field.describe())
    length: int | None = shape[0]
    inner = shape[1:]
    if length is not None and len(value) != length:
        return ValueRejectedError(
            f"a list of {len(value)} stands where the shape says {length}", field.describe()
        )
    first: int | None = None
    for position, item in enumerate(value):
        if inner:
            fault = _first_fault(item, inner, field)
            if fault is None:
                if first is None:
                    first = len(item)
                elif len(item) != first:
                    fault = ValueRejectedError(
                        f"a list of {len(item)} beside lists of {first}",
                        field.describe(),
                        "make all rows equally long",
                    )
            if fault is not None:
                return fault.inside(f"[{position}]")
        elif isinstance(item, list | tuple):
            return ValueRejectedError(
                f"{brief_json(item)} stands where a number belongs", field.describe(), path=f"[{position}]"
            )
    return None


def _path(position: int, shape: tuple[int, ...]) -> str:
    return "".join(f"[{index}]" for index in np.unravel_index(position, shape))


def _frozen(values: Array, shape: tuple[int, ...]) -> Array:
    values = values.reshape(shape)
    values.flags.writeable = False
    return values
