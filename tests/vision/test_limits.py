"""What a small file asks for is bounded: no picture is made that would take a machine's memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
import torch

from parity import vision
from parity.errors import ConfigError
from parity.vision import ImageError, Images, resampling

THIN = torch.zeros(60_000, 1, 3, dtype=torch.uint8)
USUAL = torch.zeros(30, 40, 3, dtype=torch.uint8)
PREPARE = vision.Plan(
    vision.step(vision.resize_shortest, 2000, antialias=True),
    vision.step(vision.center_crop, (224, 224)),
)
OPERATIONS: dict[str, Callable[[Images], Any]] = {
    "shortest": lambda images: vision.resize_shortest(images, 2000, antialias=True),
    "plan": PREPARE,
    "unfused": PREPARE.unfused,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_picture_that_would_become_too_large_fails_its_row(name: str) -> None:
    with pytest.raises(ImageError) as caught:
        OPERATIONS[name](Images([USUAL, THIN, USUAL, THIN.transpose(0, 1).contiguous()]))
    assert caught.value.failing_rows == (1, 3)
    assert "the image of row 1 cannot be resized: 60000 x 1 pixels would become 120000000 x 2000" in str(
        caught.value
    )


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("contract", ["float", "u8_exact"])
def test_a_size_that_no_memory_holds_is_refused(antialias: bool, contract: Any) -> None:
    with pytest.raises(ConfigError, match="more than 100,000,000 pixels"):
        vision.resize(Images([USUAL]), (10**9, 10**9), antialias=antialias, contract=contract)


def test_a_crop_of_a_long_picture_takes_memory_for_the_crop_only() -> None:
    """The taps of 224 of 15 million pixels, never those of all."""
    tracemalloc.start()
    try:
        resampling._part(59_999, 256 * 59_999, 7_000_000, 224, "cubic", torch.device("cpu"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize("kernel", ["linear", "cubic"])
@pytest.mark.parametrize(("source", "size"), [(100, 37), (37, 100), (5, 5), (1, 9)])
def test_the_weights_of_a_window_are_those_of_all(kernel: Any, source: int, size: int) -> None:
    places, weights = resampling.pixel_weights(source, size, kernel, True)
    for begin, end in ((0, size), (1, size - 1), (size - 1, size)):
        some = resampling.pixel_weights(source, size, kernel, True, window=(begin, end))
        assert (some[0] == places[begin:end]).all()
        assert (some[1] == weights[begin:end]).all()
