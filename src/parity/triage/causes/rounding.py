"""One side rounded, or both in different ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from parity.stages import Value
from parity.triage.case import (
    Case,
    Change,
    Explained,
    Finding,
    Refuted,
    Removed,
    Suspect,
    is_float,
    number_pairs,
    numbers,
)
from parity.triage.values import Pair

Doubles = npt.NDArray[np.float64]

_DIGITS: Final = 3.0
"""Digits that rounded values must have, all together, to tell that they are rounded."""


def _half_up(scaled: Doubles) -> Doubles:
    return np.floor(scaled + 0.5)


def _half_away(scaled: Doubles) -> Doubles:
    return np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)


_MODES: Final[dict[str, Callable[[Doubles], Doubles]]] = {
    "half to even": np.round,
    "half up": _half_up,
    "half away from zero": _half_away,
    "down": np.floor,
    "toward zero": np.trunc,
    "up": np.ceil,
}


def _rounded(digits: int, mode: Callable[[Doubles], Doubles], *, wide: bool) -> Change:
    """Round in float64, or in the value's own dtype, which decides ties in another way."""
    power = 10**digits

    def change(value: Value) -> Value | None:
        if value.dtype.kind != "f":
            return None
        with np.errstate(all="ignore"):
            scaled = (value.astype(np.float64) if wide else value) * power
            return (mode(scaled) / power).astype(value.dtype)

    return change


def _significant(digits: int) -> Change:
    def change(value: Value) -> Value | None:
        if value.dtype.kind != "f" or value.size > 100_000:
            return None
        flat = [float(f"{float(item):.{digits}g}") for item in value.ravel().tolist()]
        return np.asarray(flat, value.dtype).reshape(value.shape)

    return change


def rounding(case: Case) -> Finding:
    """One side rounded, or both in different ways."""
    pairs = number_pairs(case)
    if not pairs:
        return _rounded_texts(case)
    floats = [item for item in pairs if is_float(item)]
    for digits in range(10) if floats else ():
        for mode in ("half to even", "half up", "toward zero", "down"):
            found = next(
                (
                    removed
                    for wide in (True, False)
                    if (
                        removed := _exactly(
                            case, floats, _rounded(digits, _MODES[mode], wide=wide), 10.0**-digits
                        )
                    )
                ),
                None,
            )
            if found is not None:
                how = "" if mode.startswith("half") else f" {mode}"
                places = "whole numbers" if digits == 0 else f"{digits} decimals"
                words = f"rounded to {places}{how}, the values {found.words}"
                return Explained(words, f"one side rounds to {places}{how}, the other does not")
    for digits in range(9, 1, -1) if floats else ():
        found = _exactly(case, floats, _significant(digits), 1e-300)
        if found is not None:
            words = f"rounded to {digits} significant digits, the values {found.words}"
            return Explained(words, f"one side rounds to {digits} significant digits, the other does not")
    for item in pairs:
        two = _two_modes(case, item)
        if two is not None:
            return two
    for item in floats:
        unit = _one_unit(case, item)
        if unit is not None:
            return unit
    return Refuted("neither side is the other rounded, and no two ways of rounding give both")


def _tells(values: list[Value | None], step: float) -> bool:
    """Whether rounded values have enough digits, all together, that they are no coincidence."""
    kept = [value.astype(np.float64).ravel() for value in values if value is not None]
    sizes = np.abs(np.concatenate([*kept, np.empty(0)]))
    sizes = sizes[np.isfinite(sizes)]
    sizes = sizes[sizes > step]
    return bool((np.log10(sizes) - np.log10(step)).sum() >= _DIGITS)


def _exactly(case: Case, pairs: list[Pair], change: Change, step: float) -> Removed | None:
    """As `removed_by`, but to the last bit: rounding leaves no noise."""
    for item in pairs:
        rows = case.rows_of(item)
        for side in ("expected", "obtained"):
            one, other = (
                (item.expected, item.obtained) if side == "expected" else (item.obtained, item.expected)
            )
            told = [other[row] for row in rows]
            if rows and all(_rounds_to(change, one[row], other[row]) for row in rows) and _tells(told, step):
                return Removed(item, len(rows), side)
    return None


def _rounds_to(change: Change, one: Value | None, other: Value | None) -> bool:
    if one is None or other is None:
        return False
    changed = change(one)
    if changed is None or changed.shape != other.shape:
        return False
    with np.errstate(all="ignore"):
        target = other.astype(changed.dtype)
        last_bit = 2 * float(np.finfo(changed.dtype).eps)
        is_rounded = np.allclose(changed, target, rtol=last_bit, atol=0, equal_nan=True)
        return bool(is_rounded and not np.allclose(one, target, rtol=2 * last_bit, atol=0, equal_nan=True))


