"""Boxes, kept or drawn: left, top, right and bottom in pixels, where 0 is the edge of the first pixel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast, overload

import numpy as np
import torch

from parity.errors import ConfigError
from parity.vision.arguments import kind, number, pictures_of, whole, wholes
from parity.vision.images import Images
from parity.vision.meanings import note_use

_Array = np.ndarray[Any, Any]


@overload
def nms(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    *,
    iou: float,
    classes: torch.Tensor | None = None,
    min_score: float | None = None,
    limit: int | None = None,
) -> torch.Tensor: ...


@overload
def nms(
    boxes: Sequence[torch.Tensor],
    scores: Sequence[torch.Tensor],
    *,
    iou: float,
    classes: Sequence[torch.Tensor] | None = None,
    min_score: float | None = None,
    limit: int | None = None,
) -> list[torch.Tensor]: ...


def nms(
    boxes: torch.Tensor | Sequence[torch.Tensor],
    scores: torch.Tensor | Sequence[torch.Tensor],
    *,
    iou: float,
    classes: torch.Tensor | Sequence[torch.Tensor] | None = None,
    min_score: float | None = None,
    limit: int | None = None,
) -> torch.Tensor | list[torch.Tensor]:
    """The boxes of a picture to keep, best first: of boxes that overlap much, the best alone.

    Boxes are taken by score, descending; of equal scores the larger box comes first, then the lower index. A
    box is left out where its intersection over union with a box that is kept exceeds `iou`. Areas are float64
    and computed on the host, so that the same boxes are kept on every device.

    Args:
        boxes: (n, 4) float; of several pictures a list with the boxes of each, and so for scores and classes.
        scores: (n,) float.
        iou: the largest overlap that is borne, 0 to 1.
        classes: (n,) integers: boxes of two classes do not leave each other out.
        min_score: boxes with lower scores are left out first; it is rounded to the scores' dtype.
        limit: how many boxes are kept at most, of each picture.

    Returns:
        Indexes (k,) int64 into boxes, on their device; of several pictures a list of them.

    Raises:
        ConfigError: shapes or dtypes do not fit, a value is not finite, a box ends before it begins, or `iou`
            is not from 0 to 1.
    """
    note_use("nms")
    if not isinstance(boxes, list | tuple):
        return _best(boxes, scores, iou, classes, min_score, limit)
    every = cast("Sequence[object]", boxes)
    _best(torch.empty(0, 4), torch.empty(0), iou, None, min_score, limit)  # what is for all is checked once
    worths = _of_each("scores", scores, len(every))
    kinds = [None] * len(every) if classes is None else _of_each("classes", classes, len(every))
    found: list[torch.Tensor] = []
    for row, one in enumerate(zip(every, worths, kinds, strict=True)):
        try:
            found.append(_best(one[0], one[1], iou, one[2], min_score, limit))
        except ConfigError as exc:
            raise ConfigError(f"{exc} (image {row})") from None
    return found


def _of_each(name: str, given: object, count: int) -> Sequence[object]:
    if not isinstance(given, list | tuple) or len(cast("Sequence[object]", given)) != count:
        shown = (
            f"of {len(cast('Sequence[object]', given))}" if isinstance(given, list | tuple) else kind(given)
        )
        raise ConfigError(
            f"nms: {name} {shown} beside boxes of {count} images; expected a list with those of each"
        )
    return cast("Sequence[object]", given)


def _best(
    boxes: object, scores: object, iou: object, classes: object, min_score: object, limit: object
) -> torch.Tensor:
    """The boxes of one picture to keep; what is given is checked first."""
    found = _checked("nms", "boxes", boxes)
    count = len(found)
    if not isinstance(scores, torch.Tensor) or scores.shape != (count,) or not scores.is_floating_point():
        raise ConfigError(f"nms: scores is {kind(scores)}; expected a float tensor of shape ({count},)")
    if classes is not None and (
        not isinstance(classes, torch.Tensor) or classes.shape != (count,) or classes.is_floating_point()
    ):
        raise ConfigError(
            f"nms: classes is {kind(classes)}; expected a tensor of integers of shape ({count},)"
        )
    worth = scores.detach().cpu().to(torch.float64).numpy()
    if not np.isfinite(worth).all():
        raise ConfigError("nms: scores are not all finite; expected numbers")
    most = number("nms", "iou", iou)
    if not 0 <= most <= 1:
        raise ConfigError(f"nms: iou {iou}; expected a number from 0 to 1")
    least = -math.inf
    if min_score is not None:
        exact = torch.tensor(number("nms", "min_score", min_score), dtype=torch.float64)
        least = exact.to(scores.dtype).item()
    wanted = count if limit is None else whole("nms", "limit", limit, least=0)
    kinds = np.zeros(count, np.int64) if classes is None else classes.detach().cpu().to(torch.int64).numpy()
    kept = _kept(found, worth, kinds, most, least, wanted)
    return torch.tensor(kept, dtype=torch.int64, device=cast("torch.Tensor", boxes).device)


def _kept(
    boxes: _Array, scores: _Array, classes: _Array, most: float, least: float, wanted: int
) -> list[int]:
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    order = np.lexsort((np.arange(len(boxes)), -areas, -scores))
    order = order[scores[order] >= least]
    kept: list[int] = []
    while len(order) and len(kept) < wanted:
        best, rest = order[0], order[1:]
        kept.append(int(best))
        corner = np.minimum(boxes[rest, 2:], boxes[best, 2:]) - np.maximum(boxes[rest, :2], boxes[best, :2])
        shared = corner.clip(min=0).prod(axis=1)
        union = areas[rest] + areas[best] - shared
        over = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0) > most
        order = rest[~(over & (classes[rest] == classes[best]))]
    return kept


def draw_boxes(
    images: Images, boxes: Sequence[torch.Tensor], *, colour: Sequence[int], width: int = 2
) -> Images:
    """uint8 pictures with the outlines of boxes, each drawn inside its box; pixels outside a picture are not.

    Edges go to the nearest border of a pixel, halves to the right or down; a box covers one pixel at least.
    With width 1, whole boxes are drawn as OpenCV's rectangle from (left, top) to (right - 1, bottom - 1).

    Args:
        images: the pictures.
        boxes: for each picture (k, 4) float.
        colour: levels 0 to 255, one for each channel.
        width: of the outline, in pixels.

    Raises:
        ConfigError: pictures are not uint8, boxes or colour do not fit, or the width is not positive.
    """
    images = pictures_of("draw_boxes", images, dtype=torch.uint8, instead="to_u8 first")
    each = boxes_of_each("draw_boxes", boxes, len(images))
    levels = wholes("draw_boxes", "colour", colour)
    if not all(0 <= level <= 255 for level in levels) or (len(images) and len(levels) != images.channels):
        raise ConfigError(
            f"draw_boxes: colour {levels}; expected levels from 0 to 255 for {images.channels} channels"
        )
    width = whole("draw_boxes", "width", width, least=1)
    return Images([_drawn(image, found, levels, width) for image, found in zip(images, each, strict=True)])


def _drawn(image: torch.Tensor, boxes: _Array, levels: list[int], width: int) -> torch.Tensor:
    drawn = image.clone(memory_format=torch.contiguous_format)
    colour = drawn.new_tensor(levels)
    borders = np.floor(boxes + 0.5).clip(-(2**40), 2**40).astype(np.int64)
    for left, top, right, bottom in borders.tolist():
        right, bottom = max(right, left + 1), max(bottom, top + 1)
        for rows, columns in (
            ((top, min(top + width, bottom)), (left, right)),
            ((max(bottom - width, top), bottom), (left, right)),
            ((top, bottom), (left, min(left + width, right))),
            ((top, bottom), (max(right - width, left), right)),
        ):
            drawn[_inside(*rows), _inside(*columns)] = colour
    return drawn


def _inside(first: int, last: int) -> slice:
    return slice(max(first, 0), max(last, 0))


def boxes_of_each(operation: str, boxes: object, count: int) -> list[_Array]:
    """For each of `count` pictures its boxes (k, 4), float64 on the host; raises ConfigError where unfit."""
    if not isinstance(boxes, list | tuple):
        raise ConfigError(
            f"{operation}: boxes is {kind(boxes)}; expected a list with boxes (k, 4) for each image"
        )
    each = cast("Sequence[object]", boxes)
    if len(each) != count:
        raise ConfigError(
            f"{operation}: boxes of {len(each)} images for {count}; expected boxes for each image"
        )
    return [_checked(operation, f"boxes of image {row}", found) for row, found in enumerate(each)]


def _checked(operation: str, name: str, boxes: object) -> _Array:
    if (
        not isinstance(boxes, torch.Tensor)
        or not boxes.is_floating_point()
        or boxes.ndim != 2
        or boxes.shape[1] != 4
    ):
        raise ConfigError(f"{operation}: {name} is {kind(boxes)}; expected a float tensor of shape (k, 4)")
    found = boxes.detach().cpu().to(torch.float64).numpy()
    bad = ~np.isfinite(found).all(axis=1) | (found[:, 2:] < found[:, :2]).any(axis=1)
    if bad.any():
        at = int(bad.argmax())
        raise ConfigError(
            f"{operation}: {name} has {found[at].tolist()} at {at}; expected left, top, right, bottom, all "
            "finite and in order"
        )
    return found
