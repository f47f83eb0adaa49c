"""Values against values, nested ones leaf by leaf: nulls first, then lengths, then the values themselves.

Two arrays of one length are walked down together. What differs at a level (null on one side, list lengths)
is noted with its row and leaves the walk, so that what lies below is always paired element by element.
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

from parity.compare.dtypes import FLOATS, is_list, plain_type
from parity.compare.floats import FloatDifferences, Floats, float_differences
from parity.compare.rules import Rule, Text

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Reason = Literal["null on one side", "lengths differ", "NaN or infinity on one side", "values differ"]


@dataclass(frozen=True)
class Difference:
    """Where two arrays of one level differ: one entry per position in `rows`, `severity` and `fails`.

    `rows` never decrease. `severity` orders the entries, inf for what no tolerance measures; `elements` are
    places in the innermost list, None outside of lists; `ulp` is None for what is not a float.
    """

    path: str
    expected: pa.Array[Any]
    obtained: pa.Array[Any]
    reason: Reason
    positions: Positions
    rows: Positions
    elements: Positions | None
    severity: npt.NDArray[np.float64]
    fails: Mask
    ulp: npt.NDArray[np.float64] | None = None


@dataclass
class Walk:
    """One column's walk: which rule and dtype each leaf has, and what was found on the way."""

    rule_for: Callable[[str, str], Rule]
    dtypes: dict[str, str]
    scales: dict[str, float] = field(default_factory=dict[str, float])
    found: list[Difference] = field(default_factory=list[Difference])
    floats: list[FloatDifferences] = field(default_factory=list[FloatDifferences])

    def compare(
        self,
        expected: pa.Array[Any],
        obtained: pa.Array[Any],
        rows: Positions,
        path: str,
        elements: Positions | None = None,
    ) -> None:
        """Compare two arrays of one length and logical type; `rows` gives the table row of each position."""
        expected, obtained = _plain_values(expected), _plain_values(obtained)
        both = self._split_nulls(expected, obtained, rows, path, elements)
        if both is not None:
            expected, obtained, rows = (
                expected.take(both),
                obtained.take(both),
                rows[both],
            )
            elements = None if elements is None else elements[both]
        if not len(expected) or pat.is_null(expected.type):
            return
        if pat.is_struct(expected.type) and pat.is_struct(obtained.type):
            theirs = {obtained.type.field(i).name for i in range(obtained.type.num_fields)}
            for index in range(expected.type.num_fields):
                name = expected.type.field(index).name
                if name in theirs:
                    one, other = cast("Any", expected).field(name), cast("Any", obtained).field(name)
                    self.compare(one, other, rows, f"{path}.{name}", elements)
        elif is_list(expected.type) and is_list(obtained.type):
            self._compare_lists(expected, obtained, rows, path, elements)
        else:
            self._compare_leaf(expected, obtained, rows, path, elements)

    def _split_nulls(
        self,
        expected: pa.Array[Any],
        obtained: pa.Array[Any],
        rows: Positions,
        path: str,
        elements: Positions | None,
    ) -> Positions | None:
        """Note nulls on one side; the positions where both sides hold a value, None for all of them."""
        if not expected.null_count and not obtained.null_count:
            return None
        ours, theirs = _valid(expected), _valid(obtained)
        self._note(
            expected, obtained, "null on one side", np.flatnonzero(ours != theirs), rows, path, elements
        )
        return np.flatnonzero(ours & theirs).astype(np.int64)

    def _compare_lists(
        self,
        expected: pa.Array[Any],
        obtained: pa.Array[Any],
        rows: Positions,
        path: str,
        elements: Positions | None,
    ) -> None:
        lengths, theirs = list_lengths(expected), list_lengths(obtained)
        unequal = lengths != theirs
        if unequal.any():
            self._note(expected, obtained, "lengths differ", np.flatnonzero(unequal), rows, path, elements)
            same = np.flatnonzero(~unequal)
            expected, obtained = expected.take(same), obtained.take(same)
            rows, lengths = rows[same], lengths[same]
        total = int(lengths.sum())
        starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        inner = np.arange(total, dtype=np.int64) - starts
        items = list_values(expected), list_values(obtained)
        self.compare(items[0], items[1], np.repeat(rows, lengths), path, inner)

    def _compare_leaf(
        self,
        expected: pa.Array[Any],
        obtained: pa.Array[Any],
        rows: Positions,
        path: str,
        elements: Positions | None,
    ) -> None:
        dtype = self.dtypes.get(path, str(expected.type))
        rule = self.rule_for(path, dtype)
        if dtype in FLOATS and pat.is_floating(expected.type) and expected.type == obtained.type:
            self._compare_floats(expected, obtained, rows, path, elements, rule)
            return
        differs = np.flatnonzero(unequal_values(expected, obtained))
        fails = np.ones(len(differs), np.bool_)
        if isinstance(rule, Text) and len(differs) and dtype == "string":
            fails = unequal_values(
                _normal(expected.take(differs), rule), _normal(obtained.take(differs), rule)
            )
        self._note(expected, obtained, "values differ", differs, rows, path, elements, fails)

    def _compare_floats(
        self,
        expected: pa.Array[Any],
        obtained: pa.Array[Any],
        rows: Positions,
        path: str,
        elements: Positions | None,
        rule: Rule,
    ) -> None:
        ours, theirs = float_values(expected), float_values(obtained)
        part = float_differences(ours, theirs, self.dtypes[path], rule, self.scales.get(path))
        self.floats.append(part)
        for odd, reason in ((False, "values differ"), (True, "NaN or infinity on one side")):
            keep = part.odd if odd else ~part.odd
            self.found.append(
                Difference(
                    path,
                    expected,
                    obtained,
                    cast("Reason", reason),
                    part.positions[keep],
                    rows[part.positions[keep]],
                    None if elements is None else elements[part.positions[keep]],
                    part.severity[keep],
                    part.fails[keep],
                    part.ulp[keep],
                )
            )

    def _note(
        self,
        expected: pa.Array[Any],
        obtained: pa.Array[Any],
        reason: Reason,
        positions: npt.NDArray[np.intp],
        rows: Positions,
        path: str,
        elements: Positions | None,
        fails: Mask | None = None,
    ) -> None:
        if not len(positions):
            return
        at = positions.astype(np.int64)
        severity = np.full(len(at), np.inf)
        fails = np.ones(len(at), np.bool_) if fails is None else fails
        places = None if elements is None else elements[at]
        self.found.append(Difference(path, expected, obtained, reason, at, rows[at], places, severity, fails))


