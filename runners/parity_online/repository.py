"""Where models come from, and their coming and going while the server runs.

A model repository is a folder NAME/VERSION/ of handler folders, or of folders with a handler archive. A
version that appears, changes or goes is taken over when the poll finds it or the repository API asks. A
changed version is loaded beside the one that serves, warmed up and put before its goldens; only then does it
take its place, and the old one finishes what it has accepted. One that fails leaves the old one in place and
says why in the index.
"""

from __future__ import annotations

import asyncio
import logging
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from parity.archive import SUFFIX
from parity.errors import ConfigError, ParityError, did_you_mean, shown
from parity.handler import LoadedHandler, files_of
from parity.manifest import FILE_NAME
from parity.profile import Profile
from parity.registry import HANDLER_FILE, load_handler
from parity.reloading import forget_modules
from parity_online import logs
from parity_online.gate import open_model
from parity_online.models import Models
from parity_online.problems import ProblemError
from parity_online.served import ServedModel

logger = logging.getLogger(__name__)

Key = tuple[str, str]
Signature = tuple[tuple[str, int, int], ...]

_STATES = {"ready": "READY", "loading": "LOADING", "draining": "UNLOADING"}
_NO_VERSIONS = ("golden", "__pycache__")


class Repository:
    """Loads, replaces and removes models; everything but reading files happens on the event loop.

    Args:
        models: the models that serve.
        make: makes the served model of a handler; it raises ConfigError for one that cannot be served here.
        folder: the model repository, None for none.
        drain_s: how long a model that is taken away may take to finish what it has accepted.
    """

    def __init__(
        self,
        models: Models,
        make: Callable[[LoadedHandler], ServedModel],
        folder: Path | None,
        *,
        drain_s: float,
    ) -> None:
        self._models = models
        self._make = make
        self._folder = folder
        self._drain_s = drain_s
        self._lock = asyncio.Lock()
        self._applied: dict[Key, Signature] = {}
        self._seen: dict[Key, Signature] = {}
        self._handlers: dict[Key, LoadedHandler] = {}
        self._problems: dict[Key, str] = {}
        self._unloaded: set[str] = set()
        self._retiring: set[asyncio.Task[None]] = set()

    def adopt(self, model: ServedModel) -> None:
        """Serve a model that was made at start; it is opened by `open_model` as all are."""
        key = (model.name, model.version)
        self._handlers[key] = model.loaded
        self._applied[key] = signature(home(model.loaded))
        self._models.put(model)

    async def poll(self, every_s: float) -> None:
        """Refresh for ever. A version is taken once its files are the same in two looks."""
        while True:
            await asyncio.sleep(every_s)
            try:
                await self._refresh(None, settled_only=True)
            except Exception as exc:
                logger.error("event=poll_failed error=%s", logs.text(exc), exc_info=exc)

    async def load(self, name: str) -> None:
        """Take over what is there of a name now.

        Raises:
            ProblemError: (404) nothing is there; (400) a version of it could not be loaded, or is refused.
        """
        self._unloaded.discard(name)
        await self._refresh(name, settled_only=False)
        problems = {key: text for key, text in self._problems.items() if key[0] == name}
        if problems:
            raise ProblemError(
                400,
                "load_failed",
                "; ".join(
                    f"model {name!r} version {version!r}: {text}" for (_, version), text in problems.items()
                ),
            )

    async def unload(self, name: str) -> None:
        """Take all versions of a name away, and keep the poll from bringing them back.

        Raises:
            ProblemError: (404) it is not served.
        """
        self._models.versions(name)
        self._unloaded.add(name)
        async with self._lock:  # a version may have come while this waited
            for model in self._models.versions(name).models:
                self._take_away(model.name, model.version)

    def index(self) -> list[dict[str, str]]:
        """Every version that is known, in the words of Triton's model repository extension."""
        found: dict[Key, dict[str, str]] = {}
        for key in (*self._handlers, *self._problems):
            found[key] = _entry(key, "UNAVAILABLE", self._problems.get(key, "unloaded"))
        for model in self._models:
            key = (model.name, model.version)
            state = _STATES.get(model.state, "UNAVAILABLE")
            problem = self._problems.get(key, "")
            reason = (
                f"its newer files do not serve: {problem}" if problem and state == "READY" else model.reason
            )
            found[key] = _entry(key, state, reason)
        return list(found.values())

    async def close(self) -> None:
        """Wait for the models that are being taken away."""
        await asyncio.gather(*self._retiring)

    async def _refresh(self, name: str | None, *, settled_only: bool) -> None:
        async with self._lock:
            there = await asyncio.to_thread(self._look)
            if name is not None:
                there = {key: found for key, found in there.items() if key[0] == name}
                if not there and name not in self._models.names:
                    known = {key[0] for key in (*self._handlers, *self._seen)}
                    raise ProblemError(
                        404,
                        "not_found",
                        f"nothing to load under {shown(name, 200)}; {did_you_mean(name, known)}",
                    )
            gone = [
                key
                for key in self._applied
                if key not in there and (name is None or key[0] == name) and self._is_in_folder(key)
            ]
            for key, (path, now) in there.items():
                settled = not settled_only or self._seen.get(key) == now
                self._seen[key] = now
                is_served = self._models.get(*key) is not None
                if key[0] in self._unloaded or not settled:
                    continue
                again = not settled_only and key in self._problems
                if again or not is_served or self._applied.get(key) != now:
                    self._applied[key] = now
                    await self._take_over(key, path)
            for key in gone:
                logger.info("event=version_gone model=%s version=%s", logs.text(key[0]), logs.text(key[1]))
                del self._applied[key]
                self._handlers.pop(key, None)
                self._problems.pop(key, None)
                self._take_away(*key)

    def _look(self) -> dict[Key, tuple[Path, Signature]]:
        """What is there now: the repository's versions, and the folders of handlers named at start."""
        paths = {} if self._folder is None else scan(self._folder)
        for key, loaded in self._handlers.items():
            place = home(loaded)
            if place is not None and place.exists() and key not in paths and not self._is_in_folder(key):
                paths[key] = place
        return {key: (path, signature(path)) for key, path in paths.items()}

    def _is_in_folder(self, key: Key) -> bool:
        place = home(self._handlers[key]) if key in self._handlers else None
        return self._folder is not None and (
            place is None or self._folder.resolve() in place.resolve().parents
        )

    async def _take_over(self, key: Key, path: Path) -> None:
        """Load a version, and let it serve once it is ready; one that fails is told by the index."""
        serving = self._models.get(*key)
        self._problems.pop(key, None)
        before = self._handlers.get(key)
        try:
            loaded = await asyncio.to_thread(self._load, key, path, before)
            self._handlers[key] = loaded
            model = self._make(loaded)
        except Exception as exc:  # noqa: BLE001 - a user's module may raise anything
            self._fail(key, exc)
            return
        model.is_late = True
        if serving is None or serving.state != "ready":
            self._replace(model)
        try:
            await open_model(model)
        except Exception as exc:  # noqa: BLE001 - and so may its initialize
            self._fail(key, exc)
            model.set_state("failed", self._problems[key])
        else:
            if model.state != "ready":
                self._problems[key] = model.reason
        if model.state == "ready":
            logger.info("event=version_ready model=%s version=%s", *map(logs.text, key))
        if self._models.get(*key) is model:
            return
        if model.state == "ready":
            self._replace(model)
        else:
            self._retire(model)

    def _load(self, key: Key, path: Path, before: LoadedHandler | None) -> LoadedHandler:
        if before is not None:
            forget_modules(before)
        if before is not None and not self._is_in_folder(key):
            return load_handler(before.ref, app_dir=before.app_dir)
        return load_version(path, *key)

    def _fail(self, key: Key, error: Exception) -> None:
        reason = str(error) if isinstance(error, ParityError) else f"{type(error).__name__}: {error}"
        self._problems[key] = reason
        logger.error(
            "event=load_failed model=%s version=%s error=%s", *map(logs.text, (*key, reason)), exc_info=error
        )

    def _replace(self, model: ServedModel) -> None:
        before = self._models.put(model)
        if before is not None:
            self._retire(before)

    def _take_away(self, name: str, version: str) -> None:
        model = self._models.remove(name, version)
        if model is not None:
            self._retire(model)

    def _retire(self, model: ServedModel) -> None:
        task = asyncio.create_task(self._finish(model))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _finish(self, model: ServedModel) -> None:
        given_up = await model.retire(self._drain_s)
        logger.info(
            "event=unloaded model=%s version=%s given_up=%d",
            logs.text(model.name),
            logs.text(model.version),
            given_up,
        )


