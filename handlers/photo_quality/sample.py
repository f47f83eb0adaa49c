"""Write ``data/photo_quality/``: photos of many kinds of file, good and bad ones, with how each was made.

Run it with ``python handlers/photo_quality/sample.py [--to FOLDER]``; it takes the photos in scikit-image.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, ImageEnhance, ImageFilter

SAMPLE = Path(__file__).parents[2] / "data" / "photo_quality"
SIDE = 240
SOURCES = ("chelsea.png", "coffee.png", "rocket.jpg")
ROTATED = 6
"""An EXIF orientation: turned by a quarter."""


def main() -> None:
    """Parse the command line and write the file."""
    parser = argparse.ArgumentParser(description="Write a sample of photos as Parquet.")
    parser.add_argument("--to", type=Path, default=SAMPLE, help="folder to write")
    arguments = parser.parse_args()
    made = [(f"{source.partition('.')[0]} {how}", data) for source in SOURCES for how, data in _files(source)]
    table = pa.table(
        {
            "id": pa.array(range(len(made)), pa.int64()),
            "photo": pa.array([data for _, data in made], pa.binary()),
            "made": pa.array([how for how, _ in made]),
        }
    )
    arguments.to.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, arguments.to / "photo_quality-0.parquet", row_group_size=16, compression="zstd")


def _files(source: str) -> Iterator[tuple[str, bytes]]:
    """The photo of one source in many kinds of file."""
    photo = _photo(source)
    yield "jpeg", _saved(photo, "JPEG", quality=85)
    yield "progressive", _saved(photo, "JPEG", quality=85, progressive=True)
    yield "full chroma", _saved(photo, "JPEG", quality=85, subsampling=0)
    exif = Image.Exif()
    exif[0x0112] = ROTATED
    yield "rotated by EXIF", _saved(photo, "JPEG", quality=85, exif=exif)
    yield "CMYK", _saved(photo.convert("CMYK"), "JPEG", quality=85)
    yield "grey", _saved(photo.convert("L"), "JPEG", quality=85)
    yield "blurred", _saved(photo.filter(ImageFilter.GaussianBlur(4)), "JPEG", quality=85)
    yield "dark", _saved(ImageEnhance.Brightness(photo).enhance(0.12), "JPEG", quality=85)
    yield "bright", _saved(ImageEnhance.Brightness(photo).enhance(6.0), "JPEG", quality=85)
    small = photo.resize((96, 64))
    yield "small PNG", _saved(small, "PNG")
    clear = small.copy()
    clear.putalpha(128)
    yield "PNG with alpha", _saved(clear, "PNG")
    yield "palette PNG", _saved(small.quantize(64), "PNG")
    deep = np.asarray(small.convert("L")).astype(np.uint16) * 257
    yield "16-bit PNG", _saved(Image.fromarray(deep), "PNG")
    yield "WebP", _saved(photo, "WEBP", quality=80)
    yield "GIF", _saved(small.quantize(64), "GIF")
    yield "truncated", _saved(photo, "JPEG", quality=85)[:2000]


def _photo(source: str) -> Image.Image:
    found = importlib.util.find_spec("skimage")
    if found is None or found.origin is None:
        raise SystemExit("pip install --no-deps scikit-image")
    photo = Image.open(Path(found.origin).parent / "data" / source).convert("RGB")
    photo.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    return photo


def _saved(photo: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    photo.save(buffer, kind, **options)
    return buffer.getvalue()


if __name__ == "__main__":
    main()
