"""Make a handler's folder out of the template. The golden case is recorded by really running the handler."""

from __future__ import annotations

import importlib.resources
import keyword
import re
import shutil
import string
import tempfile
from dataclasses import dataclass
from pathlib import Path

from parity import golden
from parity.codec import rows
from parity.errors import ConfigError, GoldenError
from parity.registry import load_handler

DEFAULT_FOLDER = "handlers"
_CASE = "first"
_ROWS = "tests/rows.json"

# Where each file of the template goes; $name in a target is the handler's name as a Python identifier.
_FILES = {
    "handler.py.txt": "handler.py",
    "handler.toml.txt": "handler.toml",
    "weights.json.txt": "artifacts/weights.json",
    "README.md.txt": "README.md",
    "rows.json.txt": _ROWS,
    "test_handler.py.txt": "tests/test_$name.py",
}
_TAKEN_CLASS_NAMES = ("Batch", "Context", "Float64", "Handler", "Int64", "Schema", "String", "Mapping", "Any")


@dataclass(frozen=True)
class Made:
    """A handler that was made.

    Attributes:
        name: the handler's name.
        folder: its folder.
        files: the files in it, relative to it, sorted.
    """

    name: str
    folder: Path
    files: tuple[str, ...]


def create(name: str, parent: Path | None = None) -> Made:
    """Make a handler's folder, whole or not at all.

    Args:
        name: the handler's name, or a path whose last part is the name.
        parent: the folder to make it in; for a bare name `handlers/` when not given.

    Raises:
        ConfigError: the name will not do, or the folder exists.
        GoldenError: this is a CI run, where no golden is written.
    """
    path = Path(name)
    if parent is None:
        parent = path.parent if len(path.parts) > 1 else Path(DEFAULT_FOLDER)
    elif len(path.parts) > 1:
        raise ConfigError(f"{name!r} is a path already; leave --dir out, or give a bare name")
    folder = parent / path.name
    _check_name(path.name)
    if folder.exists():
        raise ConfigError(f"{folder} exists; choose another name, or delete it")
    if parent.exists() and not parent.is_dir():
        raise ConfigError(f"{parent} is a file; a handler's folder cannot be made in it")
    if golden.in_ci():
        raise GoldenError("`parity new` records a golden, and in CI nothing does; make the handler elsewhere")
    parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=parent))
    try:
        _fill(fresh, path.name)
        _record(fresh)
        fresh.chmod(0o755)
        fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    return Made(path.name, folder, tuple(files))


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*", name):
        raise ConfigError(
            f"{name!r} will not do as a handler's name, which is part of URLs and folders: use "
            "lower-case letters, digits, '_' and '-', from a letter on, such as 'churn' or 'price-model'"
        )
    if keyword.iskeyword(name):
        raise ConfigError(f"{name!r} is a Python keyword; choose another name")


def _fill(folder: Path, name: str) -> None:
    words = re.split(r"[_-]", name)
    class_name = "".join(word.capitalize() for word in words)
    if class_name in _TAKEN_CLASS_NAMES:
        class_name += "Model"
    texts = {"handler": name, "name": name.replace("-", "_"), "cls": class_name}
    template = importlib.resources.files("parity.scaffold") / "template"
    for source, target in _FILES.items():
        path = folder / string.Template(target).substitute(texts)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (template / source).read_text(encoding="utf-8")
        path.write_text(string.Template(text).substitute(texts), encoding="utf-8")


def _record(folder: Path) -> None:
    """Record the template's rows as the first golden case, in the handler's own folder."""
    loaded = load_handler(folder)
    decoded = rows.RowDecoder(loaded.inputs).decode(rows.loads((folder / _ROWS).read_bytes()))
    (folder / golden.FOLDER).mkdir()
    golden.record(loaded, decoded, _CASE, reason="the rows that `parity new` comes with")
    for cache in folder.rglob("__pycache__"):
        shutil.rmtree(cache)
