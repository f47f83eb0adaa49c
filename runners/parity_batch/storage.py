"""Where outputs go: a folder whose files are whole under their names or not there.

On a disk that takes a temporary name, fsync and rename. An object store's own put is atomic: what is sent is
seen when all of it is there. File systems behind URLs that do not promise that get a temporary name, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import io
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, TypeVar, cast

from parity.durable import is_temporary, locked, publish, sync_folder, temporary, write_bytes
from parity.errors import ConfigError, DatasetError
from parity_batch.places import Place, file_system, is_url, local_path, without_secrets

LOCK = ".parity.lock"

_WHOLE_PUTS = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci", "memory")
"""Schemes of stores in which a name is seen when all that was put there has arrived."""

_CHUNK_BYTES = 8 * 1024 * 1024
_REQUESTS_AT_ONCE = 16

Item = TypeVar("Item")
Found = TypeVar("Found")


class Draft(Protocol):
    """A file that is being written and that nobody sees.

    Attributes:
        path: where on this machine its content is to be written.
    """

    path: Path

    def publish(self) -> None:
        """Give the content the file's name; raises OSError, and then what was there before is still there."""

    def discard(self) -> None:
        """Throw the content away, when it was not published."""


class Store(Protocol):
    """A folder for outputs. Names are paths below it, with "/".

    Attributes:
        place: where it is, for another process.
        shown: where it is, for people.
        is_exclusive: whether no other process can write to it while it is held.
    """

    place: Place
    shown: str
    is_exclusive: bool

    def make(self) -> None:
        """Make the folder; raises OSError where that cannot be, and DatasetError where a file is there."""

    def held(self, examine: Callable[[], None]) -> contextlib.AbstractContextManager[str]:
        """Hold the folder for a job, and give its mark, or that of who holds it.

        On a disk another process is refused for as long (DatasetError). An object store cannot refuse; there
        the newest process takes over, and `check` tells the older one.

        Args:
            examine: raises where the folder must not be held.
        """
        ...

    def check(self, holder: str) -> None:
        """Look whether the folder is still the one that was held with this mark.

        Raises:
            DatasetError: another process has taken it over, or it is not there any more: a mount was lost,
                and what lies below is another folder.
            OSError: it cannot be asked.
        """

    def in_use(self) -> bool | None:
        """Whether a process holds the folder; None where the store cannot tell."""
        ...

    def draft(self, name: str) -> Draft:
        """A file to be written; several may be open for one name."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Write a small file, whole or not at all."""

    def read(self, name: str) -> bytes:
        """A small file; raises FileNotFoundError, or another OSError."""
        ...

    def open(self, name: str) -> Any:
        """A file to be read by position and closed."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, when it is there."""

    def names(self, folder: str = "") -> list[str]:
        """What lies directly in a folder, sorted; an object store knows no folder without a file."""
        ...

    def tidy(self, folders: Iterable[str]) -> None:
        """Remove from folders what killed processes left half written."""

    def prune(self, folder: str) -> None:
        """Remove a folder and those above it, as far as they are empty."""

    def each(self, function: Callable[[Item], Found], items: Iterable[Item]) -> Iterator[Found]:
        """A function's results in order, for several items at once where waiting is what takes time."""
        ...

    def settle(self) -> None:
        """Make the names survive a crash of the machine."""


@dataclass(frozen=True)
class StoredFile:
    """A file of a store, which may not be there yet.

    Attributes:
        store: where it lies.
        name: its path there.
        holder: the mark with which the store is held that it is written to; empty where it is not looked for.
    """

    store: Store
    name: str
    holder: str = ""

    @property
    def shown(self) -> str:
        """Where it is, for people."""
        return f"{self.store.shown.rstrip('/')}/{self.name}"

    def check(self) -> None:
        """Look, while the file is written, whether the disk is still the one that is held; see `Store.check`.

        A store that others may take over is looked at when the file gets its name: nothing is there before.
        """
        if self.holder and self.store.is_exclusive:
            self.store.check(self.holder)

    def draft(self) -> Draft:
        """The file to be written; neither it nor a folder is made where `check` raises."""
        self.check()
        return self.store.draft(self.name)

    def discard(self, draft: Draft) -> None:
        """Throw a draft away, and the folder that was made for it where a mount was lost meanwhile.

        What cannot be thrown away stays, under a name that is no part's: whoever continues tidies it up.
        """
        with contextlib.suppress(OSError):
            draft.discard()
        try:
            self.check()
        except (DatasetError, OSError):
            with contextlib.suppress(OSError):
                self.store.prune(self.name.rpartition("/")[0])

    def open(self) -> Any:
        """The file to be read by position and closed."""
        return self.store.open(self.name)

    def remove(self) -> None:
        """Remove the file, when it is there."""
        self.store.remove(self.name)


