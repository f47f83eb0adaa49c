"""The scale of each float leaf: the median magnitude of its whole column, looked up only where it matters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.types as pat

from parity.compare.dtypes import is_list, plain_type
from parity.compare.leaves import float_values
from parity.compare.sketch import Median

Arrays: TypeAlias = "Callable[[str], Iterable[pa.Array[Any]]]"
"""Gives all values of a column, in pieces; none where there is no such column."""


class Scales:
    """The column scales of one table.

    Args:
        sources: where the values are, the preferred source first; of each leaf the first that holds a finite
            value counts.
    """

    def __init__(self, *sources: Arrays) -> None:
        self._sources = sources
        self._known: dict[str, float] = {}
        self._read: set[tuple[int, str]] = set()

    def of(self, column: str, path: str) -> float:
        """The scale of the leaf at `path` in `column`; 0 when it holds no finite value."""
        for place, arrays in enumerate(self._sources):
            if path in self._known:
                break
            if (place, column) not in self._read:
                self._read.add((place, column))
                self._known = {**column_medians(arrays(column), column), **self._known}
        return self._known.get(path, 0.0)


def column_medians(arrays: Iterable[pa.Array[Any]], column: str) -> dict[str, float]:
    """The median magnitude of each float leaf of a column that holds a finite value, by its path."""
    medians: dict[str, Median] = {}
    for values in arrays:
        for path, leaf in _float_leaves(values, column):
            floats = float_values(leaf)
            if path not in medians:
                medians[path] = Median(floats.dtype)
            medians[path].add(floats)
    found = {path: median.value for path, median in medians.items()}
    return {path: value for path, value in found.items() if value is not None}


def _float_leaves(values: pa.Array[Any], path: str) -> Iterator[tuple[str, pa.Array[Any]]]:
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from _float_leaves(cast("Any", values).storage, path)
    elif pat.is_dictionary(kind) and pat.is_floating(kind.value_type):
        yield from _float_leaves(cast("Any", values).dictionary_decode(), path)
    elif pat.is_struct(kind):
        for index, child in enumerate(cast("Any", values).flatten()):
            yield from _float_leaves(child, f"{path}.{kind.field(index).name}")
    elif is_list(kind):
        yield from _float_leaves(cast("Any", values).flatten(), path)
    elif pat.is_floating(plain_type(kind)):
        yield path, cast("Any", values).drop_null()
