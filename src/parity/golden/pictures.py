"""What the head of an encoded image says: format, mode, size, orientation. No pixel is decoded.

Formats: PNG (RFC 2083, with eXIf), JPEG (ITU-T T.81, EXIF in APP1), GIF89a, WebP (RIFF container), BMP and
TIFF 6.0, whose directory is also EXIF's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_PNG_MODES: Final = {0: "grey", 2: "RGB", 3: "palette", 4: "grey+alpha", 6: "RGBA"}
_JPEG_MODES: Final = {1: "grey", 3: "YCbCr", 4: "CMYK"}
_TIFF_MODES: Final = {0: "grey", 1: "grey", 2: "RGB", 3: "palette", 5: "CMYK", 6: "YCbCr"}
_ORIENTATION, _WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC = 274, 256, 257, 258, 262
_EXIF = b"Exif\0\0"
_MOST_ENTRIES = 512


@dataclass(frozen=True)
class Picture:
    """An image file's head.

    Attributes:
        kind: format and mode, such as "PNG RGBA", "PNG grey 16-bit" or "JPEG YCbCr 4:2:0".
        width: in pixels, as stored; 0 where the head does not tell.
        height: likewise.
        orientation: the EXIF orientation, 1 (upright) where there is none.
    """

    kind: str
    width: int = 0
    height: int = 0
    orientation: int = 1


def read_head(data: bytes | memoryview) -> Picture:
    """The head of an encoded image; of kind "unreadable" where it is cut short or of no known format."""
    view = memoryview(data).cast("B")  # Arrow's buffers are of signed bytes
    head = bytes(view[:16])
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return _png(view)
        if head.startswith(b"\xff\xd8"):
            return _jpeg(view)
        if head.startswith((b"GIF87a", b"GIF89a")):
            width, height = struct.unpack_from("<HH", view, 6)
            return Picture("GIF", width, height)
        if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
            return _webp(view)
        if head.startswith(b"BM"):
            width, height, _, bits = struct.unpack_from("<iiHH", view, 18)
            return Picture(f"BMP {bits}-bit", width, abs(height))
        if head.startswith((b"II*\0", b"MM\0*")):
            return _tiff(view)
    except (struct.error, IndexError, ValueError):
        pass
    return Picture("unreadable")


def _png(view: memoryview) -> Picture:
    width, height, bits, color = struct.unpack_from(">IIBB", view, 16)
    kind = f"PNG {_PNG_MODES.get(color, f'color type {color}')}" + (f" {bits}-bit" if bits != 8 else "")
    orientation = 1
    place = 8
    while place + 8 <= len(view):
        size, name = struct.unpack_from(">I4s", view, place)
        if name == b"eXIf":
            orientation = _orientation(view[place + 8 : place + 8 + size])
        if name == b"tRNS":
            kind += " with transparency"
        place += 12 + size
    return Picture(kind, width, height, orientation)


def _jpeg(view: memoryview) -> Picture:
    orientation = 1
    for marker, body in _segments(view):
        if marker == 0xE1 and bytes(body[:6]) == _EXIF:
            orientation = _orientation(body[6:])
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            bits, height, width, parts = struct.unpack_from(">BHHB", body)
            kind = f"JPEG {_JPEG_MODES.get(parts, f'{parts} components')}"
            if parts == 3:
                kind += f" {_sampling(body)}"
            kind += f" {bits}-bit" if bits != 8 else ""
            kind += " progressive" if marker == 0xC2 else ""
            return Picture(kind, width, height, orientation)
    return Picture("unreadable")


def _segments(view: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The marker segments of a JPEG up to its picture data."""
    place = 2
    while place + 4 <= len(view):
        if view[place] != 0xFF:
            return
        marker = view[place + 1]
        if marker == 0xFF:  # padding
            place += 1
            continue
        if marker == 0xDA:
            return
        (size,) = struct.unpack_from(">H", view, place + 2)
        yield marker, view[place + 4 : place + 2 + size]
        place += 2 + max(2, size)


def _sampling(body: memoryview) -> str:
    """The chroma subsampling of a frame of three components, as photographers write it."""
    luma, chroma = body[7], body[10]
    across, down = luma >> 4, luma & 15
    if chroma != 0x11:
        return f"{across}x{down}"
    return {(1, 1): "4:4:4", (2, 1): "4:2:2", (2, 2): "4:2:0", (1, 2): "4:4:0", (4, 1): "4:1:1"}.get(
        (across, down), f"{across}x{down}"
    )


def _webp(view: memoryview) -> Picture:
    name = bytes(view[12:16])
    if name == b"VP8 ":
        width, height = struct.unpack_from("<HH", view, 26)
        return Picture("WebP lossy", width & 0x3FFF, height & 0x3FFF)
    if name == b"VP8L":
        (bits,) = struct.unpack_from("<I", view, 21)
        alpha = " with alpha" if bits >> 28 & 1 else ""
        return Picture(f"WebP lossless{alpha}", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if name != b"VP8X":
        return Picture("unreadable")
    flags = view[20]
    width = 1 + int.from_bytes(view[24:27], "little")
    height = 1 + int.from_bytes(view[27:30], "little")
    orientation = 1
    place = 12
    while place + 8 <= len(view):
        chunk, size = struct.unpack_from("<4sI", view, place)
        if chunk == b"EXIF":
            body = view[place + 8 : place + 8 + size]
            orientation = _orientation(body[6:] if bytes(body[:6]) == _EXIF else body)
        place += 8 + size + size % 2
    kind = "WebP extended" + (" with alpha" if flags & 0x10 else "") + (" animated" if flags & 2 else "")
    return Picture(kind, width, height, orientation)


def _tiff(view: memoryview) -> Picture:
    tags = _directory(view)
    mode = _TIFF_MODES.get(tags.get(_PHOTOMETRIC, -1), "of another mode")
    bits = tags.get(_BITS, 8)
    kind = f"TIFF {mode}" + (f" {bits}-bit" if bits not in (8, 0) else "")
    return Picture(kind, tags.get(_WIDTH, 0), tags.get(_HEIGHT, 0), _upright(tags))


def _orientation(body: memoryview) -> int:
    """The orientation in EXIF data, which is a TIFF file; 1 where it cannot be read."""
    try:
        return _upright(_directory(body))
    except (struct.error, IndexError, ValueError):
        return 1


def _upright(tags: dict[int, int]) -> int:
    found = tags.get(_ORIENTATION, 1)
    return found if 1 <= found <= 8 else 1


def _directory(view: memoryview) -> dict[int, int]:
    """The tags of a TIFF's first directory that hold one short or long number, or several shorts' first."""
    order = {b"II": "<", b"MM": ">"}.get(bytes(view[:2]))
    if order is None:
        raise ValueError("neither little nor big endian")
    (start,) = struct.unpack_from(f"{order}I", view, 4)
    (count,) = struct.unpack_from(f"{order}H", view, start)
    tags: dict[int, int] = {}
    for number in range(min(count, _MOST_ENTRIES)):
        place = start + 2 + 12 * number
        tag, kind, values = struct.unpack_from(f"{order}HHI", view, place)
        if kind == 3:
            at = place + 8 if values <= 2 else struct.unpack_from(f"{order}I", view, place + 8)[0]
            (tags[tag],) = struct.unpack_from(f"{order}H", view, at)
        elif kind == 4 and values == 1:
            (tags[tag],) = struct.unpack_from(f"{order}I", view, place + 8)
    return tags
