"""Pictures resized, laid on a background and brought to 8 bits in different ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from parity.stages import Value
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect
from parity.triage.causes.pictures import (
    changed_pixels,
    picture_axes,
    picture_columns,
    picture_pairs,
    resized_ways,
    rewritten,
    source_pictures,
)

Doubles = npt.NDArray[np.float64]

_LEVELS: Final = 2.0
"""What rounding in between may change a level of 255 by."""


# Resizing.


def resize_antialias(case: Case) -> Finding:
    """The raw picture resized in all ways at hand: one way is one side, another one the other."""
    pairs = picture_pairs(case)
    if not pairs:
        return None
    for item in pairs:
        rows = case.rows_of(item)[:6]
        pictures = source_pictures(case, rows)
        if len(pictures) < len(rows):
            continue
        found: list[dict[str, int]] = [{}, {}]
        for row, picture in zip(rows, pictures, strict=True):
            one, other = item.expected[row], item.obtained[row]
            if one is None or other is None:
                break
            for name, candidate in resized_ways(picture.pixels, one, picture_axes(one)):
                for counts, value in zip(found, (one, other), strict=True):
                    if _matches(candidate, value):
                        counts[name] = counts.get(name, 0) + 1
        ways = [[name for name, count in counts.items() if count == len(rows)] for counts in found]
        if ways[0] and ways[1] and not set(ways[0]) & set(ways[1]):
            smooth = [any("antialias" in name for name in side) for side in ways]
            sentence = "the two sides resize with other filters"
            if smooth[0] != smooth[1]:
                sentence = "one side smooths before it shrinks pictures (antialias), the other does not"
            return Explained(
                f"{item.place} is the picture resized with {ways[0][0]} on the expected side and with "
                f"{ways[1][0]} on the obtained side, on {len(rows)} of {len(rows)} rows tried",
                sentence,
            )
    return Refuted("no two ways of resizing the raw picture give the two sides")


def _matches(candidate: Doubles, value: Value) -> bool:
    """Whether a picture in levels is a value, but for its range and each channel's scale and offset."""
    target = value.astype(np.float64)
    first, second = picture_axes(value)
    target = np.moveaxis(target, (first, second), (0, 1))
    target = target.reshape(target.shape[0], target.shape[1], -1)
    if candidate.shape != target.shape:
        return False
    for channel in range(target.shape[2]):
        x, y = candidate[..., channel].ravel(), target[..., channel].ravel()
        spread = x - x.mean()
        total = float((spread * spread).sum())
        if total == 0 or y.std() == 0:
            if y.std() > 0:
                return False
            continue
        scale = float((spread * (y - y.mean())).sum() / total)
        if scale <= 0:
            return False
        away = np.abs(y - y.mean() - scale * spread) / scale
        if away.max() > 1.6 or away.mean() > 0.4:
            return False
    return True


# Alpha and depth.


def alpha(case: Case) -> Finding:
    """Pictures with an alpha channel differ, and laid on white or black, or without it, they do not."""
    return _by_kind_of_picture(
        case,
        lambda picture: picture.has_alpha,
        {
            "laid on white": "flatten-white",
            "laid on black": "flatten-black",
            "without their alpha channel": "drop-alpha",
        },
        "have an alpha channel",
    )


def bit_depth(case: Case) -> Finding:
    """Pictures of 16 bits differ, and cut to 8 bits they do not."""
    return _by_kind_of_picture(
        case,
        lambda picture: picture.deep,
        {"scaled to 8 bits": "high-byte", "cut to 8 bits": "saturate", "taken modulo 256": "low-byte"},
        "have more than 8 bits a channel",
    )


def _by_kind_of_picture(case: Case, is_of_kind: Any, changes: dict[str, str], words: str) -> Finding:
    columns = picture_columns(case)
    if not columns:
        return None
    every = source_pictures(case, range(case.divergence.rows.num_rows))
    if len(every) != case.divergence.rows.num_rows:
        return None
    kind = {row for row, picture in enumerate(every) if is_of_kind(picture)}
    failing = set(case.failing)
    if not kind:
        return None
    if not failing <= kind:
        return Refuted(f"rows differ whose pictures do not {words}")
    rows = sorted(failing)
    for name, change in changes.items():
        count = case.given(lambda table, change=change: rewritten(table, columns[0], change), rows)
        if count is not None:
            return Explained(
                f"only rows differ whose pictures {words}; given the same pictures {name}, this handler "
                f"gives the other side's values on all {count} of them"
            )
    ways = _two_ways(case, rows, every, changes)
    if ways:
        return Explained(f"only rows differ whose pictures {words}; {ways}")
    if failing == kind and len(kind) < len(every):
        return Explained(
            f"the {len(kind)} rows whose pictures {words} differ, the {len(every) - len(kind)} others do not"
        )
    return Refuted(f"pictures that {words} differ only in part, and no change of them explains it")


def _two_ways(case: Case, rows: Sequence[int], every: Sequence[Any], changes: dict[str, str]) -> str:
    """Two changes of the raw pictures of which one gives the expected side and one the obtained side."""
    for item in picture_pairs(case):
        ways: list[list[str]] = [[], []]
        for name, change in changes.items():
            for side, values in enumerate((item.expected, item.obtained)):
                if all(_is_pixels(changed_pixels(every[row], change), values[row]) for row in rows):
                    ways[side].append(name)
        if ways[0] and ways[1] and ways[0][0] != ways[1][0]:
            return f"{ways[0][0]} they are the expected side, {ways[1][0]} the obtained side"
    return ""


def _is_pixels(pixels: Any, value: Value | None) -> bool:
    return value is not None and pixels is not None and _matches(pixels.astype(np.float64), value)


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "alpha",
        "the alpha channel of pictures is dropped on one side and laid on a background on the other",
        "whether only pictures with alpha differ; these laid on white, on black, or without alpha, asked "
        "again",
        "lay pictures on one background in preprocess, or refuse those with alpha",
        alpha,
    )
    yield Suspect(
        "bit-depth",
        "pictures of 16 bits are brought to 8 bits in different ways",
        "whether only pictures of 16 bits differ; these scaled, cut and wrapped to 8 bits, asked again",
        "scale to 8 bits in preprocess (levels >> 8), or refuse pictures of 16 bits",
        bit_depth,
    )
    yield Suspect(
        "resize-antialias",
        "the two sides resize pictures with other filters",
        "the raw picture resized with every filter of Pillow, OpenCV and torch that is installed",
        "resize with one library on both sides; OpenCV smooths only with INTER_AREA, torch with "
        "antialias=True",
        resize_antialias,
    )


SUSPECTS: Final = tuple(_suspects())
