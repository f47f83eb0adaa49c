"""Tolerances from a TOML file, which may be a handler.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from parity.compare.tolerances import Tolerances
from parity.errors import ConfigError, did_you_mean

_TABLES = ("default", "dtype", "tolerance", "pair")
_OTHERS = ("name", "version", "description", "handler", "profiles", "online", "batch", "config")
"""What else a handler.toml holds: it can be given as it is."""


def read_tolerances(path: str | Path) -> Tolerances:
    """The rules of a TOML file with tables default, dtype, tolerance and pair.

    What else a handler.toml holds is passed over.

    Raises:
        ConfigError: the file cannot be read or is not TOML, or a table, kind or key is unknown.
    """
    try:
        data: dict[str, Any] = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise ConfigError(f"tolerance file {path}: {exc}") from exc
    for name, table in data.items():
        if name not in (*_TABLES, *_OTHERS):
            raise ConfigError(f"tolerance file {path}: {name!r} is not known; {did_you_mean(name, _TABLES)}")
        if name in _TABLES and not isinstance(table, dict):
            header = name if name == "default" else f"{name}.<name>"
            raise ConfigError(f"tolerance file {path}: {name} is no table; write [{header}]")
    try:
        return Tolerances.from_mapping(
            data.get("tolerance", {}),
            dtypes=data.get("dtype", {}),
            pairs=data.get("pair", {}),
            default=data.get("default"),
        )
    except ConfigError as exc:
        raise ConfigError(f"tolerance file {path}: {exc}") from exc
