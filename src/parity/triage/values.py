"""Values of one place on two sides, row by row: which rows differ, and which by more than float noise.

Tables are taken apart into places as the values of stages are, so that all five stages read alike: a column
is a place, a member of a struct is "column.member".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from parity.compare.dtypes import plain_type
from parity.compare.floats import column_scale, spacing
from parity.compare.values import one_array
from parity.stages import Leaves, Value

STAGE_ULP = 64
"""What a stage's floats may differ by, in units of their dtype at the scale of their place in the row."""

_FEW_ROWS = 4

_KINDS = {"b": "truth", "i": "integer", "u": "integer", "f": "float", "c": "float", "U": "text", "S": "text"}


@dataclass(frozen=True)
class Pair:
    """One place's values on both sides, a row each, None where the row has no value.

    Attributes:
        place: where the values are, such as "value['pixels']" or a column.
        expected: each row's value one way.
        obtained: each row's value the other way.
        differing: rows whose values are not the same; -0.0 is 0.0 and NaN is NaN.
        failing: rows whose values differ by more than noise.
        worst: the largest absolute difference of numbers; None where no two numbers differ.
        detail: how the worst row differs, in words.
    """

    place: str
    expected: Sequence[Value | None]
    obtained: Sequence[Value | None]
    differing: tuple[int, ...] = ()
    failing: tuple[int, ...] = ()
    worst: float | None = None
    detail: str = ""

    @cached_property
    def both(self) -> list[int]:
        """The rows that have a value on both sides."""
        sides = zip(self.expected, self.obtained, strict=True)
        return [row for row, (one, other) in enumerate(sides) if one is not None and other is not None]


@dataclass(frozen=True)
class _RowDifference:
    """How one row's two values differ; `worst` is None for what has no distance."""

    fails: bool
    worst: float | None
    words: str


def pair(
    place: str,
    expected: Sequence[Value | None],
    obtained: Sequence[Value | None],
    measured_in: str | None = None,
) -> Pair:
    """The two sides of a place, compared.

    Args:
        place: the name of the place.
        expected: each row's value one way.
        obtained: each row's value the other way.
        measured_in: the float dtype to measure noise in, where it is narrower than the values'.
    """
    scale = _scales(expected)
    found: dict[int, _RowDifference] = {}
    for row, (one, other) in enumerate(zip(expected, obtained, strict=True)):
        if one is other:
            continue
        difference = _difference(one, other, scale, measured_in)
        if difference is not None:
            found[row] = difference
    distances = [item.worst for item in found.values() if item.worst is not None]
    gravest = max(found.values(), key=_gravity, default=None)
    return Pair(
        place,
        expected,
        obtained,
        tuple(found),
        tuple(row for row, item in found.items() if item.fails),
        max(distances, default=None),
        "" if gravest is None else gravest.words,
    )


def pairs(expected: Leaves, obtained: Leaves, rows: int, measured_in: str | None = None) -> list[Pair]:
    """Every place of two stages' values, compared; a place that one side lacks has no values there."""
    nothing: list[Value | None] = [None] * rows
    places = dict.fromkeys([*expected, *obtained])
    return [
        pair(place, expected.get(place, nothing), obtained.get(place, nothing), measured_in)
        for place in places
    ]


def places_of(table: pa.Table) -> dict[str, list[Value | None]]:
    """A table's values by place, an array a row: scalars without dimensions, tensors in their shape."""
    found: dict[str, list[Value | None]] = {}
    for field in table.schema:
        _take_apart(field.name, one_array(table.column(field.name)), _shape(field), found)
    return found


def kind_of(value: Value) -> str:
    """What a value is, whatever its width: truth, integer, float, text, time."""
    return _KINDS.get(value.dtype.kind, "time")


def same(one: Value, other: Value) -> bool:
    """Whether two values are equal in kind, shape and content; NaN is NaN."""
    if one.shape != other.shape or kind_of(one) != kind_of(other):
        return False
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fcmM")


