"""Compiled models on disk: a folder for each fingerprint of program, backend, settings and machine."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from parity import numerics
from parity.errors import ConfigError
from parity.models.backend import Backend
from parity.models.program import Program
from parity.profile import Profile

VARIABLE: Final = "PARITY_CACHE"
"""Names the folder of the cache; by default `parity` in the user's cache folder."""

_FORMAT: Final = 2
_ABOUT: Final = "about.json"
_SETTINGS: Final = ("device", "precision", "threads", "tf32", "deterministic")
_MACHINE: Final = ("python", "machine", "cpu", "gpu.name", "gpu.cuda", "torch.cpu_capability")


def cache_folder() -> Path:
    """The folder that compiled models are kept in."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).absolute() / "models"
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base, "parity", "models")


def kept(
    program: Program,
    backend: Backend,
    profile: Profile,
    build: Callable[[Path], None],
) -> Path:
    """The folder with the compiled program; `build` fills it where there is none yet.

    It is built beside its place and moved there whole, so that processes that build the same at once do not
    see each other's halves. The folder is the user's own: what lies there is loaded as code.
    """
    about = _about(program, backend, profile)
    name = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:32]
    root = cache_folder()
    place = root / f"{backend.name}-{name}"
    if (place / _ABOUT).is_file():
        _require_own(root)
        return place
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_own(root)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=root))
    try:
        build(beside)
        (beside / _ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
        try:
            beside.rename(place)
        except OSError:
            if not (place / _ABOUT).is_file():
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return place


def _require_own(root: Path) -> None:
    """Raise ConfigError where somebody else could have written what lies there."""
    state = root.stat()
    if state.st_uid != os.getuid() or state.st_mode & 0o022:
        raise ConfigError(
            f"{root}: compiled models are loaded as code, and others may write there; "
            f"chmod 700 it, or name another folder in {VARIABLE}"
        )


def _about(program: Program, backend: Backend, profile: Profile) -> dict[str, object]:
    found = numerics.fingerprint(profile)
    return {
        "format": _FORMAT,
        "backend": backend.name,
        "program": program.digest,
        "max_rows": program.max_rows,
        "profile": {name: getattr(profile, name) for name in _SETTINGS},
        "packages": {name: _version(name) for name in ("torch", *backend.packages)},
        "machine": {name: found[name] for name in _MACHINE if name in found},
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
