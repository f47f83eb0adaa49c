"""Colour spaces against Python's colorsys, OpenCV, Pillow and float64, and against their neighbours."""

from __future__ import annotations

import colorsys
import contextlib
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from parity import vision
from parity.errors import ConfigError
from parity.vision import Images
from parity.vision.fastpaths import definitions_only
from tests.vision import oracle
from tests.vision.pictures import images, noise, photo, ragged, sides

T1 = 1e-4
STANDARDS: list[Any] = ["bt601", "bt709"]
wrong: Any = "u8"


def the(found: Images) -> np.ndarray:
    (image,) = found
    return image.numpy()


def around(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """How far hues are apart, on the circle."""
    apart = np.abs(one.astype(np.float64) - other)
    return np.minimum(apart, 1 - apart)


def colours(step: int) -> np.ndarray:
    levels = np.unique(np.append(np.arange(0, 256, step), 255)).astype(np.uint8)
    return np.stack(np.meshgrid(levels, levels, levels), -1).reshape(1, -1, 3)


@pytest.mark.parametrize("unit", [True, False])
def test_hue_saturation_and_value_are_those_of_colorsys(unit: bool) -> None:
    cube = colours(23)
    batch = vision.to_float(images(cube)) if unit else images(cube)
    found = the(vision.rgb_to_hsv(batch))[0]
    expected = np.array([colorsys.rgb_to_hsv(*(pixel / 255.0)) for pixel in cube[0].astype(np.float64)])
    assert around(found[:, 0], expected[:, 0]).max() <= T1
    assert np.abs(found[:, 1:] - expected[:, 1:]).max() <= T1
    assert found[:, 0].min() >= 0
    assert found[:, 0].max() < 1
    back = np.array([colorsys.hsv_to_rgb(*pixel) for pixel in expected])
    made = the(vision.hsv_to_rgb(Images([torch.from_numpy(expected[None].astype(np.float32))], 1.0)))[0]
    assert np.abs(made - back).max() <= T1


def test_reds_with_the_least_trace_of_blue_have_a_hue_below_one() -> None:
    traces = np.float32(2.0) ** -np.arange(1, 149, dtype=np.float32)
    pixels = np.stack([np.ones_like(traces), np.zeros_like(traces), traces], -1)[None]
    hue = the(vision.rgb_to_hsv(Images([torch.from_numpy(pixels)], 1.0)))[..., 0]
    assert hue.min() >= 0
    assert hue.max() < 1


def test_hue_saturation_and_value_are_opencvs_in_float() -> None:
    for picture in (noise(1, 40, 50), photo(33, 70)):
        expected = cv2.cvtColor(picture.astype(np.float32) / 255, cv2.COLOR_RGB2HSV)
        found = the(vision.rgb_to_hsv(images(picture)))
        assert around(found[..., 0], expected[..., 0].astype(np.float64) / 360).max() <= T1
        assert np.abs(found[..., 1:] - expected[..., 1:]).max() <= T1


@given(ragged())
def test_hue_saturation_and_value_lead_back_to_the_picture(arrays: list[np.ndarray]) -> None:
    back = vision.to_u8(vision.hsv_to_rgb(vision.rgb_to_hsv(images(*arrays))))
    for image, found in zip(arrays, back, strict=True):
        assert np.array_equal(found.numpy(), image)


def test_greys_have_no_hue_and_a_hue_goes_round() -> None:
    greys = np.arange(256, dtype=np.uint8).repeat(3).reshape(16, 16, 3)
    assert not the(vision.rgb_to_hsv(images(greys)))[..., :2].any()
    turns = torch.tensor([[[-0.75, 0.5, 0.8], [0.25, 0.5, 0.8], [1.25, 0.5, 0.8]]])
    found = the(vision.hsv_to_rgb(Images([turns], 1.0)))[0]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[1], found[2])


@pytest.mark.slow
@pytest.mark.parametrize("definition", [True, False])
def test_hues_in_whole_numbers_are_opencvs_for_every_colour(definition: bool) -> None:
    levels = np.arange(256, dtype=np.uint8)
    for red in levels:
        colour = np.stack(np.broadcast_arrays(red, levels[:, None], levels), -1)
        with definitions_only() if definition else contextlib.nullcontext():
            found = the(vision.rgb_to_hsv(images(colour), contract="u8_exact"))
        assert np.array_equal(found, cv2.cvtColor(colour, cv2.COLOR_RGB2HSV))


@pytest.mark.slow
def test_colours_of_whole_hues_are_the_exact_ones_rounded_once() -> None:
    levels = np.arange(256, dtype=np.uint8)
    for hue in range(256):
        pixels = np.stack(np.broadcast_arrays(np.uint8(hue), levels[:, None], levels), -1)
        found = the(vision.hsv_to_rgb(images(pixels), contract="u8_exact"))
        assert np.array_equal(found, oracle.rgb_of_hues(pixels))
        opencvs = cv2.cvtColor(pixels, cv2.COLOR_HSV2RGB)
        assert np.abs(found.astype(int) - opencvs).max() <= 1


