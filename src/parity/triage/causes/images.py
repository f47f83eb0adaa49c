"""Channels, axes, orientation, resizing and shifts of pictures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from parity.stages import Value
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect
from parity.triage.causes.pictures import resized_ways, source_pictures
from parity.triage.values import Pair, alike

Doubles = npt.NDArray[np.float64]

_LEVELS: Final = 2.0
"""What rounding in between may change a level of 255 by."""


def _pictures(case: Case) -> list[Pair]:
    """The diverging places whose values are numbers of at least two dimensions."""
    return [
        item
        for item in case.values
        if case.covers(item)
        and all(
            _is_array(side[row], 2) for row in case.rows_of(item) for side in (item.expected, item.obtained)
        )
    ]


def _is_array(value: Value | None, least: int) -> bool:
    return value is not None and value.ndim >= least and value.size >= 4 and value.dtype.kind in "biuf"


# Channels.


def channel_order(case: Case) -> Finding:
    """A permutation of an axis of three or four."""
    pairs = _pictures(case)
    tried = 0
    for item in pairs:
        rows = case.rows_of(item)
        first = item.expected[rows[0]]
        if first is None:
            continue
        axes = [
            axis for axis in (first.ndim - 1, first.ndim - 3) if axis >= 0 and first.shape[axis] in (3, 4)
        ]
        for axis in axes:
            for order in _orders(first.shape[axis]):
                tried += 1
                if all(_permuted_alike(item.expected[row], item.obtained[row], axis, order) for row in rows):
                    return _channels(item, order, len(rows), "")
            for order in _orders(first.shape[axis]):
                if _permuted_and_scaled(item, rows, axis, order):
                    return _channels(item, order, len(rows), ", but for a scale and offset of each channel,")
    return Refuted("no permutation of the channels of one side is the other") if tried else None


def _orders(channels: int) -> Iterator[tuple[int, ...]]:
    reverse = (2, 1, 0, 3)[:channels]
    yield reverse
    for order in itertools.permutations(range(channels)):
        if order not in (reverse, tuple(range(channels))):
            yield order


def _channels(item: Pair, order: tuple[int, ...], rows: int, but: str) -> Explained:
    return Explained(
        f"channels {list(order)} of {item.place} on one side{but} equal the other side on {rows} of {rows} "
        "differing rows",
        "red and blue are swapped" if order[:3] == (2, 1, 0) else "the channels come in another order",
    )


def _permuted_alike(one: Value | None, other: Value | None, axis: int, order: tuple[int, ...]) -> bool:
    if one is None or other is None or one.shape != other.shape or one.shape[axis] != len(order):
        return False
    return alike(np.take(one, order, axis), other)


def _permuted_and_scaled(item: Pair, rows: Sequence[int], axis: int, order: tuple[int, ...]) -> bool:
    """Whether each channel is a scale and offset of another one of the other side, and not of its own."""
    from parity.triage.causes.scales import fit

    one = [item.expected[row] for row in rows]
    other = [item.obtained[row] for row in rows]
    if any(value is None or value.shape != one[0].shape for value in [*one, *other]):  # pyright: ignore
        return False
    ours, theirs = np.stack(one), np.stack(other)  # pyright: ignore
    if ours.dtype.kind != "f":
        return False

    def fits(source: int, target: int) -> bool:
        return (
            fit(
                np.take(ours, source, axis + 1).astype(np.float64),
                np.take(theirs, target, axis + 1).astype(np.float64),
            )
            is not None
        )

    moved = [target for target, source in enumerate(order) if target != source]
    return all(fits(source, target) for target, source in enumerate(order)) and not any(
        fits(target, target) for target in moved
    )


# Axes.


def transpose(case: Case) -> Finding:
    """A permutation of the axes, or the same memory read in another shape."""
    pairs = _pictures(case)
    for item in pairs:
        rows = case.rows_of(item)
        first = item.expected[rows[0]]
        if first is None or first.ndim > 4:
            continue
        for side in ("expected", "obtained"):
            one, other = (
                (item.expected, item.obtained) if side == "expected" else (item.obtained, item.expected)
            )
            dims = one[rows[0]].ndim  # pyright: ignore
            for axes in itertools.permutations(range(dims)):
                if axes != tuple(range(dims)) and all(_turned(one[row], other[row], axes) for row in rows):
                    read = (
                        ""
                        if _same_shape(one[rows[0]], other[rows[0]], axes)
                        else ", read in the other's shape,"
                    )
                    words = (
                        "rows and columns are swapped"
                        if not read
                        else (
                            "axes are moved by a reshape, which mixes the values, where a transpose is meant"
                        )
                    )
                    return Explained(
                        f"axes {list(axes)} of {item.place} on the {side} side{read} equal the other side on "
                        f"{len(rows)} of {len(rows)} differing rows",
                        words,
                    )
    return Refuted("no permutation of the axes of one side is the other") if pairs else None


def _turned(one: Value | None, other: Value | None, axes: tuple[int, ...]) -> bool:
    if one is None or other is None or one.ndim != len(axes) or one.size != other.size:
        return False
    turned = np.transpose(one, axes)
    if turned.shape != other.shape:
        turned = np.ascontiguousarray(turned).reshape(other.shape)
    elif _channels_only(one.shape, axes):
        return False
    return alike(turned, other)


def _same_shape(one: Value | None, other: Value | None, axes: tuple[int, ...]) -> bool:
    return one is not None and other is not None and np.transpose(one, axes).shape == other.shape


def _channels_only(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    del shape
    return axes == tuple(range(len(axes)))


# Orientation.


def _turns(value: Value, axes: tuple[int, int]) -> Iterator[tuple[str, Value]]:
    for quarter, name in ((1, "turned left"), (2, "turned upside down"), (3, "turned right")):
        yield name, np.rot90(value, quarter, axes)
    yield "mirrored left to right", np.flip(value, axes[1])
    yield "mirrored top to bottom", np.flip(value, axes[0])
    yield "mirrored at the diagonal", np.swapaxes(value, *axes)
    yield "mirrored at the other diagonal", np.rot90(np.swapaxes(value, *axes), 2, axes)


def picture_axes(value: Value) -> tuple[int, int]:
    """The axes of height and width: all but the one of channels."""
    if value.ndim >= 3 and value.shape[-1] > 4 and value.shape[-3] <= 4:
        return value.ndim - 2, value.ndim - 1
    return (value.ndim - 3, value.ndim - 2) if value.ndim >= 3 else (0, 1)


def orientation(case: Case) -> Finding:
    """Each picture turned or mirrored, as EXIF tags say."""
    pairs = _pictures(case)
    for item in pairs:
        rows = case.rows_of(item)
        counts: dict[str, int] = {}
        for row in rows:
            name = _turn_of(item.expected[row], item.obtained[row])
            if name is None:
                break
            counts[name] = counts.get(name, 0) + 1
        else:
            if rows and counts:
                ways = ", ".join(f"{name} {count}" for name, count in counts.items())
                tags = _exif_of(case, rows)
                said = f"; their files carry EXIF orientation {tags}" if tags else ""
                return Explained(
                    f"{item.place} on one side, turned or mirrored, equals the other side on {len(rows)} of "
                    f"{len(rows)} differing rows ({ways}){said}",
                    "pictures are turned or mirrored on one side"
                    + (", where EXIF tags say so" if tags else ""),
                )
    return Refuted("no turn or mirror image of one side is the other") if pairs else None


def _turn_of(one: Value | None, other: Value | None) -> str | None:
    if one is None or other is None or one.ndim != other.ndim:
        return None
    for name, turned in _turns(one, picture_axes(one)):
        if turned.shape == other.shape and _same_picture(turned, other):
            return name
    return None


def _same_picture(one: Value, other: Value) -> bool:
    """Alike, or of whole levels that rounding in a resize before may have changed by a few."""
    if alike(one, other):
        return True
    if one.dtype != np.uint8 or other.dtype != np.uint8:
        return False
    return bool((np.abs(one.astype(np.int64) - other.astype(np.int64)) <= _LEVELS).mean() > 0.99)


def _exif_of(case: Case, rows: Sequence[int]) -> str:
    tags: set[int] = set()
    for picture in source_pictures(case, rows):
        if picture.orientation == 1:
            return ""
        tags.add(picture.orientation)
    return ", ".join(map(str, sorted(tags)))


# Shifts.


def pixel_shift(case: Case) -> Finding:
    """One side's picture moved by up to four pixels, judged on what both show."""
    pairs = _pictures(case)
    for item in pairs:
        rows = case.rows_of(item)
        for down, right in _moves():
            if all(_moved(item.expected[row], item.obtained[row], down, right) for row in rows):
                return Explained(
                    f"{item.place} on the expected side, moved by {abs(down)} pixels "
                    f"{'down' if down > 0 else 'up'} and {abs(right)} {'right' if right > 0 else 'left'}, "
                    f"equals the obtained side on {len(rows)} of {len(rows)} differing rows, but for the "
                    "margin",
                )
    return Refuted("no shift by up to 4 pixels takes one side to the other") if pairs else None


