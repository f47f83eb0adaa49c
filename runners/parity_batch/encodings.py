"""Which columns of a part are written with a dictionary: those whose values repeat.

Parquet's writers otherwise try one for every column, and give up when it has grown to a megabyte. For scores,
keys and vectors, hardly two of which are equal, that doubled a write's time and made files larger by half.
The choice follows from the first row group's rows alone, as all bytes of a part do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from parity.codec.layouts import is_list_like, numbers, present_mask

RULE: Final = "a dictionary where of 65536 values, or a megabyte of them, a quarter repeat others"
"""What the manifest says: all parts of a job are written by one rule."""

_SAMPLE = 64 * 1024
_FIRST_LOOK = 4 * 1024
_SAMPLE_BYTES = 1024 * 1024
_LEAST = 8
_DISTINCT = 0.75
"""Eight-byte values, each as likely as the next, whose dictionary fills its megabyte, show 0.79."""

_pc: Any = pc
_pq: Any = pq


def dictionary_columns(rows: pa.Table) -> list[str]:
    """The paths of the leaf columns, as Parquet names them, that are to have a dictionary.

    Those of a map have one, and those whose values cannot be counted.

    Args:
        rows: of the first row group of a file.
    """
    paths = _paths(rows.schema)
    leaves = [leaf for column in rows.columns for leaf in _leaves(column.type, column)]
    if len(leaves) != len(paths):  # a type that is laid out in another way than here
        return paths
    return [path for path, values in zip(paths, leaves, strict=True) if values is None or _repeat(values)]


def _paths(schema: pa.Schema) -> list[str]:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema):
        pass
    found = _pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    return [found.column(place).path for place in range(len(found))]


def _leaves(kind: Any, values: Any) -> Iterator[Any]:
    """The first values of each leaf column in Parquet's order, as chunks; None where nobody looks."""
    if isinstance(kind, pa.BaseExtensionType):
        storage = kind.storage_type
        plain = None if values is None else _chunks([chunk.storage for chunk in values.chunks], storage)
        yield from _leaves(storage, plain)
    elif pa.types.is_struct(kind):
        inner = [None] * kind.num_fields if values is None else values.slice(0, _SAMPLE).flatten()
        for place, each in enumerate(inner):
            yield from _leaves(kind.field(place).type, each)
    elif pa.types.is_map(kind):
        yield from _leaves(kind.key_type, None)
        yield from _leaves(kind.item_type, None)
    elif is_list_like(kind):
        yield from _leaves(kind.value_type, None if values is None else _items(values))
    else:
        yield values


def _items(values: Any) -> Any:
    """The items of the first lists, so many in all or of one list; None where nobody gets them.

    Of a column with nulls they are a copy: fewer where each may be long.
    """
    most = _SAMPLE if pa.types.is_primitive(values.type.value_type) else _FIRST_LOOK
    some = values.slice(0, most)
    try:
        lengths = _pc.list_value_length(some)
        return _pc.list_flatten(some.slice(0, _fitting(lengths, most, 1)))
    except pa.ArrowNotImplementedError:
        return None


def _repeat(values: Any) -> bool:
    """Whether enough of the values are there more than once, of those that are looked at."""
    if pa.types.is_dictionary(values.type):
        return True
    seen = -1
    for many in (_FIRST_LOOK, _SAMPLE):
        try:
            some = _small(values.slice(0, many))
            if len(some) == seen:
                break
            distinct = _pc.count_distinct(some, mode="all").as_py()
        except pa.ArrowNotImplementedError:
            return True
        if distinct <= _DISTINCT * len(some):
            return True
        seen = len(some)
    return False


def _small(values: Any) -> Any:
    """The first values, of `_SAMPLE_BYTES` in all or `_LEAST`: those that differ are copied to be counted."""
    kind = values.type
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind):
        return values.slice(0, max(_LEAST, 8 * _SAMPLE_BYTES // max(1, kind.bit_width)))
    if pa.types.is_null(kind):
        return values
    return values.slice(0, _fitting(_pc.binary_length(values), _SAMPLE_BYTES, _LEAST))


def _fitting(sizes: Any, most: int, least: int) -> int:
    """How many of the first come to at most so much; `least` in any case."""
    found = [np.zeros(0)]
    for chunk in sizes.chunks:  # Arrow's `fill_null` would load pandas
        present = present_mask(chunk) if chunk.null_count else None
        found.append(numbers(chunk) if present is None else np.where(present, numbers(chunk), 0))
    upto = np.cumsum(np.concatenate(found))
    return max(least, int(np.searchsorted(upto, most, side="right")))


def _chunks(arrays: list[Any], kind: Any) -> Any:
    return cast("Any", pa).chunked_array(arrays, type=kind)
