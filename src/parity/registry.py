"""Find handlers and runners by reference, and guess the mistake when there is none.

A handler is named by its folder (`handlers/fashion`), by file (`path/handler.py:Class`; the class may be left
out when there is only one), by archive (`fashion.parity`) or by module (`package.module:Class`, with
`app_dir` on the import path).
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from parity.archive import SUFFIX, extracted
from parity.errors import ConfigError, ReferenceNotFoundError, did_you_mean, shown
from parity.handler import Handler, LoadedHandler
from parity.manifest import FILE_NAME, Manifest, read_manifest
from parity.profile import Profile
from parity.reloading import forget_folder, forget_if_edited, note_loaded
from parity.result import Result

RUNNER_GROUP = "parity.runners"
HANDLER_FILE = "handler.py"


@runtime_checkable
class Runner(Protocol):
    """What a runner package exports under the entry-point group `parity.runners`.

    Attributes:
        name: the runner's name, also the entry point's.
        command_name: the subcommand of `parity` that starts it.
        command: the typer function of that subcommand.
        wire_forms: the forms that `replay` can send rows in, the default one first.

    Where `prints_results = True` is there, too, the command prints by `parity.cli.options.emit`, and what
    handlers print goes to standard error.
    """

    name: str
    command_name: str
    wire_forms: tuple[str, ...]

    @property
    def command(self) -> Any:
        """The typer function of the subcommand."""
        ...

    def replay(
        self,
        handler_ref: str,
        rows: pa.Table,
        profile: Profile,
        *,
        app_dir: str | None = None,
        wire: str | None = None,
    ) -> Result:
        """The rows' answers through the runner's whole real path, aligned with the rows.

        Raises:
            RunnerError: the runner failed to start or crashed.
        """
        ...


def replay_wires(
    runner: Runner, handler_ref: str, rows: pa.Table, profile: Profile, *, app_dir: str | None = None
) -> Iterator[tuple[str, Result]]:
    """The rows' answers through a runner in each of its wire forms, one after the other.

    A runner with a method `replay_wires` of its own is started once for all forms, else once for each.

    Raises:
        RunnerError: the runner failed to start or crashed.
    """
    together = getattr(runner, "replay_wires", None)
    if together is not None:
        yield from together(handler_ref, rows, profile, app_dir=app_dir)
        return
    for wire in runner.wire_forms:
        yield wire, runner.replay(handler_ref, rows, profile, app_dir=app_dir, wire=wire)


def load_handler(ref: str | Path, *, app_dir: str | Path | None = None) -> LoadedHandler:
    """The handler under a reference, not yet initialized.

    Args:
        ref: a folder, `file.py[:Class]`, an archive or `package.module:Class`.
        app_dir: a folder to import `package.module` from; by default the working folder.

    Raises:
        ReferenceNotFoundError: there is no such folder, file, module or class; the message guesses why.
        ConfigError: handler.toml is wrong, the class has no schemas, or an archive is damaged.
        Exception: whatever the user's module raises while it is imported, untouched.
    """
    text = str(ref)
    target, class_name = _split(text)
    path = Path(target)
    if path.is_dir():
        return _from_folder(path, class_name, text)
    if path.suffix == SUFFIX and path.is_file():
        return _from_archive(path, class_name, text)
    if path.suffix in (".py", SUFFIX) or "/" in target or "\\" in target:
        if not path.is_file():
            raise ReferenceNotFoundError(_no_such_path(path))
        return _from_file(path, class_name, text, Manifest(name=path.resolve().parent.name))
    return _from_module(target, class_name, text, str(app_dir) if app_dir is not None else None)


def load_handler_anew(ref: str | Path, *, app_dir: str | Path | None = None) -> LoadedHandler:
    """`load_handler`, with every module of the handler's folder imported again.

    A worker process outlives jobs: a module that the folder gave it before may have changed since.
    """
    target, _ = _split(str(ref))
    path = Path(target) if Path(target).exists() else Path(app_dir) if app_dir is not None else None
    if path is not None:
        forget_folder(path if path.is_dir() else path.parent)
    return load_handler(ref, app_dir=app_dir)


def runner_names() -> list[str]:
    """The names of the installed runners, sorted; none of them is imported."""
    return sorted({point.name for point in importlib.metadata.entry_points(group=RUNNER_GROUP)})


def usual_runner_names() -> list[str]:
    """The runners that are asked where none is named: all but those that start a cluster, or what is as slow.

    A runner's package says so by `STARTS_SLOWLY = True`, which is there without the cluster's library.
    """
    return [name for name in runner_names() if not _told_by_package(name, "STARTS_SLOWLY")]


def find_runner(name: str) -> Runner:
    """The installed runner called `name`.

    Raises:
        ReferenceNotFoundError: there is none; near names are given.
        ConfigError: it cannot be imported; the message names the extra to install.
    """
    points = importlib.metadata.entry_points(group=RUNNER_GROUP, name=name)
    if not points:
        raise ReferenceNotFoundError(f"no runner {name!r} is installed; {did_you_mean(name, runner_names())}")
    point = next(iter(points))
    try:
        runner = point.load()
    except ImportError as exc:
        raise ConfigError(
            f"runner {name!r} ({point.value}) cannot be imported: {exc}; "
            f"pip install 'parity[{name}]' brings what it needs"
        ) from exc
    if not isinstance(runner, Runner):
        raise ConfigError(f"entry point {name!r} ({point.value}) is not a parity runner")
    return runner


def command_without(name: str) -> str:
    """The command of a runner that cannot be imported: its name; "" where its package has COMMANDS = ()."""
    return "" if _told_by_package(name, "COMMANDS") == () else name


def _told_by_package(name: str, attribute: str) -> Any:
    """What the package of a runner's entry point says; None where it says nothing, or cannot be imported."""
    (point,) = list(importlib.metadata.entry_points(group=RUNNER_GROUP, name=name))[:1]
    try:
        return getattr(importlib.import_module(point.module), attribute, None)
    except ImportError:
        return None