def _two_modes(case: Case, item: Pair) -> Explained | None:
    """Both sides are roundings of one source, in different ways."""
    rows = item.both
    one, other = numbers(item.expected, rows), numbers(item.obtained, rows)
    if one is None or other is None:
        return None
    for name, source in _source_numbers(case, item, rows, one.shape):
        for divisor, step, where in _steps(source, one):
            with np.errstate(all="ignore"):
                scaled = source / divisor
                results = {mode: function(scaled) * step for mode, function in _MODES.items()}
            ours = [mode for mode, values in results.items() if _equal(values, one)]
            theirs = [mode for mode, values in results.items() if _equal(values, other)]
            if ours and theirs:
                ways = f"{ours[0]} on the expected side, {theirs[0]} on the obtained side"
                return Explained(
                    f"{name} rounded to {where}, {ways}, gives {item.place} on all {len(rows)} rows",
                    f"the two sides round to {where} in different ways: {ways}",
                )
    return None


def _steps(source: Doubles, target: Doubles) -> Iterator[tuple[float, float, str]]:
    """What to divide the source by, what a step then is, and both in words."""
    yield 1.0, 1.0, "whole numbers"
    for digits in (1, 2, 3, 4, 6):
        yield 10.0**-digits, 10.0**-digits, f"{digits} decimals"
    finite = np.isfinite(source) & np.isfinite(target) & (np.abs(target) >= 3)
    if finite.sum() < 3:
        return
    ratio = float(np.median(source[finite] / target[finite]))
    if not np.isfinite(ratio) or ratio <= 1.5:
        return
    for size in (2, 1):
        divisor = float(f"{ratio:.{size}g}")
        yield divisor, 1.0, f"whole numbers after a division by {divisor:g}"
        yield divisor, divisor, f"multiples of {divisor:g}"


def _source_numbers(
    case: Case, item: Pair, rows: list[int], shape: tuple[int, ...]
) -> Iterator[tuple[str, Doubles]]:
    for name, (values, _) in case.sources(item).items():
        found = numbers(values, rows)
        if found is None:
            continue
        if found.shape == shape:
            yield name, found
        elif len(shape) == 1 and found.ndim == 2 and found.shape[1] <= 32:
            for column in range(found.shape[1]):
                yield f"{name}[{column}]", found[:, column]
        elif found.ndim == 1 and len(shape) == 2:
            yield name, np.broadcast_to(found[:, None], shape)


def _equal(values: Doubles, target: Doubles) -> bool:
    with np.errstate(invalid="ignore"):
        return bool(np.allclose(values, target, rtol=1e-6, atol=1e-12, equal_nan=True))


def _one_unit(case: Case, item: Pair) -> Explained | None:
    """Both sides lie on one decimal grid, and differ by exactly one step wherever they do."""
    rows = case.rows_of(item)
    one, other = numbers(item.expected, rows), numbers(item.obtained, rows)
    if one is None or other is None or not (np.isfinite(one).all() and np.isfinite(other).all()):
        return None
    if case.group != "path" or len(rows) < 2:
        return None
    for digits in range(1, 5):
        power = 10.0**digits
        steps = (other - one) * power
        on_grid = all(np.abs(side * power - np.round(side * power)).max() < 1e-3 for side in (one, other))
        if on_grid and np.abs(steps).max() > 0.5:
            if np.abs(np.abs(steps[np.abs(steps) > 0.5]) - 1).max() < 1e-3:
                unit = f"{10.0**-digits:g}"
                return Explained(
                    f"both sides of {item.place} are multiples of {unit}, and differ by one such step on all "
                    f"{len(rows)} differing rows",
                    f"the two sides round to multiples of {unit} in different ways",
                )
            return None
    return None


def _rounded_texts(case: Case) -> Finding:
    """Numbers written as texts with another number of digits."""
    for item in case.values:
        rows = case.rows_of(item)
        one, other = ([_parsed(side[row]) for row in rows] for side in (item.expected, item.obtained))
        if not rows or any(number is None for number in [*one, *other]):
            continue
        first, second = np.asarray(one, np.float64), np.asarray(other, np.float64)
        if (first == second).all():
            continue
        for digits in range(9):
            for side, (finer, coarser) in {"expected": (first, second), "obtained": (second, first)}.items():
                if np.array_equal(np.round(finer, digits), coarser):
                    return Explained(
                        f"the numbers in the texts of {item.place} on the {side} side, rounded to {digits} "
                        f"decimals, equal the other side's on {len(rows)} of {len(rows)} differing rows",
                        f"one side writes {digits} decimals",
                    )
        return Refuted("the numbers in the texts are no roundings of each other")
    return None


def _parsed(value: Value | None) -> float | None:
    if value is None or value.ndim or value.dtype.kind not in "US":
        return None
    try:
        return float(str(value[()]))
    except ValueError:
        return None


def _suspects() -> Iterator[Suspect]:
    any_way: Any = ("path", "process", "company")
    yield Suspect(
        "rounding",
        "one side rounds, or the two sides round in different ways",
        "one side rounded to 0 to 9 decimals or 2 to 9 digits against the other; every way of rounding an "
        "earlier value against both sides",
        "round in one place, in one way, or not at all; send floats with all their digits",
        rounding,
        any_way,
    )


SUSPECTS: Final = tuple(_suspects())
