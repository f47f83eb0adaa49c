"""Image files made by hand, as small as their formats allow; their pixels are of no interest."""

from __future__ import annotations

import struct
import zlib


def tiff(orientation: int, order: str = "<", **tags: int) -> bytes:
    """A TIFF header and directory, which is EXIF's form too."""
    entries = {274: orientation, **{int(name[1:]): value for name, value in tags.items()}}
    head = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, 8)
    body = struct.pack(f"{order}H", len(entries))
    for tag, value in sorted(entries.items()):
        body += struct.pack(f"{order}HHIHH", tag, 3, 1, value, 0)
    return head + body + struct.pack(f"{order}I", 0)


def png(width: int, height: int, *, color: int = 2, bits: int = 8, orientation: int = 0) -> bytes:
    """A PNG with nothing in it but its head."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    exif = chunk(b"eXIf", tiff(orientation, ">")) if orientation else b""
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + exif + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def jpeg(
    width: int, height: int, *, parts: int = 3, luma: int = 0x22, orientation: int = 0, order: str = "<"
) -> bytes:
    """A JPEG up to its frame header."""

    def segment(marker: int, body: bytes) -> bytes:
        return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body

    exif = segment(0xE1, b"Exif\0\0" + tiff(orientation, order)) if orientation else b""
    frame = struct.pack(">BHHB", 8, height, width, parts)
    frame += b"".join(bytes([part, luma if part == 0 else 0x11, 0]) for part in range(parts))
    return b"\xff\xd8" + segment(0xE0, b"JFIF\0" + bytes(9)) + exif + segment(0xC0, frame) + b"\xff\xd9"
