"""One golden case on disk: a folder with inputs.parquet, expected.parquet and case.toml.

A case is written whole or not at all, and read with suspicion: whatever is missing, truncated, changed by
hand or no longer fits the handler is a GoldenError that names the remedy.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from parity.codec import arrow
from parity.compare.values import shown_value
from parity.errors import GoldenError, ParityError, shown
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.result import ERROR_COLUMN, ERROR_TYPE

INPUTS: Final = "inputs.parquet"
EXPECTED: Final = "expected.parquet"
CASE: Final = "case.toml"
STAGES: Final = "stages.npz"
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


@dataclass(frozen=True)
class GoldenCase:
    """Rows and the answers that they must get.

    Attributes:
        handler: the handler's name.
        name: the case's name, also its folder's.
        path: the folder.
        inputs: the rows, of the canonical Arrow types of the handler's input schema.
        expected: `Result.to_table()` of the recorded run: one row for each input row, `_error` included.
        meta: what case.toml says.
    """

    handler: str
    name: str
    path: Path
    inputs: pa.Table
    expected: pa.Table
    meta: CaseMeta

    @property
    def output_digest(self) -> str:
        """SHA-256 of the expected answers as they lie on disk."""
        return self.meta.digests.get("expected", "")

    def notes(self, loaded: LoadedHandler) -> list[str]:
        """What has changed in the handler since the recording, none of which is wrong by itself."""
        found: list[str] = []
        if loaded.version != self.meta.version:
            found.append(f"recorded with version {self.meta.version}, the handler is {loaded.version}")
        found.extend(
            f"the handler's {kind} changed since the case was recorded"
            for kind in ("source", "artifacts")
            if loaded.digests[kind] != self.meta.digests.get(kind)
        )
        if dict(loaded.manifest.tolerance) != dict(self.meta.tolerance):
            found.append(
                "handler.toml's tolerance differs from the case's, which is the one that counts; "
                "`parity golden update` accepts the new one"
            )
        return found


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


def read_case(path: Path, loaded: LoadedHandler) -> GoldenCase:
    """The case in a folder, proven to be the one that was recorded and to fit the handler.

    Raises:
        GoldenError: a file is missing, truncated or not the recorded one, the case is another handler's,
            or the handler's schemas have changed.
    """
    meta, inputs = read_inputs(path, loaded)
    expected = _read_parquet(path / EXPECTED, meta.digests.get("expected", ""), meta.rows)
    expected = _fitting_expected(expected, loaded, path)
    return GoldenCase(loaded.name, path.name, path, inputs, expected, meta)


def read_inputs(path: Path, loaded: LoadedHandler) -> tuple[CaseMeta, pa.Table]:
    """What a case says and its rows, without its answers; raises GoldenError as `read_case` does."""
    meta = read_meta(path)
    if meta.handler != loaded.name:
        raise GoldenError(
            f"golden case {path} belongs to handler {meta.handler!r}, not to {loaded.name!r}; it is "
            "orphaned: move it to its handler's goldens, or delete it"
        )
    table = _read_parquet(path / INPUTS, meta.digests.get("inputs", ""), meta.rows)
    return meta, _fitting_inputs(table, loaded, path)


def write_case(
    path: Path,
    inputs: pa.Table,
    expected: pa.Table,
    meta: CaseMeta,
    *,
    stages: Mapping[str, Any] | None = None,
    replace_existing: bool = False,
) -> CaseMeta:
    """Write a case whole: into a folder beside it, then renamed. Returns the meta with the files' digests.

    Raises:
        GoldenError: the case exists and is not to be replaced.
    """
    if path.exists() and not replace_existing:
        raise GoldenError(
            f"golden case {path} exists; `parity golden update` changes it and shows what moved"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        pq.write_table(inputs, fresh / INPUTS, compression="zstd")
        pq.write_table(expected, fresh / EXPECTED, compression="zstd")
        if stages is not None:
            _write_stages(fresh / STAGES, stages)
        digests = {**meta.digests, "inputs": _digest(fresh / INPUTS), "expected": _digest(fresh / EXPECTED)}
        meta = replace(meta, digests=digests)
        (fresh / CASE).write_text(_case_toml(path.name, meta), encoding="utf-8")
        fresh.chmod(0o755)
        _move_into_place(fresh, path)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return meta


def first_rows(case: GoldenCase, rows: int) -> list[dict[str, dict[str, object]]]:
    """The first rows of a case, each as its input and the answer expected, long values cut for display."""
    return [
        {"input": _shown_row(case.inputs, row), "expected": _shown_row(case.expected, row)}
        for row in range(min(rows, case.inputs.num_rows))
    ]


def today() -> str:
    """The day, YYYY-MM-DD, in UTC."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def profile_settings(profile: Profile) -> dict[str, Any]:
    """A profile as case.toml keeps it."""
    return {**asdict(profile), "buckets": list(profile.buckets)}


