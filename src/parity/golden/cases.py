"""One golden case on disk: a folder with inputs.parquet, expected.parquet, case.toml, perhaps stages.arrow.

A case is written whole or not at all, and read with suspicion: whatever is missing, truncated, changed by
hand or no longer fits the handler is a GoldenError that names the remedy.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from parity.codec import arrow
from parity.codec.decoded import Decoded
from parity.compare.values import shown_value
from parity.errors import ConfigError, GoldenError
from parity.golden.faults import DamagedCaseError, OrphanedCaseError
from parity.golden.fit import check_misfits, fitting_expected, fitting_inputs, schema_changes
from parity.golden.meta import CASE, CaseMeta, case_toml, check_whole, read_meta
from parity.handler import LoadedHandler
from parity.result import ERROR_COLUMN
from parity.stages import STAGES as STAGE_NAMES
from parity.stages import Traces, read_traces, write_traces

INPUTS: Final = "inputs.parquet"
EXPECTED: Final = "expected.parquet"
STAGES: Final = "stages.arrow"
FILES: Final = (CASE, INPUTS, EXPECTED, STAGES)

MAX_STAGES_BYTES: Final = 64 * 2**20
"""The most that the stage values of a case may take: a case is kept in version control."""

_LFS_POINTER = b"version https://git-lfs"
_RESTORE = "restore it from version control, or delete the case and record it again"


@dataclass(frozen=True)
class GoldenCase:
    """Rows and the answers that they must get.

    Attributes:
        handler: the handler's name.
        name: the case's name, also its folder's.
        path: the folder.
        inputs: the rows, of the canonical Arrow types of the handler's input schema. Rows that were recorded
            as rows that do not fit the schema are among them; see `decoded`.
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

    @property
    def answered(self) -> int:
        """How many rows are expected to get an answer; where none is, the case proves nothing."""
        return self.inputs.num_rows - self.meta.errors

    @cached_property
    def traces(self) -> Traces | None:
        """What each stage gave for the rows that fit the schema; None for a case recorded without stages.

        Raises:
            DamagedCaseError: the file cannot be read.
        """
        if "stages" not in self.meta.digests:
            return None
        return _read_stages(self.path / STAGES, self.meta.digests["stages"], self.meta.rows)

    def decoded(self, loaded: LoadedHandler) -> Decoded:
        """The rows as the handler gets them, and the errors of those that do not fit its input schema."""
        return arrow.decode_table(loaded.inputs, self.inputs)

    def notes(self, loaded: LoadedHandler) -> list[str]:
        """What has changed in the handler since the recording, none of which is wrong by itself."""
        found: list[str] = []
        if loaded.version != self.meta.version:
            found.append(f"recorded with version {self.meta.version}, the handler is {loaded.version}")
        for side, schema in (("input", loaded.inputs), ("output", loaded.outputs)):
            recorded = self.meta.inputs if side == "input" else self.meta.outputs
            found.extend(f"{side} {change}" for change in schema_changes(recorded, schema))
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
        if self.answered == 0:
            found.append("every row is expected to fail, so no answer is compared; add a row that has one")
        return found


def read_case(path: Path, loaded: LoadedHandler) -> GoldenCase:
    """The case in a folder, proven to be the one that was recorded and to fit the handler.

    Raises:
        OrphanedCaseError: the folder is no case, or the case is another handler's.
        DamagedCaseError: a file is missing, truncated or not the recorded one.
        StaleCaseError: the handler's schemas have changed, and the rows or answers do not fit them.
    """
    meta, table = _stored_inputs(path, loaded)
    inputs, decoded = fitting_inputs(table, loaded, meta, path)
    stored = _read_parquet(path / EXPECTED, meta.digests.get("expected", ""), meta.rows)
    expected = fitting_expected(stored, loaded, meta, path)
    check_misfits(decoded, expected, table, loaded, meta, path)
    failing = expected.num_rows - expected.column(ERROR_COLUMN).null_count
    if failing != meta.errors:
        raise DamagedCaseError(
            f"golden case {path}: {CASE} says that {meta.errors} rows fail, and {failing} of {EXPECTED} do; "
            f"{_RESTORE}"
        )
    if "stages" in meta.digests:
        _check_digest(path / STAGES, meta.digests["stages"])
    return GoldenCase(loaded.name, path.name, path, inputs, expected, meta)


def read_inputs(path: Path, loaded: LoadedHandler) -> tuple[CaseMeta, pa.Table]:
    """What a case says and its rows, without its answers; raises as `read_case` does."""
    meta, table = _stored_inputs(path, loaded)
    return meta, fitting_inputs(table, loaded, meta, path)[0]