def store_at(place: Place) -> Store:
    """The store at a path or URL.

    Raises:
        DatasetError: no file system is known for the URL.
        ConfigError: a URL was made a Path, which takes one of its slashes away.
    """
    if isinstance(place, Path):
        if len(place.parts) > 1 and place.parts[0].endswith(":") and is_url(f"{place.parts[0]}//"):
            raise ConfigError(f"output {str(place)!r} was a URL before it became a Path; give it as a text")
        return LocalStore(place)
    found = local_path(place) if is_url(place) else Path(place)
    return LocalStore(found) if found is not None else ObjectStore(place)


@dataclass
class _LocalDraft:
    final: Path
    mark: str

    def __post_init__(self) -> None:
        self.path = temporary(self.final, self.mark)

    def publish(self) -> None:
        publish(self.final, self.mark)

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)


class LocalStore:
    """A folder on a disk; see `Store`.

    Once it is made the folder itself is never made again: it is where a mount was lost.
    """

    is_exclusive = True

    def __init__(self, folder: Path) -> None:
        self.place: Place = folder.absolute()
        self.shown = str(folder)
        self._folder = folder.absolute()

    def make(self) -> None:
        if self._folder.exists() and not self._folder.is_dir():
            raise _no_folder(self.shown)
        self._folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def held(self, examine: Callable[[], None]) -> Generator[str]:
        with locked(self._folder / LOCK):
            examine()
            if not (mark := self._marked()):  # once for a folder: a finished job is left as it is
                mark = _mark()
                (self._folder / LOCK).write_text(mark, encoding="ascii")
            yield mark

    def check(self, holder: str) -> None:
        if self._marked() != holder:
            raise _gone(self.shown)

    def in_use(self) -> bool:
        try:
            with (self._folder / LOCK).open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def draft(self, name: str) -> Draft:
        return _LocalDraft(self._made(name), _mark())

    def write(self, name: str, data: bytes) -> None:
        write_bytes(self._made(name), data, _mark())

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def open(self, name: str) -> Any:
        return (self._folder / name).open("rb")

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def names(self, folder: str = "") -> list[str]:
        path = self._folder / folder
        return sorted(item.name for item in path.iterdir()) if path.is_dir() else []

    def tidy(self, folders: Iterable[str]) -> None:
        for folder in folders:
            for file in (self._folder / folder).glob(".*"):
                if is_temporary(file):
                    file.unlink()

    def prune(self, folder: str) -> None:
        path = self._folder / folder
        for above in (path, *path.parents):
            if above == self._folder or not above.is_dir() or any(above.iterdir()):
                break
            above.rmdir()

    def each(self, function: Callable[[Item], Found], items: Iterable[Item]) -> Iterator[Found]:
        return map(function, items)

    def settle(self) -> None:
        sync_folder(self._folder)

    def _marked(self) -> str:
        try:
            return (self._folder / LOCK).read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            return ""

    def _made(self, name: str) -> Path:
        """The path of a name, with the folders that it lies in below this one."""
        path = self._folder / name
        if not path.parent.is_dir():
            for folder in reversed(PurePosixPath(name).parents[:-1]):
                (self._folder / folder).mkdir(exist_ok=True)
        return path


class _RemoteDraft:
    """Content in a file of this machine that has no name: nothing is left of it, however a process ends."""

    def __init__(self, put: Callable[[Any], None]) -> None:
        self._put = put
        self._file = tempfile.TemporaryFile(prefix="parity-")  # noqa: SIM115 - closed by discard
        self.path = Path(f"/dev/fd/{self._file.fileno()}")

    def publish(self) -> None:
        self._file.seek(0)
        self._put(self._file)

    def discard(self) -> None:
        self._file.close()