def _move_into_place(fresh: Path, path: Path) -> None:
    if not path.exists():
        os.rename(fresh, path)  # noqa: PTH104 - unlike Path.replace, this never replaces a folder with files
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}-old-", dir=path.parent))
    path.replace(old)
    try:
        fresh.replace(path)
    except OSError:
        old.replace(path)
        raise
    shutil.rmtree(old)


def _shown_row(table: pa.Table, row: int) -> dict[str, object]:
    found = {
        name: shown_value(pa.concat_arrays(table.column(name).chunks), row) for name in table.column_names
    }
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in found.items()
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_parquet(path: Path, digest: str, rows: int) -> pa.Table:
    remedy = "restore it from version control, or delete the case and record it again"
    if not path.is_file():
        raise GoldenError(f"golden case {path.parent}: {path.name} is missing; {remedy}")
    if _digest(path) != digest:
        raise GoldenError(
            f"golden case {path.parent}: {path.name} is not the file that was recorded (its SHA-256 is not "
            "the one "
            f"in {CASE}): truncated, changed by hand, or a Git LFS pointer; {remedy}"
        )
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as exc:
        raise GoldenError(f"golden case {path.parent}: {path.name} cannot be read: {exc}; {remedy}") from exc
    if table.num_rows != rows:
        raise GoldenError(
            f"golden case {path.parent}: {path.name} has {table.num_rows} rows, {CASE} says {rows}; {remedy}"
        )
    return table


def _fitting_inputs(table: pa.Table, loaded: LoadedHandler, path: Path) -> pa.Table:
    remedy = f"delete {path} and record the case again with rows of the new schema"
    try:
        decoded = arrow.decode_table(loaded.inputs, table)
    except ParityError as exc:
        raise GoldenError(
            f"golden case {path} is stale: its rows do not fit handler {loaded.name}'s input schema: {exc}; "
            f"{remedy}"
        ) from exc
    if decoded.errors:
        first = decoded.errors[0]
        raise GoldenError(
            f"golden case {path} is stale: {len(decoded.errors)} of {decoded.num_rows} rows do not fit "
            "handler "
            f"{loaded.name}'s input schema, the first being row {first.row}: {first.message}; {remedy}"
        )
    return decoded.batch.to_table()


def _fitting_expected(table: pa.Table, loaded: LoadedHandler, path: Path) -> pa.Table:
    names = [*loaded.outputs.names, ERROR_COLUMN]
    remedy = "`parity golden update` shows and accepts the new answers"
    if table.column_names != names:
        raise GoldenError(
            f"golden case {path} is stale: it has the answers {table.column_names}, the output schema of "
            f"handler {loaded.name} says {names}; {remedy}"
        )
    wanted = [item.to_arrow(name, nullable=True) for name, item in loaded.outputs.items()]
    wanted.append(pa.field(ERROR_COLUMN, ERROR_TYPE))
    columns: list[Any] = []
    for item in wanted:
        column = table.column(item.name)
        if not _same_but_names(column.type, item.type):
            raise GoldenError(
                f"golden case {path} is stale: answer {item.name!r} is {column.type}, the output schema of "
                f"handler {loaded.name} says {item.type}; {remedy}"
            )
        columns.append(column if column.type == item.type else column.cast(item.type))
    return pa.Table.from_arrays(columns, schema=pa.schema(wanted))


def _same_but_names(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether two types differ only in what Parquet changes: item names, nullability, seconds to ms."""
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(wanted):
        units = (cast("Any", stored).unit, cast("Any", wanted).unit)
        same_zone = cast("Any", stored).tz == cast("Any", wanted).tz
        return same_zone and (units[0] == units[1] or units == ("ms", "s"))
    if stored.num_fields == 0 or stored.id != wanted.id:
        return stored == wanted
    if pa.types.is_struct(stored):
        ours, theirs = list(cast("Any", stored)), list(cast("Any", wanted))
        return len(ours) == len(theirs) and all(
            one.name == other.name and _same_but_names(one.type, other.type)
            for one, other in zip(ours, theirs, strict=True)
        )
    one, other = cast("Any", stored), cast("Any", wanted)
    same_size = getattr(one, "list_size", None) == getattr(other, "list_size", None)
    return same_size and _same_but_names(one.value_type, other.value_type)


def _write_stages(path: Path, arrays: Mapping[str, Any]) -> None:
    import numpy as np

    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _case_toml(name: str, meta: CaseMeta) -> str:
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
