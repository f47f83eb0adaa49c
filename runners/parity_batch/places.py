"""Where input files are: on this machine, or behind a URL of a file system that pyarrow or fsspec knows.

s3://, gs://, abfs:// and file:// are pyarrow's own; any other scheme is asked of fsspec. Credentials are
what those libraries find by themselves: environment, configuration files, the machine's role.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa

from parity.errors import DatasetError
from parity_batch.connections import Told

_PYARROW = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "file")

_ETAGS = ("etag", "generation")
"""What object stores name contents by."""

_ONE_FILE_FOR_ALL = "memory"
"""The scheme of which fsspec hands one file object, with one position, to all who open a name."""

_WRITE_KEYS = "a key or secret with '/', '@' or ':' in it is written with %2F, %40 and %3A"

Place = Path | str
"""A path of this machine, or a URL."""


def is_url(text: str) -> bool:
    """Whether an input is a URL and no path of this machine."""
    scheme, separator, _ = text.partition("://")
    return bool(separator) and scheme.replace("+", "").replace("-", "").isalnum()


def place_of(text: str) -> Place:
    """The place that a user names."""
    return text if is_url(text) else Path(text)


def anywhere(place: Place) -> Place:
    """The same place for a process that may have another working folder."""
    return place.absolute() if isinstance(place, Path) else place


def local_path(url: str) -> Path | None:
    """The path that a file:// URL names; None for any other URL."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" and parts.netloc in ("", "localhost") else None


def without_secrets(url: str) -> str:
    """A URL as messages and summaries show it: without keys and options, which may hold what is secret.

    A secret that is written as it is may hold "/" and "@".
    """
    scheme, separator, rest = url.partition("?")[0].partition("://")
    _, at, host = rest.rpartition("@")
    return f"{scheme}{separator}{host if at and ':' in rest.partition('/')[0] else rest}"


def bare_url(url: str) -> str:
    """A URL that is read: without the key and options, which its library is given in another way."""
    scheme, separator, rest = url.partition("?")[0].partition("://")
    authority, slash, path = rest.partition("/")
    user, _, host = authority.rpartition("@")
    return f"{scheme}{separator}{host if ':' in user else authority}{slash}{path}"


