"""Values against values, nested ones leaf by leaf: nulls first, then lengths, then the values themselves.

Two arrays of one length are walked down together. What differs at a level (null on one side, list lengths)
is noted with its place and leaves the walk, so that what lies below is always paired element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from parity.compare.bitwise import same_bits
from parity.compare.distances import RunningDistances
from parity.compare.dtypes import FLOATS, is_list
from parity.compare.floats import Floats, measure
from parity.compare.places import Items, Kept, Places
from parity.compare.rules import Close, Exact, Rule, Text
from parity.compare.texts import edits_between, normal_texts

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]
Reason = Literal[
    "null on one side", "lengths differ", "NaN or infinity on one side", "values differ", "null against NaN"
]


@dataclass(frozen=True)
class Difference:
    """Where two arrays of one level differ.

    `positions` are where, ascending, None for everywhere; `fails`, `severity` and `ulp` have one entry for
    each, None for all True unless nothing fails, all infinite (what no tolerance measures), and not a float.
    A severity counts `weight` times; `worst` is the largest.
    """

    path: str
    expected: pa.Array[Any]
    obtained: pa.Array[Any]
    reason: Reason
    places: Places
    positions: Positions | None
    fails: Mask | None = None
    any_fails: bool = True
    severity: Doubles | None = None
    weight: float = 1.0
    worst: float = np.inf
    ulp: Doubles | None = None
    odd: Mask | None = None

    def rows(self, among: Mask | None = None) -> Mask:
        """The rows with a difference, or with one of those that `among` marks."""
        if self.positions is None:
            return self.places.spread(among)
        flags = np.zeros(self.places.count, np.bool_)
        flags[self.positions if among is None else self.positions[among]] = True
        return self.places.spread(flags)

    def severities(self, begin: int = 0, end: int | None = None) -> Doubles:
        """How bad each difference is, or those in a range of entries."""
        if self.severity is None:
            count = self.places.count if self.positions is None else len(self.positions)
            return np.full((count if end is None else end) - begin, np.inf)
        some = self.severity[begin:end]
        return some if self.weight == 1.0 else some * self.weight

    def within(self, row: int) -> tuple[int, int]:
        """The range of the entries that lie in `row`."""
        begin, end = self.places.span(row)
        if self.positions is None:
            return begin, end
        first, last = np.searchsorted(self.positions, [begin, end]).tolist()
        return first, last

    def position(self, entry: int) -> int:
        """The position of an entry in the two arrays."""
        return entry if self.positions is None else int(self.positions[entry])


@dataclass
class Walk:
    """One column's walk: which rule, dtype and scale each leaf has, and what was found on the way."""

    rule_for: Callable[[str, str], Rule]
    dtypes: dict[str, str]
    scale: Callable[[str], float]
    distances: RunningDistances
    found: list[Difference] = field(default_factory=list[Difference])

    def compare(self, expected: pa.Array[Any], obtained: pa.Array[Any], places: Places, path: str) -> None:
        """Compare two arrays of one length and logical type."""
        expected, obtained = plain_values(expected, obtained)
        if expected.null_count or obtained.null_count:
            expected, obtained, places = self._split_nulls(expected, obtained, places, path)
        kind, other = expected.type, obtained.type
        if not len(expected) or pat.is_null(kind):
            return
        if pat.is_struct(kind) and pat.is_struct(other):
            theirs = {other.field(i).name for i in range(other.num_fields)}
            for index in range(kind.num_fields):
                name = kind.field(index).name
                if name in theirs:
                    sides = cast("Any", expected).field(name), cast("Any", obtained).field(name)
                    self.compare(*sides, places, f"{path}.{name}")
        elif is_list(kind) and is_list(other):
            self._compare_lists(expected, obtained, places, path)
        else:
            self._compare_leaf(expected, obtained, places, path)

    def _split_nulls(
        self, expected: pa.Array[Any], obtained: pa.Array[Any], places: Places, path: str
    ) -> tuple[pa.Array[Any], pa.Array[Any], Places]:
        """Note nulls on one side, and go on with the positions where both sides hold a value."""
        ours, theirs = _valid(expected), _valid(obtained)
        if pat.is_floating(expected.type) and self._null_is_nan(path):
            return *self._nulls_as_nan(expected, obtained, ours != theirs, places, path), places
        self._note(expected, obtained, "null on one side", ours != theirs, places, path)
        both = np.flatnonzero(ours & theirs)
        return expected.take(both), obtained.take(both), Kept(places, both)

    def _null_is_nan(self, path: str) -> bool:
        rule = self.rule_for(path, self.dtypes.get(path, ""))
        return isinstance(rule, Close | Exact) and rule.nulls == "nan"

    def _nulls_as_nan(
        self, expected: pa.Array[Any], obtained: pa.Array[Any], mixed: Mask, places: Places, path: str
    ) -> tuple[pa.Array[Any], pa.Array[Any]]:
        """Both sides with NaN for null; a null against a NaN is noted, and passes."""
        nan = pa.scalar(np.nan).cast(expected.type)
        filled = [cast("Any", pc).fill_null(side, nan) for side in (expected, obtained)]
        both_nan = np.isnan(float_values(filled[0])) & np.isnan(float_values(filled[1]))
        mixed = mixed & both_nan
        if mixed.any():
            none = np.zeros(int(np.count_nonzero(mixed)), np.bool_)
            self._note(expected, obtained, "null against NaN", mixed, places, path, none, np.zeros(len(none)))
        return filled[0], filled[1]

    def _compare_lists(
        self, expected: pa.Array[Any], obtained: pa.Array[Any], places: Places, path: str
    ) -> None:
        lengths, theirs = list_lengths(expected), list_lengths(obtained)
        unequal = lengths != theirs
        if unequal.any():
            self._note(expected, obtained, "lengths differ", unequal, places, path)
            same = np.flatnonzero(~unequal)
            expected, obtained, lengths = expected.take(same), obtained.take(same), lengths[same]
            places = Kept(places, same)
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        self.compare(list_values(expected), list_values(obtained), Items(places, offsets), path)

    def _compare_leaf(
        self, expected: pa.Array[Any], obtained: pa.Array[Any], places: Places, path: str
    ) -> None:
        dtype = self.dtypes.get(path, str(expected.type))
        rule = self.rule_for(path, dtype)
        if dtype in FLOATS and pat.is_floating(expected.type) and expected.type == obtained.type:
            self._compare_floats(expected, obtained, places, path, rule)
            return
        if same_bits(expected, obtained):
            return
        unequal = unequal_values(expected, obtained)
        if not unequal.any():
            return
        fails = severity = None
        if isinstance(rule, Text) and dtype == "string":
            at = np.flatnonzero(unequal)
            fails, severity = _text_differences(expected.take(at), obtained.take(at), rule)
        self._note(expected, obtained, "values differ", unequal, places, path, fails, severity)

    def _compare_floats(
        self, expected: pa.Array[Any], obtained: pa.Array[Any], places: Places, path: str, rule: Rule
    ) -> None:
        found = measure(
            float_values(expected),
            float_values(obtained),
            self.dtypes[path],
            rule,
            lambda: self.scale(path),
            self.distances,
        )
        if found is not None:
            self.found.append(
                Difference(
                    path,
                    expected,
                    obtained,
                    "values differ",
                    places,
                    found.positions,
                    found.fails,
                    found.fails is not None,
                    found.severity,
                    found.weight,
                    found.worst,
                    found.ulp,
                    found.odd,
                )
            )

    def _note(
        self,
        expected: pa.Array[Any],
        obtained: pa.Array[Any],
        reason: Reason,
        differs: Mask,
        places: Places,
        path: str,
        fails: Mask | None = None,
        severity: Doubles | None = None,
    ) -> None:
        positions = np.flatnonzero(differs)
        if len(positions):
            self.found.append(
                Difference(
                    path,
                    expected,
                    obtained,
                    reason,
                    places,
                    positions,
                    fails,
                    fails is None or bool(fails.any()),
                    severity,
                    worst=np.inf if severity is None else float(severity.max()),
                )
            )


