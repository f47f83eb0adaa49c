"""Find the files that a job's inputs name: files, folders and globs. No footer is read here.

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
from parity_batch.formats import FORMATS, PARQUET, format_of, named
from parity_batch.places import (
    Place,
    above_of,
    below,
    beside,
    is_folder,
    is_url,
    local_path,
    names_in,
    shown_place,
    without_secrets,
)

DELTA_LOG = "_delta_log"
ICEBERG_METADATA = ".metadata.json"

_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input file.

    Attributes:
        path: where it is.
        name: its path below the job's input root, with "/": what the outputs call it.
        format: the name of its format.
    """

    path: Place
    name: str
    format: str = PARQUET


def find_files(inputs: Sequence[str | Path], input_format: str | None = None) -> tuple[Path, list[InputFile]]:
    """The input root and the files, in the order of `inputs` and by name within each.

    All files have one format, by their names; where folders hold several, `input_format` says which are
    taken. A file that is named itself, or has a name without a suffix, is read as what `input_format` says.

    The root is the folder, the file's folder or the fixed part of the glob; with several inputs what they
    have in common.

    Raises:
        DatasetError: an input is not there or holds no file of a known format, a file is
            named twice, or there are files of several formats.
    """
    if not inputs:
        raise DatasetError("no input is given; name a Parquet file, a folder or a glob")
    urls = [str(item) for item in inputs if is_url(str(item))]
    if urls:
        if len(urls) < len(inputs):
            raise DatasetError(
                f"inputs are URLs and paths: {without_secrets(urls[0])} and others; give one kind, or "
                "file:// URLs"
            )
        return Path(), _of_one_format(_at_urls(urls, input_format))
    checked: set[Path] = set()
    found = [_expand(str(item), input_format, checked) for item in inputs]
    bases = [base for base, _ in found]
    root = bases[0] if len(bases) == 1 else Path(os.path.commonpath([base.absolute() for base in bases]))
    files: list[InputFile] = []
    seen: dict[Path, str] = {}
    folders: dict[Path, Path] = {}
    for text, (base, paths) in zip(inputs, found, strict=True):
        for path in paths:
            real = real_path(path, folders)
            if real != path.absolute():  # a link, which may lead into a table
                _refuse_inside_table(str(text), real.parent, checked)
            if real in seen:
                raise DatasetError(f"{path} is named twice, by {seen[real]} and by {text}; name it once")
            seen[real] = str(text)
            below = path.relative_to(base) if len(bases) == 1 else path.absolute().relative_to(root)
            files.append(InputFile(path, below.as_posix(), input_format or format_of(path.name) or PARQUET))
    return root, _of_one_format(files)


def table_kind(place: Place) -> str | None:
    """Which kind of table a place is: "Delta Lake" or "Iceberg"; None for anything else."""
    if shown_place(place).endswith(ICEBERG_METADATA):
        return "Iceberg"
    if isinstance(place, Path) and not place.is_dir():
        return None
    names = [] if isinstance(place, str) and format_of(shown_place(place)) is not None else names_in(place)
    if DELTA_LOG in names:
        return "Delta Lake"
    if "metadata" in names and any(
        name.endswith(ICEBERG_METADATA) for name in names_in(beside(place, "metadata"))
    ):
        return "Iceberg"
    return None


def real_path(path: Path, folders: dict[Path, Path]) -> Path:
    """Where a file is once links are followed; `folders` keeps what folders resolve to."""
    if path.is_symlink() or not path.name:
        return path.resolve()
    above = path.parent
    if above not in folders:
        folders[above] = above.resolve()
    return folders[above] / path.name


def _refuse_inside_table(text: str, base: Path, checked: set[Path]) -> None:
    """Raise DatasetError for what lies in a table: its files may be dead, and the log tells which.

    `checked` keeps the folders that are no table and lie in none, so that each is listed once.
    """
    for above in (base.absolute(), *base.absolute().parents):
        if above in checked:
            return
        checked.add(above)
        if (kind := table_kind(above)) is not None:
            raise _inside(text, kind, str(above))


def _inside(text: str, kind: str, table: str) -> DatasetError:
    return DatasetError(
        f"input {text!r} lies in the {kind} table {table!r}, some of whose files may hold rows that were "
        "deleted; name the table, and choose rows with --where"
    )


def _refuse_inside_table_at(url: str, checked_urls: set[str], checked: set[Path]) -> None:
    """The same for what a URL names; what may not be asked, as all above one's own folder, is no table."""
    if (path := local_path(url)) is not None:
        for place in (path, path.resolve()):
            _refuse_inside_table(without_secrets(url), place.parent, checked)
        return
    for above in above_of(url):
        if above in checked_urls:
            return
        checked_urls.add(above)
        kind = None
        if is_folder(beside(above, DELTA_LOG)):
            kind = "Delta Lake"
        elif is_folder(metadata := beside(above, "metadata")) and any(
            name.endswith(ICEBERG_METADATA) for name in names_in(metadata)
        ):
            kind = "Iceberg"
        if kind is not None:
            raise _inside(without_secrets(url), kind, without_secrets(above))


def _refuse_links_into_table(url: str, places: Sequence[str], checked: set[Path]) -> None:
    folders: dict[Path, Path] = {}
    for place in places:
        path = local_path(place)
        if path is not None and (real := real_path(path, folders)) != path:
            _refuse_inside_table(url, real.parent, checked)