def _split(ref: str) -> tuple[str, str]:
    head, colon, tail = ref.rpartition(":")
    if colon and tail.isidentifier() and len(head) > 1:
        return head, tail
    return ref, ""


def _from_folder(folder: Path, class_name: str, ref: str) -> LoadedHandler:
    manifest = read_manifest(folder)
    file_name, declared = _split(manifest.handler) if manifest.handler else (HANDLER_FILE, "")
    path = folder / file_name
    if not path.is_file():
        what = (
            f"{FILE_NAME} names {file_name!r}, which is not there"
            if manifest.handler
            else f"it has no {HANDLER_FILE}"
        )
        inner = sorted(str(item.parent) for item in folder.glob(f"*/{HANDLER_FILE}"))
        hint = (
            f"; it holds {', '.join(inner)}: name one of these"
            if inner
            else "; `parity new NAME` makes a handler"
        )
        raise ReferenceNotFoundError(f"folder {str(folder)!r} is no handler: {what}{hint}")
    return _from_file(path, class_name or declared, ref, manifest)


def _from_archive(path: Path, class_name: str, ref: str) -> LoadedHandler:
    archive, root = extracted(path)
    file_name, declared = _split(archive.handler)
    loaded = _from_file(root / file_name, class_name or declared, ref, Manifest(name=archive.name))
    manifest = replace(loaded.manifest, name=archive.name, version=archive.version)
    return replace(loaded, manifest=manifest)


def _from_file(path: Path, class_name: str, ref: str, manifest: Manifest) -> LoadedHandler:
    root = path.resolve().parent
    if (root / FILE_NAME).is_file():
        manifest = read_manifest(root)
    module = _import_file(path.resolve())
    cls = _pick_class(module, class_name, str(path))
    return LoadedHandler(cls, manifest, root, ref)


def _from_module(name: str, class_name: str, ref: str, app_dir: str | None) -> LoadedHandler:
    if not class_name:
        folders = sorted(str(item.parent) for item in Path().glob(f"*/*/{HANDLER_FILE}"))
        called_so = [folder for folder in folders if Path(folder).name == name]
        hint = (
            f"did you mean {' or '.join(map(repr, called_so))}?"
            if called_so
            else did_you_mean(name, [*folders, *(Path(folder).name for folder in folders)])
        )
        raise ReferenceNotFoundError(
            f"no handler {name!r}: there is no such folder here, and a module reference needs a class, as in "
            f"'package.module:Class'{f'; {hint}' if hint else ''}"
        )
    with _on_import_path(Path(app_dir) if app_dir is not None else Path()):
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as exc:
            if exc.name is None or not (name == exc.name or name.startswith(f"{exc.name}.")):
                raise
            where = f"--app-dir {app_dir}" if app_dir is not None else "the working folder (see --app-dir)"
            raise ReferenceNotFoundError(
                f"no module {exc.name!r} for handler {ref!r}: it is neither installed nor in {where}"
            ) from None
    cls = _pick_class(module, class_name, name)
    manifest = Manifest(
        name=str(getattr(cls, "name", cls.__name__.lower())), version=str(getattr(cls, "version", "1"))
    )
    source = inspect.getsourcefile(cls)
    root = Path(source).resolve().parent if source is not None else None
    if root is not None and (root / FILE_NAME).is_file():
        manifest = read_manifest(root)
    return LoadedHandler(cls, manifest, root, ref, app_dir)