def _text_differences(expected: pa.Array[Any], obtained: pa.Array[Any], rule: Text) -> tuple[Mask, Doubles]:
    """Which pairs of strings the rule refuses, and how many edits of those allowed each of them needs."""
    expected, obtained = normal_texts(expected, rule.normalize), normal_texts(obtained, rule.normalize)
    unequal = unequal_values(expected, obtained)
    severity = np.where(unequal, np.inf, 0.0)
    if rule.edits and unequal.any():
        at = np.flatnonzero(unequal)
        edits = edits_between(expected.take(at), obtained.take(at))
        severity[at] = edits / rule.edits
        unequal[at] = edits > rule.edits
    return unequal, severity


def list_lengths(lists: pa.Array[Any]) -> Positions:
    """The length of each list, 0 for null."""
    if pat.is_fixed_size_list(lists.type) and not lists.null_count:
        return np.full(len(lists), cast("Any", lists.type).list_size, np.int64)
    lengths = pc.list_value_length(lists)
    if lists.null_count:
        lengths = cast("Any", pc).fill_null(lengths, 0)
    return lengths.to_numpy(zero_copy_only=False).astype(np.int64)


def list_values(lists: pa.Array[Any]) -> pa.Array[Any]:
    """The elements of all lists one after another, whatever the array's offset; null adds none."""
    return cast("Any", lists).flatten()


