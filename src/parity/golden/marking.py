"""Which strata rows belong to, told from the schema's field types; vectorised, nothing is kept."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from parity.golden.pictures import Picture, read_head
from parity.golden.strata import MAX_CATEGORIES, Extreme, Marks, Mask, Values, members
from parity.schema import (
    Bool,
    Bytes,
    Date,
    Decimal,
    Field,
    Floating,
    Image,
    Integer,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
)

pc = cast("Any", compute)  # the stubs know a part of it

_LONGEST_CATEGORY = 60
_EXACT_IN_FLOAT64 = 2**53
_TICKS_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def marks_of(schema: Schema, table: pa.Table) -> Marks:
    """The marks of rows of a schema's canonical types."""
    marks = Marks(table.num_rows)
    nulls = np.zeros(table.num_rows, np.int64)
    nullable = [name for name, item in schema.items() if item.nullable]
    for name, item in schema.items():
        column = cast("Any", table.column(name).combine_chunks())
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        _mark(marks, name, item, column)
        if name in nullable:
            nulls += _mask(column.is_null())
    if len(nullable) > 1:
        marks.extremes["row: most nulls"] = Extreme(nulls, nulls > 0)
    return marks


def strata_of(schema: Schema, table: pa.Table) -> dict[str, int]:
    """The strata that rows belong to, and how many rows of each there are; in the schema's order."""
    marks = marks_of(schema, table)
    counts: Counter[str] = Counter()
    for name, mask in members(marks):
        counts[name] += int(mask.sum())
    return {name: count for name, count in counts.items() if count}


def _mark(marks: Marks, name: str, item: Field, array: Any) -> None:
    if item.nullable:
        marks.masks[f"{name}: null"] = _mask(array.is_null())
    match item:
        case Bool():
            marks.declared.add(name)
            _categories(marks, name, array, str)
        case Integer() | Floating() | Decimal():
            _mark_numbers(marks, name, item, array)
        case String():
            _mark_texts(marks, name, item, array)
        case Bytes():
            sizes = pc.binary_length(array)
            _contest(marks, f"{name}: longest", sizes)
            marks.masks[f"{name}: empty"] = _mask(pc.equal(sizes, 0))
        case Timestamp() | Date():
            _mark_times(marks, name, item, array)
        case Image(form="encoded"):
            _mark_pictures(marks, name, array)
        case Image():
            _mark_tensor(marks, name, item.as_tensor, array)
        case Tensor():
            _mark_tensor(marks, name, item, array)
        case List():
            _mark_list(marks, name, item, array)
        case Struct():
            for member, inner in item.members.items():
                _mark(marks, f"{name}.{member}", inner, pc.struct_field(array, member))
        case _:
            pass


def _mark_numbers(marks: Marks, name: str, item: Integer | Floating | Decimal, array: Any) -> None:
    if isinstance(item, Integer) and item.choices is not None:
        marks.declared.add(name)
        _categories(marks, name, array, str)
        return
    values, there = _numbers(array)
    finite = there & (np.isfinite(values) if values.dtype.kind == "f" else True)
    marks.extremes[f"{name}: least"] = Extreme(_negated(values), finite.copy())
    marks.extremes[f"{name}: greatest"] = Extreme(values, finite)
    marks.masks[f"{name}: zero"] = there & (values == 0)
    marks.masks[f"{name}: negative"] = there & (values < 0)
    if isinstance(item, Floating):
        tiny = float(np.finfo(values.dtype).tiny)
        marks.masks[f"{name}: NaN"] = there & np.isnan(values)
        marks.masks[f"{name}: infinite"] = there & np.isinf(values)
        marks.masks[f"{name}: -0.0"] = there & (values == 0) & np.signbit(values)
        marks.masks[f"{name}: subnormal"] = there & (values != 0) & (np.abs(values) < tiny)
    elif isinstance(item, Integer) and item.numpy_dtype.itemsize == 8:
        beyond = (values > _EXACT_IN_FLOAT64) | (values < -_EXACT_IN_FLOAT64)
        marks.masks[f"{name}: beyond 2**53"] = there & beyond