class ObjectStore:
    """A folder behind a URL; see `Store`. Parts wait in this machine's folder for temporary files."""

    is_exclusive = False

    def __init__(self, url: str) -> None:
        self.place: Place = url
        self.shown = without_secrets(url)
        self._files, path = file_system(_with_small_puts(url))
        self._root = path.rstrip("/")
        self._renames = url.partition("://")[0] not in _WHOLE_PUTS

    def make(self) -> None:
        with self._asked():
            if self._files.get_file_info(self._root).is_file:
                raise _no_folder(self.shown)
            if self._renames:
                self._files.create_dir(self._root, recursive=True)

    @contextlib.contextmanager
    def held(self, examine: Callable[[], None]) -> Generator[str]:
        examine()
        mark = _mark()
        self.write(LOCK, mark.encode())
        yield mark

    def check(self, holder: str) -> None:
        try:
            found = self.read(LOCK).decode(errors="replace")
        except FileNotFoundError:
            raise _gone(self.shown) from None
        if found != holder:
            raise DatasetError(
                f"output folder {self.shown}: another process has taken this job over; this one ends, and "
                "the parts that are finished stay"
            )

    def in_use(self) -> None:
        return None

    def draft(self, name: str) -> Draft:
        return _RemoteDraft(functools.partial(self._put, name))

    def write(self, name: str, data: bytes) -> None:
        self._put(name, io.BytesIO(data))

    def read(self, name: str) -> bytes:
        with self._asked(), self._files.open_input_stream(self._path(name)) as stream:
            return cast("bytes", stream.read())

    def open(self, name: str) -> Any:
        with self._asked():
            return self._files.open_input_file(self._path(name))

    def remove(self, name: str) -> None:
        with self._asked(), contextlib.suppress(FileNotFoundError):
            self._files.delete_file(self._path(name))

    def names(self, folder: str = "") -> list[str]:
        found = self._listed(self._path(folder) if folder else self._root)
        return sorted(item.base_name for item in found if item.is_file or self._holds_file(item.path))

    def tidy(self, folders: Iterable[str]) -> None:
        for folder in folders if self._renames else ():
            for name in self.names(folder):
                if is_temporary(Path(name)):
                    self.remove(f"{folder}/{name}".lstrip("/"))

    def prune(self, folder: str) -> None:
        """Nothing: a folder is there as long as a file is."""

    def each(self, function: Callable[[Item], Found], items: Iterable[Item]) -> Iterator[Found]:
        with ThreadPoolExecutor(_REQUESTS_AT_ONCE, thread_name_prefix="parity-store") as pool:
            yield from pool.map(function, items)

    def settle(self) -> None:
        """Nothing: what was put is kept."""

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _put(self, name: str, content: Any) -> None:
        path = self._path(name)
        size = content.seek(0, io.SEEK_END)
        content.seek(0)
        with self._asked():
            if self._renames:
                self._files.create_dir(path.rpartition("/")[0], recursive=True)
                given = f"{path.rpartition('/')[0]}/{temporary(Path(name), _mark()).name}"
                self._send(given, content, size)
                self._files.move(given, path)
            else:
                self._send(path, content, size)

    def _send(self, path: str, content: Any, size: int) -> None:
        stream = self._files.open_output_stream(path)
        try:
            while chunk := content.read(_CHUNK_BYTES):
                stream.write(chunk)
        except BaseException:
            # Closing is all that a stream knows, and may give the name to what was cut short.
            with contextlib.suppress(Exception):
                stream.close()
                self._files.delete_file(path)
            raise
        stream.close()
        there = self._files.get_file_info(path)
        if not there.is_file or there.size != size:
            raise OSError(f"{there.size} bytes of {size} are there after they were sent")

    def _listed(self, path: str) -> list[Any]:
        import pyarrow.fs as pafs

        with self._asked():
            found = self._files.get_file_info(pafs.FileSelector(path, allow_not_found=True))
        return [item for item in found if item.path.rstrip("/") != path]

    def _holds_file(self, path: str) -> bool:
        """Whether any file lies below a folder: a name without any is what removing files may leave."""
        found = self._listed(path)
        return any(item.is_file for item in found) or any(self._holds_file(item.path) for item in found)

    @contextlib.contextmanager
    def _asked(self) -> Generator[None]:
        """Make every error an OSError: libraries of file systems have errors of their own."""
        try:
            yield
        except (OSError, DatasetError):
            raise
        except Exception as exc:
            raise OSError(f"{type(exc).__name__}: {' '.join(str(exc).split())}") from exc


def _with_small_puts(url: str) -> str:
    """The URL with pyarrow's option that puts a small S3 object with one request, not three."""
    if url.partition("://")[0] != "s3" or "allow_delayed_open=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}allow_delayed_open=true"


def _no_folder(shown: str) -> DatasetError:
    return DatasetError(f"output folder {shown} is a file; name a folder")


def _gone(shown: str) -> DatasetError:
    return DatasetError(
        f"output folder {shown} is not the one any more that this job began in: its mount was lost, it was "
        "moved or removed, or this machine does not see it; the parts that are finished stay there, and when "
        "it is back the same command continues"
    )


def _mark() -> str:
    return uuid.uuid4().hex[:12]
