"""64 bits that tell a row's answer, so that the answers of a million rows compare in 8 MB.

Two answers have the same digest when all their values have the same bits: -0.0 is not 0.0 here, and one NaN
is not another. Different answers have the same digest in one of 2**64 cases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.agreement.rows import ROW
from parity.codec.arrow import decode_table
from parity.result import ERROR_COLUMN
from parity.schema import Schema

Words = np.ndarray[Any, np.dtype[np.uint64]]

NONE: Final = np.uint64(0)
"""The digest of a row that has no answer."""

_ROWS = 65_536
_SEED = np.uint64(0x9E3779B97F4A7C15)
_MISSING = np.uint64(0x6A09E667F3BCC909)
"""The digest of a null."""
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True)
class Digests:
    """The answers of a dataset.

    Attributes:
        words: a row's digest at its place, `NONE` where it has no answer.
        twice: the answers beyond one for a row.
    """

    words: Words
    twice: int

    @property
    def without(self) -> int:
        """The rows without an answer."""
        return int((self.words == NONE).sum())

    def differing(self, other: Digests) -> int:
        """The rows whose answers differ, and those that have one here or there only."""
        return int((self.words != other.words).sum())


def digests_of(folder: Path, outputs: Schema, rows: int) -> Digests:
    """The digests of the answers in the Parquet files of a folder, in whatever order they lie.

    Raises:
        ValueError: an answer does not fit the output schema, or belongs to no row of the dataset.
    """
    words = np.full(rows, NONE)
    count = 0
    for table in _answered(folder):
        places = table.column(ROW).to_numpy()
        decoded = decode_table(outputs, table.select(list(outputs.names)))
        if decoded.errors:
            raise ValueError(f"{folder}: an answer does not fit: {decoded.errors[0].message}")
        if len(places) and not 0 <= places.min() <= places.max() < rows:
            raise ValueError(f"{folder}: rows {places.min()} to {places.max()} of a dataset of {rows}")
        words[places] = _digest(decoded.batch.to_table())
        count += len(places)
    return Digests(words, count - int((words != NONE).sum()))


def _answered(folder: Path) -> Iterator[pa.Table]:
    for path in sorted(folder.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS):
                table = pa.Table.from_batches([batch])
                if ERROR_COLUMN in table.column_names:
                    table = table.filter(table.column(ERROR_COLUMN).is_null())
                yield table


def _digest(table: pa.Table) -> Words:
    found = np.full(table.num_rows, _SEED)
    for name in table.column_names:
        found = _mixed(found ^ _bits(table.column(name).combine_chunks()))
    return np.maximum(found, np.uint64(1))


def _bits(column: Any) -> Words:
    """A value's bits, or for one that has more than 64 their hash; the column's type alone says which."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        plain = column.view(f"uint{kind.bit_width}").fill_null(0)
        words = plain.to_numpy(zero_copy_only=False).astype(np.uint64)
    elif pa.types.is_struct(kind):
        words = np.full(len(column), _SEED)
        for member in column.flatten():
            words = _mixed(words ^ _bits(member))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        words = _bits_of_lists(column)
    else:
        coded = column.dictionary_encode()
        known = np.array([_hash(value) for value in coded.dictionary] or [0], np.uint64)
        words = known[coded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return np.where(column.is_null().to_numpy(zero_copy_only=False), _MISSING, words)


def _bits_of_lists(column: Any) -> Words:
    """A list's length and its items, each mixed with its place in the list."""
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    stops = np.cumsum(lengths)
    places = np.arange(lengths.sum()) - np.repeat(stops - lengths, lengths)
    items = _mixed(_bits(column.flatten()) ^ _mixed(places.astype(np.uint64)))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(items, dtype=np.uint64)])
    return _mixed(sums[stops] - sums[stops - lengths] + _mixed(lengths.astype(np.uint64)))


def _hash(value: pa.Scalar[Any]) -> int:
    text = repr((str(value.type), cast("Any", value).as_py())).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _mixed(words: Words) -> Words:
    """The words of splitmix64: every bit of the input changes half of the output's."""
    words = words + _SEED
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))
