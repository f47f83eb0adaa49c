"""Warps against their definition pixel by pixel, against OpenCV, and against quarter turns and shifts."""

from __future__ import annotations

import contextlib
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
from parity.vision.fastpaths import definitions_only
from tests.vision import oracle_places
from tests.vision.pictures import images, noise, ragged, sides

T1 = 1e-4 * 255

WAYS = st.sampled_from(["linear", "nearest"])
AFFINE = st.lists(st.floats(-2, 2), min_size=4, max_size=4)
SHIFT = st.lists(st.floats(-20, 20), min_size=2, max_size=2)
LEAN = st.lists(st.floats(-0.03, 0.03), min_size=2, max_size=2)


def the(found: Images) -> np.ndarray:
    (image,) = found
    return image.numpy()


@given(sides(16), sides(16), sides(12), sides(12), AFFINE, SHIFT, LEAN, WAYS)
@settings(max_examples=60)
def test_warps_are_what_their_definition_says(
    height: int,
    width: int,
    rows: int,
    columns: int,
    affine: list[float],
    shift: list[float],
    lean: list[float],
    interpolation: Any,
) -> None:
    image = noise(1, height, width)
    upper = [[*affine[:2], shift[0]], [*affine[2:], shift[1]]]
    linear = interpolation == "linear"
    for last in ([0.0, 0.0, 1.0], [*lean, 1.0]):
        matrix = [*upper, last]
        expected = oracle_places.warped(image, matrix, rows, columns, linear)
        for context in (contextlib.nullcontext(), definitions_only()):
            with context:
                found = the(warped(images(image), matrix, (rows, columns), interpolation))
            assert found.dtype == (np.float32 if linear else np.uint8)
            apart = np.abs(found - expected)
            if linear:
                assert apart.max() <= T1
            else:
                # At a tie, sums that are added in another order may fall to the other side.
                assert (apart > 0).any(-1).sum() <= ties(matrix, rows, columns)


def warped(batch: Images, matrix: Any, size: tuple[int, int], interpolation: Any) -> Images:
    if matrix[2] == [0.0, 0.0, 1.0]:
        return vision.warp_affine(batch, matrix[:2], size, interpolation=interpolation)
    return vision.warp_perspective(batch, matrix, size, interpolation=interpolation)


def ties(matrix: Any, rows: int, columns: int) -> int:
    found = 0
    for row in range(rows):
        for column in range(columns):
            u, v, w = np.asarray(matrix) @ (column, row, 1.0)
            found += min(abs((place / w + 0.5) - np.round(place / w + 0.5)) for place in (u, v)) < 1e-9
    return found