def _mark_texts(marks: Marks, name: str, item: String, array: Any) -> None:
    if item.choices is not None:
        marks.declared.add(name)
    _categories(marks, name, array, repr)
    if item.choices is not None:
        return
    _contest(marks, f"{name}: longest", pc.utf8_length(array))
    marks.masks[f"{name}: empty"] = _mask(pc.equal(array, ""))
    beyond = ~_mask(pc.string_is_ascii(array), null=True)
    marks.masks[f"{name}: beyond ASCII"] = beyond
    where = np.flatnonzero(beyond)
    some = array.take(pa.array(where))
    kinds = {
        "beyond the BMP": pc.match_substring_regex(some, r"[\x{10000}-\x{10FFFF}]"),
        "not NFC": pc.not_equal(some, pc.utf8_normalize(some, "NFC")),
    }
    for kind, found in kinds.items():
        mask = np.zeros(len(array), np.bool_)
        mask[where] = _mask(found)
        marks.masks[f"{name}: {kind}"] = mask
    marks.masks[f"{name}: space at an end"] = _mask(pc.not_equal(array, pc.utf8_trim_whitespace(array)))
    marks.masks[f"{name}: control characters"] = _mask(pc.match_substring_regex(array, r"[\x00-\x1f\x7f]"))


def _mark_times(marks: Marks, name: str, item: Timestamp | Date, array: Any) -> None:
    kind = pa.int32() if isinstance(item, Date) else pa.int64()
    values, there = _numbers(array.cast(kind))
    marks.extremes[f"{name}: earliest"] = Extreme(-values, there.copy())
    marks.extremes[f"{name}: latest"] = Extreme(values, there.copy())
    marks.masks[f"{name}: before 1970"] = there & (values < 0)
    if isinstance(item, Timestamp) and item.unit != "s":
        marks.masks[f"{name}: fraction of a second"] = there & (values % _TICKS_A_SECOND[item.unit] != 0)


def _mark_pictures(marks: Marks, name: str, array: Any) -> None:
    there = _mask(array.is_valid())
    heads: list[Picture | None] = [
        read_head(array[row].as_buffer()) if there[row] else None for row in range(len(array))
    ]
    kinds = pa.array([head and head.kind for head in heads], pa.string())
    sizes = pa.array([head and f"{head.width}x{head.height}" for head in heads], pa.string())
    turned = np.array([head.orientation if head is not None else 1 for head in heads], np.int64)
    _categories(marks, name, kinds, str)
    _categories(marks, f"{name} size", sizes, str)
    for orientation in range(2, 9):
        marks.masks[f"{name}: orientation {orientation}"] = turned == orientation
    pixels = np.array([head.width * head.height if head is not None else 0 for head in heads], np.int64)
    marks.extremes[f"{name}: fewest pixels"] = Extreme(-pixels, there & (pixels > 0))
    marks.extremes[f"{name}: most pixels"] = Extreme(pixels, there & (pixels > 0))


def _mark_tensor(marks: Marks, name: str, item: Tensor, array: Any) -> None:
    there = _mask(array.is_valid())
    lists = pc.struct_field(array, "data") if pa.types.is_struct(array.type) else array
    if item.variable_dims:
        sizes = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        marks.extremes[f"{name}: most elements"] = Extreme(sizes, there.copy())
        marks.extremes[f"{name}: fewest elements"] = Extreme(-sizes, there.copy())
        marks.masks[f"{name}: empty"] = there & (sizes == 0)
    values, owners = _elements(lists)
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    low, high = _spans(values, owners, len(array))
    has = there & np.isin(np.arange(len(array)), owners)
    marks.masks[f"{name}: all alike"] = has & (low == high)
    if values.dtype.kind == "f":
        marks.masks[f"{name}: with NaN"] = _any(np.isnan(values), owners, len(array)) & there
        marks.masks[f"{name}: with an infinity"] = _any(np.isinf(values), owners, len(array)) & there
        has = has & np.isfinite(low) & np.isfinite(high)
    marks.extremes[f"{name}: least element"] = Extreme(-low, has.copy())
    marks.extremes[f"{name}: greatest element"] = Extreme(high, has.copy())


