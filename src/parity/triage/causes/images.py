"""Channels, axes, orientation and shifts of pictures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from parity.stages import Value
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect
from parity.triage.causes.pictures import (
    picture_axes,
    picture_pairs,
    source_pictures,
)
from parity.triage.causes.scales import fit
from parity.triage.values import Pair, alike

Doubles = npt.NDArray[np.float64]

_LEVELS: Final = 2.0
"""What rounding in between may change a level of 255 by."""


# Channels.


def channel_order(case: Case) -> Finding:
    """A permutation of an axis of three or four."""
    pairs = picture_pairs(case)
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
    pairs = picture_pairs(case)
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


def orientation(case: Case) -> Finding:
    """Each picture turned or mirrored, as EXIF tags say."""
    pairs = picture_pairs(case)
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
    pairs = picture_pairs(case)
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


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "channel-order",
        "the channels of pictures come in another order on one side",
        "every permutation of an axis of 3 or 4, also with a scale and offset of each channel",
        "convert once, where the picture is decoded: OpenCV gives BGR, Pillow RGB",
        channel_order,
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


SUSPECTS: Final = tuple(_suspects())
