"""A header that is called plain is one that Pillow reads the same way; all others are left to Pillow."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from parity import vision
from parity.vision.fastpaths import definitions_only
from parity.vision.jpeg_header import plain_size
from tests.vision.pictures import file_of, outcome, photo


def jpeg(**options: Any) -> bytes:
    return file_of(Pillow.fromarray(photo(45, 67)), "JPEG", quality=80, **options)


def with_segment(marker: int, payload: bytes) -> bytes:
    """A JPEG with one more segment, right at its beginning."""
    data = jpeg()
    return data[:2] + bytes((0xFF, marker)) + (len(payload) + 2).to_bytes(2, "big") + payload + data[2:]


@pytest.mark.parametrize(
    "options",
    [{}, {"progressive": True}, {"subsampling": 0}, {"comment": b"mine"}, {"icc_profile": b"x" * 70_000}],
)
def test_plain_files_have_their_size_read(options: dict[str, Any]) -> None:
    assert plain_size(jpeg(**options)) == (45, 67)


TURNED = Pillow.Exif()
TURNED[0x0112] = 6


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8",
        file_of(Pillow.fromarray(photo()), "PNG"),
        file_of(Pillow.fromarray(photo()).convert("L"), "JPEG"),
        file_of(Pillow.fromarray(photo()).convert("CMYK"), "JPEG"),
        jpeg(exif=TURNED),
        jpeg(xmp=b'<x tiff:Orientation="3"/>'),
        file_of(Pillow.fromarray(photo()), "MPO", save_all=True, append_images=[Pillow.new("RGB", (9, 9))]),
        with_segment(0xE2, b"MPF\0" + b"0" * 40),
        with_segment(0xED, b"Photoshop 3.0\0" + b"8BIM"),
        with_segment(0xE0, b"JFIF"),
        jpeg()[:100],
        jpeg()[:2] + b"\xff" + jpeg()[2:],
    ],
)
def test_other_files_are_left_to_pillow(data: bytes) -> None:
    assert plain_size(data) is None


@pytest.mark.slow
def test_files_with_any_header_are_decoded_or_refused_as_by_pillow() -> None:
    generator = np.random.default_rng(5)
    files = [
        jpeg(),
        jpeg(icc_profile=b"x" * 40),
        jpeg(exif=TURNED),
        jpeg(progressive=True),
        with_segment(0xEE, b"Adobe" + b"\0" * 7),
    ]
    plain = 0
    for turn in range(3000):
        data = bytearray(files[turn % len(files)])
        for _ in range(generator.integers(1, 4)):
            data[int(generator.integers(2, 640))] = int(generator.integers(0, 256))
        size = plain_size(bytes(data))
        if size is None or size[0] * size[1] > 10**6:
            continue
        plain += 1
        found = outcome(bytes(data))
        with definitions_only():
            expected = outcome(bytes(data))
        assert type(found) is type(expected), data[:640].hex()
        assert np.array_equal(found, expected), data[:640].hex()
    assert plain > 1000


def test_large_files_are_refused_in_the_same_words() -> None:
    said: list[str] = []
    for context in (contextlib.nullcontext(), definitions_only()):
        with context, pytest.raises(vision.ImageError) as caught:
            vision.decode([jpeg()], max_pixels=3000)
        said.append(str(caught.value))
    assert said[0] == said[1] == "the image cannot be decoded: a JPEG file: 67 x 45 pixels, more than 3000"
