"""Threshold, invert, posterize and equalize against Pillow, OpenCV and numpy."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image, ImageOps

from parity import vision
from parity.vision import Images
from tests.vision.pictures import images, noise, photo, ragged, sides

PICTURES = [noise(1, 40, 50), photo(33, 70), photo(1, 90), noise(2, 1, 1), photo(60, 1)]


def the(found: Images) -> np.ndarray:
    (image,) = found
    return image.numpy()


@pytest.mark.parametrize("image", PICTURES)
def test_equalize_invert_and_posterize_are_pillows(image: np.ndarray) -> None:
    pillows = Image.fromarray(image)
    assert np.array_equal(the(vision.equalize(images(image))), np.asarray(ImageOps.equalize(pillows)))
    assert np.array_equal(the(vision.invert(images(image))), np.asarray(ImageOps.invert(pillows)))
    for bits in range(1, 9):
        expected = np.asarray(ImageOps.posterize(pillows, bits))
        assert np.array_equal(the(vision.posterize(images(image), bits)), expected)


@given(
    st.tuples(sides(40), sides(40)).flatmap(
        lambda shape: arrays.arrays(np.uint8, (*shape, 1), elements=st.integers(0, 255))
    ),
    st.sampled_from([1, 3, 40, 255]),
)
def test_equalize_is_pillows_whatever_levels_there_are(image: np.ndarray, coarse: int) -> None:
    image = image // coarse * coarse
    expected = np.asarray(ImageOps.equalize(Image.fromarray(image[..., 0])))
    assert np.array_equal(the(vision.equalize(images(image)))[..., 0], expected)


def test_equalize_saturates_where_the_steps_are_coarse() -> None:
    """Of 509 pixels below the greatest level, a step of 1 counts up to 508."""
    levels = np.append(np.arange(509) % 250, [255]).astype(np.uint8).reshape(1, -1, 1)
    found = the(vision.equalize(images(levels)))
    assert found.max() == 255
    assert np.array_equal(found[..., 0], np.asarray(ImageOps.equalize(Image.fromarray(levels[..., 0]))))


@given(ragged(), st.floats(-1, 256))
def test_threshold_is_strict_and_opencvs(levels: list[np.ndarray], level: float) -> None:
    for image, found in zip(levels, vision.threshold(images(*levels), level), strict=True):
        assert np.array_equal(found.numpy(), np.where(image > level, 255, 0))
        assert np.array_equal(found.numpy(), cv2.threshold(image, level, 255, cv2.THRESH_BINARY)[1])


def test_a_value_that_equals_the_level_and_nan_are_below_it() -> None:
    values = torch.tensor([[[0.5], [0.50001], [0.4], [float("nan")], [float("inf")]]])
    found = vision.threshold(Images([values], 1.0), 0.5)
    assert found.dtype == torch.float32
    assert found[0].flatten().tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize(("level", "expected"), [(1e39, [0, 0, 0]), (-1e39, [1, 1, 0])])
def test_a_level_beyond_float32_is_beyond_all_pixels(level: float, expected: list[int]) -> None:
    values = torch.tensor([[[3e38], [-3e38], [float("nan")]]])
    assert vision.threshold(Images([values], 1.0), level)[0].flatten().tolist() == expected


def test_alpha_stays_as_it_is() -> None:
    image = noise(3, 12, 13, channels=4)
    for operation in (
        lambda x: vision.threshold(x, 100),
        vision.invert,
        lambda x: vision.posterize(x, 2),
        vision.equalize,
    ):
        found = the(operation(images(image)))
        assert np.array_equal(found[..., 3], image[..., 3])
        assert np.array_equal(found[..., :3], the(operation(images(image[..., :3].copy()))))


@given(sides(), sides())
def test_the_negative_of_the_negative_is_the_picture(height: int, width: int) -> None:
    image = images(noise(4, height, width))
    assert torch.equal(vision.invert(vision.invert(image))[0], image[0])
    unit = vision.to_float(image)
    assert np.array_equal(the(vision.invert(unit)), np.float32(1) - the(unit))
