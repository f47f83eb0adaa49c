"""Which row of one table answers which row of the other: by key where there is one, by order where not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from parity.compare.comparison import Finding, FindingKind
from parity.compare.dtypes import is_list, plain_type
from parity.compare.values import one_array, shown_value
from parity.errors import ConfigError, did_you_mean

Positions = npt.NDArray[np.int64]

NAMED = 5
"""How many keys a finding names."""

_BUCKETS = 65_536


@dataclass(frozen=True)
class Pairing:
    """Two lists of keys against each other, as positions in both.

    `expected` and `obtained` are the pairs, ascending in the former; of a repeated key its first rows. Then
    come those without counterpart, and of each side the first position of every repeated key and how often
    it is there.
    """

    expected: Positions
    obtained: Positions
    missing: Positions
    extra: Positions
    repeated: tuple[tuple[Positions, Positions], tuple[Positions, Positions]]


def check_key(key: Sequence[str], expected: pa.Schema, obtained: pa.Schema) -> None:
    """Raise ConfigError when a key column is not there, or is of a type that cannot identify rows."""
    for name in key:
        for side, schema in (("expected", expected), ("obtained", obtained)):
            if name not in schema.names:
                hint = did_you_mean(name, schema.names)
                raise ConfigError(f"key column {name!r} is not in the {side} table; {hint}")
        kinds = [plain_type(schema.field(name).type) for schema in (expected, obtained)]
        for kind in kinds:
            if pat.is_struct(kind) or is_list(kind) or pat.is_map(kind) or pat.is_floating(kind):
                raise ConfigError(
                    f"key column {name!r} is {kind}; a key is an integer, a string or another exact value"
                )
        if kinds[0] != kinds[1] and not _convertible(*kinds):
            raise ConfigError(
                f"key column {name!r} is {kinds[0]} in expected and {kinds[1]} in obtained, which cannot be "
                "told equal; write both with one type"
            )
    twice = sorted({name for name in key if list(key).count(name) > 1})
    if twice:
        raise ConfigError(f"key column {twice[0]!r} is given twice; name each once")


def key_values(table: pa.Table, key: Sequence[str], kinds: Sequence[pa.DataType]) -> list[pa.Array[Any]]:
    """The key columns of a table, each as one array of its type in `kinds`.

    Raises:
        ConfigError: a key cannot be converted.
    """
    found: list[pa.Array[Any]] = []
    for name, kind in zip(key, kinds, strict=True):
        values = one_array(table.column(name))
        try:
            found.append(values if values.type == kind else values.cast(kind))
        except pa.ArrowException as exc:
            raise ConfigError(
                f"key column {name!r}: {values.type} does not convert to {kind} of the expected table: {exc}"
            ) from exc
    return found


def key_types(key: Sequence[str], expected: pa.Schema, obtained: pa.Schema) -> list[pa.DataType]:
    """The type in which the two sides' key columns are told equal: the wider of integers and of strings."""
    found: list[pa.DataType] = []
    for name in key:
        one, other = (plain_type(schema.field(name).type) for schema in (expected, obtained))
        if one != other and pat.is_integer(one) and pat.is_integer(other):
            signed = pat.is_signed_integer(one) or pat.is_signed_integer(other)
            one = pa.int64() if signed else pa.uint64()
        elif one != other and not pat.is_timestamp(one):
            one = pa.large_binary() if pat.is_binary(one) or pat.is_large_binary(one) else pa.large_string()
        found.append(one)
    return found


def pair_keys(ours: Sequence[pa.Array[Any]], theirs: Sequence[pa.Array[Any]]) -> Pairing:
    """Pair rows whose values in all key columns are equal; null equals null."""
    count = len(ours[0])
    codes, kinds = _codes(ours, theirs)
    sides = codes[:count], codes[count:]
    firsts = [_firsts(side, kinds) for side in sides]
    here, there = (first >= 0 for first in firsts)
    expected, obtained = firsts[0][here & there], firsts[1][here & there]
    order = np.argsort(expected, kind="stable")
    return Pairing(
        expected[order],
        obtained[order],
        np.sort(firsts[0][here & ~there]),
        np.sort(firsts[1][~here & there]),
        (_repeats(sides[0], firsts[0], kinds), _repeats(sides[1], firsts[1], kinds)),
    )


