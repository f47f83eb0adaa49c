"""The fixed-point contract: Pillow's bits over many sizes, and the same bits however the sums are added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from parity import vision
from parity.errors import ConfigError
from parity.vision import exact
from tests.vision.pictures import images, noise, photo

PILLOWS = {"linear": Image.Resampling.BILINEAR, "cubic": Image.Resampling.BICUBIC}


def resized(array: np.ndarray, height: int, width: int, kernel: Any, antialias: bool = True) -> np.ndarray:
    (found,) = vision.resize(
        images(array), (height, width), interpolation=kernel, antialias=antialias, contract="u8_exact"
    )
    assert found.dtype == torch.uint8
    return found.numpy()


def turned(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array.transpose(1, 0, 2))


def check_against_pillow(array: np.ndarray, height: int, width: int, kernel: str) -> None:
    expected = np.asarray(Image.fromarray(array).resize((width, height), PILLOWS[kernel]))
    if np.array_equal(resized(array, height, width, kernel), expected):
        return
    # Pillow 13 takes the rows first at some sizes: the same arithmetic with the axes changed over.
    assert np.array_equal(turned(resized(turned(array), width, height, kernel)), expected)


@given(*(st.integers(1, 150) for _ in range(4)), st.sampled_from(["linear", "cubic"]), st.booleans())
@settings(max_examples=30)
def test_it_is_pillows_resize_bit_for_bit(
    height: int, width: int, rows: int, columns: int, kernel: str, natural: bool
) -> None:
    array = photo(height, width) if natural else noise(1, height, width)
    check_against_pillow(array, rows, columns, kernel)


@pytest.mark.parametrize("kernel", PILLOWS)
@pytest.mark.parametrize(
    ("source", "size"),
    [
        ((480, 640), (224, 224)),
        ((1, 2500), (3, 7)),
        ((2001, 3), (1, 1)),
        ((3, 5), (301, 299)),
        ((1, 1), (9, 9)),
    ],
)
def test_large_long_and_single_pixels_are_pillows_too(kernel: str, source: Any, size: Any) -> None:
    check_against_pillow(noise(2, *source), size[0], size[1], kernel)


def test_where_both_axes_shrink_alike_pillow_takes_the_columns_first() -> None:
    array = noise(3, 480, 640)
    expected = np.asarray(Image.fromarray(array).resize((320, 240), Image.Resampling.BILINEAR))
    assert np.array_equal(resized(array, 240, 320, "linear"), expected)


@given(*(st.integers(1, 90) for _ in range(4)), st.sampled_from(["linear", "cubic"]), st.booleans())
@settings(max_examples=25)
def test_integers_give_the_same_bits(
    height: int, width: int, rows: int, columns: int, kernel: Any, antialias: bool
) -> None:
    array = noise(4, height, width)
    found = resized(array, rows, columns, kernel, antialias)
    cpu = torch.device("cpu")

    def along(pixels: np.ndarray, size: int) -> np.ndarray:
        if len(pixels) == size:
            return pixels
        taps = exact.fixed_taps(len(pixels), size, kernel, antialias, cpu)
        ends = [*taps.starts.tolist()[1:], len(taps.places)]
        needed = np.arange(len(pixels)) if taps.needed is None else taps.needed.numpy()
        places, weights = needed[taps.places.numpy()], taps.weights.numpy().astype(np.int64)
        made = [
            sum(
                int(weights[tap]) * pixels[places[tap]].astype(np.int64)
                for tap in reversed(range(start, end))
            )
            for start, end in zip(taps.starts.tolist(), ends, strict=True)
        ]
        return ((np.stack(made) + (1 << 21)) >> 22).clip(0, 255).astype(np.uint8)

    expected = along(turned(along(turned(array), columns)), rows)
    assert np.array_equal(found, expected)


def test_it_is_of_uint8_only_and_known_by_name() -> None:
    unit = vision.to_float(images(noise(5, 4, 4)))
    with pytest.raises(ConfigError, match="'u8_exact' is of uint8 pictures, these are"):
        vision.resize(unit, (2, 2), antialias=True, contract="u8_exact")
    untyped: Any = vision
    with pytest.raises(ConfigError, match="no contract 'exact'"):
        untyped.resize(unit, (2, 2), antialias=True, contract="exact")
