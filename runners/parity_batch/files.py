"""Find the Parquet files that a job's inputs name: files, folders and globs. No footer is read here.

Names that start with "_" or "." below a folder or glob are skipped, as all readers of such datasets do: they
are bookkeeping, temporary files and error datasets.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from parity.errors import DatasetError, did_you_mean
from parity_batch.places import Place, below, is_url

SUFFIXES = (".parquet", ".pq", ".parq")
_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input file.

    Attributes:
        path: where it is.
        name: its path below the job's input root, with "/": what the outputs call it.
    """

    path: Place
    name: str


def find_files(inputs: Sequence[str | Path]) -> tuple[Path, list[InputFile]]:
    """The input root and the files, in the order of `inputs` and by name within each.

    The root is the folder, the file's folder or the fixed part of the glob; with several inputs what they
    have in common.

    Raises:
        DatasetError: an input is not there or holds no Parquet file, or a file is named twice.
    """
    if not inputs:
        raise DatasetError("no input is given; name a Parquet file, a folder or a glob")
    urls = [str(item) for item in inputs if is_url(str(item))]
    if urls:
        if len(urls) < len(inputs):
            raise DatasetError(
                f"inputs are URLs and paths: {urls[0]} and others; give one kind, or file:// URLs"
            )
        return Path(), _at_urls(urls)
    found = [_expand(str(item)) for item in inputs]
    bases = [base for base, _ in found]
    root = bases[0] if len(bases) == 1 else Path(os.path.commonpath([base.absolute() for base in bases]))
    files: list[InputFile] = []
    seen: dict[Path, str] = {}
    folders: dict[Path, Path] = {}
    for text, (base, paths) in zip(inputs, found, strict=True):
        for path in paths:
            real = _real(path, folders)
            if real in seen:
                raise DatasetError(f"{path} is named twice, by {seen[real]} and by {text}; name it once")
            seen[real] = str(text)
            below = path.relative_to(base) if len(bases) == 1 else path.absolute().relative_to(root)
            files.append(InputFile(path, below.as_posix()))
    return root, files


def _at_urls(urls: Sequence[str]) -> list[InputFile]:
    files: list[InputFile] = []
    seen: dict[str, str] = {}
    for url in urls:
        if glob.has_magic(url.partition("?")[0]):
            raise DatasetError(f"input {url!r}: globs are for paths; name the folder")
        found = below(url)
        if not (len(found) == 1 and found[0][0] == url):
            found = [
                (place, name)
                for place, name in found
                if name.lower().endswith(SUFFIXES) and not any(map(_is_hidden, name.split("/")))
            ]
        if not found:
            raise DatasetError(f"input {url!r} is not there or holds no Parquet file ({', '.join(SUFFIXES)})")
        for place, name in found:
            if place in seen:
                raise DatasetError(f"{place} is named twice, by {seen[place]} and by {url}; name it once")
            seen[place] = url
            base = url.partition("?")[0]
            whole = base if place == url else f"{base.rstrip('/')}/{name}"
            files.append(InputFile(place, name if len(urls) == 1 else whole))
    return files


def _expand(text: str) -> tuple[Path, list[Path]]:
    path = Path(text)
    if path.is_dir():
        files = sorted(_walk(path), key=lambda item: item.relative_to(path).as_posix())
        if not files:
            raise DatasetError(
                f"folder {text!r} holds no Parquet file; looked below it for {', '.join(SUFFIXES)} and "
                "skipped names that start with '_' or '.'"
            )
        return path, files
    if path.exists():
        return path.parent, [path]
    if glob.has_magic(text):
        return _expand_glob(text)
    raise DatasetError(f"input {text!r} does not exist; {_near(path)}")


def _expand_glob(text: str) -> tuple[Path, list[Path]]:
    parts = Path(text).parts
    fixed = next(position for position, part in enumerate(parts) if glob.has_magic(part))
    base = Path(*parts[:fixed])
    found: set[Path] = set()
    for match in glob.glob(text, recursive=True):  # noqa: PTH207 - the glob may be absolute
        path = Path(match)
        if any(_is_hidden(part) for part in path.relative_to(base).parts):
            continue
        if path.is_dir():
            if "**" not in parts:
                found.update(_walk(path))
        elif "**" not in parts or _is_parquet(path):
            found.add(path)
    if not found:
        raise DatasetError(f"no file matches {text!r}; quote a glob so that the shell leaves it alone")
    return base, sorted(found, key=lambda item: item.relative_to(base).as_posix())


def _walk(folder: Path) -> Iterator[Path]:
    visited: set[str] = set()
    for here, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(here)
        if real in visited:  # a link that leads back up
            folders.clear()
            continue
        visited.add(real)
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in names:
            path = Path(here, name)
            if not _is_hidden(name) and path.is_file() and _is_parquet(path):
                yield path


def _real(path: Path, folders: dict[Path, Path]) -> Path:
    """Where a file is once links are followed; `folders` keeps what folders resolve to."""
    if path.is_symlink() or not path.name:
        return path.resolve()
    above = path.parent
    if above not in folders:
        folders[above] = above.resolve()
    return folders[above] / path.name


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _is_parquet(path: Path) -> bool:
    """By suffix, and by content where the suffix is another: parts without a suffix must not get lost."""
    if path.suffix.lower() in SUFFIXES:
        return True
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _near(path: Path) -> str:
    parent = path.parent
    if not parent.is_dir():
        return f"there is no folder {str(parent)!r} either"
    return did_you_mean(path.name, [item.name for item in parent.iterdir()]) or f"{str(parent)!r} is empty"
