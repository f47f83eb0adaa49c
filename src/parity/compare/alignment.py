"""Which row of one table answers which row of the other: by key where there is one, by order where not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from parity.compare.comparison import Finding, FindingKind
from parity.compare.dtypes import plain_type
from parity.compare.values import one_array, shown_value
from parity.errors import ConfigError, did_you_mean

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Alignment:
    """The paired rows as positions in both tables (None: all, in order), and what could not be paired."""

    expected: Positions | None
    obtained: Positions | None
    findings: tuple[Finding, ...]


def align(expected: pa.Table, obtained: pa.Table, key: str | None) -> Alignment:
    """Pair the rows of two tables.

    Without a key rows pair by position. With one, rows pair by the key's value; missing, extra and
    duplicate keys are failing findings, another order is a note, and of duplicates the first is compared.
    Raises ConfigError when the key is not in the expected table, or is of a type that cannot identify rows.
    """
    if key is None:
        return _by_position(expected.num_rows, obtained.num_rows)
    if key not in expected.column_names:
        raise ConfigError(
            f"key column {key!r} is not in the expected table; {did_you_mean(key, expected.column_names)}"
        )
    if key not in obtained.column_names:
        return Alignment(np.empty(0, np.int64), np.empty(0, np.int64), ())
    return _by_key(expected.column(key), obtained.column(key), key)


def _by_position(ours: int, theirs: int) -> Alignment:
    if ours == theirs:
        return Alignment(None, None, ())
    shared = np.arange(min(ours, theirs), dtype=np.int64)
    message = f"{ours} rows expected, {theirs} obtained; the first {len(shared)} are compared in order"
    return Alignment(shared, shared, (Finding("row_count", message, "", str(ours), str(theirs)),))


def _by_key(ours: pa.ChunkedArray[Any], theirs: pa.ChunkedArray[Any], key: str) -> Alignment:
    kind = plain_type(ours.type)
    if pat.is_nested(kind) or pat.is_floating(kind):
        raise ConfigError(
            f"key column {key!r} is {ours.type}; a key is an integer, a string or another exact value"
        )
    try:
        one, other = ours.cast(kind), theirs.cast(kind)
    except pa.ArrowException:
        return Alignment(np.empty(0, np.int64), np.empty(0, np.int64), ())
    codes = _codes(one, other)
    our_codes, their_codes = codes[: len(ours)], codes[len(ours) :]
    our_keys, our_first = np.unique(our_codes, return_index=True)
    their_keys, their_first = np.unique(their_codes, return_index=True)
    shared, at_ours, at_theirs = np.intersect1d(our_keys, their_keys, assume_unique=True, return_indices=True)
    rows, matched = our_first[at_ours], their_first[at_theirs]
    order = np.argsort(rows, kind="stable")
    rows, matched = rows[order].astype(np.int64), matched[order].astype(np.int64)
    findings = [
        _keys("missing_rows", "missing from obtained", key, one, our_first[~np.isin(our_keys, shared)]),
        _keys("extra_rows", "in obtained only", key, other, their_first[~np.isin(their_keys, shared)]),
        _keys("duplicate_keys", "repeated in expected", key, one, _repeats(our_codes, our_first)),
        _keys("duplicate_keys", "repeated in obtained", key, other, _repeats(their_codes, their_first)),
    ]
    if (np.diff(matched) < 0).any():
        message = f"rows come in another order; paired by key {key!r}"
        findings.append(Finding("row_order", message, key, fails=False))
    return Alignment(rows, matched, tuple(finding for finding in findings if finding is not None))


def _codes(one: pa.ChunkedArray[Any], other: pa.ChunkedArray[Any]) -> Positions:
    both = pa.chunked_array([*one.chunks, *other.chunks], one.type)
    if not len(both):
        return np.empty(0, np.int64)
    coded = cast("Any", pc.dictionary_encode(both, null_encoding="encode")).combine_chunks()
    return np.asarray(coded.indices.to_numpy(zero_copy_only=False), np.int64)


def _repeats(codes: Positions, first: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    again = np.ones(len(codes), np.bool_)
    again[first] = False
    return np.flatnonzero(again)


def _keys(
    kind: FindingKind, what: str, key: str, values: pa.ChunkedArray[Any], rows: npt.NDArray[np.intp]
) -> Finding | None:
    if not len(rows):
        return None
    some = one_array(cast("Any", values).take(np.sort(rows)[:5]))
    names = ", ".join(repr(shown_value(some, index)) for index in range(len(some)))
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    count = f"{len(rows)} row{'s' if len(rows) > 1 else ''}"
    return Finding(kind, f"{count} {what}: {key} {names}{more}", key)
