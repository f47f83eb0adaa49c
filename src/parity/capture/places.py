"""Where captures lie: a local folder, or a URL that fsspec knows. A file is there whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa

from parity.capture.format import PREFIX, is_part
from parity.durable import publish, temporary
from parity.errors import ConfigError, DatasetError


class Place(Protocol):
    """A folder of captures."""

    def prepare(self) -> None:
        """Make the folder, so that what is wrong with it shows before the first part; raises ConfigError."""
        ...

    def write(self, name: str, data: pa.Buffer) -> None:
        """Write a file; `name` may have folders in it. Raises OSError or whatever the target raises."""
        ...

    def parts(self, prefix: str = PREFIX) -> list[str]:
        """The names of files that begin so, in folders too, by time; raises DatasetError without a folder."""
        ...

    def open(self, name: str) -> Any:
        """A part, for `pyarrow.parquet.ParquetFile`."""
        ...


def place_of(folder: str | Path) -> Place:
    """The place that a folder or URL names.

    Raises:
        ConfigError: it is a URL, and fsspec or what it needs for this kind of URL is not installed.
    """
    text = str(folder)
    if "://" not in text:
        return LocalPlace(Path(text))
    try:
        import fsspec
    except ImportError:
        raise ConfigError(
            f"capture {text!r} is a URL, which needs fsspec; pip install fsspec, or name a local folder"
        ) from None
    try:
        filesystem, path = cast("Any", fsspec).core.url_to_fs(text)
    except (ImportError, ValueError) as exc:
        raise ConfigError(f"capture {text!r}: {exc}") from exc
    return RemotePlace(filesystem, str(path).rstrip("/"), text)


class LocalPlace:
    """A folder of this machine; it is made once, and when it goes away that is an error."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def prepare(self) -> None:
        """See `Place`."""
        try:
            self._root.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError(f"capture folder {self._root} cannot be made: {exc.strerror or exc}") from exc

    def write(self, name: str, data: pa.Buffer) -> None:
        """See `Place`."""
        path = self._root / name
        for folder in reversed(path.relative_to(self._root).parents):
            if folder.name:
                (self._root / folder).mkdir(exist_ok=True)  # not the root: one that was removed stays so
        try:
            with temporary(path).open("wb") as file:
                file.write(cast("Any", data))
            publish(path)
        except BaseException:
            temporary(path).unlink(missing_ok=True)
            raise

    def parts(self, prefix: str = PREFIX) -> list[str]:
        """See `Place`."""
        if not self._root.is_dir():
            raise DatasetError(f"no folder {str(self._root)!r}; name the one that was given to --capture")
        found = [path for path in self._root.rglob("*") if is_part(path.name, prefix) and path.is_file()]
        return sorted((path.relative_to(self._root).as_posix() for path in found), key=_by_time)

    def open(self, name: str) -> Any:
        """See `Place`."""
        return self._root / name


class RemotePlace:
    """A folder of an fsspec filesystem; object stores show an object once it is whole."""

    def __init__(self, filesystem: Any, root: str, url: str) -> None:
        self._filesystem = filesystem
        self._root = root
        self._url = url

    def prepare(self) -> None:
        """See `Place`."""
        try:
            self._filesystem.makedirs(self._root, exist_ok=True)
        except Exception as exc:
            raise ConfigError(f"capture {self._url} cannot be written to: {exc}") from exc

    def write(self, name: str, data: pa.Buffer) -> None:
        """See `Place`."""
        folder = name.rpartition("/")[0]
        if folder:
            self._filesystem.makedirs(f"{self._root}/{folder}", exist_ok=True)
        self._filesystem.pipe_file(f"{self._root}/{name}", data.to_pybytes())

    def parts(self, prefix: str = PREFIX) -> list[str]:
        """See `Place`."""
        try:
            found = cast("list[str]", self._filesystem.find(self._root))
        except FileNotFoundError:
            found = []
        root = f"{self._root.lstrip('/')}/"
        names = [path.lstrip("/").removeprefix(root) for path in found]
        return sorted((name for name in names if is_part(name.rpartition("/")[2], prefix)), key=_by_time)

    def open(self, name: str) -> Any:
        """See `Place`."""
        return self._filesystem.open(f"{self._root}/{name}", "rb")


def _by_time(name: str) -> tuple[str, str]:
    return name.rpartition("/")[2], name
