"""Read fashion-MNIST's files: gzipped IDX, the format of the original MNIST."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["DEBIAN_FOLDER", "LABELS", "read_split"]

DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
"""Where Debian's package ``dataset-fashion-mnist`` puts the files."""

LABELS = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
"""The names of the classes 0 to 9."""

_UNSIGNED_BYTES = 0x08


def read_split(folder: Path, split: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the images (n, 28, 28) and the class of each (n,), for the split ``train`` or ``t10k``.

    Raises ValueError where a file is not IDX of unsigned bytes or where the two files do not match.
    """
    images = _read_idx(folder / f"{split}-images-idx3-ubyte.gz")
    classes = _read_idx(folder / f"{split}-labels-idx1-ubyte.gz")
    if images.shape != (len(classes), 28, 28):
        raise ValueError(
            f"split {split!r} in {folder}: images have shape {images.shape}, "
            f"expected ({len(classes)}, 28, 28) for its {len(classes)} labels"
        )
    return images, classes


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """Return one IDX file's array: two zero bytes, a type, the rank, big-endian sizes, the values."""
    content = gzip.decompress(path.read_bytes())
    if content[:2] != b"\0\0" or content[2] != _UNSIGNED_BYTES:
        raise ValueError(f"{path}: header {content[:4].hex()} is not IDX of unsigned bytes (000008..)")
    rank = content[3]
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", count=rank, offset=4))
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)