def alike(one: Value, other: Value, scale: float = 0.0) -> bool:
    """Whether two values are equal but for their width and float noise, as after a change of one of them.

    Numbers of any kind are compared as numbers, to the noise of the narrower float among the two.
    """
    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "biuf" or other.dtype.kind not in "biuf":
        return same(one, other)
    if one.ndim == 0 and one.item() == other.item():
        return True
    floats = [value.dtype for value in (one, other) if value.dtype.kind == "f"]
    if not floats:
        return bool((one == other).all())
    dtype = str(min(floats, key=lambda item: item.itemsize))
    first, second = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(first) & np.isfinite(second)
    if not np.array_equal(first[~finite], second[~finite], equal_nan=True):
        return False
    first, second = first[finite], second[finite]
    if not first.size:
        return True
    usual = max(scale, float(np.median(np.abs(second)))) if second.size > 1 else scale
    sizes = np.maximum(np.maximum(np.abs(first), np.abs(second)), usual)
    limit = STAGE_ULP * spacing(sizes, dtype if dtype in _MEASURED else "float64")
    return bool((np.abs(first - second) <= limit).all())


def _scales(values: Sequence[Value | None]) -> Callable[[Value], Any]:
    """For a value, the usual size of a number at each of its places; of the whole where rows are few."""
    floats = [value for value in values if value is not None and value.dtype.kind in "fiu"]
    by_shape: dict[tuple[int, ...], Any] = {}

    def scale(value: Value) -> Any:
        if value.shape not in by_shape:
            alike = [item for item in floats if item.shape == value.shape]
            if len(alike) >= _FEW_ROWS:
                stacked = np.abs(np.stack(alike).astype(np.float64))
                with np.errstate(invalid="ignore"):
                    middle = np.median(np.where(np.isfinite(stacked), stacked, 0.0), axis=0)
                by_shape[value.shape] = middle
            else:
                whole = [item.astype(np.float64).ravel() for item in alike]
                by_shape[value.shape] = np.float64(column_scale(np.concatenate([*whole, np.empty(0)])))
        return by_shape[value.shape]

    return scale


def _difference(
    one: Value | None, other: Value | None, scale: Callable[[Value], Any], measured_in: str | None
) -> _RowDifference | None:
    if one is None and other is None:
        return None
    if one is None or other is None:
        there = "the other way only" if one is None else "one way only"
        return _RowDifference(True, None, f"there is a value {there}")
    if kind_of(one) != kind_of(other):
        return _RowDifference(
            True, _distance(one, other), f"dtype {_dtype(one)}, the other way {_dtype(other)}"
        )
    if one.shape != other.shape:
        return _RowDifference(True, None, f"shape {one.shape}, the other way {other.shape}")
    if kind_of(one) == "float":
        return _float_difference(one, other, scale, measured_in)
    if np.array_equal(one, other):
        return None
    return _RowDifference(True, _distance(one, other), _example(one, other))


def _float_difference(
    one: Value, other: Value, scale: Callable[[Value], Any], measured_in: str | None
) -> _RowDifference | None:
    if one.dtype != other.dtype:
        words = f"dtype {_dtype(one)}, the other way {_dtype(other)}"
        return _RowDifference(True, _distance(one, other), words)
    if np.array_equal(one, other, equal_nan=True):
        return None
    wide, others = _wide(one), _wide(other)
    with np.errstate(invalid="ignore", over="ignore"):
        equal = (wide == others) | (np.isnan(wide) & np.isnan(others))
        distance = np.where(equal, 0.0, np.abs(wide - others))
        distance[~equal & ~(np.isfinite(wide) & np.isfinite(others))] = np.inf
    sizes = np.maximum(np.where(np.isfinite(wide), np.abs(wide), 0.0), scale(one))
    dtype = measured_in or str(one.dtype)
    limit = STAGE_ULP * spacing(sizes, dtype if dtype in _MEASURED else "float64")
    return _RowDifference(bool((distance > limit).any()), float(distance.max()), _example(one, other))


_MEASURED = ("float16", "bfloat16", "float32", "float64")


def _wide(value: Value) -> npt.NDArray[np.float64]:
    if value.dtype.kind == "c":
        value = np.stack([value.real, value.imag])
    return np.atleast_1d(value.astype(np.float64))


def _distance(one: Value, other: Value) -> float | None:
    if one.shape != other.shape or not {one.dtype.kind, other.dtype.kind} <= set("biuf"):
        return None
    if one.size == 0:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return float(np.where(np.isnan(distance), np.inf, distance).max())


