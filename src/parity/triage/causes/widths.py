"""Floats of other widths, and integers that do not fit theirs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parity.stages import Value
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect, number_pairs, numbers
from parity.triage.values import Pair

Doubles = npt.NDArray[np.float64]

_LEVELS: Final = 16
"""Distinct values from which on a least and a greatest one are taken for the ends of a range."""


def recast(case: Case) -> Finding:
    """Equal once both sides are cast to the narrower float."""
    for item in number_pairs(case):
        rows = case.rows_of(item)
        kinds = {
            str(value.dtype)
            for row in rows
            for value in (item.expected[row], item.obtained[row])
            if value is not None
        }
        if not kinds <= {"float16", "float32", "float64"}:
            continue
        for dtype in ("float32", "float16"):
            found = _equal_as(item, rows, dtype, kinds)
            if found:
                return found
    return _recast_inputs(case)


def _equal_as(item: Pair, rows: list[int], dtype: str, kinds: set[str]) -> Explained | None:
    pairs = [(item.expected[row], item.obtained[row]) for row in rows]
    if kinds == {dtype}:
        return None
    with np.errstate(over="ignore"):
        cast = [
            (one.astype(dtype), other.astype(dtype))
            for one, other in pairs
            if one is not None and other is not None and one.shape == other.shape
        ]
    if len(cast) < len(pairs) or not all(np.array_equal(one, other, equal_nan=True) for one, other in cast):
        return None
    if len(kinds) == 1 and not _one_is_narrow(pairs, cast):
        return None
    sides = {str(value.dtype) for pair in pairs for value in pair if value is not None}
    which = " and ".join(sorted(sides)) if len(sides) > 1 else f"values of {dtype} in {next(iter(kinds))}"
    return Explained(
        f"cast to {dtype}, {item.place} is equal on {len(rows)} of {len(rows)} differing rows ({which})",
        f"one side computes with {dtype}, the other with {'float64' if 'float64' in kinds else 'float32'}",
    )


def _one_is_narrow(pairs: list[tuple[Value | None, Value | None]], cast: list[tuple[Value, Value]]) -> bool:
    """Whether all values of one side lost nothing in the cast, so that they come from the narrower type."""
    for side in (0, 1):
        if all(
            np.array_equal(wide[side], narrow[side].astype(np.float64), equal_nan=True)  # pyright: ignore
            for wide, narrow in zip(pairs, cast, strict=True)
        ):
            return True
    return False


def _recast_inputs(case: Case) -> Finding:
    """The other side's answers come when the inputs are cast to float32 first."""
    schema = case.divergence.rows.schema
    wide = [field.name for field in schema if pa.types.is_float64(field.type)]
    if not wide:
        return Refuted("cast to a narrower float, the two sides still differ") if number_pairs(case) else None

    def narrowed(rows: pa.Table) -> pa.Table:
        for name in wide:
            place = rows.schema.get_field_index(name)
            narrow = rows.column(name).cast(pa.float32(), safe=False).cast(pa.float64())
            rows = rows.set_column(place, rows.schema.field(place), narrow)
        return rows

    count = case.given(narrowed)
    if count is None:
        return Refuted("cast to a narrower float, the two sides still differ") if number_pairs(case) else None
    names = ", ".join(map(repr, wide))
    return Explained(
        f"with {names} cast to float32 first, this handler gives the other side's values on all {count} "
        "differing rows",
        "one side computes with float32, the other with float64",
    )


# Wrapping.


def wrap(case: Case) -> Finding:
    """Whole numbers that differ by multiples of 256, or only where one side is saturated."""
    pairs = number_pairs(case)
    for item in pairs:
        rows = case.rows_of(item)
        one, other = numbers(item.expected, rows), numbers(item.obtained, rows)
        if one is None or other is None or one.shape != other.shape:
            continue
        found = _modulo(item, one, other, len(rows)) or _saturated(item, one, other, len(rows))
        if found is not None:
            return found
    return (
        Refuted("the differences are no multiples of 256, and saturated values do not explain them")
        if (pairs)
        else None
    )


def _modulo(item: Pair, one: Doubles, other: Doubles, rows: int) -> Explained | None:
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return None
    if (np.round(one) != one).any() or (np.round(other) != other).any():
        return None
    steps = np.abs(other - one)
    for bits in (64, 32, 16, 8):
        size = 2.0**bits
        differs = steps > 0
        fits = any(
            (side[differs] >= -size / 2).all() and (side[differs] < size).all() for side in (one, other)
        )
        if fits and (steps % size == 0).all() and differs.any():
            return Explained(
                f"{item.place} differs by multiples of 2^{bits} on all {rows} differing rows",
                f"a value does not fit {bits} bits and wraps round on one side",
            )
    return None


def _saturated(item: Pair, one: Doubles, other: Doubles, rows: int) -> Explained | None:
    """All differing elements are at the end of the range on one side, and none on the other."""
    row = item.both[0]
    value = item.expected[row]
    if value is None or value.ndim == 0:
        return None
    scale = max(float(np.abs(one).max()), float(np.abs(other).max()))
    differs = np.abs(one - other) > 1e-4 * scale
    count = int(differs.sum())
    if count < 3 or count > 0.5 * differs.size:
        return None
    for name, clipped, wrapped in (("expected", one, other), ("obtained", other, one)):
        low, high = clipped.min(), clipped.max()
        at_end = (clipped == low) | (clipped == high)
        if not at_end[differs].all():
            continue
        far = np.abs(clipped - wrapped)[differs] > 0.3 * (high - low)
        if far.mean() > 0.9 and at_end.mean() < 0.9 and len(np.unique(clipped)) >= _LEVELS:
            return Explained(
                f"{count} elements of {item.place} differ on {rows} rows, and on the {name} side every one "
                f"of them is at the end of the range, {low:g} or {high:g}; all others are equal",
                f"values beyond the range are clipped on the {name} side and wrap round on the other",
            )
    return None


def _suspects() -> Iterator[Suspect]:
    any_way: Any = ("path", "process", "company")
    yield Suspect(
        "wrap",
        "values beyond the range of their integer type wrap round on one side",
        "differences that are multiples of 2^8 to 2^64; differences only where one side is saturated",
        "clip to the range before casting: np.clip(x, 0, 255).astype(np.uint8)",
        wrap,
    )
    yield Suspect(
        "recast",
        "one side computes with a narrower float than the other",
        "both sides cast to float32 and float16; float64 inputs cast to float32 and asked again",
        "cast to the model's dtype in preprocess, on every path",
        recast,
        any_way,
    )


SUSPECTS: Final = tuple(_suspects())
