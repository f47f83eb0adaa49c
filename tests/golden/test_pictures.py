"""The heads of image files: read from the bytes, and never a crash."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.golden.pictures import Picture, read_head
from tests.golden.pictures import jpeg, png, tiff


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (png(3, 5), Picture("PNG RGB", 3, 5)),
        (png(3, 5, color=0, bits=16, orientation=3), Picture("PNG grey 16-bit", 3, 5, 3)),
        (png(3, 5, color=6), Picture("PNG RGBA", 3, 5)),
        (jpeg(7, 9), Picture("JPEG YCbCr 4:2:0", 7, 9)),
        (jpeg(7, 9, luma=0x11), Picture("JPEG YCbCr 4:4:4", 7, 9)),
        (jpeg(7, 9, luma=0x21, orientation=6), Picture("JPEG YCbCr 4:2:2", 7, 9, 6)),
        (jpeg(7, 9, parts=1, orientation=8, order=">"), Picture("JPEG grey", 7, 9, 8)),
        (jpeg(7, 9, parts=4), Picture("JPEG CMYK", 7, 9)),
        (b"GIF89a" + struct.pack("<HH", 10, 20), Picture("GIF", 10, 20)),
        (b"BM" + bytes(16) + struct.pack("<iiHH", 6, -4, 1, 24), Picture("BMP 24-bit", 6, 4)),
        (tiff(5, t256=11, t257=12, t258=16, t262=1), Picture("TIFF grey 16-bit", 11, 12, 5)),
        (b"", Picture("unreadable")),
        (b"\x89PNG\r\n\x1a\n", Picture("unreadable")),
        (b"\xff\xd8\xff\xd9", Picture("unreadable")),
        (b"II*\0", Picture("unreadable")),
        (jpeg(7, 9, orientation=9), Picture("JPEG YCbCr 4:2:0", 7, 9)),
    ],
    ids=lambda value: value.kind if isinstance(value, Picture) else "",
)
def test_a_head_tells_format_mode_size_and_orientation(data: bytes, expected: Picture) -> None:
    assert read_head(data) == expected
    assert read_head(memoryview(data)) == expected


@pytest.mark.parametrize(
    "whole",
    [png(3, 5, orientation=4), jpeg(7, 9, orientation=6), tiff(5, t256=11)],
    ids="PNG JPEG TIFF".split(),
)
@settings(max_examples=50)
@given(data=st.data())
def test_a_garbled_head_is_some_picture_and_no_error(whole: bytes, data: st.DataObject) -> None:
    garbled = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 4))):
        garbled[data.draw(st.integers(0, len(garbled) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(garbled)))
    assert 1 <= read_head(bytes(garbled[:cut])).orientation <= 8


@pytest.mark.parametrize(
    ("mode", "form", "kind"),
    [
        ("RGB", "PNG", "PNG RGB"),
        ("RGBA", "PNG", "PNG RGBA"),
        ("P", "PNG", "PNG palette"),
        ("I;16", "PNG", "PNG grey 16-bit"),
        ("L", "JPEG", "JPEG grey"),
        ("RGB", "JPEG", "JPEG YCbCr 4:2:0"),
        ("CMYK", "JPEG", "JPEG CMYK"),
        ("RGB", "GIF", "GIF"),
        ("RGB", "BMP", "BMP 24-bit"),
        ("RGB", "TIFF", "TIFF RGB"),
        ("RGB", "WEBP", "WebP"),
        ("RGBA", "WEBP", "WebP"),
    ],
)
def test_real_files_are_read_as_pillow_wrote_them(mode: str, form: str, kind: str) -> None:
    image = pytest.importorskip("PIL.Image")
    picture = image.new(mode, (13, 21))
    exif = picture.getexif()
    exif[274] = 6
    for with_exif in (False, True):
        sink = io.BytesIO()
        keeps_exif = with_exif and form in ("PNG", "JPEG", "TIFF", "WEBP")
        picture.save(sink, form, **({"exif": exif} if keeps_exif else {}))
        head = read_head(sink.getvalue())
        assert (head.width, head.height) == (13, 21)
        assert head.kind.startswith(kind)
        assert head.orientation == (6 if keeps_exif else 1)
