"""Handler archives: a handler's folder as one file, NAME.parity, with a digest of each file in it.

An archive is a zip file without compression, so that the same files give the same bytes anywhere. Its first
entry, `parity-archive.json`, names the handler, its version and class, and for every other entry size and
SHA-256. What is not listed there, or not as listed, makes the archive refused. It is extracted once, by the
digest of the whole file, into a cache that belongs to the user alone, since what lies there is run; what no
longer lies there as it was packed is extracted anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, cast

from parity.durable import publish, temporary
from parity.errors import ConfigError
from parity.handler import files_of

SUFFIX: Final = ".parity"
MANIFEST: Final = "parity-archive.json"
FORMAT: Final = 1

CACHE_VARIABLE: Final = "PARITY_CACHE"
"""Names the folder of the cache; by default `parity` in the user's cache folder."""

SIZE_VARIABLE: Final = "PARITY_ARCHIVE_MAX_GB"
"""Names the most gigabytes that an archive's files may have, in all; 64 by default."""

_MAX_GB = 64.0
_MANIFEST_BYTES = 16 * 1024 * 1024
_FILES_MOST = 100_000
_CHUNK = 1024 * 1024
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MODE = (stat.S_IFREG | 0o644) << 16
_UNIX = 3
_ENCRYPTED = 0x1
_UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    OverflowError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
)
"""What zipfile raises for bytes that are no zip file, or a damaged one."""

_BESIDE = ("golden", "certificates")
"""Folders of a handler that have no say in its answers, and travel with it."""


@dataclass(frozen=True)
class Listed:
    """A file of an archive: its path in the handler's folder, its bytes and their SHA-256."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Archive:
    """What an archive says of itself.

    Attributes:
        name: the handler's name.
        version: its version.
        handler: "file.py:Class" in the folder.
        files: what it holds, by path.
    """

    name: str
    version: str
    handler: str
    files: tuple[Listed, ...]

    @property
    def size_bytes(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)


def write_archive(
    target: Path, root: Path, name: str, version: str, handler: str, *, goldens: Path | None = None
) -> Archive:
    """Write the archive of a handler's folder; the same files give the same bytes.

    Left out are tests, caches, hidden files and what batch jobs wrote there.

    Args:
        target: the archive's file; one that is there is replaced, whole.
        root: the handler's folder.
        name: the handler's name.
        version: its version.
        handler: "file.py:Class" in the folder.
        goldens: the folder of its golden cases, which becomes `golden/` in the archive.

    Raises:
        ConfigError: a file is a link to somewhere outside of the folder, or has a name that is not portable.
    """
    found = _gathered(root, goldens, target)
    listed: list[Listed] = []
    for path, source in sorted(found.items()):
        _check_path(path, str(source))
        listed.append(Listed(path, source.stat().st_size, _digest(source)))
    archive = Archive(name, version, handler, tuple(listed))
    with zipfile.ZipFile(temporary(target), "w", zipfile.ZIP_STORED) as file:
        file.writestr(_entry(MANIFEST), _told(archive))
        for item in listed:
            with found[item.path].open("rb") as source, file.open(_entry(item.path, item.size), "w") as sink:
                copied = _copy(source, sink, item.size)
            if copied != (item.size, item.sha256):
                raise ConfigError(f"{found[item.path]} changed while it was packed; pack again")
    publish(target)
    return archive


def read_archive(path: Path) -> Archive:
    """What an archive says of itself; its files are not read.

    Raises:
        ConfigError: it is no archive, of a newer format, damaged, or not safe to extract.
    """
    with _file(path) as source, _opened(source, path) as file:
        return _read(file, path)


def extracted(path: Path) -> tuple[Archive, Path]:
    """An archive and the folder that its files are in, extracted there now or before.

    What was extracted before is held to the archive's digests, and extracted anew where it differs.

    Raises:
        ConfigError: it is no archive, damaged, not safe to extract, or too large; or others than the user
            may write where it would be extracted.
    """
    root = archives_folder()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_own(root)
    # One open file throughout: another one may take its name meanwhile.
    with _file(path) as source, _opened(source, path) as file:
        archive = _read(file, path)
        place = root / _digest_of(source, path)[:32]
        if not _is_whole(place, archive):
            _extract(file, path, archive, place)
    return archive, place / _folder_name(archive.name)


def archives_folder() -> Path:
    """The folder that archives are extracted into."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).absolute() / "archives"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "parity", "archives")


