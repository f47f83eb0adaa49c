"""Pixels at places, in float64 and one by one, from the definitions: what warps and regions are judged by."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import numpy as np

Pixels = np.ndarray


def warped(image: Pixels, matrix: Sequence[Sequence[float]], height: int, width: int, linear: bool) -> Pixels:
    """(height, width, C) float64; `matrix` has three rows and maps places of the result to the image's."""
    found = np.zeros((height, width, image.shape[2]))
    for row in range(height):
        for column in range(width):
            u, v, w = np.asarray(matrix, np.float64) @ (column, row, 1.0)
            if w != 0:
                found[row, column] = (between if linear else nearest)(image, u / w, v / w)
    return found


def turned(image: Pixels, degrees: float, linear: bool) -> Pixels:
    """The picture turned anticlockwise about its middle, at its own size; float64, 0 from outside."""
    rows, columns, channels = image.shape
    middle, turn = complex(columns - 1, rows - 1) / 2, cmath.exp(1j * math.radians(degrees))
    found = np.zeros((rows, columns, channels))
    for row in range(rows):
        for column in range(columns):
            place = middle + (complex(column, row) - middle) * turn
            found[row, column] = (between if linear else nearest)(image, place.real, place.imag)
    return found


def between(image: Pixels, x: float, y: float) -> Pixels:
    left, top = int(np.floor(x)), int(np.floor(y))
    total = np.zeros(image.shape[2])
    for row, share in ((top, 1 - (y - top)), (top + 1, y - top)):
        for column, part in ((left, 1 - (x - left)), (left + 1, x - left)):
            total += share * part * at(image, column, row)
    return total


def nearest(image: Pixels, x: float, y: float) -> Pixels:
    return at(image, int(np.floor(x + 0.5)), int(np.floor(y + 0.5)))


def at(image: Pixels, column: int, row: int) -> Pixels:
    inside = 0 <= row < image.shape[0] and 0 <= column < image.shape[1]
    return image[row, column].astype(np.float64) if inside else np.zeros(image.shape[2])


def region(image: Pixels, box: Sequence[float], height: int, width: int) -> Pixels:
    """A box of an image, linearly and without antialias: beyond the picture the edge pixel counts."""
    left, top, right, bottom = box
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge")
    return np.array(
        [
            [
                between(
                    padded,
                    left + (column + 0.5) * (right - left) / width + 0.5,
                    top + (row + 0.5) * (bottom - top) / height + 0.5,
                )
                for column in range(width)
            ]
            for row in range(height)
        ]
    )


def kept(
    boxes: Sequence[Sequence[float]], scores: Sequence[float], classes: Sequence[int], iou: float
) -> list[int]:
    """Non-maximum suppression, pair by pair."""

    def area(box: Sequence[float]) -> float:
        return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])

    def overlap(one: Sequence[float], other: Sequence[float]) -> float:
        both = [max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])]
        shared = area(both)
        union = area(one) + area(other) - shared
        return shared / union if union else 0.0

    found: list[int] = []
    for index in sorted(range(len(boxes)), key=lambda index: (-scores[index], -area(boxes[index]), index)):
        rivals = [one for one in found if classes[one] == classes[index]]
        if all(overlap(boxes[one], boxes[index]) <= iou for one in rivals):
            found.append(index)
    return found