def _import_file(path: Path) -> ModuleType:
    """Import a handler file under a name of its own, with its folder first on the import path.

    Two handlers may have siblings of one name: the modules that an earlier handler took from its own folder
    are forgotten when this folder has a file of the same name (the earlier handler keeps its references).
    Siblings that were edited since an earlier load are imported anew, as the handler's file always is.
    """
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    name = f"_parity_{path.parent.name}_{path.stem}_{digest}".replace("-", "_").replace(".", "_")
    folder = path.parent
    forget_if_edited(folder)
    before = set(sys.modules)
    for sibling in folder.iterdir():
        if sibling.suffix == ".py" or sibling.is_dir():
            homes = _homes(sys.modules.get(sibling.stem))
            if homes & (_handler_folders - {str(folder)}):
                _forget(sibling.stem)
    _handler_folders.add(str(folder))
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(name, path, loader=_Uncached(name, str(path)))
    if spec is None or spec.loader is None:
        raise ReferenceNotFoundError(f"{path} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _uncollected():
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    note_loaded(folder, before)
    return module


@contextmanager
def _uncollected() -> Generator[None]:
    """Look for no garbage meanwhile: torch's import makes little, and looking took a tenth of its time."""
    thresholds = gc.get_threshold()
    gc.set_threshold(0)  # and not disabled: whether it is, the file may decide
    try:
        yield
    finally:
        if gc.get_threshold()[0] == 0:
            gc.set_threshold(*thresholds)


class _Uncached(SourceFileLoader):
    """Compiles a handler's file each time: Python tells compiled files of one second apart by size only."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file as it is now."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


_handler_folders: set[str] = set()


def _homes(module: ModuleType | None) -> set[str]:
    """The folders that a top-level module or package lies in; of one without an __init__.py maybe several."""
    file = getattr(module, "__file__", None)
    if isinstance(file, str) and Path(file).name != "__init__.py":
        return {str(Path(file).resolve().parent)}
    return {str(Path(place).resolve().parent) for place in getattr(module, "__path__", ())}


def _forget(name: str) -> None:
    """Let a top-level module and all that lies below it be imported anew."""
    for known in [known for known in list(sys.modules) if known == name or known.startswith(f"{name}.")]:
        del sys.modules[known]


@contextmanager
def _on_import_path(folder: Path) -> Generator[None]:
    text = str(folder.resolve())
    if not folder.is_dir():
        raise ReferenceNotFoundError(f"--app-dir {str(folder)!r} is not a folder")
    if text not in sys.path:
        sys.path.insert(0, text)
    yield


def _pick_class(module: ModuleType, class_name: str, where: str) -> type[Handler]:
    classes = _handler_classes(module)
    if class_name:
        found = getattr(module, class_name, None)
        if found is None:
            known = list(classes) or [name for name, item in vars(module).items() if isinstance(item, type)]
            raise ReferenceNotFoundError(
                f"no class {class_name!r} in {where}; {did_you_mean(class_name, known)}"
            )
        if not (isinstance(found, type) and issubclass(found, Handler)):
            raise ReferenceNotFoundError(
                f"{class_name!r} in {where} is {shown(found)}, not a subclass of parity.Handler"
            )
        return found
    if len(classes) == 1:
        return next(iter(classes.values()))
    if not classes:
        raise ReferenceNotFoundError(f"{where} defines no subclass of parity.Handler")
    raise ReferenceNotFoundError(
        f"{where} defines {len(classes)} handlers ({', '.join(classes)}); name one, as in "
        f"{where}:{next(iter(classes))}"
    )


def _handler_classes(module: ModuleType) -> Mapping[str, type[Handler]]:
    return {
        name: item
        for name, item in vars(module).items()
        if isinstance(item, type) and issubclass(item, Handler) and item.__module__ == module.__name__
    }


def _no_such_path(path: Path) -> str:
    parent = path.parent
    if not parent.is_dir():
        here = Path.cwd().name
        return f"no handler {str(path)!r}: folder {str(parent)!r} does not exist (working folder: {here}/)"
    names = [item.name for item in parent.iterdir() if item.is_dir() or item.suffix in (".py", SUFFIX)]
    hint = did_you_mean(path.name, names)
    return f"no handler {str(path)!r}: nothing of that name in {str(parent)!r}{f'; {hint}' if hint else ''}"
