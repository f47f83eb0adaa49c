"""handler.toml: what belongs to a handler and is not code. Read and checked here, used elsewhere."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from parity.errors import ConfigError, did_you_mean, shown
from parity.profile import Profile

FILE_NAME = "handler.toml"
_TABLES = ("profiles", "tolerance", "online", "batch", "access", "config")
_TEXTS = ("name", "version", "description", "handler")


@dataclass(frozen=True)
class Manifest:
    """The contents of a handler.toml.

    Attributes:
        name: the handler's name in URLs, goldens and reports; by default its folder's.
        version: the handler's version, a text.
        description: a sentence.
        handler: "file.py:Class" inside the folder; by default the one Handler class in handler.py.
        profiles: the profiles by name; "default" is always there.
        tolerance: per output column, as `parity.compare.Tolerances.from_mapping` reads it.
        online: settings of the online runner.
        batch: settings of the batch runner.
        access: what the handler touches beside its folder, as `parity.laws.access` reads it.
        config: free settings that the handler reads as `context.config`.
    """

    name: str
    version: str = "1"
    description: str = ""
    handler: str = ""
    profiles: Mapping[str, Profile] = field(default_factory=lambda: {"default": Profile()})
    tolerance: Mapping[str, Any] = field(default_factory=dict[str, Any])
    online: Mapping[str, Any] = field(default_factory=dict[str, Any])
    batch: Mapping[str, Any] = field(default_factory=dict[str, Any])
    access: Mapping[str, Any] = field(default_factory=dict[str, Any])
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def profile(self, name: str = "default") -> Profile:
        """The profile called `name`; raises ConfigError with near names when there is none."""
        try:
            return self.profiles[name]
        except KeyError:
            hint = did_you_mean(name, self.profiles)
            raise ConfigError(f"handler {self.name!r} has no profile {name!r}; {hint}") from None


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a handler folder; one with defaults when it has no handler.toml.

    Raises:
        ConfigError: the file is not TOML, or a key or value is wrong.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return Manifest(name=folder.resolve().name)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path}: not a TOML file: {exc}") from exc
    return _manifest(data, path, folder.resolve().name)


def _manifest(data: Mapping[str, Any], path: Path, default_name: str) -> Manifest:
    known = (*_TEXTS, *_TABLES)
    for key in data:
        if key not in known:
            raise ConfigError(f"{path}: key {key!r} is not known; {did_you_mean(key, known)}")
    texts: dict[str, str] = {}
    for key in _TEXTS:
        if key in data:
            if not isinstance(data[key], str):
                raise ConfigError(f"{path}: {key} = {shown(data[key])} is not a string; write it in quotes")
            texts[key] = data[key]
    tables: dict[str, dict[str, Any]] = {}
    for key in _TABLES:
        value = data.get(key, {})
        if not isinstance(value, dict):
            raise ConfigError(f"{path}: {key} = {shown(value)} is not a table; write [{key}]")
        tables[key] = cast("dict[str, Any]", value)
    profiles = {"default": Profile()}
    for name, settings in tables.pop("profiles").items():
        if not isinstance(settings, dict):
            raise ConfigError(f"{path}: profile {name!r} is not a table; write [profiles.{name}]")
        try:
            profiles[name] = Profile.from_mapping(name, cast("dict[str, Any]", settings))
        except ConfigError as exc:
            raise ConfigError(f"{path}: {exc}") from exc
    return replace(Manifest(default_name, profiles=profiles), **cast("Any", {**texts, **tables}))
