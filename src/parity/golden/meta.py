"""case.toml: what is known about a golden case beside its rows. Read with suspicion, and written, here."""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, cast

from parity.errors import GoldenError, ParityError, shown
from parity.profile import Profile

CASE: Final = "case.toml"
FORMAT: Final = 1

_KINDS = {
    **dict.fromkeys(("handler", "version", "created", "reason"), str),
    **dict.fromkeys(("rows", "errors"), int),
    "buckets": list,
}
_HEADER = "# A golden case of parity; change it with `parity golden update`, never by hand.\n"


@dataclass(frozen=True)
class CaseMeta:
    """What case.toml says.

    Attributes:
        handler: the handler's name.
        version: the handler's version when the case was recorded.
        created: the day, YYYY-MM-DD.
        reason: why the case was recorded or last changed.
        rows: the number of rows.
        errors: how many of them are expected to fail.
        buckets: the numbers of rows that inference saw at once, padding included.
        digests: SHA-256 of the handler's "source" and "artifacts" and of the "inputs" and "expected" files.
        profile: the profile's name and settings.
        fingerprint: the environment that the answers come from.
        tolerance: for each output column its rule, as `[tolerance.<column>]` in handler.toml.
    """

    handler: str
    version: str
    created: str
    reason: str
    rows: int
    errors: int = 0
    buckets: tuple[int, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    profile: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fingerprint: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerance: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, object]:
        """What case.toml says, as JSON-ready data."""
        return {option.name: getattr(self, option.name) for option in fields(self)}

    @property
    def recorded_profile(self) -> Profile:
        """The profile that the answers were made under; raises GoldenError when it is none any more."""
        settings = {key: value for key, value in self.profile.items() if key != "name"}
        try:
            return Profile.from_mapping(str(self.profile.get("name", "default")), settings)
        except ParityError as exc:
            raise GoldenError(f"golden case of handler {self.handler}: its profile is stale: {exc}") from exc


def read_meta(path: Path) -> CaseMeta:
    """What the case.toml of a folder says; raises GoldenError when it is missing or broken."""
    file = path / CASE
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise GoldenError(
            f"golden case {path} has no {CASE}; it is orphaned: delete the folder, or record the case again"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as exc:
        raise GoldenError(f"{file}: not a TOML file: {exc}; restore it from version control") from exc
    if data.pop("format", None) != FORMAT:
        raise GoldenError(f"{file}: this parity reads case format {FORMAT}; record the case again")
    known: dict[str, Any] = {}
    for option in fields(CaseMeta):
        kind = _KINDS.get(option.name, dict)
        value: Any = data.get(option.name, kind())
        if type(value) is not kind:
            what = f"{option.name} = {shown(value)} is no {kind.__name__}"
            raise GoldenError(f"{file}: {what}; restore it from version control")
        known[option.name] = tuple(cast("list[int]", value)) if kind is list else value
    return CaseMeta(**known)


def today() -> str:
    """The day, YYYY-MM-DD, in UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def profile_settings(profile: Profile) -> dict[str, Any]:
    """A profile as case.toml keeps it."""
    return {**asdict(profile), "buckets": list(profile.buckets)}


def case_toml(name: str, meta: CaseMeta) -> str:
    """The text of a case's case.toml."""
    lines = [_HEADER]
    lines += [f"format = {FORMAT}", f"handler = {_toml(meta.handler)}", f"case = {_toml(name)}"]
    lines += [
        f"{key} = {_toml(getattr(meta, key))}" for key in ("version", "created", "reason", "rows", "errors")
    ]
    lines.append(f"buckets = {_toml(list(meta.buckets))}")
    for table in ("digests", "profile", "fingerprint"):
        lines += ["", f"[{table}]"]
        lines += [f"{_key(key)} = {_toml(value)}" for key, value in getattr(meta, table).items()]
    for column, rule in meta.tolerance.items():
        lines += ["", f"[tolerance.{_key(column)}]"]
        lines += [f"{_key(key)} = {_toml(value)}" for key, value in cast("Mapping[str, Any]", rule).items()]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else _toml(name)


def _toml(value: object) -> str:
    """A value in TOML; JSON's strings, numbers and booleans are TOML's, but for the raw DEL character."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item) for item in cast('list[object]', value))}]"
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return f"{{ {', '.join(f'{_key(key)} = {_toml(item)}' for key, item in items)} }}"
    if isinstance(value, bool | int | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float):
        return repr(value)
    raise GoldenError(f"{shown(value)} cannot be kept in {CASE}; expected text, numbers, lists and tables")
