"""What the head of an image file says: of which kind it is, and of how many pixels. No pixel is decoded.

It is asked to tell what is wrong with a file that could not be decoded, never whether one can be.
"""

from __future__ import annotations

import struct
from typing import Final

_HEADS: Final = (
    (b"\xff\xd8\xff", 0, "JPEG"),
    (b"\x89PNG", 0, "PNG"),
    (b"GIF8", 0, "GIF"),
    (b"WEBP", 8, "WebP"),
    (b"BM", 0, "BMP"),
    (b"II*\0", 0, "TIFF"),
    (b"MM\0*", 0, "TIFF"),
)
"""What files of each kind begin with, and where."""

_NO_FRAMES: Final = frozenset((0xC4, 0xC8, 0xCC))
"""JPEG's markers among those of frames, 0xC0 to 0xCF, that begin none."""

_SCAN: Final = 0xDA
_WIDTH, _HEIGHT = 256, 257
_SHORT: Final = 3


def kind_of(data: bytes) -> str | None:
    """The kind of a file, such as "PNG"; None where it is none that is known here."""
    return next((name for head, place, name in _HEADS if data[place:].startswith(head)), None)


def size_of(data: bytes) -> tuple[int, int] | None:
    """Width and height as the file's head has them, 0 included; None where it does not say."""
    kind = kind_of(data)
    read = _SIZES.get(kind) if kind else None
    try:
        return read(data) if read else None
    except struct.error:
        return None


def _png(data: bytes) -> tuple[int, int] | None:
    return _pair(">II", data, 16) if data[12:16] == b"IHDR" else None


def _gif(data: bytes) -> tuple[int, int]:
    """Of the screen, or of the first frame where that has no pixels."""
    frame = _gif_frame(data)
    return frame if frame is not None and 0 in frame else _pair("<HH", data, 6)


def _gif_frame(data: bytes) -> tuple[int, int] | None:
    colours = 3 << ((data[10] & 7) + 1) if len(data) > 10 and data[10] & 0x80 else 0
    at = 13 + colours
    while data[at : at + 1] == b"!":  # an extension: its label, then blocks, the last of them empty
        at += 2
        while at < len(data) and data[at]:
            at += 1 + data[at]
        at += 1
    return _pair("<HH", data, at + 5) if data[at : at + 1] == b"," and len(data) >= at + 9 else None


def _webp(data: bytes) -> tuple[int, int] | None:
    """The lossy form's: the others keep each side less one, which is never 0."""
    if data[12:16] != b"VP8 " or data[23:26] != b"\x9d\x01*":
        return None
    width, height = _pair("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


def _bmp(data: bytes) -> tuple[int, int]:
    (head,) = struct.unpack_from("<I", data, 14)
    width, height = _pair("<HH" if head == 12 else "<ii", data, 18)
    return width, abs(height)


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in _NO_FRAMES:
            height, width = _pair(">HH", data, at + 5)
            return width, height
        (size,) = struct.unpack_from(">H", data, at + 2)
        if marker == _SCAN or size < 2:
            return None
        at += 2 + size
    return None


def _tiff(data: bytes) -> tuple[int, int] | None:
    """Of the first directory."""
    order = "<" if data.startswith(b"II") else ">"
    (place,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, place)
    found: dict[int, int] = {}
    for at in range(place + 2, place + 2 + 12 * count, 12):
        tag, form = _pair(f"{order}HH", data, at)
        if tag in (_WIDTH, _HEIGHT):
            (found[tag],) = struct.unpack_from(f"{order}{'H' if form == _SHORT else 'I'}", data, at + 8)
    return (found[_WIDTH], found[_HEIGHT]) if len(found) == 2 else None


def _pair(form: str, data: bytes, at: int) -> tuple[int, int]:
    first, second = struct.unpack_from(form, data, at)
    return first, second


_SIZES: Final = {"JPEG": _jpeg, "PNG": _png, "GIF": _gif, "WebP": _webp, "BMP": _bmp, "TIFF": _tiff}
