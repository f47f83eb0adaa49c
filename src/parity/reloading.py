"""Forgetting a handler's modules, so that loading it again reads its files again."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from pathlib import Path
from types import ModuleType

from parity.errors import ReferenceNotFoundError
from parity.handler import Handler, LoadedHandler


def forget_modules(loaded: LoadedHandler) -> None:
    """Drop the handler's module, and the modules and packages beside it, from the import caches.

    Their compiled files go too: Python tells those of an edit within the same second apart by size only.
    """
    found = {loaded.cls.__module__, *_modules_in(loaded.root)} - {"__main__"}
    inner = {name for name in list(sys.modules) if any(name.startswith(f"{package}.") for package in found)}
    for name in found | inner:
        module = sys.modules.pop(name, None)
        cached = getattr(getattr(module, "__spec__", None), "cached", None)
        if cached:
            with contextlib.suppress(OSError):  # a read-only folder has nothing stale to drop
                Path(cached).unlink(missing_ok=True)
    importlib.invalidate_caches()


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
    if not isinstance(file, str):
        return None
    path = Path(file)
    return path.parent.parent if path.name == "__init__.py" else path.parent