def _mark_list(marks: Marks, name: str, item: List, array: Any) -> None:
    sizes = pc.list_value_length(array)
    _contest(marks, f"{name}: longest", sizes)
    marks.masks[f"{name}: empty"] = _mask(pc.equal(sizes, 0))
    owners = pc.list_parent_indices(array).to_numpy(zero_copy_only=False)
    items = pc.list_flatten(array)
    inner = Marks(len(items))
    _mark(inner, f"{name}[]", item.of, items)
    rows = len(array)
    for stratum, mask in inner.masks.items():
        marks.masks[stratum] = _any(mask, owners, rows)
    for stratum, contest in inner.extremes.items():
        taking = contest.takes_part
        _, best = _spans(contest.scores[taking], owners[taking], rows)
        marks.extremes[stratum] = Extreme(best, _any(taking, owners, rows))
    marks.declared |= inner.declared
    for stratum, found in inner.categories.items():
        told = found and {value: _any(mask, owners, rows) for value, mask in found.items()}
        marks.categories[stratum] = None if found is None else told or {}


def _categories(marks: Marks, name: str, array: Any, written: Callable[[Any], str]) -> None:
    """Which rows hold which value, where there are few values."""
    encoded = array.dictionary_encode()
    if len(encoded.dictionary) > MAX_CATEGORIES and name not in marks.declared:
        marks.categories[name] = None
        return
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    texts = [written(value) for value in encoded.dictionary.to_pylist()]
    short = all(len(text) <= _LONGEST_CATEGORY for text in texts) or name in marks.declared
    found = {text: codes == code for code, text in enumerate(texts)}
    marks.categories[name] = found if short else None


def _contest(marks: Marks, name: str, sizes: Any) -> None:
    values, there = _numbers(sizes)
    marks.extremes[name] = Extreme(values, there & (values > 0))


def _numbers(array: Any) -> tuple[Values, Mask]:
    """Numbers with zero for null, and where there is one. Decimals become float64, to be ordered by."""
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    there = _mask(array.is_valid())
    if array.null_count and not pa.types.is_floating(array.type):  # floats have NaN there
        array = array.fill_null(0)
    return array.to_numpy(zero_copy_only=False), there


def _negated(values: Values) -> Values:
    """Scores in the opposite order; the least integer has no negative, so that integers are inverted."""
    return ~values if values.dtype.kind in "iu" else -values


def _elements(lists: Any) -> tuple[Values, Values]:
    """All elements of lists, one after the other, and the row that each belongs to."""
    if len(lists) == 0 or lists.null_count == len(lists):
        return np.empty(0, np.float64), np.empty(0, np.int64)
    if pa.types.is_fixed_size_list(lists.type):
        size = lists.type.list_size
        rows = np.flatnonzero(_mask(lists.is_valid()))
        return _plain(pc.list_flatten(lists)), np.repeat(rows, size)
    return _plain(pc.list_flatten(lists)), _plain(pc.list_parent_indices(lists))


def _plain(array: Any) -> Values:
    return array.to_numpy(zero_copy_only=False)


def _spans(values: Values, owners: Values, rows: int) -> tuple[Values, Values]:
    """The least and the greatest element of each row as float64; NaN, where one is, of both."""
    low, high = np.full(rows, math.inf), np.full(rows, -math.inf)
    if len(values):
        starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
        low[owners[starts]] = np.minimum.reduceat(values, starts)
        high[owners[starts]] = np.maximum.reduceat(values, starts)
    return low, high


def _any(mask: Mask, owners: Values, rows: int) -> Mask:
    found = np.zeros(rows, np.bool_)
    found[owners[mask]] = True
    return found


def _mask(array: Any, null: bool = False) -> Mask:
    """An Arrow array of booleans in numpy, writable, null as `null`."""
    return np.array(array.fill_null(null).to_numpy(zero_copy_only=False), np.bool_)