def shown_place(place: Place) -> str:
    """A place as messages show it."""
    return str(place) if isinstance(place, Path) else without_secrets(place)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells a file from another one of its name.

    Attributes:
        size_bytes: its size.
        mtime_ns: when it was last changed; 0 where its file system keeps no time.
        etag: what an object store calls this content: its ETag or generation; empty without one.
    """

    size_bytes: int
    mtime_ns: int
    etag: str = ""

    def __eq__(self, other: object) -> bool:
        """By size and etag; by time where there is no etag: a copy in place has another time only."""
        if not isinstance(other, Stamp) or self.size_bytes != other.size_bytes:
            return False
        return self.etag == other.etag and bool(self.etag or self.mtime_ns == other.mtime_ns)

    def __hash__(self) -> int:
        return hash((self.size_bytes, self.etag))


def stamp_of(place: Place) -> Stamp:
    """A file's stamp.

    Raises:
        OSError: it is not there, or cannot be asked.
    """
    if isinstance(place, Path):
        status = place.stat()
        return Stamp(status.st_size, status.st_mtime_ns)
    files, path = file_system(place)
    info = files.get_file_info(path)
    if not info.is_file:
        raise FileNotFoundError(f"no file {shown_place(place)}")
    return Stamp(int(info.size), int(info.mtime_ns or 0), _etag(files, path))


def as_url(literal: str) -> str:
    """The URL that `file_system` reads as this: a scheme and a path, in which nothing has a meaning."""
    scheme, separator, path = literal.partition("://")
    return f"{scheme}{separator}{_as_in_urls(path) if scheme in _PYARROW else path}"


def beside(folder: Place, name: str) -> Place:
    """The place of a name below a folder; an absolute path or URL stays what it is."""
    if is_url(name):
        return local_path(name) or name
    if isinstance(folder, Path):
        return folder / name
    base, mark, options = folder.partition("?")
    spelled = _as_in_urls if base.partition("://")[0] in _PYARROW else str
    return f"{base.rstrip('/')}/{spelled(name)}{mark}{options}"


def above_of(url: str) -> list[str]:
    """The URLs of the folders that a URL lies in, the nearest first, the bucket or host last."""
    base, mark, options = url.partition("?")
    scheme, separator, path = base.partition("://")
    parts = path.rstrip("/").split("/")
    return [
        f"{scheme}{separator}{'/'.join(parts[:end])}{mark}{options}"
        for end in range(len(parts) - 1, 0, -1)
        if parts[end - 1]
    ]


def is_folder(place: Place) -> bool:
    """Whether something lies below a place; False where it may not be asked."""
    if isinstance(place, Path):
        return place.is_dir()
    import pyarrow.fs as pafs

    files, path = file_system(place)
    try:
        return files.get_file_info(path).type == pafs.FileType.Directory
    except Exception:  # noqa: BLE001 - libraries of file systems have errors of their own
        return False


def names_in(folder: Place) -> list[str]:
    """What lies directly in a folder, sorted; nothing where there is none.

    Raises:
        DatasetError: the file system cannot be asked.
    """
    if isinstance(folder, Path):
        return sorted(item.name for item in folder.iterdir()) if folder.is_dir() else []
    import pyarrow.fs as pafs

    files, path = file_system(folder)
    try:
        found = files.get_file_info(pafs.FileSelector(path, allow_not_found=True))
    except (OSError, pa.ArrowException, ValueError) as exc:
        shown = without_secrets(folder)
        raise DatasetError(f"input {shown!r} cannot be listed: {' '.join(str(exc).split())}") from exc
    return sorted(item.base_name for item in found)


def _etag(files: Any, path: str) -> str:
    import pyarrow.fs as pafs

    known: dict[str, Any] = {}
    if isinstance(files, pafs.PyFileSystem):
        handler: Any = files.handler
        found = handler.fs.info(path) if hasattr(handler, "fs") else {}
        known = {str(key).lower(): value for key, value in found.items()}
    elif not isinstance(files, pafs.LocalFileSystem):
        with files.open_input_file(path) as file:
            known = {str(key).lower(): value for key, value in file.metadata().items()}
    value = next((known[key] for key in _ETAGS if known.get(key)), "")
    return (value.decode() if isinstance(value, bytes) else str(value)).strip('"')


def open_file(place: Place, buffer_bytes: int = 0) -> Any:
    """A file to be read by position, to be closed by the caller; reads go ahead by `buffer_bytes` only."""
    if isinstance(place, Path):
        return place.open("rb") if not buffer_bytes else cast("Any", pa).OSFile(str(place))
    files, path = file_system(place)
    return files.open_input_file(path)


def below(url: str) -> list[tuple[str, str]]:
    """The files at or below a URL: their URLs, and their paths below it; in the order of these.

    Raises:
        DatasetError: there is none, or the file system cannot be asked.
    """
    import pyarrow.fs as pafs

    files, path = file_system(url)
    try:
        info = files.get_file_info(path)
        if info.is_file:
            return [(url, path.rpartition("/")[2])]
        selector = pafs.FileSelector(path, recursive=True, allow_not_found=True)
        found = [item for item in files.get_file_info(selector) if item.is_file]
    except (OSError, pa.ArrowException, ValueError) as exc:
        raise DatasetError(
            f"input {without_secrets(url)!r} cannot be listed: {' '.join(str(exc).split())}"
        ) from exc
    root = path.strip("/")
    names = sorted(item.path.strip("/").removeprefix(root).strip("/") for item in found)
    base, mark, options = url.partition("?")
    spelled = _as_in_urls if url.partition("://")[0] in _PYARROW else str
    return [(f"{base.rstrip('/')}/{spelled(name)}{mark}{options}", name) for name in names]


def _as_in_urls(name: str) -> str:
    """A path with what has a meaning in URLs written as %XX, which pyarrow reads, and fsspec does not."""
    return quote(name, safe="/=:@,;+!$&'()*~")


@functools.lru_cache(maxsize=64)
def _of_scheme(scheme: str) -> Any:
    import pyarrow.fs as pafs

    try:
        import fsspec
    except ImportError as exc:
        raise DatasetError(f"{scheme}:// needs the package fsspec, and the one of that file system") from exc
    try:
        inner = fsspec.filesystem(scheme)
    except (ImportError, ValueError) as exc:
        raise DatasetError(f"{scheme}:// is no file system that pyarrow or fsspec knows here: {exc}") from exc
    told = Told(inner)
    handler = _apart(told) if scheme == _ONE_FILE_FOR_ALL else cast("Any", pafs).FSSpecHandler(told)
    return pafs.PyFileSystem(handler)


def _apart(files: Any) -> Any:
    """A handler that gives whoever opens a name a file of their own, with a position of their own."""
    import pyarrow.fs as pafs

    class Apart(cast("Any", pafs).FSSpecHandler):
        def open_input_file(self, path: str) -> Any:
            return cast("Any", pa).BufferReader(self.fs.cat_file(path))

        open_input_stream = open_input_file

    return Apart(files)


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it.

    Raises:
        DatasetError: there is no file system for its scheme here, or it refuses the URL.
    """
    import pyarrow.fs as pafs

    scheme, _, rest = url.partition("://")
    if scheme in _PYARROW:
        try:
            return cast("Any", pafs.FileSystem).from_uri(url)
        except (OSError, pa.ArrowException, ValueError, ImportError) as exc:
            shown = without_secrets(url)
            reason = " ".join(str(exc).replace(url, shown).split())
            hint = f"; {_WRITE_KEYS}" if shown != bare_url(url) else ""
            raise DatasetError(f"{shown!r}: {reason}{hint}") from None  # what it is of may show a secret
    # Of these the whole URL is the path.
    return _of_scheme(scheme), url if scheme in ("http", "https") else rest