def float_values(values: pa.Array[Any]) -> Floats:
    """The floats as numpy, a view; the array holds no nulls."""
    dtype = np.dtype(f"f{values.type.bit_width // 8}")
    if not len(values):
        return np.empty(0, dtype)
    return np.frombuffer(cast("Any", values.buffers()[1]), dtype, len(values), values.offset * dtype.itemsize)


def unequal_values(expected: pa.Array[Any], obtained: pa.Array[Any]) -> Mask:
    """Where two arrays without nulls, of one logical type, hold unequal values."""
    if pat.is_timestamp(expected.type) and pat.is_timestamp(obtained.type):
        ours, theirs = (cast("Any", side).view(pa.int64()).to_numpy() for side in (expected, obtained))
        return ours != theirs
    if expected.type != obtained.type:
        obtained = obtained.cast(expected.type)
    if pat.is_integer(expected.type):
        ours, theirs = (cast("Any", side).to_numpy(zero_copy_only=False) for side in (expected, obtained))
        return ours != theirs
    try:
        unequal = cast("Any", pc.not_equal(expected, obtained))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        pairs = zip(expected.to_pylist(), obtained.to_pylist(), strict=True)
        return np.fromiter((one != other for one, other in pairs), np.bool_, len(expected))
    return unequal.to_numpy(zero_copy_only=False)


def plain_values(expected: pa.Array[Any], obtained: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """The same values free of encodings, strings of two offset widths in the wider."""
    expected, obtained = _decoded(expected), _decoded(obtained)
    if expected.type == obtained.type:
        return expected, obtained
    return _wide(expected), _wide(obtained)


def _decoded(values: pa.Array[Any]) -> pa.Array[Any]:
    while True:
        if isinstance(values.type, pa.BaseExtensionType):
            values = cast("Any", values).storage
        elif pat.is_dictionary(values.type):
            values = cast("Any", values).dictionary_decode()
        elif pat.is_run_end_encoded(values.type):
            values = cast("Any", pc).run_end_decode(values)
        else:
            return values


def _wide(values: pa.Array[Any]) -> pa.Array[Any]:
    kind = values.type
    if pat.is_string(kind):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pat.is_binary(kind) else values


def _valid(values: pa.Array[Any]) -> Mask:
    return cast("Any", values.is_valid()).to_numpy(zero_copy_only=False)
