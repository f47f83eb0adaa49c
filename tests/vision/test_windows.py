"""Windows around a pixel against numpy's, OpenCV's and float64's, over odd, long and single pixels."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parity import vision
from parity.errors import ConfigError
from parity.vision import Images, windows
from parity.vision.fastpaths import definitions_only
from tests.vision import oracle
from tests.vision.pictures import images, noise, photo, sides

T1 = 1e-4 * 255
kernels = st.integers(0, 6).map(lambda half: 2 * half + 1)


def the(found: Images) -> np.ndarray:
    (image,) = found
    return image.numpy()


def asked(by_torch: bool, operation: Any, *arguments: Any, **named: Any) -> np.ndarray:
    """What one picture becomes, by torch alone or by what is fastest here."""
    if not by_torch:
        return the(operation(*arguments, **named))
    with definitions_only():
        return the(operation(*arguments, **named))


EXTREMES: dict[str, tuple[Any, Any, Any, float]] = {
    "erode": (vision.erode, np.min, cv2.erode, np.inf),
    "dilate": (vision.dilate, np.max, cv2.dilate, -np.inf),
}


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("by_torch", [True, False])
@given(kernels, sides(), sides(), st.sampled_from([1, 3, 4]), st.booleans())
@settings(max_examples=40)
def test_extremes_are_numpys_and_opencvs(
    name: str, by_torch: bool, kernel: int, height: int, width: int, channels: int, unit: bool
) -> None:
    operation, extreme, opencvs, outside = EXTREMES[name]
    image = noise(1, height, width, channels)
    batch = vision.to_float(images(image)) if unit else images(image)
    found, values = asked(by_torch, operation, batch, kernel=kernel), the(batch)
    around = oracle.windows(values.astype(np.float64), kernel, "constant", constant_values=outside)
    assert found.dtype == values.dtype
    assert np.array_equal(found, extreme(around, axis=-1))
    theirs = opencvs(values, np.ones((kernel, kernel), np.uint8)).reshape(values.shape)
    assert np.array_equal(found, theirs)


@pytest.mark.parametrize("by_torch", [True, False])
@given(kernels, sides(), sides(), st.sampled_from([1, 3, 4]), st.booleans())
@settings(max_examples=40)
def test_the_middle_value_is_numpys_and_opencvs(
    by_torch: bool, kernel: int, height: int, width: int, channels: int, unit: bool
) -> None:
    image = noise(2, height, width, channels)
    batch = vision.to_float(images(image)) if unit else images(image)
    found, values = asked(by_torch, vision.median_blur, batch, kernel=kernel), the(batch)
    assert found.dtype == values.dtype
    assert np.array_equal(found, np.median(oracle.windows(values, kernel, "edge"), axis=-1))
    if not unit and kernel > 1:
        assert np.array_equal(found, cv2.medianBlur(image, kernel).reshape(image.shape))


def test_a_median_of_a_large_picture_goes_by_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = vision.to_float(images(noise(3, 37, 21)))
    whole = vision.median_blur(picture, kernel=5)
    for most in (1, 21 * 3 * 25 * 2, 21 * 3 * 25 * 36):
        monkeypatch.setattr(windows, "_MOST_AT_ONCE", most)
        assert torch.equal(vision.median_blur(picture, kernel=5)[0], whole[0])


@given(kernels, sides(), sides(), st.booleans(), st.booleans())
def test_a_box_is_the_mean_of_its_window(
    kernel: int, height: int, width: int, unit: bool, natural: bool
) -> None:
    height, width = height + kernel // 2, width + kernel // 2
    image = photo(height, width) if natural else noise(4, height, width)
    batch = vision.to_float(images(image)) if unit else images(image)
    found = the(vision.box_blur(batch, kernel=kernel))
    expected = oracle.windows(the(batch).astype(np.float64), kernel, "reflect").mean(axis=-1)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() <= (T1 / 255 if unit else T1)
    theirs = cv2.blur(image.astype(np.float64), (kernel, kernel), borderType=cv2.BORDER_REFLECT_101)
    assert np.abs(found * (255.0 if unit else 1.0) - theirs.reshape(found.shape)).max() <= T1


@given(kernels, sides(40), sides(40))
def test_a_box_of_levels_has_the_same_bits_with_opencv_and_without(
    kernel: int, height: int, width: int
) -> None:
    batch = images(noise(5, height + kernel // 2, width + kernel // 2))
    found = vision.box_blur(batch, kernel=kernel)
    with definitions_only():
        assert torch.equal(vision.box_blur(batch, kernel=kernel)[0], found[0])


def test_a_box_is_no_wider_than_can_be_mirrored() -> None:
    with pytest.raises(ConfigError, match="box_blur: kernel 9 reaches 4 pixels, more than can be mirrored"):
        vision.box_blur(images(noise(6, 4, 40)), kernel=9)


@pytest.mark.parametrize("by_torch", [True, False])
@given(sides(), sides(), st.sampled_from([1, 3, 4]))
@settings(max_examples=40)
def test_the_laplacian_is_opencvs(by_torch: bool, height: int, width: int, channels: int) -> None:
    image = noise(7, height, width, channels)
    found = asked(by_torch, vision.laplacian, images(image))
    expected = cv2.Laplacian(image, cv2.CV_64F, ksize=1).reshape(image.shape)
    assert found.dtype == np.float32
    assert np.array_equal(found, expected)
    unit = the(vision.laplacian(vision.to_float(images(image))))
    assert np.abs(unit * 255 - expected).max() <= T1


@pytest.mark.parametrize("operation", [vision.erode, vision.dilate, vision.median_blur])
def test_nan_in_a_window_gives_nan(operation: Any) -> None:
    picture = torch.rand(7, 8, 3, generator=torch.Generator().manual_seed(1))
    picture[3, 4, 1] = float("nan")
    found = operation(Images([picture], 1.0), kernel=3)[0]
    assert found.isnan().sum() == 9
    assert found[2:5, 3:6, 1].isnan().all()


@pytest.mark.parametrize("name", ["erode", "dilate", "median_blur"])
def test_a_window_of_one_pixel_changes_nothing_and_a_huge_one_is_taken(name: str) -> None:
    operation = getattr(vision, name)
    for shape in ((1, 1), (1, 200), (200, 1), (3, 5)):
        batch = images(noise(8, *shape))
        assert torch.equal(operation(batch, kernel=1)[0], batch[0])
        found = operation(batch, kernel=31)
        with definitions_only():
            assert torch.equal(operation(batch, kernel=31)[0], found[0])
