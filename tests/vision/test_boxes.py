"""Boxes: which are kept, regions resized, outlines drawn; and the largest scores."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parity import vision
from parity.errors import ConfigError
from parity.vision import Images
from parity.vision.fastpaths import definitions_only
from tests.vision import oracle_places
from tests.vision.pictures import images, noise, ragged, sides

T1 = 1e-4 * 255


@st.composite
def some_boxes(draw: st.DrawFn) -> torch.Tensor:
    """Up to 12 boxes of whole numbers in a small place, so that many are alike and overlap."""
    found = draw(st.lists(st.tuples(*[st.integers(0, 6)] * 4), max_size=12))
    ordered = [(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in found]
    return torch.tensor(ordered, dtype=torch.float32).reshape(-1, 4)


@given(some_boxes(), st.randoms(use_true_random=False), st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]))
def test_nms_is_what_its_definition_says(boxes: torch.Tensor, random: Any, iou: float) -> None:
    scores = torch.tensor([random.choice([0.25, 0.5, 0.75]) for _ in boxes])
    classes = torch.tensor([random.choice([0, 1]) for _ in boxes], dtype=torch.int64)
    found = vision.nms(boxes, scores, iou=iou, classes=classes)
    expected = oracle_places.kept(boxes.tolist(), scores.tolist(), classes.tolist(), iou)
    assert found.tolist() == expected
    alone = vision.nms(boxes, scores, iou=iou)
    assert alone.tolist() == oracle_places.kept(boxes.tolist(), scores.tolist(), [0] * len(boxes), iou)
    limited = vision.nms(boxes, scores, iou=iou, min_score=0.5, limit=2)
    high = [index for index in range(len(boxes)) if scores[index] >= 0.5]
    rest = vision.nms(boxes[high], scores[high], iou=iou)
    assert limited.tolist() == [high[index] for index in rest.tolist()][:2]


@given(st.lists(some_boxes(), max_size=4), st.randoms(use_true_random=False))
def test_nms_of_several_pictures_is_that_of_each(each: list[torch.Tensor], random: Any) -> None:
    scores = [torch.tensor([random.choice([0.25, 0.5, 0.75]) for _ in boxes]) for boxes in each]
    classes = [torch.tensor([random.choice([0, 1]) for _ in boxes], dtype=torch.int64) for boxes in each]
    found = vision.nms(each, scores, iou=0.3, classes=classes, min_score=0.5, limit=3)
    assert isinstance(found, list)
    for kept, *one in zip(found, each, scores, classes, strict=True):
        alone = vision.nms(one[0], one[1], iou=0.3, classes=one[2], min_score=0.5, limit=3)
        assert torch.equal(kept, alone)
    for kept, boxes, worth in zip(vision.nms(tuple(each), tuple(scores), iou=0.3), each, scores, strict=True):
        assert kept.tolist() == oracle_places.kept(boxes.tolist(), worth.tolist(), [0] * len(boxes), 0.3)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"scores": [torch.ones(1)]},
            "nms: scores of 1 beside boxes of 2 images; expected a list with those",
        ),
        (
            {"scores": torch.ones(1)},
            "nms: scores a torch.Tensor .* beside boxes of 2 images; expected a list",
        ),
        ({"classes": [torch.zeros(1)] * 3}, "nms: classes of 3 beside boxes of 2 images"),
        ({"scores": [torch.ones(1), torch.ones(2)]}, r"expected a float tensor of shape \(1,\) \(image 1\)"),
        ({"boxes": [torch.zeros(1, 4), None]}, r"expected a float tensor of shape \(k, 4\) \(image 1\)"),
        ({"boxes": torch.zeros(1, 4)}, "expected a float tensor of shape"),
        ({"iou": 2}, "iou 2; expected a number from 0 to 1$"),
        ({"boxes": [], "scores": [], "iou": 2}, "iou 2; expected a number from 0 to 1$"),
    ],
)
def test_what_are_no_detections_of_several_pictures_is_refused(changed: dict[str, Any], said: str) -> None:
    sound: dict[str, Any] = {"boxes": [torch.zeros(1, 4)] * 2, "scores": [torch.ones(1)] * 2, "iou": 0.5}
    with pytest.raises(ConfigError, match=said):
        vision.nms(**{**sound, **changed})


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_score_that_is_written_as_the_least_one_is_kept(dtype: torch.dtype) -> None:
    boxes = torch.tensor([[0.0, 0, 1, 1], [2, 2, 4, 4]])
    for hundredths in range(1, 100):
        least = hundredths / 100
        scores = torch.tensor([least, least - 0.01], dtype=dtype)
        assert vision.nms(boxes, scores, iou=0.5, min_score=least).tolist() == [0]


def test_nms_keeps_what_opencv_keeps() -> None:
    generator = np.random.default_rng(4)
    corner, extent = generator.uniform(0, 80, (200, 2)), generator.uniform(5, 40, (200, 2))
    scores = (generator.permutation(200) + 0.5) / 200
    rectangles = np.concatenate([corner, extent], 1)
    expected = np.asarray(cv2.dnn.NMSBoxes(rectangles.tolist(), scores.tolist(), 0.1, 0.45)).ravel()
    boxes = torch.from_numpy(np.concatenate([corner, corner + extent], 1))
    found = vision.nms(boxes, torch.from_numpy(scores), iou=0.45, min_score=0.1)
    assert found.tolist() == expected.tolist()


def test_equal_scores_go_to_the_larger_box_then_to_the_first() -> None:
    boxes = torch.tensor([[0, 0, 9, 9], [0, 0, 10, 10], [0, 0, 10, 10.0]])
    assert vision.nms(boxes, torch.tensor([0.5, 0.5, 0.5]), iou=0.5).tolist() == [1]
    empty = torch.tensor([[3.0, 3, 3, 3], [3, 3, 3, 3]])
    assert vision.nms(empty, torch.tensor([0.5, 0.5]), iou=0.0).tolist() == [0, 1]
    assert vision.nms(boxes[:0], torch.zeros(0), iou=0.5).dtype == torch.int64


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"iou": 1.5}, "iou 1.5; expected a number from 0 to 1"),
        ({"scores": torch.tensor([float("nan"), 1])}, "not all finite"),
        ({"scores": torch.tensor([1.0])}, r"expected a float tensor of shape \(2,\)"),
        ({"classes": torch.tensor([0.0, 1.0])}, "expected a tensor of integers"),
        ({"boxes": torch.tensor([[0, 0, 1, 1], [5, 5, 4, 6.0]])}, r"\[5.0, 5.0, 4.0, 6.0\] at 1; expected"),
        ({"limit": -1}, "limit -1; expected"),
    ],
)
def test_what_are_no_detections_is_refused(changed: dict[str, Any], said: str) -> None:
    sound: dict[str, Any] = {
        "boxes": torch.tensor([[0, 0, 1, 1], [2, 2, 4, 4.0]]),
        "scores": torch.tensor([0.5, 0.6]),
        "iou": 0.5,
    }
    with pytest.raises(ConfigError, match=said):
        vision.nms(**{**sound, **changed})


@given(sides(), sides(), sides(9), sides(9), st.data())
def test_regions_are_what_their_definition_says(
    height: int, width: int, rows: int, columns: int, data: st.DataObject
) -> None:
    image = noise(1, height, width)
    box = a_box(data, height, width)
    found = vision.roi_crop_resize(images(image), [torch.tensor([box])], (rows, columns), antialias=False)
    expected = oracle_places.region(image, box, rows, columns)
    assert np.abs(found[0].numpy() - expected).max() <= T1


def a_box(data: st.DataObject, height: int, width: int) -> list[float]:
    def ends(side: int) -> tuple[float, float]:
        first = data.draw(st.integers(0, 4 * side - 1))
        return first / 4, data.draw(st.integers(first + 1, 4 * side)) / 4

    (left, right), (top, bottom) = ends(width), ends(height)
    return [left, top, right, bottom]


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
@pytest.mark.parametrize("size", [(7, 9), (60, 80), (33, 5)])
def test_a_region_of_the_whole_picture_is_resize(
    size: tuple[int, int], interpolation: Any, antialias: bool
) -> None:
    image = images(noise(2, 33, 50))
    whole = torch.tensor([[0.0, 0.0, 50.0, 33.0], [-9.0, -9.0, 99.0, 99.0]])
    found = vision.roi_crop_resize(image, [whole], size, interpolation=interpolation, antialias=antialias)
    with definitions_only():
        expected = vision.resize(image, size, interpolation=interpolation, antialias=antialias)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[0])


@given(ragged(), st.data(), st.booleans())
def test_a_region_does_not_depend_on_others(
    arrays: list[np.ndarray], data: st.DataObject, antialias: bool
) -> None:
    boxes = [
        torch.tensor([a_box(data, *array.shape[:2]) for _ in range(data.draw(st.integers(0, 3)))]).reshape(
            -1, 4
        )
        for array in arrays
    ]
    together = vision.roi_crop_resize(images(*arrays), boxes, (5, 6), antialias=antialias)
    alone = [
        vision.roi_crop_resize(images(array), [box[None]], (5, 6), antialias=antialias)[0]
        for array, found in zip(arrays, boxes, strict=True)
        for box in found
    ]
    assert len(together) == len(alone)
    assert all(torch.equal(one, other) for one, other in zip(together, alone, strict=True))


def test_a_region_outside_its_picture_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"boxes of image 1 has \[20.0, 0.0, 30.0, 5.0\] at 0; expected some"
    ):
        vision.roi_crop_resize(
            images(noise(1, 9, 9), noise(2, 9, 9)),
            [torch.zeros(0, 4), torch.tensor([[20.0, 0, 30, 5]])],
            (4, 4),
            antialias=True,
        )


@given(ragged(), st.data())
def test_outlines_are_opencvs(arrays: list[np.ndarray], data: st.DataObject) -> None:
    pairs = st.tuples(st.integers(-5, 30), st.integers(1, 20))
    drawn = data.draw(
        st.lists(st.lists(st.tuples(pairs, pairs), max_size=3), min_size=len(arrays), max_size=len(arrays))
    )
    boxes = [
        torch.tensor(
            [[x, y, x + width, y + height] for (x, width), (y, height) in found], dtype=torch.float32
        ).reshape(-1, 4)
        for found in drawn
    ]
    before = [array.copy() for array in arrays]
    found = vision.draw_boxes(images(*arrays), boxes, colour=(255, 7, 0), width=1)
    for array, untouched, mine, image in zip(arrays, before, boxes, found, strict=True):
        assert np.array_equal(array, untouched)
        for left, top, right, bottom in mine.int().tolist():
            cv2.rectangle(untouched, (left, top), (right - 1, bottom - 1), (255, 7, 0), 1)
        assert np.array_equal(image.numpy(), untouched)


def test_outlines_lie_inside_their_boxes_and_halves_go_right_and_down() -> None:
    blank = images(np.zeros((9, 9, 1), np.uint8))
    found = vision.draw_boxes(blank, [torch.tensor([[1.5, 0.5, 6.49, 7.0]])], colour=(9,), width=2)
    expected = np.zeros((9, 9), np.uint8)
    expected[1:7, 2:6] = 9
    assert np.array_equal(found[0].numpy()[..., 0], expected)
    wide = vision.draw_boxes(blank, [torch.tensor([[1.0, 1, 8, 8]])], colour=(9,), width=2)[0].numpy()[..., 0]
    assert not wide[3:6, 3:6].any()
    assert wide[1:8, 1:8].sum() == 9 * (49 - 9)
    dot = vision.draw_boxes(blank, [torch.tensor([[4.0, 4, 4, 4], [1e30, 1e30, 2e30, 2e30]])], colour=(9,))
    assert dot[0].sum() == 9
    assert dot[0][4, 4] == 9


@pytest.mark.parametrize(
    ("picture", "colour", "said"),
    [
        (noise(1, 4, 4), (1, 2), "expected levels from 0 to 255 for 3 channels"),
        (noise(1, 4, 4), (1, 2, 256), "expected levels from 0 to 255 for 3 channels"),
        (noise(1, 4, 4).astype(np.float32), (1, 2, 3), "draw_boxes: images of torch.float32.*to_u8 first"),
    ],
)
def test_colours_fit_pictures(picture: np.ndarray, colour: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        vision.draw_boxes(Images([torch.from_numpy(picture)]), [torch.zeros(0, 4)], colour=colour)


@given(
    st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0, -1.0]), min_size=7, max_size=7), min_size=1),
    st.integers(0, 7),
)
def test_of_equal_scores_the_first_comes_first(rows: list[list[float]], k: int) -> None:
    for dtype in (torch.float32, torch.int64, torch.float16):
        scores = torch.tensor(rows).to(dtype)
        values, indexes = vision.topk(scores, k)
        expected = [sorted(range(7), key=lambda index, row=row: (-row[index], index))[:k] for row in rows]
        assert indexes.tolist() == expected
        assert torch.equal(values, scores.gather(-1, indexes))
        assert vision.argmax(scores).tolist() == [
            max(range(7), key=lambda index, row=row: (row[index], -index)) for row in rows
        ]


NUMBERS = [
    getattr(torch, name)
    for name in "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 float64".split()
]


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_numbers_of_any_dtype_are_ranked(dtype: torch.dtype) -> None:
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    scores = torch.tensor([[low, 3, high, high], [3, 2, 3, low]], dtype=dtype)
    assert vision.argmax(scores).tolist() == [2, 0]
    values, indexes = vision.topk(scores, 3)
    assert (values.dtype, indexes.tolist()) == (dtype, [[2, 3, 1], [0, 2, 1]])


def test_nan_counts_as_the_largest() -> None:
    scores = torch.tensor([1.0, float("nan"), 3.0, float("nan")])
    assert vision.argmax(scores).item() == 1
    assert vision.topk(scores, 3)[1].tolist() == [1, 3, 2]


@given(
    st.lists(
        st.lists(st.floats(-(2.0**120), 2.0**120, width=32), min_size=5, max_size=5), min_size=1, max_size=4
    ),
    st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]),
)
def test_shares_of_scores_are_what_float64_gives_and_those_of_a_row_alone(
    rows: list[list[float]], dtype: torch.dtype
) -> None:
    scores = torch.tensor(rows).clamp(-6e4, 6e4).to(dtype) if dtype == torch.float16 else torch.tensor(rows)
    scores = scores.to(dtype)
    found = vision.softmax(scores)
    assert found.dtype == dtype
    exact = scores.to(torch.float64).numpy()
    powers = np.exp(exact - exact.max(-1, keepdims=True))
    expected = powers / powers.sum(-1, keepdims=True)
    assert np.abs(found.to(torch.float64).numpy() - expected).max() <= max(1e-4, torch.finfo(dtype).eps)
    for row, alone in zip(scores, found, strict=True):
        assert torch.equal(vision.softmax(row), alone)
    turned = scores.t().contiguous().t()
    assert torch.equal(vision.softmax(turned), found)


def test_shares_of_scores_beyond_all_numbers_are_none() -> None:
    inf, nan = float("inf"), float("nan")
    scores = torch.tensor([[-inf, 2.0, 2.0], [inf, 1.0, 2.0], [-inf, -inf, -inf], [nan, 1.0, 2.0]])
    found = vision.softmax(scores)
    assert found[0].tolist() == [0.0, 0.5, 0.5]
    assert bool(found[1:].isnan().all())
    assert vision.softmax(torch.zeros(3, 0)).shape == (3, 0)


@pytest.mark.parametrize("scores", [torch.tensor([1, 2]), torch.ones(2).to(torch.float8_e5m2), [1.0]])
def test_shares_are_those_of_floats(scores: Any) -> None:
    with pytest.raises(ConfigError, match=r"softmax: scores is .*; expected (floats|a tensor of numbers)"):
        vision.softmax(scores)


@pytest.mark.parametrize("scores", [torch.tensor(1.0), torch.tensor([True]), torch.tensor([1j]), [1.0]])
def test_what_are_no_scores_is_refused(scores: Any) -> None:
    for call in (vision.argmax, vision.softmax, lambda x: vision.topk(x, 1)):
        with pytest.raises(ConfigError, match="expected a tensor of numbers"):
            call(scores)
        with pytest.raises(ConfigError, match="expected floats of 16 bits or more"):
            call(torch.ones(3).to(torch.float8_e5m2))
    with pytest.raises(ConfigError, match="expected one or more"):
        vision.argmax(torch.zeros(3, 0))
    with pytest.raises(ConfigError, match="k 4; expected a whole number from 0 to 3"):
        vision.topk(torch.zeros(3), 4)