def require_no_archive(folder: Path) -> None:
    """Raise ConfigError for a folder of an extracted archive: what is written there would be lost."""
    if folder.resolve().is_relative_to(archives_folder().resolve()):
        raise ConfigError(
            "the handler is an archive, which keeps nothing that is written to it; do this with the folder "
            "it was packed from and pack that anew, or name another folder with --golden"
        )


def _gathered(root: Path, goldens: Path | None, target: Path) -> dict[str, Path]:
    """The files to pack by their paths in the archive."""
    sources: dict[str, Path] = {path.relative_to(root).as_posix(): path for path in files_of(root)}
    for path in root.glob("*.md"):
        sources[path.name] = path
    folders = {folder: root / folder for folder in _BESIDE}
    if goldens is not None:
        folders["golden"] = goldens
    for name, folder in folders.items():
        for path in folder.rglob("*"):
            relative = path.relative_to(folder)
            if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in relative.parts):
                sources[f"{name}/{relative.as_posix()}"] = path
    found: dict[str, Path] = {}
    for name, path in sources.items():
        if path.suffix == SUFFIX or path.absolute() == target.absolute():
            continue  # an archive of an archive is a mistake
        if not path.resolve().is_relative_to((goldens or root).resolve()) and not (
            path.resolve().is_relative_to(root.resolve())
        ):
            raise ConfigError(
                f"{path} is a link to {path.resolve()}, outside of the handler's folder; copy it"
            )
        found[name] = path
    return found


def _is_whole(place: Path, archive: Archive) -> bool:
    """Whether every file of the archive lies there as it was packed."""
    folder = place / _folder_name(archive.name)
    try:
        return (place / MANIFEST).read_bytes() == _told(archive) and all(
            (folder / item.path).stat().st_size == item.size and _digest(folder / item.path) == item.sha256
            for item in archive.files
        )
    except (OSError, ConfigError):
        return False


