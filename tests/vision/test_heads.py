"""What the heads of files say: as Pillow reads sound ones, and of no pixels where a side is 0."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from parity import vision
from parity.vision.heads import kind_of, size_of
from tests.vision.pictures import file_of, noise, photo

WIDTH, HEIGHT = 7, 5
FILES: dict[str, bytes] = {
    kind: file_of(Pillow.fromarray(noise(1, HEIGHT, WIDTH)), kind)
    for kind in ("JPEG", "PNG", "GIF", "WebP", "BMP", "TIFF")
}


def replaced(data: bytes, at: int, form: str, *values: int) -> bytes:
    raw = struct.pack(form, *values)
    return data[:at] + raw + data[at + len(raw) :]


def png(data: bytes, width: int, height: int) -> bytes:
    head = replaced(data, 16, ">II", width, height)
    return replaced(head, 29, ">I", zlib.crc32(head[12:29]))


def gif(data: bytes, width: int, height: int) -> bytes:
    """The screen and the frame: a frame that is larger than the screen makes it grow."""
    frame = data.index(b"," + bytes(4) + struct.pack("<HH", WIDTH, HEIGHT))
    return replaced(replaced(data, 6, "<HH", width, height), frame + 5, "<HH", width, height)


def jpeg(data: bytes, width: int, height: int) -> bytes:
    return replaced(data, data.index(b"\xff\xc0") + 5, ">HH", height, width)


def tiff(data: bytes, width: int, height: int) -> bytes:
    (directory,) = struct.unpack_from("<I", data, 4)
    return replaced(replaced(data, directory + 10, "<I", width), directory + 22, "<I", height)


RESIZED: dict[str, Callable[[bytes, int, int], bytes]] = {
    "JPEG": jpeg,
    "PNG": png,
    "GIF": gif,
    "WebP": lambda data, width, height: replaced(data, 26, "<HH", width, height),
    "BMP": lambda data, width, height: replaced(data, 18, "<ii", width, height),
    "TIFF": tiff,
}


@pytest.mark.parametrize("kind", RESIZED)
def test_the_size_in_a_head_is_read_and_written_where_it_is(kind: str) -> None:
    data = FILES[kind]
    assert kind_of(data) == kind
    assert size_of(data) == (WIDTH, HEIGHT)
    assert RESIZED[kind](data, WIDTH, HEIGHT) == data
    vision.decode([data])


@pytest.mark.parametrize("kind", RESIZED)
@pytest.mark.parametrize(("width", "height"), [(0, HEIGHT), (WIDTH, 0), (0, 0)])
def test_a_picture_of_no_pixels_is_refused_with_its_size(kind: str, width: int, height: int) -> None:
    with pytest.raises(vision.ImageError) as caught:
        vision.decode([FILES["PNG"], RESIZED[kind](FILES[kind], width, height)])
    assert caught.value.rows == {
        1: f"a {kind} file of {width} x {height} pixels; expected 1 or more each way"
    }


@pytest.mark.parametrize("options", [{}, {"comment": b"some words"}, {"interlace": 1, "transparency": 3}])
@pytest.mark.parametrize(("width", "height"), [(0, HEIGHT), (WIDTH, 0), (0, 0)])
def test_a_frame_of_no_pixels_on_a_sound_screen_is_refused_with_its_size(
    options: dict[str, Any], width: int, height: int
) -> None:
    data = file_of(Pillow.fromarray(noise(1, HEIGHT, WIDTH)), "GIF", **options)
    assert size_of(data) == (WIDTH, HEIGHT)
    frame = data.index(b"," + bytes(4) + struct.pack("<HH", WIDTH, HEIGHT))
    with pytest.raises(vision.ImageError, match=f"a GIF file of {width} x {height} pixels; expected 1 or"):
        vision.decode([replaced(data, frame + 5, "<HH", width, height)])


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("JPEG", {"progressive": True, "icc_profile": b"x" * 70_000}),
        ("JPEG", {"exif": Pillow.Exif(), "comment": b"mine"}),
        ("PNG", {"optimize": True}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("TIFF", {"big_endian": True}),
    ],
)
def test_the_size_is_read_whatever_else_a_file_has(kind: str, options: dict[str, Any]) -> None:
    assert size_of(file_of(Pillow.fromarray(photo(33, 50)), kind, **options)) == (50, 33)


def test_a_bitmap_from_top_to_bottom_and_one_of_the_short_head_have_their_size_read() -> None:
    assert size_of(replaced(FILES["BMP"], 22, "<i", -HEIGHT)) == (WIDTH, HEIGHT)
    short = b"BM" + struct.pack("<IHHIIHHHH", 26 + 24, 0, 0, 26, 12, 0, HEIGHT, 1, 24) + bytes(24)
    with pytest.raises(vision.ImageError, match=f"a BMP file of 0 x {HEIGHT} pixels"):
        vision.decode([short])


@pytest.mark.parametrize("kind", RESIZED)
def test_heads_that_are_cut_off_or_changed_say_nothing_or_some_size(kind: str) -> None:
    generator = np.random.default_rng(2)
    for cut in range(len(FILES[kind]) if len(FILES[kind]) < 300 else 300):
        assert size_of(FILES[kind][:cut]) in (None, (WIDTH, HEIGHT))
    for _ in range(300):
        data = bytearray(FILES[kind])
        for place in generator.integers(4, min(len(data), 200), 3):
            data[place] = int(generator.integers(0, 256))
        found = size_of(bytes(data))
        assert found is None or min(found) >= -(1 << 31)


def test_other_files_have_no_kind_and_no_size() -> None:
    for data in (b"", b"hello", b"RIFF", bytes(100)):
        assert kind_of(data) is None
        assert size_of(data) is None