def _example(one: Value, other: Value) -> str:
    """The two values at the element that differs most, in words."""
    if one.ndim == 0:
        return f"{_shown(one[()])}, the other way {_shown(other[()])}"
    with np.errstate(invalid="ignore", over="ignore"):
        unequal = (one != other) & ~((one != one) & (other != other))
        weight = np.where(unequal, 1.0, 0.0)
        if one.dtype.kind in "biuf":
            distance = np.abs(one.astype(np.float64) - other.astype(np.float64))
            weight = np.where(unequal, np.nan_to_num(distance, nan=np.inf, posinf=np.inf), -1.0)
    at = np.unravel_index(int(np.argmax(weight)), one.shape)
    place = ", ".join(str(int(index)) for index in at)
    count = int(np.count_nonzero(unequal))
    return (
        f"{count} of {one.size} elements, at [{place}] {_shown(one[at])}, the other way {_shown(other[at])}"
    )


def _shown(item: Any) -> str:
    text = repr(str(item)) if isinstance(item, str | np.str_) else str(item)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _dtype(value: Value) -> str:
    return "text" if value.dtype.kind in "US" else str(value.dtype)


def _gravity(item: _RowDifference) -> tuple[bool, float]:
    return item.fails, np.inf if item.worst is None else item.worst


def _shape(field: pa.Field[Any]) -> tuple[int | None, ...] | None:
    said = (field.metadata or {}).get(b"parity.shape")
    return None if said is None else tuple(json.loads(said))


def _take_apart(
    place: str,
    values: pa.Array[Any],
    shape: tuple[int | None, ...] | None,
    found: dict[str, list[Value | None]],
) -> None:
    kind = plain_type(values.type)
    names = [kind.field(index).name for index in range(kind.num_fields)] if pat.is_struct(kind) else []
    if names == ["data", "shape"] and (shape is not None or _holds_pixels(kind)):
        found[place] = [_dense(item) for item in _items(values)]
    elif names:
        whole = cast("Any", values)
        for name in names:
            member = whole.field(name)
            if values.null_count:
                member = cast("Any", pc).if_else(values.is_valid(), member, pa.scalar(None, member.type))
            _take_apart(f"{place}.{name}", member, None, found)
    else:
        found[place] = [_one(item, kind, shape) for item in _items(values)]


def _items(values: pa.Array[Any]) -> list[Any]:
    return [item if item.is_valid else None for item in cast("Any", values)]


def _holds_pixels(kind: pa.DataType) -> bool:
    return pat.is_list(kind.field(0).type) and pat.is_fixed_size_list(kind.field(1).type)


def _dense(item: Any) -> Value | None:
    if item is None:
        return None
    data = np.asarray(item["data"].values.to_numpy(zero_copy_only=False))
    return data.reshape([int(size) for size in item["shape"].as_py()])


def _one(item: Any, kind: pa.DataType, shape: tuple[int | None, ...] | None) -> Value | None:
    if item is None:
        return None
    if pat.is_dictionary(item.type):
        item = item.value
    if pat.is_timestamp(kind):
        return np.asarray(item.value, f"datetime64[{kind.unit}]")
    if pat.is_date32(kind):
        return np.asarray(item.value, "datetime64[D]")
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return np.frombuffer(item.as_py(), np.uint8)
    if pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind):
        return _listed(item, kind, shape)
    if pat.is_floating(kind):
        return np.asarray(item.as_py(), kind.to_pandas_dtype())
    if pat.is_integer(kind) or pat.is_boolean(kind):
        return np.asarray(item.as_py(), kind.to_pandas_dtype())
    return np.asarray(str(item.as_py()))


def _listed(item: Any, kind: pa.DataType, shape: tuple[int | None, ...] | None) -> Value:
    inner = cast("Any", kind).value_type
    if (
        pat.is_integer(inner) or pat.is_floating(inner) or pat.is_boolean(inner)
    ) and not item.values.null_count:
        flat = np.asarray(item.values.to_numpy(zero_copy_only=False))
        return flat if shape is None else flat.reshape([-1 if size is None else size for size in shape])
    if pat.is_string(inner) and not item.values.null_count:
        return np.asarray(item.as_py(), np.str_)
    return np.asarray(json.dumps(item.as_py(), ensure_ascii=False, default=str))