def test_whole_hues_are_two_degrees_each() -> None:
    primary = np.array([[[255, 0, 0], [255, 255, 0], [0, 255, 0], [0, 255, 255], [0, 0, 255], [255, 0, 255]]])
    hues = vision.rgb_to_hsv(images(primary.astype(np.uint8)), contract="u8_exact")
    assert the(hues)[0].tolist() == [[hue, 255, 255] for hue in range(0, 180, 30)]
    assert np.array_equal(the(vision.hsv_to_rgb(hues, contract="u8_exact")), primary)


def test_whole_hues_are_of_uint8_pictures() -> None:
    with pytest.raises(
        ConfigError, match=r"rgb_to_hsv: images of torch.float32; expected torch.uint8; to_u8"
    ):
        vision.rgb_to_hsv(vision.to_float(images(noise(1, 2, 2))), contract="u8_exact")
    with pytest.raises(ConfigError, match=r"hsv_to_rgb: .*; rgb_to_hsv with contract='u8_exact' gives such"):
        vision.hsv_to_rgb(vision.rgb_to_hsv(images(noise(1, 2, 2))), contract="u8_exact")
    with pytest.raises(ConfigError, match="no contract 'u8'; expected 'float' or 'u8_exact'"):
        vision.rgb_to_hsv(images(noise(1, 2, 2)), contract=wrong)
    with pytest.raises(ConfigError, match=r"torch.uint8; expected torch.float32; rgb_to_hsv gives such"):
        vision.hsv_to_rgb(images(noise(1, 2, 2)))


def test_pictures_up_to_255_are_no_hues() -> None:
    with pytest.raises(ConfigError, match="expected peak 1"):
        vision.hsv_to_rgb(Images([torch.zeros(2, 2, 3)]))


@given(sides(), sides(), st.sampled_from(STANDARDS), st.booleans(), st.booleans())
def test_colour_differences_to_rgb_are_what_the_standards_say(
    height: int, width: int, standard: Any, full_range: bool, unit: bool
) -> None:
    image = noise(2, height, width)
    batch = vision.to_float(images(image)) if unit else images(image)
    found = the(vision.yuv_to_rgb(batch, standard=standard, full_range=full_range))
    expected = oracle.rgb_of_yuv(image, standard, full_range) / (255 if unit else 1)
    assert np.abs(found - expected).max() <= T1 * (1 if unit else 255)


def test_colour_differences_of_jpeg_are_pillows() -> None:
    image = colours(15)
    planes = [Image.fromarray(image[..., channel]) for channel in range(3)]
    expected = np.asarray(Image.merge("YCbCr", planes).convert("RGB")).astype(int)
    found = the(vision.to_u8(vision.yuv_to_rgb(images(image), standard="bt601", full_range=True)))
    assert np.abs(found.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("standard", STANDARDS)
def test_black_and_white_of_video_are_black_and_white(standard: Any) -> None:
    for full_range, black, white in ((False, 16, 235), (True, 0, 255)):
        levels = np.array([[[black, 128, 128], [white, 128, 128]]], np.uint8)
        made = vision.yuv_to_rgb(images(levels), standard=standard, full_range=full_range)
        assert the(vision.to_u8(made)).tolist() == [[[0, 0, 0], [255, 255, 255]]]


@given(sides(12), sides(12), st.sampled_from(STANDARDS), st.booleans())
def test_frames_of_video_are_what_their_layout_says(
    half_height: int, half_width: int, standard: Any, full_range: bool
) -> None:
    frame = noise(3, 3 * half_height, 2 * half_width, channels=1)
    found = the(vision.nv12_to_rgb(images(frame), standard=standard, full_range=full_range))
    expected = oracle.rgb_of_yuv(oracle.planes_of_nv12(frame), standard, full_range)
    assert found.shape == (2 * half_height, 2 * half_width, 3)
    assert np.abs(found - expected).max() <= T1 * 255


def test_frames_of_video_are_opencvs() -> None:
    frame = noise(4, 36, 40, channels=1)
    frame[:24] = frame[:24].clip(16)  # OpenCV takes a luma below black for black
    expected = cv2.cvtColor(frame[..., 0], cv2.COLOR_YUV2RGB_NV12).astype(int)
    found = the(vision.to_u8(vision.nv12_to_rgb(images(frame), standard="bt601", full_range=False)))
    assert np.abs(found.astype(int) - expected).max() <= 1


@given(st.lists(st.tuples(sides(4), sides(4)), min_size=1, max_size=5))
@settings(max_examples=20)
def test_a_frame_does_not_depend_on_those_beside_it(halves: list[tuple[int, int]]) -> None:
    frames = [noise(seed, 3 * rows, 2 * columns, 1) for seed, (rows, columns) in enumerate(halves)]
    together = vision.nv12_to_rgb(images(*frames), standard="bt709", full_range=False)
    for frame, found in zip(frames, together, strict=True):
        alone = vision.nv12_to_rgb(images(frame), standard="bt709", full_range=False)
        assert torch.equal(alone[0], found)


@pytest.mark.parametrize("shape", [(4, 4), (3, 3), (5, 2)])
def test_frames_of_odd_shapes_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(ConfigError, match="expected 3 rows for every 2 of the picture"):
        vision.nv12_to_rgb(images(noise(5, *shape, 1)), standard="bt601", full_range=True)