class KeyFindings:
    """How many keys have no counterpart or are there twice, and the first few of them.

    Args:
        key: the key's columns.
        rows: how many rows the expected table has.
    """

    def __init__(self, key: Sequence[str], rows: int) -> None:
        self._key = tuple(key)
        self._order = _Order(rows)
        self._counts = [0, 0, 0, 0]
        self._keys = [0, 0, 0, 0]
        self._named: list[list[tuple[int, str]]] = [[], [], [], []]

    def add(
        self,
        pairing: Pairing,
        ours: Sequence[pa.Array[Any]],
        theirs: Sequence[pa.Array[Any]],
        rows: tuple[Positions, Positions],
    ) -> None:
        """Take in a pairing of some keys; `rows` are the row numbers of both sides."""
        self._name(0, ours, pairing.missing, rows[0])
        self._name(1, theirs, pairing.extra, rows[1])
        for side, (values, numbers) in enumerate(zip((ours, theirs), rows, strict=True)):
            first, times = pairing.repeated[side]
            self._name(2 + side, values, first, numbers, times)
        self._order.add(rows[0][pairing.expected], rows[1][pairing.obtained])

    def findings(self) -> list[Finding]:
        """Failing findings for missing, extra and repeated keys, and a note on another order."""
        kinds: list[tuple[FindingKind, str]] = [
            ("missing_rows", "missing from obtained"),
            ("extra_rows", "in obtained only"),
            ("duplicate_keys", "repeated in expected"),
            ("duplicate_keys", "repeated in obtained"),
        ]
        name = ", ".join(self._key)
        found: list[Finding] = []
        for place, (kind, what) in enumerate(kinds):
            count, named = self._counts[place], self._named[place]
            if count:
                others = self._keys[place] - len(named)
                keys = ", ".join(text for _, text in named)
                more = f" and {others} more" if others else ""
                rows = f"{count} row{'s' if count > 1 else ''}"
                found.append(Finding(kind, f"{rows} {what}: {name} {keys}{more}", name))
        if self._order.changed(any(self._counts)):
            message = f"rows come in another order; paired by key {name!r}"
            found.append(Finding("row_order", message, name, fails=False))
        return found

    def _name(
        self,
        place: int,
        values: Sequence[pa.Array[Any]],
        at: Positions,
        rows: Positions,
        times: Positions | None = None,
    ) -> None:
        self._counts[place] += len(at) if times is None else int(times.sum()) - len(times)
        self._keys[place] += len(at)
        named = self._named[place]
        first = np.argsort(rows[at], kind="stable")[:NAMED]
        for index in first.tolist():
            position = int(at[index])
            often = "" if times is None else f" ({int(times[index])} times)"
            named.append((int(rows[position]), _shown(values, position) + often))
        named.sort()
        del named[NAMED:]


class _Order:
    """Whether paired rows come in the same order on both sides, told from some pairs at a time."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._falls = self._moved = False
        buckets = min(rows, _BUCKETS)
        self._lowest = np.full(buckets, np.iinfo(np.int64).max)
        self._highest = np.full(buckets, -1, np.int64)

    def add(self, ours: Positions, theirs: Positions) -> None:
        """Take in the row numbers of some pairs, ascending in the expected table."""
        self._moved = self._moved or bool((ours != theirs).any())
        self._falls = self._falls or bool((theirs[1:] < theirs[:-1]).any())
        if not self._falls:
            buckets = ours * len(self._lowest) // max(1, self._rows)
            np.minimum.at(self._lowest, buckets, theirs)
            np.maximum.at(self._highest, buckets, theirs)

    def changed(self, unpaired: bool) -> bool:
        """Whether the order differs.

        Where rows are `unpaired`, and pairs were not given all at once, a move within a 65,536th of the rows
        may go unseen.
        """
        if not unpaired:
            return self._moved
        there = self._highest >= 0
        lowest, highest = self._lowest[there], self._highest[there]
        return self._falls or bool((lowest[1:] < highest[:-1]).any())


def _shown(values: Sequence[pa.Array[Any]], position: int) -> str:
    cells = [repr(shown_value(column, position)) for column in values]
    return cells[0] if len(cells) == 1 else f"({', '.join(cells)})"


def _convertible(one: pa.DataType, other: pa.DataType) -> bool:
    def group(kind: pa.DataType) -> str:
        if pat.is_integer(kind):
            return "integer"
        if pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind):
            return "string"
        if pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_binary_view(kind):
            return "binary"
        return "timestamp" if pat.is_timestamp(kind) else str(kind)

    return group(one) == group(other)


def _codes(ours: Sequence[pa.Array[Any]], theirs: Sequence[pa.Array[Any]]) -> tuple[Positions, int]:
    """A number for each row of both sides, equal where all values are, and how many numbers there are."""
    codes, kinds = _numbered(ours[0], theirs[0])
    for one, other in zip(ours[1:], theirs[1:], strict=True):
        more, count = _numbered(one, other)
        found, codes = np.unique(codes * count + more, return_inverse=True)
        kinds = len(found)
    return codes, kinds


def _numbered(one: pa.Array[Any], other: pa.Array[Any]) -> tuple[Positions, int]:
    both = pa.chunked_array([one, other], one.type)
    if not len(both):
        return np.empty(0, np.int64), 0
    if pat.is_integer(one.type) and not both.null_count:
        values = both.to_numpy()
        order = np.argsort(values, kind="stable")
        steps = np.cumsum(np.diff(values[order], prepend=values[order[0]]) != 0)
        codes = np.empty(len(values), np.int64)
        codes[order] = steps
        return codes, int(steps[-1]) + 1
    coded = cast("Any", pc.dictionary_encode(both, null_encoding="encode")).combine_chunks()
    if isinstance(coded, pa.ChunkedArray):
        coded = cast("Any", one_array(cast("Any", coded)))
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(coded.dictionary)


def _firsts(codes: Positions, kinds: int) -> Positions:
    """The first position of each number, -1 where it does not occur."""
    first = np.full(kinds, -1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def _repeats(codes: Positions, first: Positions, kinds: int) -> tuple[Positions, Positions]:
    times = np.bincount(codes, minlength=kinds)
    often = np.flatnonzero(times > 1)
    return first[often], times[often]
