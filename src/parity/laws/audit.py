"""What a handler touches outside itself: files, network, processes, environment variables.

Python's audit events tell the first three. Native code that opens files past Python is not heard; of it,
files that stay open or mapped are found. Runs in a worker process, since an audit hook cannot be taken off.
"""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

Touch = Literal["read", "write", "network", "process", "environment"]

_READS: Final = frozenset({"open", "os.listdir", "os.scandir", "sqlite3.connect"})
_WRITES: Final = frozenset(
    "os.mkdir os.rename os.remove os.rmdir os.link os.symlink os.truncate os.chmod os.chown os.utime".split()
)
_NETWORK: Final = frozenset(
    "socket.connect socket.bind socket.sendto socket.sendmsg socket.getaddrinfo socket.gethostbyname".split()
)
_PROCESSES: Final = frozenset(
    "subprocess.Popen os.system os.posix_spawn os.exec os.fork os.forkpty pty.spawn".split()
)
_HEARD: Final = _READS | _WRITES | _NETWORK | _PROCESSES
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DESCRIPTORS: Final = Path("/proc/self/fd")

_SYSTEM: Final = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/proc", "/sys", "/dev")
_SYSTEM_FILES: Final = tuple(
    f"/etc/{name}"
    for name in (
        "localtime timezone ld.so.cache ld.so.conf ld.so.conf.d ssl fonts mime.types passwd group "
        "nsswitch.conf hosts host.conf resolv.conf gai.conf os-release magic protocols services"
    ).split()
)
_PARITY: Final = str(Path(__file__).parents[1])
_COMPILING: Final = str(Path(_PARITY, "models")) + os.sep
"""Model backends compile, and keep what they compiled: the profile asks for that, not the handler."""
_UNPACKED: Final = str(Path(tempfile.gettempdir(), "aotinductor_"))
"""Where torch unpacks a compiled model that it loads."""

_ENVIRONMENT_CODE: Final = (
    "<frozen os>",
    "<frozen _collections_abc>",
    "os.py",
    "_collections_abc.py",
    "audit.py",
)
_CODE: Final = (".py", ".pyc", ".pyi", ".so", ".pth", ".dist-info", ".egg-info", ".egg-link")


_VERBS: Final[Mapping[Touch, str]] = {
    "read": "reads",
    "write": "writes",
    "network": "talks to",
    "process": "starts",
    "environment": "reads the environment variable",
}


@dataclass(frozen=True)
class Access:
    """One thing that a handler touched.

    Attributes:
        phase: "import", "initialize", "preprocess", "inference" or "postprocess".
        touch: what it did.
        target: the file, folder, address, command or variable.
        where: the line of the handler's code that led there, such as "handler.py:12"; may be "".
    """

    phase: str
    touch: Touch
    target: str
    where: str

    def __str__(self) -> str:
        verb = _VERBS[self.touch]
        return f"{self.phase} {verb} {self.target}" + (f" ({self.where})" if self.where else "")

    def to_dict(self) -> dict[str, str]:
        """The access as JSON-ready data."""
        return asdict(self)


class Watch:
    """Hears what happens in this process while a phase is named.

    Args:
        root: the handler's folder.
        scratch: a folder of this process's own, which says nothing about the handler.
    """

    def __init__(self, root: Path, scratch: Path) -> None:
        self._root = str(root.resolve())
        self._scratch = f"{scratch.resolve()}{os.sep}"
        self._found: dict[tuple[Touch, str, str], Access] = {}
        self._installed = tuple(f"{os.path.realpath(path)}{os.sep}" for path in (*_installation(), _PARITY))
        self._mapped_before: set[str] = set()
        self._phase = ""

    @contextmanager
    def during(self, phase: str) -> Generator[None]:
        """Listen meanwhile."""
        self._phase = phase
        try:
            yield
        finally:
            self._phase = ""

    def install(self) -> None:
        """Begin to listen; for the rest of the process's life."""
        self._mapped_before = _held_files()
        sys.addaudithook(self._heard)
        _listen_to_environment(self._asked)

    def accesses(self) -> list[Access]:
        """What was touched, each once, in order; files that native code holds last."""
        found = list(self._found.values())
        known = {item.target for item in found}
        new = _held_files() - self._mapped_before - known
        own = (self._scratch, _UNPACKED)
        held = sorted(path for path in new if not os.path.realpath(path).startswith(own))
        return [*found, *(Access("initialize", "read", path, "") for path in held)]

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        phase = self._phase
        if not phase or event not in _HEARD:
            return
        self._phase = ""  # what this hook does is nobody's access
        try:
            touch, target = _told(event, args)
            if target:
                where = self._where()
                if where is not None and not (phase == "import" and not where):
                    self._keep(Access(phase, touch, target, where))
        finally:
            self._phase = phase

    def _keep(self, access: Access) -> None:
        self._found.setdefault((access.touch, access.target, access.where), access)

    def _asked(self, variable: str) -> None:
        """An environment variable is read: counts when it is not a library that reads it."""
        phase = self._phase
        frame = inspect.currentframe()
        while phase and frame is not None:
            name = frame.f_code.co_filename
            if not (name.startswith("<frozen") or os.path.realpath(name).startswith(self._installed)):
                where = f"{Path(name).name}:{frame.f_lineno}"
                self._keep(Access(phase, "environment", variable, where))
                return
            if Path(name).name not in _ENVIRONMENT_CODE:
                return
            frame = frame.f_back

    def _where(self) -> str | None:
        """The handler's line that led here; None when it only imports or compiles something, "" for none."""
        frame = inspect.currentframe()
        importing = False
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith("<frozen importlib"):
                importing = True
            elif name.startswith(_COMPILING):
                return None
            elif name.startswith(self._root + os.sep):
                if importing:
                    return None
                return f"{os.path.relpath(name, self._root)}:{frame.f_lineno}"
            frame = frame.f_back
        return None if importing else ""


