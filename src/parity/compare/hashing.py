"""A number for each row's key, equal where the keys are: the same in every process, on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

Hashes = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MORE = np.uint64(0xBF58476D1CE4E5B9)
_NULL = np.uint64(0x2545F4914F6CDD1D)


def hash_rows(columns: Sequence[pa.Array[Any]]) -> Hashes:
    """The hash of each row over several columns of one length; null has a hash of its own."""
    total = np.full(len(columns[0]), _ODD)
    for values in columns:
        total *= _MORE
        total += _column(values)
        total = _mixed(total)
    return total


def _column(values: pa.Array[Any]) -> Hashes:
    valid = None
    if values.null_count:
        valid = cast("Any", values.is_valid()).to_numpy(zero_copy_only=False)
        values = values.drop_null()
    kind = values.type
    if pat.is_integer(kind):
        found = cast("Any", values).to_numpy(zero_copy_only=False).astype(np.uint64)
    elif pat.is_temporal(kind) and kind.bit_width == 64:
        found = cast("Any", values).view(pa.int64()).to_numpy().astype(np.uint64)
    else:
        found = _texts(values)
    if valid is None:
        return found
    total = np.full(len(valid), _NULL)
    total[valid] = found
    return total


def _texts(values: pa.Array[Any]) -> Hashes:
    """A polynomial over the bytes of each text; values of other types by their text."""
    kind = values.type
    if pat.is_string(kind) or pat.is_binary(kind) or pat.is_fixed_size_binary(kind):
        values = values.cast(pa.large_binary())
    elif not (pat.is_large_string(kind) or pat.is_large_binary(kind)):
        values = values.cast(pa.large_string())
    if not len(values):
        return np.empty(0, np.uint64)
    buffers = cast("Any", values).buffers()
    offsets = np.frombuffer(buffers[1], np.int64, len(values) + 1, values.offset * 8)
    first, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    lengths = np.diff(offsets)
    if not size:
        return lengths.astype(np.uint64)
    text = np.frombuffer(buffers[2], np.uint8, size, first)
    places = np.arange(size) - np.repeat(offsets[:-1] - first, lengths)
    sums = np.zeros(size + 1, np.uint64)
    np.cumsum((text.astype(np.uint64) + np.uint64(1)) * _powers(int(lengths.max()))[places], out=sums[1:])
    return sums[offsets[1:] - first] - sums[offsets[:-1] - first] + lengths.astype(np.uint64)


def _powers(count: int) -> Hashes:
    return np.multiply.accumulate(np.full(count, _ODD, np.uint64))


def _mixed(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> np.uint64(30))) * _MORE
    hashes = (hashes ^ (hashes >> np.uint64(27))) * _ODD
    return hashes ^ (hashes >> np.uint64(31))