def _moves() -> list[tuple[int, int]]:
    moves = [(down, right) for down in range(-4, 5) for right in range(-4, 5) if (down, right) != (0, 0)]
    return sorted(moves, key=lambda move: abs(move[0]) + abs(move[1]))


def _moved(one: Value | None, other: Value | None, down: int, right: int) -> bool:
    if one is None or other is None or one.shape != other.shape or one.ndim < 2:
        return False
    first, second = picture_axes(one)
    if one.shape[first] < 8 or one.shape[second] < 8:
        return False
    here = np.moveaxis(one, (first, second), (0, 1))
    there = np.moveaxis(other, (first, second), (0, 1))
    height, width = here.shape[:2]
    source = here[max(0, -down) : height - max(0, down), max(0, -right) : width - max(0, right)]
    target = there[max(0, down) : height - max(0, -down), max(0, right) : width - max(0, -right)]
    return source.std() > 0 and alike(source, target)


# Resizing.


def resize_antialias(case: Case) -> Finding:
    """The raw picture resized in all ways at hand: one way is one side, another one the other."""
    pairs = _pictures(case)
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
    from parity.triage.causes.pictures import picture_columns, rewritten

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
    from parity.triage.causes.pictures import changed_pixels

    for item in _pictures(case):
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
        "channel-order",
        "the channels of pictures come in another order on one side",
        "every permutation of an axis of 3 or 4, also with a scale and offset of each channel",
        "convert once, where the picture is decoded: OpenCV gives BGR, Pillow RGB",
        channel_order,
    )
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
        "transpose",
        "axes are swapped",
        "every permutation of the axes, also where memory is read in another shape",
        "name the axes where arrays are made; move axes with transpose, never with reshape",
        transpose,
    )
    yield Suspect(
        "orientation",
        "pictures are turned or mirrored on one side",
        "each of the seven turns and mirror images, a row at a time; the EXIF tags of the files",
        "apply the EXIF tag on both sides: PIL.ImageOps.exif_transpose, or cv2.imread without "
        "IMREAD_IGNORE_ORIENTATION",
        orientation,
    )
    yield Suspect(
        "pixel-shift",
        "pictures are cropped or placed a few pixels apart",
        "shifts by up to 4 pixels in both directions, judged on what both sides show",
        "crop and pad by one function on both sides; margins of odd sizes round one way",
        pixel_shift,
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
