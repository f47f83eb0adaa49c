"""Files that are whole under their name or not there: temporary name, fsync, rename, fsync of the folder."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from parity.errors import DatasetError

TEMPORARY_SUFFIX = ".tmp"


def temporary(path: Path, mark: str = "") -> Path:
    """The name that a file has until it is whole: with a leading dot, which readers of datasets skip.

    Args:
        path: the file's final name.
        mark: tells writers of one file apart where there may be several at a time.
    """
    return path.with_name(f".{path.name}{f'.{mark}' if mark else ''}{TEMPORARY_SUFFIX}")


def is_temporary(path: Path) -> bool:
    """Whether a file is what a killed job left behind."""
    return path.name.startswith(".") and path.name.endswith(TEMPORARY_SUFFIX)


def publish(path: Path, mark: str = "") -> None:
    """Give the whole file at `temporary(path, mark)` its name, so that it survives a crash of the machine."""
    source = temporary(path, mark)
    with source.open("rb") as file:
        os.fsync(file.fileno())
    source.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, content: Mapping[str, Any], mark: str = "") -> None:
    """Write a JSON file atomically, keys in the order given."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n", mark)


def write_text(path: Path, text: str, mark: str = "") -> None:
    """Write a file atomically, in UTF-8: who sees the name sees the whole text."""
    write_bytes(path, text.encode(), mark)


def write_bytes(path: Path, data: bytes, mark: str = "") -> None:
    """Write a file atomically: who sees the name sees all of it."""
    temporary(path, mark).write_bytes(data)
    publish(path, mark)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock file at `path`; the kernel lets go of it when the process ends, however it ends.

    Raises:
        DatasetError: another process holds it.
    """
    with path.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DatasetError(
                f"{path.parent}: another job is writing to this folder; wait for it, or name another folder"
            ) from None
        yield