def _of_one_format(files: list[InputFile]) -> list[InputFile]:
    first = {file.format: file for file in reversed(files)}
    if len(first) > 1:
        counts = ", ".join(
            f"{sum(file.format == form for file in files)} {form} ({first[form].name})"
            for form in sorted(first)
        )
        raise DatasetError(
            f"the inputs are of several formats: {counts}; a job reads one: --input-format NAME takes "
            "those of one format from folders, or name the files"
        )
    return files


def _at_urls(urls: Sequence[str], input_format: str | None) -> list[InputFile]:
    files: list[InputFile] = []
    seen: dict[str, str] = {}
    checked_urls: set[str] = set()
    checked: set[Path] = set()
    for url in urls:
        if glob.has_magic(url.partition("?")[0]):
            raise DatasetError(f"input {without_secrets(url)!r}: globs are for paths; name the folder")
        _refuse_inside_table_at(url, checked_urls, checked)
        found = below(url)
        if not (len(found) == 1 and found[0][0] == url):
            logs = [name for _, name in found if f"/{DELTA_LOG}/" in name or name.endswith(ICEBERG_METADATA)]
            if logs:
                raise DatasetError(
                    f"{without_secrets(url)} holds a table, with the log {logs[0]}; name the table itself"
                )
            if local_path(url) is not None:
                _refuse_links_into_table(url, [place for place, _ in found], checked)
            found = [
                (place, name)
                for place, name in found
                if _is_wanted(name, input_format) and not any(map(_is_hidden, name.split("/")))
            ]
        if not found:
            raise DatasetError(
                f"input {without_secrets(url)!r} is not there or holds no {_what(input_format)}"
            )
        for place, name in found:
            if place in seen:
                raise DatasetError(
                    f"{without_secrets(place)} is named twice, by {without_secrets(seen[place])} and by "
                    f"{without_secrets(url)}; name it once"
                )
            seen[place] = url
            base = without_secrets(url)
            whole = base if place == url else f"{base.rstrip('/')}/{name}"
            form = input_format or format_of(name) or PARQUET
            files.append(InputFile(place, name if len(urls) == 1 else whole, form))
    return files


def _expand(text: str, input_format: str | None, checked: set[Path]) -> tuple[Path, list[Path]]:
    """A base and the files below it; `checked` keeps the folders that are no table and lie in none."""
    path = Path(text)
    if path.is_dir():
        _refuse_inside_table(text, path.absolute().parent, checked)
        files = sorted(_walk(path, input_format), key=lambda item: item.relative_to(path).as_posix())
        if not files:
            raise DatasetError(
                f"folder {text!r} holds no {_what(input_format)}; looked below it and skipped names that "
                "start with '_' or '.'"
            )
        return path, files
    if path.exists():
        _refuse_inside_table(text, path.parent, checked)
        return path.parent, [path]
    if glob.has_magic(text):
        return _expand_glob(text, input_format, checked)
    raise DatasetError(f"input {text!r} does not exist; {_near(path)}")


def _expand_glob(text: str, input_format: str | None, checked: set[Path]) -> tuple[Path, list[Path]]:
    parts = Path(text).parts
    fixed = next(position for position, part in enumerate(parts) if glob.has_magic(part))
    base = Path(*parts[:fixed])
    _refuse_inside_table(text, base, checked)
    found: set[Path] = set()
    for match in glob.glob(text, recursive=True):  # noqa: PTH207 - the glob may be absolute
        path = Path(match)
        if any(_is_hidden(part) for part in path.relative_to(base).parts):
            continue
        if path.is_dir():
            if "**" not in parts:
                found.update(_walk(path, input_format))
        elif "**" not in parts or _is_data(path, input_format):
            found.add(path)
    for folder in sorted({path.parent for path in found}):
        _refuse_inside_table(text, folder, checked)
    if not found:
        raise DatasetError(f"no file matches {text!r}; quote a glob so that the shell leaves it alone")
    return base, sorted(found, key=lambda item: item.relative_to(base).as_posix())


def _walk(folder: Path, input_format: str | None) -> Iterator[Path]:
    visited: set[str] = set()
    for here, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(here)
        if real in visited:  # a link that leads back up
            folders.clear()
            continue
        visited.add(real)
        if DELTA_LOG in folders or "metadata" in folders:
            _refuse_table_below(Path(here), folder)
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in names:
            path = Path(here, name)
            if not _is_hidden(name) and path.is_file() and _is_data(path, input_format):
                yield path


def _refuse_table_below(here: Path, folder: Path) -> None:
    if (kind := table_kind(here)) is not None:
        raise DatasetError(
            f"folder {str(folder)!r} holds a {kind} table, {str(here)!r}, some of whose files may hold rows "
            "that were deleted; name the table itself"
        )


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _is_wanted(name: str, input_format: str | None) -> bool:
    known = format_of(name)
    if input_format is None:
        return known is not None
    return known == input_format or (known is None and "." not in name.rpartition("/")[2])


def _what(input_format: str | None) -> str:
    what = "Parquet, Arrow, CSV or JSON lines" if input_format is None else input_format
    return f"{what} file ({named(FORMATS if input_format is None else [input_format])})"


def _is_data(path: Path, input_format: str | None) -> bool:
    """By suffix, and Parquet by content, too: parts without a suffix must not get lost."""
    if _is_wanted(path.name, input_format):
        return True
    if format_of(path.name) is not None or input_format not in (None, PARQUET):
        return False
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _near(path: Path) -> str:
    parent = path.parent
    if not parent.is_dir():
        return f"there is no folder {str(parent)!r} either"
    there = [item.name for item in parent.iterdir()]
    otherwise = "has nothing of a similar name" if there else "is empty"
    return did_you_mean(path.name, there) or f"{str(parent)!r} {otherwise}"
