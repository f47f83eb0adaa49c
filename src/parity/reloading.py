"""Forgetting a handler's modules, so that loading it again reads its files again. Nothing is loaded here."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.machinery
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType

from parity.errors import ReferenceNotFoundError
from parity.handler import Handler, LoadedHandler

_LIBRARIES = frozenset(
    "__main__ parity parity_batch parity_notebook parity_online parity_ray parity_spark pyspark py4j".split()
)
"""Top-level modules that are no handler's, wherever they lie."""


def forget_modules(loaded: LoadedHandler) -> None:
    """Drop the handler's module, and the modules and packages beside it, from the import caches.

    Their compiled files go too: Python tells those of an edit within the same second apart by size only.
    """
    found = {loaded.cls.__module__, *_modules_in(loaded.root)} - {"__main__"}
    inner = {name for name in list(sys.modules) if any(name.startswith(f"{package}.") for package in found)}
    _drop(found | inner)


def forget_folder(folder: Path) -> None:
    """Drop the modules that lie in a handler's folder, at any depth, from the import caches.

    A virtual environment, an installed package and parity itself stay where they are in that folder, too; so
    does a package that holds an extension module, for few of those can be imported twice in one process.
    """
    _drop(own_modules(folder))


def note_loaded(folder: Path, before: Collection[str]) -> None:
    """Remember the files of the modules that loading a handler imported from its folder.

    Args:
        folder: the handler's folder, resolved.
        before: the names of the modules that had been imported before that.
    """
    known = _stamps.setdefault(folder, {})
    for name in sys.modules.keys() - before:
        file = getattr(sys.modules.get(name), "__file__", None)
        if isinstance(file, str) and file.startswith(f"{folder}{os.sep}"):
            known[file] = _stamp(file)


def forget_if_edited(folder: Path) -> None:
    """`forget_folder`, where a file that an earlier load imported from the folder is not as it was.

    Args:
        folder: the handler's folder, resolved.
    """
    known = _stamps.get(folder, {})
    if any(_stamp(file) != stamp for file, stamp in known.items()):
        del _stamps[folder]
        forget_folder(folder)


def own_modules(folder: Path) -> set[str]:
    """The imported modules that lie in a handler's folder and that nobody installed there."""
    folder = folder.resolve()

    @functools.cache  # many modules lie in few folders
    def resolved(path: str) -> str:
        return os.path.realpath(path)

    inside = f"{folder}{os.sep}"
    trees = [tree for tree in _installed_trees() if tree.is_relative_to(folder)]
    holds_installed = functools.cache(_holds_installed)
    found: set[str] = set()
    compiled: set[str] = set(_LIBRARIES)
    for name, module in list(sys.modules.items()):
        text = _place_of(module, resolved)
        if text is None or not text.startswith(inside):
            continue
        place = Path(text)
        between = [parent for parent in place.parents if parent != folder and parent.is_relative_to(folder)]
        if any(map(place.is_relative_to, trees)) or any(map(holds_installed, between)):
            continue
        found.add(name)
        if text.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
            compiled.add(name.partition(".")[0])
    return {name for name in found if name.partition(".")[0] not in compiled}


def redefined(cls: type[Handler]) -> type[Handler]:
    """The class that now has the name of `cls` in the module that defined it, such as a notebook.

    Raises:
        ReferenceNotFoundError: the name is gone, or is no handler any more.
    """
    module = sys.modules.get(cls.__module__)
    found = getattr(module, cls.__name__, None)
    if not (isinstance(found, type) and issubclass(found, Handler)):
        raise ReferenceNotFoundError(
            f"no handler class {cls.__name__!r} in module {cls.__module__!r} any more; load it anew"
        )
    return found


def _stamp(file: str) -> tuple[int, int] | None:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


_stamps: dict[Path, dict[str, tuple[int, int] | None]] = {}


def _drop(names: Collection[str]) -> None:
    for name in names:
        module = sys.modules.pop(name, None)
        cached = getattr(getattr(module, "__spec__", None), "cached", None)
        if cached:
            with contextlib.suppress(OSError):  # a read-only folder has nothing stale to drop
                Path(cached).unlink(missing_ok=True)
    importlib.invalidate_caches()


def _installed_trees() -> set[Path]:
    """Where this interpreter and what was installed for it lie."""
    paths = sysconfig.get_paths()
    found = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found |= {sys.prefix, sys.base_prefix, site.getusersitepackages()}
    return {Path(path).resolve() for path in found}


def _holds_installed(folder: Path) -> bool:
    """Whether packages were installed into a folder, by this interpreter or another one."""
    return folder.name in ("site-packages", "dist-packages") or any(folder.glob("*.dist-info"))


def _place_of(module: ModuleType, resolved: Callable[[str], str]) -> str | None:
    """The file of a module, or the folder of a package without one; None for what is built in."""
    file = getattr(module, "__file__", None)
    if file is None:
        places = {resolved(path) for path in getattr(module, "__path__", ()) if isinstance(path, str)}
        return places.pop() if len(places) == 1 else None
    if not isinstance(file, str) or not Path(file).is_absolute():  # torch.ops says "_ops.py"
        return None
    folder, name = os.path.split(file)
    return f"{resolved(folder)}{os.sep}{name}"


def _modules_in(root: Path | None) -> set[str]:
    """The imported modules and packages directly in a folder; none where packages are installed."""
    if root is None or root.name in ("site-packages", "dist-packages"):
        return set()
    resolved = functools.cache(Path.resolve)  # many modules lie in few folders
    return {
        name
        for name, module in list(sys.modules.items())
        if (folder := _folder_of(module)) is not None and resolved(folder) == root
    }


def _folder_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not Path(file).is_absolute():
        return None
    path = Path(file)
    return path.parent.parent if path.name == "__init__.py" else path.parent