def list_lengths(lists: pa.Array[Any]) -> Positions:
    """The length of each list, 0 for null."""
    lengths = cast("Any", pc).fill_null(pc.list_value_length(lists), 0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def list_values(lists: pa.Array[Any]) -> pa.Array[Any]:
    """The elements of all lists one after another, whatever the array's offset; null adds none."""
    return cast("Any", lists).flatten()


def float_values(values: pa.Array[Any]) -> Floats:
    """The floats as numpy; the array holds no nulls."""
    return np.ascontiguousarray(cast("Any", values).to_numpy(zero_copy_only=False))


def unequal_values(expected: pa.Array[Any], obtained: pa.Array[Any]) -> Mask:
    """Where two arrays without nulls, of one logical type, hold unequal values."""
    if pat.is_timestamp(expected.type) and pat.is_timestamp(obtained.type):
        return (
            cast("Any", expected).view(pa.int64()).to_numpy()
            != cast("Any", obtained).view(pa.int64()).to_numpy()
        )
    if expected.type != obtained.type:
        obtained = obtained.cast(expected.type)
    try:
        unequal = cast("Any", pc.not_equal(expected, obtained))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        pairs = zip(expected.to_pylist(), obtained.to_pylist(), strict=True)
        return np.fromiter((one != other for one, other in pairs), np.bool_, len(expected))
    return unequal.to_numpy(zero_copy_only=False)


def _plain_values(values: pa.Array[Any]) -> pa.Array[Any]:
    """The same values free of encodings, strings in one offset width."""
    while plain_type(values.type) != values.type:
        if isinstance(values, pa.ExtensionArray):
            values = cast("Any", values).storage
        elif pat.is_dictionary(values.type):
            values = cast("Any", values).dictionary_decode()
        else:
            values = cast("Any", pc).run_end_decode(values)
    kind = values.type
    if pat.is_string(kind):
        return values.cast(pa.large_string())
    if pat.is_binary(kind):
        return values.cast(pa.large_binary())
    return values


def _valid(values: pa.Array[Any]) -> Mask:
    return cast("Any", values.is_valid()).to_numpy(zero_copy_only=False)


def _normal(values: pa.Array[Any], rule: Text) -> pa.Array[Any]:
    for form in rule.normalize:
        if form in ("NFC", "NFKC"):
            values = cast("Any", pc).utf8_normalize(values, form=form)
        elif form == "strip":
            values = cast("Any", pc.utf8_trim_whitespace(values))
        elif form == "newlines":
            values = cast("Any", pc.replace_substring_regex(values, pattern="\r\n?", replacement="\n"))
        else:
            values = pa.array([str(text).casefold() for text in values.to_pylist()], values.type)
    return values
