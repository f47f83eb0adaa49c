"""Pictures to JPEG: Pillow's bytes, in every process, and what they hold when they are decoded again."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, JpegImagePlugin

from parity import vision
from parity.errors import ConfigError
from parity.vision import Images
from parity.vision.encoding import LONGEST_JPEG_SIDE
from tests.vision.pictures import file_of, images, noise, photo, ragged

SUBSAMPLINGS: list[Any] = ["4:4:4", "4:2:2", "4:2:0"]


@given(ragged(), st.integers(1, 100), st.sampled_from(SUBSAMPLINGS))
@settings(max_examples=30)
def test_the_bytes_are_pillows_each_picture_by_itself(
    arrays: list[np.ndarray], quality: int, subsampling: Any
) -> None:
    files = vision.encode_jpeg(images(*arrays), quality=quality, subsampling=subsampling)
    for array, file in zip(arrays, files, strict=True):
        picture = Image.fromarray(array)
        assert file == file_of(picture, "JPEG", quality=quality, subsampling=subsampling)
        read = Image.open(io.BytesIO(file))
        assert np.array_equal(vision.decode([file])[0].numpy(), np.asarray(read))
        assert JpegImagePlugin.get_sampling(read) == SUBSAMPLINGS.index(subsampling)
        assert "progressive" not in read.info


def test_greys_stay_grey_and_near() -> None:
    grey = photo(50, 70)[..., :1].copy()
    (file,) = vision.encode_jpeg(images(grey), quality=95, subsampling="4:2:0")
    assert Image.open(io.BytesIO(file)).mode == "L"
    found = vision.decode([file], mode="L")[0].numpy().astype(int)
    assert np.abs(found - grey).max() <= 4


def test_a_picture_is_nearer_the_higher_the_quality() -> None:
    picture = photo(64, 80)
    apart: list[float] = []
    for quality in (20, 60, 100):
        file = vision.encode_jpeg(images(picture), quality=quality, subsampling="4:4:4")
        apart.append(np.abs(vision.decode(file)[0].numpy().astype(int) - picture).mean())
    assert apart == sorted(apart, reverse=True)
    assert apart[-1] < 1


def test_float_pictures_are_rounded_first() -> None:
    picture = vision.resize(images(noise(1, 20, 30)), (9, 11), antialias=True)
    unit = vision.to_float(picture)
    for batch in (picture, unit):
        expected = vision.encode_jpeg(vision.to_u8(batch), quality=80, subsampling="4:4:4")
        assert vision.encode_jpeg(batch, quality=80, subsampling="4:4:4") == expected


def test_alpha_and_pictures_that_are_too_long_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"expected 1 or 3 channels; drop_alpha"):
        vision.encode_jpeg(images(noise(1, 4, 4, 4)), quality=80, subsampling="4:4:4")
    long = Images([torch.zeros(1, LONGEST_JPEG_SIDE + 1, 1, dtype=torch.uint8)])
    with pytest.raises(ConfigError, match="expected sides up to 65500"):
        vision.encode_jpeg(long, quality=80, subsampling="4:4:4")
    longest = Images([torch.zeros(1, LONGEST_JPEG_SIDE, 1, dtype=torch.uint8)])
    assert len(vision.encode_jpeg(longest, quality=80, subsampling="4:4:4")) == 1


CODE = """
import hashlib, torch
from parity import vision
pixels = (torch.arange(97 * 61 * 3).reshape(97, 61, 3) * 37 % 251).to(torch.uint8)
(file,) = vision.encode_jpeg(vision.Images([pixels]), quality=83, subsampling="4:2:2")
print(hashlib.sha256(file).hexdigest())
"""


@pytest.mark.slow
def test_another_process_with_other_threads_and_without_faster_libraries_writes_the_same_bytes() -> None:
    digests = [hashlib.sha256(encoded()).hexdigest()]
    for before in ("import torch; torch.set_num_threads(2)", "import sys; sys.modules['simplejpeg'] = None"):
        done = subprocess.run([sys.executable, "-c", f"{before}\n{CODE}"], capture_output=True, check=True)
        digests.append(done.stdout.decode().strip())
    assert len(set(digests)) == 1


def encoded() -> bytes:
    pixels = (torch.arange(97 * 61 * 3).reshape(97, 61, 3) * 37 % 251).to(torch.uint8)
    return vision.encode_jpeg(Images([pixels]), quality=83, subsampling="4:2:2")[0]
