"""case.toml: what is known about a golden case beside its rows. Read with suspicion, and written, here."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, cast

from parity.errors import GoldenError, ParityError, shown
from parity.golden.faults import DamagedCaseError, OrphanedCaseError, StaleCaseError
from parity.profile import Profile

CASE: Final = "case.toml"
FORMAT: Final = 1

_KINDS = {
    **dict.fromkeys(("handler", "version", "created", "reason", "sampled"), str),
    **dict.fromkeys(("rows", "errors"), int),
    "buckets": list,
}
_TEXTS = ("digests", "fingerprint", "inputs", "outputs")
_NEEDED = ("handler", "rows", "digests", "profile")
_DIGEST = re.compile(r'^digest = "(?P<digest>[0-9a-f]{64})"\n', re.MULTILINE)
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
        sampled: how the rows were drawn from a dataset; empty for rows that were all taken.
        buckets: the numbers of rows that inference saw at once, padding included.
        digests: SHA-256 of the handler's "source" and "artifacts" and of the files "inputs" and "expected",
            and "stages" for a case that keeps stage values.
        profile: the profile's name and settings.
        fingerprint: the environment that the answers come from.
        inputs: the input schema at the recording, each field as it is written in a handler; empty for cases
            recorded before parity kept it.
        outputs: the output schema, likewise.
        tolerance: for each output column its rule, as `[tolerance.<column>]` in handler.toml.
    """

    handler: str
    version: str
    created: str
    reason: str
    rows: int
    errors: int = 0
    sampled: str = ""
    buckets: tuple[int, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    profile: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fingerprint: Mapping[str, str] = field(default_factory=dict[str, str])
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    outputs: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerance: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, object]:
        """What case.toml says, as JSON-ready data."""
        return {option.name: getattr(self, option.name) for option in fields(self)}

    @property
    def recorded_profile(self) -> Profile:
        """The profile that the answers were made under; raises StaleCaseError when it is none any more."""
        settings = {key: value for key, value in self.profile.items() if key != "name"}
        try:
            return Profile.from_mapping(str(self.profile.get("name", "default")), settings)
        except (ParityError, TypeError) as exc:
            raise StaleCaseError(
                f"golden case of handler {self.handler}: its profile is stale: {exc}"
            ) from exc


def read_meta(path: Path) -> CaseMeta:
    """What the case.toml of a folder says.

    Raises:
        OrphanedCaseError: there is no case.toml.
        DamagedCaseError: it is no TOML file, of another format, or says what cannot be.
    """
    file = path / CASE
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise OrphanedCaseError(
            f"golden case {path} has no {CASE}; it is orphaned: delete the folder, or record the case again"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, OSError) as exc:
        raise DamagedCaseError(f"{file}: not a TOML file: {exc}; restore it from version control") from exc
    found = data.pop("format", None)
    if type(found) is not int or found != FORMAT:
        newer = type(found) is int and found > FORMAT
        remedy = "update parity, or record the case again" if newer else "record the case again"
        told = f"format = {shown(found)}" if found is not None else "no format"
        raise DamagedCaseError(f"{file}: {told}; this parity reads case format {FORMAT}: {remedy}")
    return _checked(_typed(data, file), file)


def check_whole(path: Path) -> None:
    """Raise DamagedCaseError where case.toml is cut short or edited, which leaves it good TOML.

    Cases recorded before parity kept a digest of it pass.
    """
    file = path / CASE
    try:
        text = file.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError) as exc:
        raise DamagedCaseError(f"{file}: cannot be read: {exc}; restore it from version control") from exc
    found = _DIGEST.search(text)
    if found is not None and _sha256(text[: found.start()] + text[found.end() :]) != found["digest"]:
        raise DamagedCaseError(
            f"{file}: it is not what was recorded (its digest is of another text): cut short, or changed by "
            "hand; restore it from version control"
        )


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
    if meta.sampled:
        lines.append(f"sampled = {_toml(meta.sampled)}")
    lines.append(f"buckets = {_toml(list(meta.buckets))}")
    for table in ("digests", "profile", "fingerprint", "inputs", "outputs"):
        lines += ["", f"[{table}]"]
        lines += [f"{_key(key)} = {_toml(value)}" for key, value in getattr(meta, table).items()]
    for column, rule in meta.tolerance.items():
        lines += ["", f"[tolerance.{_key(column)}]"]
        lines += [f"{_key(key)} = {_toml(value)}" for key, value in cast("Mapping[str, Any]", rule).items()]
    text = "\n".join(lines) + "\n"
    head = text.index("format = ")
    return f'{text[:head]}digest = "{_sha256(text)}"\n{text[head:]}'


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _typed(data: Mapping[str, Any], file: Path) -> CaseMeta:
    known: dict[str, Any] = {}
    for option in fields(CaseMeta):
        kind = _KINDS.get(option.name, dict)
        if option.name in _NEEDED and option.name not in data:
            raise _wrong(file, f"{option.name} is missing")
        value: Any = data.get(option.name, kind())
        if type(value) is not kind:
            raise _wrong(file, f"{option.name} = {shown(value)} is no {kind.__name__}")
        known[option.name] = tuple(cast("list[int]", value)) if kind is list else value
    return CaseMeta(**known)


def _checked(meta: CaseMeta, file: Path) -> CaseMeta:
    for name in _TEXTS:
        table = cast("Mapping[str, object]", getattr(meta, name))
        for key, value in table.items():
            if not isinstance(value, str):
                raise _wrong(file, f"{name}.{key} = {shown(value)} is no str")
    for column, rule in meta.tolerance.items():
        if not isinstance(rule, Mapping):
            raise _wrong(file, f"tolerance.{column} = {shown(rule)} is no table")
    if not all(type(size) is int and size > 0 for size in meta.buckets):
        raise _wrong(file, f"buckets = {shown(list(meta.buckets))} are no batch sizes")
    if not 0 <= meta.errors <= meta.rows:
        raise _wrong(file, f"errors = {meta.errors} of rows = {meta.rows} cannot be")
    allowed = meta.recorded_profile.buckets
    strange = sorted(set(meta.buckets) - set(allowed)) if allowed else []
    if strange:
        raise DamagedCaseError(
            f"{file}: two profiles are mixed: inference saw {strange} rows at once, and the profile that the "
            f"case names has the buckets {list(allowed)}; record the case again under one profile"
        )
    return meta


def _wrong(file: Path, what: str) -> DamagedCaseError:
    return DamagedCaseError(f"{file}: {what}; restore it from version control")


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