def scan(folder: Path) -> dict[Key, Path]:
    """The versions in a model repository: folders NAME/VERSION with a handler; hidden ones are left out.

    Raises:
        ConfigError: the folder is not there.
    """
    if not folder.is_dir():
        raise ConfigError(f"--models {folder}: no such folder; expected NAME/VERSION/ of handler folders")
    return {
        (model.name, version.name): version
        for model in sorted(folder.iterdir())
        if model.is_dir() and _is_named(model)
        for version in sorted(model.iterdir())
        if _is_named(version)
        and ((version / HANDLER_FILE).is_file() or (version / FILE_NAME).is_file() or _archives(version))
    }


def home(loaded: LoadedHandler) -> Path | None:
    """Where a handler's files are to be looked at: its folder, or its archive."""
    for text in (loaded.ref, loaded.ref.rpartition(":")[0]):  # made.parity, made.parity:Class
        if text and Path(text).suffix == SUFFIX and not Path(text).is_dir():
            return Path(text)
    return loaded.root


def _archives(version: Path) -> list[Path]:
    """The archives in a folder of a version that is no handler's own folder."""
    if not version.is_dir():
        return []
    return sorted(path for path in version.glob(f"*{SUFFIX}") if _is_named(path) and path.is_file())


def load_version(path: Path, name: str, version: str) -> LoadedHandler:
    """The handler or archive in a repository's folder NAME/VERSION, under that name and version.

    Raises:
        ConfigError: its handler.toml gives another name or version, or there are several archives.
        Exception: see `parity.registry.load_handler`.
    """
    archives = [] if (path / HANDLER_FILE).is_file() or (path / FILE_NAME).is_file() else _archives(path)
    if len(archives) > 1:
        names = ", ".join(archive.name for archive in archives)
        raise ConfigError(f"{path} holds several archives, and a version is one: {names}; leave one there")
    loaded = load_handler(archives[0] if archives else path)
    declared = _declared((loaded.root or path) / FILE_NAME)
    for key, place in (("name", name), ("version", version)):
        if declared.get(key, place) != place:
            file = (archives[0] if archives else path) / FILE_NAME
            raise ConfigError(
                f"{file}: {key} = {declared[key]!r}, but its place in the model repository says {place!r}; "
                f"make them the same, or leave {key} out"
            )
    return replace(loaded, manifest=replace(loaded.manifest, name=name, version=version))


