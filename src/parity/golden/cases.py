"""One golden case on disk: a folder with inputs.parquet, expected.parquet and case.toml.

A case is written whole or not at all, and read with suspicion: whatever is missing, truncated, changed by
hand or no longer fits the handler is a GoldenError that names the remedy.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from parity.codec import arrow
from parity.compare.values import shown_value
from parity.errors import GoldenError, ParityError
from parity.golden.meta import CASE, CaseMeta, case_toml, read_meta
from parity.handler import LoadedHandler
from parity.result import ERROR_COLUMN, ERROR_TYPE

INPUTS: Final = "inputs.parquet"
EXPECTED: Final = "expected.parquet"
STAGES: Final = "stages.npz"


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
        (fresh / CASE).write_text(case_toml(path.name, meta), encoding="utf-8")
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
