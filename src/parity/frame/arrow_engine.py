"""Text and times by Arrow's functions: the definition. Values on another device are fetched and sent."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from parity.frame.dtypes import PER_SECOND
from parity.frame.engine import Flags
from parity.frame.errors import FrameError

# pyarrow's stubs know a part of its functions.
_compute = cast("Any", pc)


class ArrowEngine:
    """See `TextEngine`; a native column is a pa.Array of strings."""

    name = "arrow"

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def from_arrow(self, values: pa.Array[Any]) -> Any:
        """The array itself."""
        return values

    def to_arrow(self, native: Any) -> pa.Array[Any]:
        """The array itself."""
        return native

    def valid(self, native: Any) -> torch.Tensor | None:
        """Where the rows are not null; None where all are."""
        return None if native.null_count == 0 else self._bools(native.is_valid())

    def take(self, native: Any, positions: torch.Tensor) -> Any:
        """The rows at these positions, null for -1."""
        found = positions.cpu().numpy()
        absent = found < 0
        return native.take(pa.array(found, mask=absent) if absent.any() else pa.array(found))

    def concat(self, natives: list[Any]) -> Any:
        """The rows of several columns, one after the other."""
        return pa.concat_arrays(natives)

    def lower(self, native: Any) -> Any:
        """Each code point in lower case."""
        return _compute.utf8_lower(native)

    def upper(self, native: Any) -> Any:
        """Each code point in upper case."""
        return _compute.utf8_upper(native)

    def strip(self, native: Any) -> Any:
        """Without Unicode's white space at both ends."""
        return _compute.utf8_trim_whitespace(native)

    def length(self, native: Any) -> Flags:
        """The number of code points, int64."""
        found = _compute.utf8_length(native).fill_null(0).cast(pa.int64())
        return self._sent(found.to_numpy(zero_copy_only=False)), self.valid(native)

    def contains(self, native: Any, pattern: str, regex: bool) -> Flags:
        """Whether the pattern is in the text; bool."""
        match = _compute.match_substring_regex if regex else _compute.match_substring
        return self._flags(_checked(match, pattern, native, pattern))

    def starts(self, native: Any, prefix: str) -> Flags:
        """Whether the text begins so; bool."""
        return self._flags(_compute.starts_with(native, prefix))

    def ends(self, native: Any, suffix: str) -> Flags:
        """Whether the text ends so; bool."""
        return self._flags(_compute.ends_with(native, suffix))

    def replace(self, native: Any, pattern: str, by: str, regex: bool) -> Any:
        """Every occurrence of the pattern, from left to right, replaced."""
        if not regex and pattern == "":
            raise FrameError("str.replace: the pattern is empty; it would match between all characters")
        replace = _compute.replace_substring_regex if regex else _compute.replace_substring
        return _checked(replace, pattern, native, pattern, by)

    def slice(self, native: Any, start: int, stop: int | None) -> Any:
        """The code points from start to stop, which may count from the end."""
        return _compute.utf8_slice_codeunits(native, start, stop)

    def lookup(self, native: Any, known: list[str]) -> torch.Tensor:
        """The position of each text among `known`; -1 for null and for all others."""
        found = _compute.index_in(native, value_set=pa.array(known, native.type), skip_nulls=True)
        return self._sent(found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64))

    def codes(self, natives: list[Any]) -> torch.Tensor:
        """A number for each row, equal for equal texts; -1 for null."""
        found = self.concat(natives).dictionary_encode().indices.fill_null(-1)
        return self._sent(found.to_numpy(zero_copy_only=False).astype(np.int64))

    def ranks(self, native: Any) -> torch.Tensor:
        """The place of each text among the distinct ones, by code points; -1 for null."""
        encoded = native.dictionary_encode()
        order = _compute.sort_indices(encoded.dictionary).to_numpy()
        places = np.empty(len(order) + 1, np.int64)
        places[order] = np.arange(len(order))
        places[-1] = -1
        return self._sent(places[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)])

    def local_ticks(self, ticks: torch.Tensor, unit: str, zone: str) -> torch.Tensor:
        """What clocks show in a zone at these instants; by the zone's last rule where Arrow knows none."""
        instants = ticks.cpu().numpy()
        local = _compute.local_timestamp(pa.array(instants).cast(pa.timestamp(cast("Any", unit), zone)))
        found = np.array(local.cast(pa.int64()))
        per_second = PER_SECOND[unit]
        late = np.flatnonzero(instants >= _LAST_OF_ARROW * per_second)
        if len(late) and not _FIXED.fullmatch(zone):
            found[late] = instants[late] + _offsets(instants[late] // per_second, zone) * per_second
        return self._sent(found)

    def date_part(self, ticks: torch.Tensor, dtype: pa.DataType, part: str) -> torch.Tensor:
        """One part of each time without a zone, int64."""
        held = pa.array(ticks.cpu().numpy())
        times = held.cast(pa.int32()).cast(dtype) if pa.types.is_date32(dtype) else held.cast(dtype)
        found = getattr(_compute, "day_of_week" if part == "weekday" else part)(times)
        return self._sent(found.to_numpy(zero_copy_only=False).astype(np.int64))

    def _flags(self, found: Any) -> Flags:
        valid = None if found.null_count == 0 else self._bools(found.is_valid())
        return self._bools(found.fill_null(False)), valid

    def _bools(self, found: Any) -> torch.Tensor:
        return self._sent(found.to_numpy(zero_copy_only=False))

    def _sent(self, values: np.ndarray[Any, Any]) -> torch.Tensor:
        if not values.flags.writeable:
            values = values.copy()
        return torch.from_numpy(values).to(self.device)


_LAST_OF_ARROW = int(datetime.datetime(2037, 1, 1, tzinfo=datetime.UTC).timestamp())
"""From here on Arrow applies no summer time: it reads a zone's list of changes, not its last rule."""

_CYCLE = 146_097 * 86_400
"""Seconds in 400 years, after which the calendar repeats, weekdays included."""

_FIXED = re.compile(r"[+-]\d\d:?\d\d")


def _offsets(seconds: np.ndarray[Any, Any], zone: str) -> np.ndarray[Any, Any]:
    """The offsets from UTC in seconds at late instants, each at or after 2037."""
    distinct, inverse = np.unique((seconds - _LAST_OF_ARROW) % _CYCLE + _LAST_OF_ARROW, return_inverse=True)
    rules = zoneinfo.ZoneInfo(zone)
    offsets = [
        cast("Any", datetime.datetime.fromtimestamp(second, rules).utcoffset()).total_seconds()
        for second in distinct.tolist()
    ]
    return np.array(offsets, np.int64)[inverse]


def _checked(function: Any, pattern: str, *args: Any) -> Any:
    try:
        return function(*args)
    except pa.ArrowInvalid as exc:
        raise FrameError(f"pattern {re.escape(pattern)!r} is no regular expression of RE2: {exc}") from exc
