"""Every operation against a float64 oracle, against its neighbours in a batch, and on what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parity import vision
from parity.errors import ConfigError
from parity.vision import Images
from tests.vision import oracle
from tests.vision.pictures import images, noise, photo, ragged, sides

T1 = 1e-4 * 255
"""Float tolerance: a ten-thousandth of the range, as docs/reference/vision.md says."""


def the(found: Images) -> np.ndarray:
    (image,) = found
    return image.numpy()


@given(sides(), sides(), sides(), sides(), st.sampled_from(["linear", "cubic"]), st.booleans())
def test_resize_is_what_its_definition_says(
    height: int, width: int, rows: int, columns: int, interpolation: Any, antialias: bool
) -> None:
    image = noise(1, height, width)
    found = vision.resize(images(image), (rows, columns), interpolation=interpolation, antialias=antialias)
    expected = oracle.resized(image, rows, columns, interpolation, antialias)
    assert found.dtype == torch.float32
    assert np.abs(the(found) - expected).max() <= T1


@given(sides(), sides(), sides(), sides())
def test_nearest_takes_pixels_by_integers(height: int, width: int, rows: int, columns: int) -> None:
    image = noise(2, height, width)
    found = vision.resize(images(image), (rows, columns), interpolation="nearest", antialias=False)
    assert np.array_equal(the(found), oracle.nearest(image, rows, columns))


@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
def test_resize_without_antialias_is_opencvs_in_float(interpolation: Any) -> None:
    image = photo(97, 131).astype(np.float32)
    code = {"linear": cv2.INTER_LINEAR, "cubic": cv2.INTER_CUBIC}[interpolation]
    expected = cv2.resize(image, (64, 48), interpolation=code)
    found = vision.resize(images(image), (48, 64), interpolation=interpolation, antialias=False)
    assert np.abs(the(found) - expected).max() <= 0.01


def test_rounded_resize_with_antialias_is_pillows() -> None:
    from PIL import Image

    image = noise(3, 97, 131)
    expected = np.asarray(Image.fromarray(image).resize((64, 48), Image.Resampling.BILINEAR)).astype(int)
    found = vision.to_u8(vision.resize(images(image), (48, 64), antialias=True))
    apart = np.abs(the(found).astype(int) - expected)
    assert apart.max() <= 1


@given(st.integers(1, 9).map(lambda half: 2 * half + 1), st.floats(0.3, 5.0), sides(), sides())
def test_blur_is_what_its_definition_says(kernel: int, sigma: float, height: int, width: int) -> None:
    height, width = height + kernel // 2, width + kernel // 2
    image = noise(4, height, width)
    found = vision.gaussian_blur(images(image), kernel=kernel, sigma=sigma)
    assert np.abs(the(found) - oracle.blurred(image, kernel, sigma)).max() <= T1


@given(ragged())
def test_grey_is_opencvs_bit_for_bit(arrays: list[np.ndarray]) -> None:
    for image, grey in zip(arrays, vision.rgb_to_gray(images(*arrays)), strict=True):
        expected = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).reshape(image.shape[:2])
        assert np.array_equal(grey.numpy()[..., 0], expected)


def test_all_greys_of_all_colours_on_a_grid_are_opencvs() -> None:
    levels = np.arange(0, 256, 5).astype(np.uint8)
    cube = np.stack(np.meshgrid(levels, levels, levels), -1).reshape(1, -1, 3)
    found = vision.rgb_to_gray(images(cube))
    assert np.array_equal(the(found)[..., 0], cv2.cvtColor(cube, cv2.COLOR_RGB2GRAY).reshape(1, -1))


@given(sides(60), sides(60), sides(40))
def test_resize_by_a_side_keeps_the_aspect(height: int, width: int, side: int) -> None:
    image = images(noise(12, height, width))
    for resized, measured in ((vision.resize_shortest, min), (vision.resize_longest, max)):
        found = resized(image, side, antialias=True)
        (size,) = found.sizes
        assert size == tuple(max(1, side * edge // measured(height, width)) for edge in (height, width))
        assert measured(size) == side
        assert torch.equal(found[0], vision.resize(image, size, antialias=True)[0])


OPERATIONS: dict[str, Callable[[Images], Images]] = {
    "linear": lambda x: vision.resize(x, (7, 9), antialias=True),
    "linear plain": lambda x: vision.resize(x, (7, 9), antialias=False),
    "cubic": lambda x: vision.resize(x, (7, 9), interpolation="cubic", antialias=True),
    "nearest": lambda x: vision.resize(x, (7, 9), interpolation="nearest", antialias=False),
    "shortest": lambda x: vision.resize_shortest(x, 6, antialias=False),
    "longest": lambda x: vision.resize_longest(x, 9, antialias=True),
    "letterbox": lambda x: vision.letterbox(x, (8, 9), antialias=True)[0],
    "center_crop": lambda x: vision.center_crop(x, (6, 5)),
    "crop": lambda x: vision.crop(x, 1, -2, (6, 5)),
    "pad": lambda x: vision.pad(x, 1, 2, 3, 4, fill=9),
    "pad edge": lambda x: vision.pad(x, 1, 2, 3, 4, mode="edge"),
    "flip": lambda x: vision.flip(x, horizontal=True, vertical=True),
    "rotate90": lambda x: vision.rotate90(x, 1),
    "warp": lambda x: vision.warp_affine(x, [[0.9, 0.2, -1.3], [0.1, 1.1, 0.4]], (8, 9)),
    "warp nearest": lambda x: vision.warp_affine(x, [[0.9, 0, 1], [0, 1.1, 0]], interpolation="nearest"),
    "perspective": lambda x: vision.warp_perspective(x, [[1, 0.1, 0], [0, 1, 1], [0.01, 0.02, 1]]),
    "rotate": lambda x: vision.rotate(x, 33),
    "blur": lambda x: vision.gaussian_blur(vision.pad(x, 5, 5, 5, 5, mode="edge"), kernel=5, sigma=1.3),
    "crop, then linear": lambda x: vision.resize(
        vision.center_crop(vision.to_float(x), (20, 21)), (7, 9), antialias=False
    ),
    "turn, then cubic": lambda x: vision.resize(
        vision.rotate90(vision.to_float(x), 1), (7, 9), interpolation="cubic", antialias=True
    ),
    "to_float": vision.to_float,
    "gray": vision.rgb_to_gray,
    "gray float": lambda x: vision.rgb_to_gray(vision.to_float(x)),
    "bgr": lambda x: vision.swap_channels(x, (2, 1, 0)),
    "alpha": vision.add_alpha,
    "no alpha": vision.drop_alpha,
    "u8": lambda x: vision.to_u8(vision.resize(x, (7, 9), antialias=True)),
    "box": lambda x: vision.box_blur(vision.pad(x, 5, 5, 5, 5, mode="edge"), kernel=5),
    "box float": lambda x: vision.box_blur(vision.pad(vision.to_float(x), 5, 5, 5, 5, mode="edge"), kernel=5),
    "laplacian": vision.laplacian,
    "laplacian float": lambda x: vision.laplacian(vision.to_float(x)),
    "erode": lambda x: vision.erode(x, kernel=5),
    "dilate float": lambda x: vision.dilate(vision.to_float(x), kernel=3),
    "median": lambda x: vision.median_blur(x, kernel=5),
    "median float": lambda x: vision.median_blur(vision.to_float(x), kernel=3),
    "threshold": lambda x: vision.threshold(x, 100),
    "invert": vision.invert,
    "posterize": lambda x: vision.posterize(x, 3),
    "equalize": vision.equalize,
    "hsv": vision.rgb_to_hsv,
    "hsv and back": lambda x: vision.hsv_to_rgb(vision.rgb_to_hsv(x)),
    "yuv": lambda x: vision.yuv_to_rgb(x, standard="bt709", full_range=False),
}


COLOURS = {"gray", "gray float", "bgr"}
THREE_COLOURS = {"alpha", "hsv", "hsv and back", "yuv"}


def has_no_meaning(name: str, channels: int) -> bool:
    return (
        (channels == 1 and name in COLOURS)
        or (channels != 3 and name in THREE_COLOURS)
        or (channels != 4 and name == "no alpha")
    )


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("name", OPERATIONS)
@given(data=st.data())
@settings(max_examples=20)
def test_what_an_image_becomes_does_not_depend_on_those_beside_it(
    name: str, channels: int, data: st.DataObject
) -> None:
    if has_no_meaning(name, channels):
        return
    arrays = data.draw(ragged(channels))
    operation = OPERATIONS[name]
    together = operation(images(*arrays))
    assert len(together) == len(arrays)
    for image, found in zip(arrays, together, strict=True):
        assert torch.equal(next(iter(operation(images(image)))), found)


@given(arrays=ragged())
def test_scores_do_not_depend_on_images_beside(arrays: list[np.ndarray]) -> None:
    sharp, light = vision.sharpness(images(*arrays)), vision.exposure(images(*arrays))
    for row, image in enumerate(arrays):
        assert vision.sharpness(images(image))[0] == sharp[row]
        alone = vision.exposure(images(image))
        assert (alone.mean[0], alone.dark[0], alone.bright[0]) == (
            light.mean[row],
            light.dark[row],
            light.bright[row],
        )


def test_scores_are_opencvs_laplacian_and_shares_of_levels() -> None:
    image = noise(5, 30, 40)
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    expected = cv2.Laplacian(grey, cv2.CV_64F, ksize=1).var()
    assert vision.sharpness(images(image)).item() == pytest.approx(expected, rel=1e-6)
    assert vision.sharpness(images(np.full((5, 5, 3), 90, np.uint8))).item() == 0
    light = vision.exposure(images(image))
    assert light.mean.item() == pytest.approx(grey.mean() / 255, rel=1e-6)
    assert light.dark.item() == pytest.approx((grey <= 5).mean(), rel=1e-6)
    assert light.bright.item() == pytest.approx((grey >= 250).mean(), rel=1e-6)
    blurred = vision.gaussian_blur(images(image), kernel=7, sigma=2.0)
    assert vision.sharpness(blurred).item() < vision.sharpness(images(image)).item() / 10


@pytest.mark.parametrize(
    ("mode", "numpy_mode"), [("edge", "edge"), ("reflect", "reflect"), ("symmetric", "symmetric")]
)
def test_margins_are_numpys(mode: Any, numpy_mode: Any) -> None:
    image = noise(6, 5, 7)
    found = the(vision.pad(images(image), 2, 1, 3, 4, mode=mode))
    assert np.array_equal(found, np.pad(image, ((1, 4), (2, 3), (0, 0)), mode=numpy_mode))


def test_crops_are_windows_with_zeros_outside() -> None:
    image = noise(7, 5, 7)
    assert np.array_equal(the(vision.crop(images(image), 1, 2, (3, 4))), image[1:4, 2:6])
    found = the(vision.crop(images(image), -1, 5, (3, 4)))
    assert np.array_equal(found[1:, :2], image[:2, 5:])
    assert not found[0].any()
    assert not found[:, 2:].any()
    assert not the(vision.crop(images(image), 50, 50, (2, 2))).any()
    assert np.array_equal(the(vision.center_crop(images(image), (3, 3))), image[1:4, 2:5])
    wide = the(vision.center_crop(images(image), (5, 9)))
    assert np.array_equal(wide[:, 1:8], image)


def test_flips_and_quarter_turns_are_numpys() -> None:
    image = noise(8, 5, 7)
    assert np.array_equal(the(vision.flip(images(image), horizontal=True)), image[:, ::-1])
    assert np.array_equal(the(vision.flip(images(image), vertical=True)), image[::-1])
    assert np.array_equal(the(vision.flip(images(image))), image)
    for turns in (-1, 0, 1, 2, 3, 4):
        assert np.array_equal(the(vision.rotate90(images(image), turns)), np.rot90(image, turns))


@given(sides(60), sides(60), sides(40), sides(40))
def test_letterbox_fits_and_boxes_are_mapped_back(height: int, width: int, rows: int, columns: int) -> None:
    found, (placement,) = vision.letterbox(images(noise(9, height, width)), (rows, columns), antialias=True)
    assert the(found).shape == (rows, columns, 3)
    (inner_rows, inner_columns), top, left = placement.scaled, placement.top, placement.left
    assert inner_rows == rows or inner_columns == columns
    unit = vision.to_float(images(noise(9, height, width)))
    assert the(vision.letterbox(unit, (rows, columns), antialias=True)[0]).max() <= 1.001
    assert (the(found)[:top] == 114).all()
    assert (the(found)[:, :left] == 114).all()
    inner = torch.tensor([left, top, left + inner_columns, top + inner_rows], dtype=torch.float64)
    assert torch.allclose(placement.unmap(inner), torch.tensor([0, 0, width, height], dtype=torch.float64))
    outside = torch.tensor([[-50.0, -50.0, 999.0, 999.0]])
    assert placement.unmap(outside).tolist() == [[0, 0, width, height]]


def test_normalize_is_one_multiplication_and_one_subtraction() -> None:
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    image = noise(10, 6, 5)
    found = vision.normalize(images(image, image), mean=mean, std=std)
    assert found.shape == (2, 3, 6, 5)
    assert found.is_contiguous()
    k = (1 / (255 * np.array(std))).astype(np.float32)
    b = (np.array(mean) / np.array(std)).astype(np.float32)
    assert np.array_equal(found[0].numpy(), (image.astype(np.float32) * k - b).transpose(2, 0, 1))
    exact = (image / 255 - np.array(mean)) / np.array(std)
    assert np.abs(found[1].permute(1, 2, 0).numpy() - exact).max() < 1e-6
    last = vision.normalize(images(image), mean=mean, std=std, layout="NHWC")
    assert torch.equal(last[0], found[0].permute(1, 2, 0))
    unit = vision.normalize(vision.to_float(images(image)), mean=mean, std=std, layout="NHWC")
    assert np.abs(unit.numpy()[0] - exact).max() < 1e-6


def test_rounding_is_to_even_and_saturates() -> None:
    levels = torch.tensor([-3.0, 0.5, 1.5, 2.49, 254.5, 255.5, 999.0, float("nan")]).reshape(1, 8, 1)
    assert the(vision.to_u8(Images([levels]))).ravel().tolist() == [0, 0, 2, 2, 254, 255, 255, 0]
    every = images(np.arange(256, dtype=np.uint8).reshape(16, 16, 1))
    assert torch.equal(vision.to_u8(vision.to_float(every))[0], every[0])
    assert vision.to_u8(every) is every


def test_an_empty_batch_stays_one() -> None:
    none = Images([])
    assert len(vision.rgb_to_gray(none)) == 0
    assert len(vision.resize(none, (3, 3), antialias=True)) == 0
    assert vision.sharpness(none).shape == (0,)
    assert repr(none) == "Images(0, no size, 0 channels, torch.uint8, cpu)"
    assert vision.normalize(none, mean=(0.5,), std=(0.5,)).shape == (0, 1, 0, 0)
    with pytest.raises(ConfigError, match="0 images of 0 sizes cannot be stacked"):
        none.stack()


untyped: Any = vision
"""To be called as no type checker would let it."""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: vision.resize(x, (0, 3), antialias=True), r"size \(0, 3\) is not positive"),
        (lambda x: untyped.resize(x, 5, antialias=True), "size is 5 of type int; expected"),
        (
            lambda x: untyped.resize(x, (2, 2), interpolation="area", antialias=True),
            "no interpolation 'area'",
        ),
        (lambda x: vision.resize(x, (2, 2), interpolation="nearest", antialias=True), "antialias=False"),
        (
            lambda x: vision.resize_longest(x, 0, antialias=True),
            "side 0; expected a whole number of 1 or more",
        ),
        (lambda x: vision.normalize(x, mean=(0.5,), std=(0.5,)), "1 means and 1 standard deviations for 3"),
        (lambda x: vision.normalize(x, mean=(0, 0, 0), std=(1, 0, 1)), "no deviation is 0"),
        (lambda x: untyped.normalize(x, mean=(0, 0, 0), std=(1, 1, 1), layout="CHW"), "no layout 'CHW'"),
        (lambda x: vision.pad(x, -1), "use crop to cut"),
        (lambda x: vision.pad(x, 9, mode="reflect"), "cannot be mirrored from 4 pixels"),
        (lambda x: untyped.pad(x, 1, mode="wrap"), "no mode 'wrap'"),
        (lambda x: vision.gaussian_blur(x, kernel=4, sigma=1), "kernel 4 is not an odd"),
        (lambda x: vision.gaussian_blur(x, kernel=3, sigma=0), "sigma 0 is not positive"),
        (lambda x: vision.swap_channels(x, (0, 1, 3)), "of images with 3 channels"),
        (lambda x: vision.rgb_to_gray(vision.rgb_to_gray(x)), "images of 1 channels; expected 3 or 4"),
        (lambda x: Images([x[0], x[0].to(torch.float32)]), "all images of a batch are alike"),
        (lambda x: Images([x[0][..., :2]]), "1, 3 or 4 channels"),
        (lambda x: Images([x[0].to(torch.int32)]), "expected uint8"),
        (lambda x: Images(x[0]), r"expected \(N, H, W, C\)"),
        (lambda x: Images([x[0].to(torch.float32)], peak=2.0), "peak 2.0"),
    ],
)
def test_what_is_not_meant_is_refused(call: Callable[[Images], Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        call(images(noise(11, 4, 4)))


LEVELS = {"posterize", "equalize"}
"""Operations on uint8 pictures alone."""


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("name", [*OPERATIONS, "blur of much"])
def test_large_images_do_not_depend_on_those_beside_them_either(name: str, channels: int) -> None:
    if has_no_meaning(name, channels):
        return
    operation = OPERATIONS.get(name, lambda x: vision.gaussian_blur(x, kernel=11, sigma=2.0))
    for first in (
        lambda x: x,
        lambda x: vision.center_crop(x if name in LEVELS else vision.to_float(x), (91, 110)),
        lambda x: vision.rotate90(x, 1),
    ):
        alike = [noise(seed, 130, 150, channels) for seed in range(3)]
        other = noise(99, 101, 120, channels)
        alone = operation(first(images(alike[0])))[0]
        for batch in (alike, [alike[0], other]):
            assert torch.equal(operation(first(images(*batch)))[0], alone)
