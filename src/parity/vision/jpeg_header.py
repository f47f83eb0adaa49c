"""The header of a plain JPEG file, read in microseconds; whatever is not plain is left to Pillow to judge."""

from __future__ import annotations

from typing import Final

_START, _SCAN = 0xD8, 0xDA
_TABLES_AND_COMMENTS: Final = frozenset((0xDB, 0xC4, 0xDD, 0xFE))
_FRAMES: Final = frozenset((0xC0, 0xC1, 0xC2))
_FRAME_SIZE: Final = 15
_LEAST: Final = {0xE0: (b"JFIF\0", 14), 0xE2: (b"ICC_PROFILE\0", 14), 0xEE: (b"Adobe", 12)}
"""Application segments that do not change what Pillow makes of a file: how each begins, its least size."""


def plain_size(data: bytes) -> tuple[int, int] | None:
    """Height and width of a JPEG file that Pillow opens as mode RGB and that is upright; None where unsure.

    Plain is a file of three 8-bit components, baseline or progressive, without EXIF or XMP (which may turn
    it), without further pictures, and with nothing between its segments.
    """
    if data[:2] != bytes((0xFF, _START)):
        return None
    found: tuple[int, int] | None = None
    at, end = 2, len(data)
    while at + 4 <= end and data[at] == 0xFF:
        marker, size = data[at + 1], (data[at + 2] << 8) | data[at + 3]
        if marker == _SCAN:
            return found
        start, at = at + 4, at + 2 + size
        if size < 2 or at > end:
            return None
        if marker in _FRAMES:
            segment = data[start:at]
            if found is not None or len(segment) != _FRAME_SIZE or segment[0] != 8 or segment[5] != 3:
                return None
            found = (segment[1] << 8) | segment[2], (segment[3] << 8) | segment[4]
            if 0 in found:
                return None
        elif marker not in _TABLES_AND_COMMENTS:
            begins, least = _LEAST.get(marker, (None, 0))
            if begins is None or at - start < least or data[start : start + len(begins)] != begins:
                return None
    return None