def write_case(
    path: Path,
    inputs: pa.Table,
    expected: pa.Table,
    meta: CaseMeta,
    *,
    stages: Traces | None = None,
    replace_existing: bool = False,
) -> CaseMeta:
    """Write a case whole: into a folder beside it, then renamed. Returns the meta with the files' digests.

    Raises:
        GoldenError: the case exists and is not to be replaced.
        ConfigError: the stage values are too large.
    """
    if path.exists() and not replace_existing:
        raise GoldenError(
            f"golden case {path} exists; `parity golden update` changes it and shows what moved"
        )
    if stages is not None:
        check_stages_size(stages)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        pq.write_table(inputs, fresh / INPUTS, compression="zstd")
        pq.write_table(expected, fresh / EXPECTED, compression="zstd")
        digests = {name: meta.digests[name] for name in meta.digests if name != "stages"}
        digests |= {"inputs": _digest(fresh / INPUTS), "expected": _digest(fresh / EXPECTED)}
        if stages is not None:
            write_traces(fresh / STAGES, stages)
            digests["stages"] = _digest(fresh / STAGES)
        meta = replace(meta, digests=digests)
        (fresh / CASE).write_text(case_toml(path.name, meta), encoding="utf-8")
        fresh.chmod(0o755)
        _move_into_place(fresh, path)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return meta


def check_stages_size(stages: Traces) -> None:
    """Raise ConfigError when stage values are too large for a case."""
    size = stages.inputs.nbytes + stages.outputs.nbytes
    for stage in STAGE_NAMES:
        leaves = stages.stage(stage).values()
        size += sum(value.nbytes for values in leaves for value in values if value is not None)
    if size > MAX_STAGES_BYTES:
        raise ConfigError(
            f"the stage values of {stages.num_rows} rows take {size / 2**20:.0f} MiB, more than the "
            f"{MAX_STAGES_BYTES / 2**20:.0f} MiB that a golden case may keep; record fewer rows (--limit, "
            "--sample), or leave --stages out"
        )


def first_rows(case: GoldenCase, rows: int) -> list[dict[str, dict[str, object]]]:
    """The first rows of a case, each as its input and the answer expected, long values cut for display."""
    return [
        {"input": _shown_row(case.inputs, row), "expected": _shown_row(case.expected, row)}
        for row in range(min(rows, case.inputs.num_rows))
    ]


def _stored_inputs(path: Path, loaded: LoadedHandler) -> tuple[CaseMeta, pa.Table]:
    meta = read_meta(path)
    if meta.handler != loaded.name:
        raise OrphanedCaseError(
            f"golden case {path} belongs to handler {meta.handler!r}, not to {loaded.name!r}; it is "
            "orphaned: move it to its handler's goldens, or delete it"
        )
    check_whole(path)
    return meta, _read_parquet(path / INPUTS, meta.digests.get("inputs", ""), meta.rows)


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
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_digest(path: Path, digest: str) -> None:
    where = f"golden case {path.parent}: {path.name}"
    if not path.is_file():
        raise DamagedCaseError(f"{where} is missing; {_RESTORE}")
    try:
        found = _digest(path)
        with path.open("rb") as file:
            head = file.read(len(_LFS_POINTER))
    except OSError as exc:
        raise DamagedCaseError(f"{where} cannot be read: {exc}; {_RESTORE}") from exc
    if found != digest and head == _LFS_POINTER:
        raise DamagedCaseError(f"{where} is a Git LFS pointer, not the file; `git lfs pull` fetches it")
    if found != digest:
        raise DamagedCaseError(
            f"{where} is not the file that was recorded (its SHA-256 is not the one in {CASE}): truncated, "
            f"or changed by hand; {_RESTORE}"
        )


def _read_parquet(path: Path, digest: str, rows: int) -> pa.Table:
    _check_digest(path, digest)
    where = f"golden case {path.parent}: {path.name}"
    try:
        table = pq.ParquetFile(path).read()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as exc:
        raise DamagedCaseError(f"{where} cannot be read: {exc}; {_RESTORE}") from exc
    if table.num_rows != rows or rows == 0:
        raise DamagedCaseError(f"{where} has {table.num_rows} rows, {CASE} says {rows}; {_RESTORE}")
    return table


def _read_stages(path: Path, digest: str, rows: int) -> Traces:
    _check_digest(path, digest)
    where = f"golden case {path.parent}: {path.name}"
    try:
        found = read_traces(path)
    except Exception as exc:
        raise DamagedCaseError(f"{where} cannot be read: {type(exc).__name__}: {exc}; {_RESTORE}") from exc
    if found.num_rows > rows:
        raise DamagedCaseError(f"{where} has {found.num_rows} rows, {CASE} says {rows}; {_RESTORE}")
    return found