def signature(root: Path | None) -> Signature:
    """What tells whether the files of a handler have changed: paths, sizes and times."""
    if root is None:
        return ()
    found: list[tuple[str, int, int]] = []
    for path in [root] if root.is_file() else [*files_of(root), *_archives(root)]:
        try:
            stat = path.stat()
        except FileNotFoundError:
            continue
        found.append((str(path), stat.st_size, stat.st_mtime_ns))
    return tuple(sorted(found))


def require_compatible(loaded: LoadedHandler, profile: Profile, others: Sequence[ServedModel]) -> None:
    """Refuse a handler whose numerics cannot hold in one process with the others'.

    Raises:
        ConfigError: threads, deterministic or tf32 differ.
    """
    mine = (profile.threads, profile.deterministic, profile.tf32)
    for other in others:
        theirs = (other.profile.threads, other.profile.deterministic, other.profile.tf32)
        if mine != theirs:
            raise ConfigError(
                f"the profiles of handlers {loaded.name} and {other.name} differ in threads, deterministic "
                "or tf32, which hold for a whole process; serve them from two processes"
            )


def _declared(path: Path) -> Mapping[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _is_named(path: Path) -> bool:
    return not path.name.startswith((".", "_")) and path.name not in _NO_VERSIONS


def _entry(key: Key, state: str, reason: str) -> dict[str, str]:
    return {"name": key[0], "version": key[1], "state": state, "reason": reason}
