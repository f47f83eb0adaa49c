"""Which handler is tested, and how: told by `--parity` or by a marker, with its reference found."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parity.errors import ConfigError, did_you_mean, shown


@dataclass(frozen=True)
class Target:
    """A handler under test.

    Attributes:
        reference: the handler as the user named it.
        location: the reference that loads it from any working folder.
        runners: names of runners; all installed ones when None.
        cases: names of golden cases; all when None.
        laws: names of laws; all when None.
        profile: a profile of handler.toml.
        settings: `KEY=VALUE` texts that override it.
        golden: the folder of golden cases; found near the handler when None.
        tolerance: rules by column that count instead of the cases' own.
        app_dir: a folder to import `package.module` from.
    """

    reference: str
    location: str
    runners: tuple[str, ...] | None = None
    cases: tuple[str, ...] | None = None
    laws: tuple[str, ...] | None = None
    profile: str = "default"
    settings: tuple[str, ...] = ()
    golden: str | None = None
    tolerance: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    app_dir: str | None = None


def target_of_marker(args: tuple[Any, ...], kwargs: Mapping[str, Any], root: Path, file: Path) -> Target:
    """The target that `@pytest.mark.parity(...)` in `file` names.

    Raises:
        ConfigError: the marker names no handler, or has an argument that it must not have.
    """
    options = dict(kwargs)
    handler = args[0] if len(args) == 1 else options.pop("handler", None)
    if not isinstance(handler, str | os.PathLike) or len(args) > 1:
        told = ", ".join([*(shown(arg) for arg in args), *(f"{key}=..." for key in kwargs)])
        raise ConfigError(
            f'@pytest.mark.parity({told}) names no handler; write @pytest.mark.parity("handlers/NAME")'
        )
    known = [name for name in inspect.signature(Target).parameters if name not in ("reference", "location")]
    for key in options:
        if key not in known:
            raise ConfigError(f"@pytest.mark.parity has no argument {key!r}; {did_you_mean(key, known)}")
    for key in ("runners", "cases", "laws", "settings"):
        if options.get(key) is not None:
            options[key] = _names(key, options[key])
    for key in ("golden", "app_dir"):
        if options.get(key) is not None:
            options[key] = _find(os.fspath(options[key]), root, file.parent)
    if options.get("tolerance", ()) is None:
        del options["tolerance"]
    reference = os.fspath(handler)
    return Target(_told(reference, root), _find(reference, root, file.parent), **options)


def target_of_options(
    reference: str, runners: list[str] | None, laws: list[str] | None, profile: str, root: Path
) -> Target:
    """The target that `pytest --parity HANDLER` names."""
    chosen = None if laws is None else tuple(law for law in laws if law != "none")
    clean = reference.rstrip("/").removeprefix("./") or reference
    return Target(
        clean,
        _find(reference, root, root),
        runners=None if runners is None else tuple(dict.fromkeys(runners)),
        laws=chosen,
        profile=profile,
    )


def _names(key: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(f"@pytest.mark.parity: {key}={shown(value)} is no list; write {key}=[...]")
    return tuple(str(item) for item in value)


def _find(reference: str, root: Path, folder: Path) -> str:
    """A path relative to the working folder, pytest's root or the test's folder as an absolute one."""
    head, colon, name = reference.rpartition(":")
    path, rest = (head, f":{name}") if colon and name.isidentifier() and len(head) > 1 else (reference, "")
    for base in (Path.cwd(), root, folder):
        if (base / path).exists():
            return f"{(base / path).resolve()}{rest}"
    return reference


def _told(reference: str, root: Path) -> str:
    """A reference as messages say it: relative to pytest's root where it lies below."""
    path = Path(reference)
    return (
        path.relative_to(root).as_posix() if path.is_absolute() and path.is_relative_to(root) else reference
    )