@pytest.mark.parametrize("degrees", [0, 17, 45, 90, 133.5, -60, 270, 720 + 180])
def test_affine_warps_are_opencvs(degrees: float) -> None:
    image = noise(2, 97, 131).astype(np.float32)
    matrix = cv2.getRotationMatrix2D((65, 48), degrees, 0.8)
    expected = cv2.warpAffine(image, matrix, (120, 90), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    found = vision.warp_affine(Images([torch.from_numpy(image)]), matrix, (90, 120))
    assert np.abs(the(found) - expected).max() <= 0.02
    with definitions_only():
        slow = vision.warp_affine(Images([torch.from_numpy(image)]), matrix, (90, 120))
    assert np.abs(the(found) - the(slow)).max() <= T1


def test_perspective_warps_are_opencvs() -> None:
    image = noise(3, 97, 131).astype(np.float32)
    corners = np.array([[3, 5], [120, 9], [110, 90], [10, 80]], np.float32)
    square = np.array([[0, 0], [63, 0], [63, 47], [0, 47]], np.float32)
    matrix = cv2.getPerspectiveTransform(square, corners)
    expected = cv2.warpPerspective(image, matrix, (64, 48), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    found = vision.warp_perspective(Images([torch.from_numpy(image)]), matrix, (48, 64))
    assert np.abs(the(found) - expected).max() <= 0.02


@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
@pytest.mark.parametrize("turns", [-1, 0, 1, 2, 3, 5])
def test_quarters_keep_every_pixel(turns: int, interpolation: Any) -> None:
    square, wide = images(noise(4, 9, 9)), images(noise(5, 8, 12))
    found = vision.rotate(square, 90 * turns, interpolation=interpolation)
    assert np.array_equal(the(found), the(vision.rotate90(square, turns)))
    if turns % 2 == 0:
        found = vision.rotate(wide, 90 * turns, interpolation=interpolation)
        assert np.array_equal(the(found), the(vision.rotate90(wide, turns)))


def test_angles_go_against_the_clock_as_pillows() -> None:
    from PIL import Image

    image = np.zeros((61, 61, 3), np.uint8)
    image[10:20, 40:55] = 200
    expected = np.asarray(Image.fromarray(image).rotate(30, Image.Resampling.NEAREST))
    found = the(vision.rotate(images(image), 30, interpolation="nearest"))
    assert (found != expected).any(-1).mean() < 0.01


def test_whole_shifts_move_pixels_and_leave_zeros() -> None:
    image = noise(6, 5, 7)
    for interpolation in ("linear", "nearest"):
        found = the(vision.warp_affine(images(image), [[1, 0, 2], [0, 1, -1]], interpolation=interpolation))
        assert np.array_equal(found[1:, :5], image[:4, 2:])
        assert not found[0].any()
        assert not found[:, 5:].any()


def test_each_picture_may_have_its_own_matrix() -> None:
    batch = images(noise(7, 5, 7), noise(8, 6, 4), noise(9, 5, 7))
    matrices = np.stack([np.eye(3), np.diag([2.0, 2, 1]), np.diag([0.5, 1, 1])])
    together = vision.warp_perspective(batch, matrices, (4, 5))
    affine = vision.warp_affine(batch, torch.from_numpy(matrices[:, :2]), (4, 5))
    for row, (one, other) in enumerate(zip(together, affine, strict=True)):
        alone = vision.warp_affine(Images([batch[row]]), matrices[row, :2].tolist(), (4, 5))
        assert torch.equal(one, alone[0])
        assert torch.equal(one, other)


def test_places_far_outside_and_at_the_horizon_are_0() -> None:
    image = images(np.full((4, 4, 3), 9, np.uint8))
    for interpolation in ("linear", "nearest"):
        far = vision.warp_affine(image, [[1e30, 0, 1e30], [0, 1, 0]], (3, 3), interpolation=interpolation)
        assert not the(far).any()
        horizon = vision.warp_perspective(
            image, [[1, 0, 0], [0, 1, 0], [1, 0, -1]], (1, 2), interpolation=interpolation
        )
        assert not the(horizon)[0, 1].any()


def test_large_pictures_have_their_places_in_float64() -> None:
    image = np.zeros((1, 3000, 1), np.uint8)
    image[0, ::2] = 255
    found = the(vision.warp_affine(images(image), [[1, 0, 0.25], [0, 1, 0]]))
    expected = oracle_places.warped(image, [[1, 0, 0.25], [0, 1, 0], [0, 0, 1]], 1, 3000, True)
    assert np.abs(found - expected).max() <= T1


@given(ragged(), st.data(), WAYS)
@settings(max_examples=30)
def test_each_picture_may_have_its_own_angle(
    arrays: list[np.ndarray], data: st.DataObject, interpolation: Any
) -> None:
    angles = data.draw(st.lists(st.floats(-720, 720), min_size=len(arrays), max_size=len(arrays)))
    together = vision.rotate(images(*arrays), angles, interpolation=interpolation)
    forms: list[Any] = [tuple(angles), np.array(angles), torch.tensor(angles, dtype=torch.float64)]
    for given_as in forms:
        again = vision.rotate(images(*arrays), given_as, interpolation=interpolation)
        assert all(torch.equal(one, other) for one, other in zip(again, together, strict=True))
    for array, angle, found in zip(arrays, angles, together, strict=True):
        alone = vision.rotate(images(array), angle, interpolation=interpolation)
        assert torch.equal(found, alone[0])
        if interpolation == "linear":
            expected = oracle_places.turned(array, angle, True)
            assert np.abs(found.numpy() - expected).max() <= T1


@pytest.mark.parametrize("angles", [[], [1.0], [1.0, 2.0, 3.0]])
def test_angles_of_other_numbers_of_pictures_are_refused(angles: list[float]) -> None:
    with pytest.raises(
        ConfigError, match=f"rotate: {len(angles)} angles .degrees. for 2 images; expected one"
    ):
        vision.rotate(images(noise(1, 4, 4), noise(2, 4, 4)), angles)


@pytest.mark.parametrize("degrees", [float("nan"), float("inf")])
def test_angles_are_finite(degrees: float) -> None:
    with pytest.raises(ConfigError, match="rotate: degrees"):
        vision.rotate(images(noise(1, 4, 4)), degrees)


def test_matrices_for_other_numbers_of_pictures_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"warp_affine: matrix is a numpy.ndarray of shape \(3, 2, 3\)"):
        vision.warp_affine(images(noise(1, 4, 4), noise(2, 4, 4)), np.zeros((3, 2, 3)))
