"""Which Parquet files a name stands for: one file, a folder of them, or a glob. No file is read here.

Names below a folder or glob that start with "_" or "." are bookkeeping, and are skipped.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from parity.errors import DatasetError, did_you_mean

SUFFIXES = (".parquet", ".pq", ".parq")
_MAGIC = b"PAR1"


def find_files(text: str) -> tuple[Path, list[Path]]:
    """The fixed part of what was named, and the files in the order of their names below it."""
    path = Path(text)
    if path.is_dir():
        files = sorted(_walk(path), key=lambda file: file.relative_to(path).as_posix())
        if not files:
            raise DatasetError(
                f"folder {text!r} holds no Parquet file; looked below it for {', '.join(SUFFIXES)} and "
                "skipped names that start with '_' or '.'"
            )
        return path, files
    if path.exists():
        return path.parent, [path]
    if not glob.has_magic(text):
        parent = path.parent
        near = did_you_mean(path.name, [item.name for item in parent.iterdir()]) if parent.is_dir() else ""
        raise DatasetError(f"{text!r} does not exist; {near or 'give a Parquet file, a folder or a glob'}")
    fixed = next(place for place, part in enumerate(path.parts) if glob.has_magic(part))
    base = Path(*path.parts[:fixed])
    found: set[Path] = set()
    for match in map(Path, glob.glob(text, recursive=True)):  # noqa: PTH207 - the glob may be absolute
        if not any(map(_is_hidden, match.relative_to(base).parts)):
            found.update(_walk(match) if match.is_dir() else [match])
    if not found:
        raise DatasetError(f"no file matches {text!r}; quote a glob so that the shell leaves it alone")
    return base, sorted(found, key=lambda file: file.relative_to(base).as_posix())


def _walk(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in names:
            if not _is_hidden(name) and _is_parquet(Path(here, name)):
                yield Path(here, name)


def _is_parquet(path: Path) -> bool:
    """By suffix, and by content where the suffix is another: parts without a suffix must not get lost."""
    if path.suffix.lower() in SUFFIXES:
        return True
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))
