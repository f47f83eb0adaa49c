"""Scales, divisors, powers and limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from parity.triage.case import Case, Explained, Finding, Refuted, Suspect, is_float, number_pairs, numbers
from parity.triage.values import Pair

Doubles = npt.NDArray[np.float64]

_LEFT: Final = 0.01
"""What a map may leave of the largest difference; more is no explanation of it."""

_ENOUGH: Final = 4
"""Distinct values that a map of two parameters must fit before it says anything."""


def ddof(case: Case) -> Finding:
    """A constant factor of sqrt(n / (n - 1)), or n / (n - 1), on what differs."""
    for item in number_pairs(case):
        found = _ddof_of(case, item)
        if found is not None:
            return found
    return Refuted("the two sides do not differ by sqrt(n / (n - 1))") if number_pairs(case) else None


def _ddof_of(case: Case, item: Pair) -> Explained | None:
    ratios: list[float] = []
    lengths = _lengths(case)
    known: list[int] = []
    for row in case.rows_of(item):
        one, other = item.expected[row], item.obtained[row]
        if one is None or other is None or one.shape != other.shape or one.dtype.kind != "f":
            return None
        first, second = one.astype(np.float64).ravel(), other.astype(np.float64).ravel()
        differs = np.abs(first - second) > 1e-5 * np.abs(first)
        if not differs.any() or not np.isfinite(first[differs]).all() or (first[differs] == 0).any():
            return None
        ratio = second[differs] / first[differs]
        if not np.isfinite(ratio).all() or np.ptp(ratio) > 2e-5 * abs(float(ratio[0])) or ratio[0] <= 0:
            return None
        ratios.append(max(float(ratio[0]), 1 / float(ratio[0])))
        known.append(lengths.get(row, 0))
    if not ratios:
        return None
    for name, power in (("sqrt(n / (n - 1))", 2), ("n / (n - 1)", 1)):
        counts = [1 / (1 - ratio**-power) for ratio in ratios]
        rounded = [round(count) for count in counts]
        if not all(2 <= number <= 5000 for number in rounded):
            continue
        if not all(
            abs(math.pow(number / (number - 1), 1 / power) - ratio) < 3e-6 * ratio
            for number, ratio in zip(rounded, ratios, strict=True)
        ):
            continue
        sizes = {*rounded}
        rows_at_once = {case.divergence.rows.num_rows} | {
            side.company.num_rows for side in case.sides if side.company is not None
        }
        meant = sizes <= rows_at_once or rounded == known or (len(sizes) == 1 and max(sizes) <= 100)
        if meant:
            shown = ", ".join(map(str, sorted(sizes)[:4]))
            return Explained(
                f"the two sides of {item.place} differ by the factor {name} with n = {shown} on all "
                f"{len(ratios)} differing rows",
            )
    return None


def _lengths(case: Case) -> dict[int, int]:
    """For each row the length of its one list or tensor, where there is one."""
    found: dict[int, int] = {}
    for values in case.inputs.values():
        for row, value in enumerate(values):
            if value is not None and value.ndim == 1 and row not in found and value.dtype.kind in "iuf":
                found[row] = len(value)
    return found


def affine_scale(case: Case) -> Finding:
    """One side is a multiple of the other plus a constant; for all elements, or for each feature."""
    pairs = number_pairs(case)
    for item in pairs:
        rows = item.both[:512]
        one, other = numbers(item.expected, rows), numbers(item.obtained, rows)
        if one is None or other is None or one.shape != other.shape or one.size > 4_000_000:
            continue
        found = _one_map(item, one, other, len(rows)) or _map_by_feature(item, one, other, len(rows))
        if found is not None:
            return found
    return Refuted("no scale and offset take one side to the other") if pairs else None


def fit(one: Doubles, other: Doubles, dtype: str = "float32") -> tuple[float, float] | None:
    """The scale and offset that take `one` to `other`, where they do so on enough distinct values."""
    keep = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(np.isfinite(one), np.isfinite(other)) or keep.sum() < _ENOUGH:
        return None
    x, y = one[keep].ravel(), other[keep].ravel()
    if len(np.unique(x[:4096])) < _ENOUGH or len(np.unique(y[:4096])) < _ENOUGH:
        return None
    middle = x.mean()
    spread = x - middle
    total = float((spread * spread).sum())
    if total == 0:
        return None
    scale = float((spread * (y - y.mean())).sum() / total)
    offset = float(y.mean() - scale * middle)
    noise = {"float16": 3e-3, "float32": 2e-5}.get(dtype, 1e-9)
    size = max(float(np.abs(y).max()), abs(offset))
    left = float(np.abs(scale * x + offset - y).max())
    if left > noise * size or left > _LEFT * float(np.abs(y - x).max()) or scale == 0:
        return None
    return scale, offset


def _dtype_of(item: Pair) -> str:
    values = [side[row] for side in (item.expected, item.obtained) for row in item.both[:1]]
    floats = [value.dtype for value in values if value is not None and value.dtype.kind == "f"]
    return str(min(floats, key=lambda dtype: dtype.itemsize)) if floats else "float64"


def _one_map(item: Pair, one: Doubles, other: Doubles, rows: int) -> Explained | None:
    found = fit(one, other, _dtype_of(item))
    if found is None:
        return None
    scale, offset = found
    known = _known_map(scale, offset) or _known_map(1 / scale, -offset / scale)
    number = f"{scale:.6g} times the expected side"
    number += f" plus {offset:.6g}" if abs(offset) > 1e-9 * max(1.0, abs(scale)) else ""
    return Explained(
        f"{item.place} on the obtained side is {number} on all {rows} rows"
        + (f" ({known})" if known else ""),
        "one side scales its numbers, the other does not or by other constants",
    )


def _known_map(scale: float, offset: float) -> str:
    for name, (a, b) in {
        "1/255": (1 / 255, 0.0),
        "1/256": (1 / 256, 0.0),
        "1/127.5 - 1": (1 / 127.5, -1.0),
        "1/65535": (1 / 65535, 0.0),
        "percent": (100.0, 0.0),
        "thousands": (1000.0, 0.0),
    }.items():
        if abs(scale - a) < 1e-4 * abs(a) and abs(offset - b) < 1e-4:
            return name
    return ""


def _map_by_feature(item: Pair, one: Doubles, other: Doubles, rows: int) -> Explained | None:
    """A scale and offset for each place along the first or the last axis, as a scaler has."""
    if one.ndim < 2:
        return None
    for axis in {1, one.ndim - 1}:
        features = one.shape[axis]
        if features > 4096:
            continue
        maps: list[tuple[float, float]] = []
        for feature in range(features):
            x, y = np.take(one, feature, axis), np.take(other, feature, axis)
            if np.array_equal(x, y, equal_nan=True):
                continue
            found = fit(x, y, _dtype_of(item))
            if found is None:
                break
            maps.append(found)
        else:
            if maps:
                scale, offset = maps[0]
                return Explained(
                    f"each of {len(maps)} features of {item.place} is a scale and offset of the other side's "
                    f"on all {rows} rows, such as {scale:.6g} times plus {offset:.6g}",
                    "one side standardises its features, the other does not or by other constants",
                )
    return None


def gamma(case: Case) -> Finding:
    """One side is a power of the other, as when light is made linear."""
    pairs = [item for item in number_pairs(case) if _is_picture_like(item)]
    for item in pairs:
        rows = case.rows_of(item)
        one, other = numbers(item.expected, rows), numbers(item.obtained, rows)
        if one is None or other is None or one.shape != other.shape:
            continue
        for tops in ((1.0, 1.0), (255.0, 255.0), (255.0, 1.0), (1.0, 255.0)):
            x, y = one / tops[0], other / tops[1]
            inside = (x > 0.02) & (x < 0.98) & (y > 1e-4) & (y < 0.999)
            if x.max() > 1 or y.max() > 1 or x.min() < 0 or y.min() < 0 or inside.sum() < 16:
                continue
            power = float(np.median(np.log(y[inside]) / np.log(x[inside])))
            step = 1.01 / 255 if 255.0 in tops else 1e-3
            if abs(power - 1) > 0.05 and np.abs(x**power - y).max() < step:
                return Explained(
                    f"{item.place} on the expected side to the power of {power:.3g} equals the obtained side "
                    f"on {len(rows)} of {len(rows)} differing rows",
                )
            for name, function in {"sRGB to linear": _linear, "linear to sRGB": _encoded}.items():
                if np.abs(function(x) - y).max() < step:
                    return Explained(f"{name} takes {item.place} to the obtained side on {len(rows)} rows")
    return Refuted("no power takes one side's levels to the other's") if pairs else None


def _is_picture_like(item: Pair) -> bool:
    value = item.expected[item.both[0]]
    return value is not None and value.ndim >= 2 and value.size >= 16


def _linear(x: Doubles) -> Doubles:
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def _encoded(x: Doubles) -> Doubles:
    return np.where(x <= 0.0031308, x * 12.92, 1.055 * np.maximum(x, 1e-9) ** (1 / 2.4) - 0.055)


def clipping(case: Case) -> Finding:
    """One side is the other, cut at a least or greatest value."""
    pairs = [item for item in number_pairs(case) if is_float(item)]
    for item in pairs:
        rows = item.both[:512]
        one, other = numbers(item.expected, rows), numbers(item.obtained, rows)
        if one is None or other is None or one.shape != other.shape:
            continue
        for name, free, cut in (("obtained", one, other), ("expected", other, one)):
            differs = free != cut
            ends = np.unique(cut[differs])
            if differs.sum() < 2 or not 1 <= len(ends) <= 2 or not np.isfinite(ends).all():
                continue
            low = max((end for end in ends if (free[differs & (cut == end)] < end).all()), default=-np.inf)
            high = min((end for end in ends if (free[differs & (cut == end)] > end).all()), default=np.inf)
            if np.array_equal(np.clip(free, low, high), cut):
                limits = " and ".join(f"{end:g}" for end in (low, high) if np.isfinite(end))
                return Explained(
                    f"{item.place} of the other side, cut at {limits}, equals the {name} side on all "
                    f"{len(rows)} rows",
                )
    return Refuted("neither side is the other cut at a limit") if pairs else None


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "ddof",
        "a variance is divided by n on one side and by n - 1 on the other",
        "the factor between the sides against sqrt(n / (n - 1)) for the lengths at hand",
        "name ddof where a deviation is computed: numpy divides by n, pandas and torch by n - 1",
        ddof,
    )
    yield Suspect(
        "affine-scale",
        "one side scales its numbers, the other does not or by other constants",
        "a scale and offset fitted for all numbers, and for each feature, 1/255 and the like recognised",
        "apply the same scaler on both sides, once; keep its constants beside the weights",
        affine_scale,
    )
    yield Suspect(
        "gamma",
        "one side makes the levels of pictures linear, or raises them to a power",
        "a power, and the sRGB curve, fitted between the sides",
        "agree on the transfer curve, and apply it in preprocess only",
        gamma,
    )
    yield Suspect(
        "clipping",
        "one side cuts numbers at a least or greatest value",
        "one side cut at the ends of the other",
        "cut at the same limits on both sides",
        clipping,
    )


SUSPECTS: Final = tuple(_suspects())