def _extract(file: zipfile.ZipFile, path: Path, archive: Archive, place: Path) -> None:
    """Extract beside the place and move there whole, so that processes at once see no halves."""
    _check_size(archive, path)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        fresh = beside / "fresh"
        fresh.mkdir()
        _write_out(file, path, archive, fresh / _folder_name(archive.name))
        (fresh / MANIFEST).write_bytes(_told(archive))
        try:
            fresh.rename(place)
        except OSError:
            if not _is_whole(place, archive):  # else another process was faster
                place.rename(beside / "damaged")
                fresh.rename(place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _write_out(file: zipfile.ZipFile, path: Path, archive: Archive, folder: Path) -> None:
    folder.mkdir()
    for item in archive.files:
        target = folder / item.path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with file.open(item.path) as source, target.open("xb") as sink:
                copied = _copy(source, sink, item.size)
        except _UNREADABLE as exc:
            raise _damaged(path, f"file {item.path!r} cannot be extracted: {exc}") from exc
        if copied != (item.size, item.sha256):
            raise _damaged(path, f"file {item.path!r} is not the one that was packed")


def _file(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror or exc}") from exc


def _opened(source: IO[bytes], path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source)
    except _UNREADABLE as exc:
        raise _damaged(path, f"it cannot be read as a zip file: {exc}") from exc


def _read(file: zipfile.ZipFile, path: Path) -> Archive:
    entries = file.infolist()
    names = [entry.filename for entry in entries]
    if MANIFEST not in names:
        raise _damaged(path, f"it has no {MANIFEST}")
    if len(names) > _FILES_MOST:
        raise _damaged(path, f"it has {len(names)} files, more than {_FILES_MOST}")
    if file.getinfo(MANIFEST).file_size > _MANIFEST_BYTES:
        raise _damaged(path, f"its {MANIFEST} is larger than {_MANIFEST_BYTES} bytes")
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & _ENCRYPTED:
            raise _damaged(path, f"entry {entry.filename!r} is compressed or encrypted")
    try:
        archive = _parsed(file.read(MANIFEST), path)
    except _UNREADABLE as exc:
        raise _damaged(path, f"its {MANIFEST} cannot be read: {exc}") from exc
    listed = [item.path for item in archive.files]
    if len(set(names)) != len(names) or sorted(names) != sorted([MANIFEST, *listed]):
        strange = sorted({*names} ^ {MANIFEST, *listed})[:3]
        raise _damaged(
            path, f"what it holds is not what {MANIFEST} lists: {', '.join(strange) or 'a name twice'}"
        )
    for entry in entries:
        _check_path(entry.filename, str(path))
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if entry.is_dir() or kind not in (0, stat.S_IFREG):
            raise _damaged(path, f"entry {entry.filename!r} is no plain file")
    return archive


def _parsed(text: bytes, path: Path) -> Archive:
    try:
        told = json.loads(text)
        if told["format"] != FORMAT:
            raise ConfigError(
                f"archive {path} is of format {told['format']!r}, this parity reads format {FORMAT}; "
                "install the one that packed it"
            )
        files = tuple(
            Listed(str(item["path"]), int(item["size"]), str(item["sha256"])) for item in told["files"]
        )
        if any(item.size < 0 for item in files):
            raise ValueError("a size below 0")
        if str(told["handler"]).partition(":")[0] not in {item.path for item in files}:
            raise ValueError(f"the handler's file {told['handler']!r} is not in it")
        archive = Archive(str(told["name"]), str(told["version"]), str(told["handler"]), files)
        _told(archive)  # a text that is no UTF-8 is a ValueError
        return archive
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as exc:
        raise _damaged(path, f"its {MANIFEST} is not one: {type(exc).__name__}: {exc}") from exc


def _told(archive: Archive) -> bytes:
    told: Mapping[str, Any] = {
        "format": FORMAT,
        "name": archive.name,
        "version": archive.version,
        "handler": archive.handler,
        "files": [{"path": item.path, "size": item.size, "sha256": item.sha256} for item in archive.files],
    }
    return (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode()


def _entry(name: str, size: int = 0) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.create_system = _UNIX
    entry.external_attr = _MODE
    entry.file_size = size
    return entry


def _check_path(path: str, where: str) -> None:
    """Refuse a path that could lead out of a folder, or that not every system can have."""
    parts = PurePosixPath(path).parts
    unsafe = (
        not parts
        or path != "/".join(parts)
        or path.startswith("/")
        or any(part in (".", "..") for part in parts)
        or re.search(r'[\x00-\x1f\\:*?"<>|]', path) is not None
    )
    if unsafe:
        raise ConfigError(f"{where}: the file name {path!r} is not safe in an archive; rename the file")


def _check_size(archive: Archive, path: Path) -> None:
    try:
        most = float(os.environ.get(SIZE_VARIABLE) or _MAX_GB)
    except ValueError:
        raise ConfigError(
            f"{SIZE_VARIABLE} = {os.environ[SIZE_VARIABLE]!r} is no number of gigabytes"
        ) from None
    if archive.size_bytes > most * 1e9:
        raise ConfigError(
            f"archive {path}: its files have {archive.size_bytes / 1e9:.3g} GB, more than {most:g}; "
            f"set {SIZE_VARIABLE} where that is meant"
        )


def _copy(source: IO[bytes], sink: IO[bytes], size: int) -> tuple[int, str]:
    """Copy up to one byte more than the size; how many there were, and their digest."""
    digest = hashlib.sha256()
    done = 0
    while done <= size and (chunk := source.read(min(_CHUNK, size + 1 - done))):
        digest.update(chunk)
        sink.write(chunk)
        done += len(chunk)
    return done, digest.hexdigest()


def _digest(path: Path) -> str:
    with _file(path) as source:
        return _digest_of(source, path)


def _digest_of(source: IO[bytes], path: Path) -> str:
    try:
        source.seek(0)
        return hashlib.file_digest(cast("Any", source), "sha256").hexdigest()
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror or exc}") from exc


def _folder_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:100] or "handler"


def _require_own(root: Path) -> None:
    """Raise ConfigError where somebody else could have written what lies there."""
    state = root.stat()
    if state.st_uid != os.getuid() or state.st_mode & 0o022:
        raise ConfigError(
            f"{root}: archives are extracted there and run, and others may write there; chmod 700 it, or "
            f"name another folder in {CACHE_VARIABLE}"
        )


def _damaged(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{path} is no handler archive, or damaged: {why}; `parity pack HANDLER` makes one")