def undeclared(accesses: Iterable[Access], root: Path, declared: Mapping[str, Any]) -> list[Access]:
    """The accesses that neither belong to a handler nor are declared.

    Args:
        accesses: what was touched.
        root: the handler's folder; files there may be read.
        declared: handler.toml's `[access]`: `reads` and `writes`, lists of files and folders, relative ones
            in the handler's folder; `environment`, the names of variables; `network` and `processes`, true
            where they are meant.
    """
    readable = [str(root.resolve()), *_installation(), *_SYSTEM, *_SYSTEM_FILES]
    readable += [str((root / path).resolve()) for path in declared.get("reads", ())]
    writable = [str((root / path).resolve()) for path in declared.get("writes", ())]
    found: list[Access] = []
    for access in accesses:
        if access.touch == "read":
            fine = _inside(access.target, [*readable, *writable]) or _is_import(access.target)
        elif access.touch == "write":
            fine = _inside(access.target, [*writable, "/dev/null", "/dev/tty", "/proc/self"])
        else:
            fine = _is_declared(access, declared)
        if not fine:
            found.append(access)
    return found


def _is_declared(access: Access, declared: Mapping[str, Any]) -> bool:
    if access.touch == "environment":
        return access.target in declared.get("environment", ())
    return bool(declared.get("network" if access.touch == "network" else "processes", False))


def _listen_to_environment(asked: Callable[[str], None]) -> None:
    """Have `asked` called with the name of each variable that is read through os.environ or os.getenv."""
    plain = type(os.environ)

    class Heard(plain):
        def __getitem__(self, key: str) -> str:
            asked(key)
            return super().__getitem__(key)

    os.environ.__class__ = Heard


def _told(event: str, args: tuple[Any, ...]) -> tuple[Touch, str]:
    if event == "open":
        path, mode, flags = args
        writes = any(letter in (mode or "") for letter in "wax+") or bool((flags or 0) & _WRITING)
        return ("write" if writes else "read"), _path(path)
    if event in _READS:
        return "read", _path(args[0] if args and args[0] is not None else ".")
    if event in _WRITES:
        return "write", _path(args[1] if event in ("os.rename", "os.link", "os.symlink") else args[0])
    if event in _NETWORK:
        return "network", _address(event, args)
    return "process", _command(event, args)


def _path(path: Any) -> str:
    if isinstance(path, int):
        return ""
    text = os.fsdecode(path)
    return "" if text == ":memory:" else os.path.normpath(Path.cwd() / text)


def _address(event: str, args: tuple[Any, ...]) -> str:
    told = args if event in ("socket.getaddrinfo", "socket.gethostbyname") else args[1:]
    place = told[0] if told else ""
    if isinstance(place, tuple):
        return ":".join(str(part) for part in place[:2])
    return f"{os.fsdecode(place) if isinstance(place, bytes) else place}"


def _command(event: str, args: tuple[Any, ...]) -> str:
    if event == "subprocess.Popen":
        return str(args[0])
    if event in ("os.fork", "os.forkpty"):
        return "a copy of itself (os.fork)"
    return os.fsdecode(args[0]) if args and isinstance(args[0], str | bytes) else event


def _inside(path: str, folders: Sequence[str]) -> bool:
    for text in (path, os.path.realpath(path)):
        if any(text == folder or text.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders):
            return True
    return False


def _is_import(path: str) -> bool:
    """Whether it is code, or its metadata, of a folder on the import path; or the folder itself, listed."""
    for entry in sys.path:
        folder = os.path.realpath(entry or os.curdir)
        if path == folder:
            return True
        if _inside(path, [folder]):
            below = path[len(folder) :]
            if any(ending in below for ending in _CODE) or Path(path).is_dir():
                return True
    return False


def _installation() -> list[str]:
    known = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values()}
    known |= {entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))}
    return sorted({os.path.realpath(path) for path in known} | known)


def _held_files() -> set[str]:
    """Files that this process has open or mapped, whoever opened them."""
    found: set[str] = set()
    try:
        for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
            parts = line.split(maxsplit=5)
            if len(parts) == 6 and parts[5].startswith("/"):
                found.add(parts[5])
        for link in _DESCRIPTORS.iterdir():
            target = str(link.readlink()) if link.is_symlink() else ""
            if target.startswith("/"):
                found.add(target)
    except OSError:  # no /proc, or a descriptor closed meanwhile
        pass
    return {path for path in found if not path.endswith("(deleted)") and Path(path).is_file()}
