"""Which columns of a part are written with a dictionary: those whose values repeat.

Parquet's writers otherwise try one for every column, and give up when it has grown to a megabyte. For scores,
keys and vectors, hardly two of which are equal, that doubled a write's time and made files larger by half.
The choice follows from the first row group's rows alone, as all bytes of a part do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from parity.codec.layouts import is_list_like

RULE: Final = "a dictionary where of 65536 values a quarter repeat others"
"""What the manifest says: all parts of a job are written by one rule."""

_SAMPLE = 64 * 1024
_FIRST_LOOK = 4 * 1024
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
    """The first values of each leaf column in Parquet's order; None where they are not looked at."""
    if isinstance(kind, pa.BaseExtensionType):
        yield from _leaves(kind.storage_type, None if values is None else _whole(values, _SAMPLE).storage)
    elif pa.types.is_struct(kind):
        inner = [None] * kind.num_fields if values is None else _whole(values, _SAMPLE).flatten()
        for place, each in enumerate(inner):
            yield from _leaves(kind.field(place).type, each)
    elif pa.types.is_map(kind):
        yield from _leaves(kind.key_type, None)
        yield from _leaves(kind.item_type, None)
    elif is_list_like(kind):
        rows = -(-_SAMPLE // max(1, kind.list_size)) if pa.types.is_fixed_size_list(kind) else _SAMPLE
        yield from _leaves(kind.value_type, None if values is None else _whole(values, rows).flatten())
    else:
        yield values


def _whole(values: Any, rows: int) -> Any:
    """The first rows in one piece."""
    found = values.slice(0, rows)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _repeat(values: Any) -> bool:
    """Whether enough of the values are there more than once."""
    if pa.types.is_dictionary(values.type):
        return True
    for many in (_FIRST_LOOK, _SAMPLE):
        some = values.slice(0, many)
        try:
            distinct = _pc.count_distinct(some, mode="all").as_py()
        except pa.ArrowNotImplementedError:
            return True
        if distinct <= _DISTINCT * len(some):
            return True
    return False
