"""What a job would do: the plan, the mapping, and an estimate from a sample. Nothing is written."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from parity.batch_engines import LOCAL
from parity.engine import Engine
from parity.errors import RowError, counted
from parity.failures import few_of_a_kind
from parity.handler import Handler, LoadedHandler
from parity.scored import part_rows, part_schema
from parity.sizing import Sizing
from parity_batch.local import default_workers
from parity_batch.plan import Unit
from parity_batch.prepared import Prepared, prepare
from parity_batch.progress import duration, size
from parity_batch.reasons import kind_of
from parity_batch.settings import Settings
from parity_batch.sizing import size_up
from parity_batch.stream import read_unit, with_absent
from parity_batch.summary import files_told
from parity_batch.unit import decoded_rows, positions_of

_SAMPLED_UNITS = 3
_SAMPLED_BATCHES = 4


@dataclass(frozen=True)
class Preview:
    """What a job would do.

    Attributes:
        handler: name and version.
        files: the input files, those that are left out included.
        rows: their rows.
        kept_rows: about how many of them are scored: those for which the condition holds, by the sample.
        units: the units of work, each one part.
        read_bytes: about how many bytes the columns that are read have in memory.
        mapping: for each field its column and the column's type; null where it takes its default.
        schema: the columns of a part and their types.
        notes: what differs between files and is made one by rule.
        skipped_files: files that cannot be read and are left out, with the reason.
        sample_rows: the rows that were scored for the estimate.
        sample_row_errors: how many of them failed.
        sample_error: why one of them did, in its text only where the settings log failures' texts.
        load_seconds: how long loading the handler took.
        estimated_seconds: how long the job takes on this machine; null for another engine or without rows.
        estimated_bytes: about how large the parts are.
        batch_rows: rows in a micro-batch.
        sizing: how these were decided, where they are to be measured; the job measures again.
    """

    handler: str
    files: int
    rows: int
    kept_rows: int
    units: int
    read_bytes: int
    mapping: dict[str, tuple[str, str] | None]
    schema: dict[str, str]
    notes: list[str]
    skipped_files: dict[str, str]
    sample_rows: int
    sample_row_errors: int
    sample_error: str
    load_seconds: float
    estimated_seconds: float | None
    estimated_bytes: int
    batch_rows: int
    sizing: Sizing | None = None

    def to_dict(self) -> dict[str, Any]:
        """The preview as JSON has it."""
        return {**asdict(self), "sizing": None if self.sizing is None else self.sizing.to_json()}

    def describe(self) -> str:
        """The preview in a few lines for people."""
        of_files = files_told(self.files, len(self.skipped_files))
        lines = [
            f"{counted(self.rows, 'row')} of {of_files} would be scored by {self.handler} "
            f"into {counted(self.units, 'part')}",
            f"reads about {size(self.read_bytes)}:",
        ]
        for field, found in self.mapping.items():
            source = "its default" if found is None else f"column {found[0]} ({found[1]})"
            lines.append(f"  {field} from {source}")
        lines.append("writes " + ", ".join(f"{name}: {kind}" for name, kind in self.schema.items()))
        if self.kept_rows < self.rows:
            lines.append(f"--where leaves about {self.kept_rows:,} of the rows, by a sample")
        if self.sample_rows:
            time_left = "" if self.estimated_seconds is None else f"{duration(self.estimated_seconds)} and "
            lines.append(
                f"takes about {time_left}{size(self.estimated_bytes)} on disk, by a sample of "
                f"{self.sample_rows:,} rows; loading takes {self.load_seconds:.1f} s"
            )
        if self.sample_row_errors:
            lines.append(f"{self.sample_row_errors:,} rows of the sample failed, one so: {self.sample_error}")
        if self.sizing is not None:
            lines.append(f"--batch-rows {self.sizing}; a job that is begun measures again")
        lines += [f"skipped: {problem}" for problem in self.skipped_files.values()]
        lines += [f"note: {note}" for note in self.notes]
        lines.append("nothing was written")
        return "\n".join(lines)


def preview(
    inputs: str | Path | Sequence[str | Path],
    handler: str | Path | type[Handler] | LoadedHandler,
    *,
    columns: Sequence[str] = (),
    settings: Settings | None = None,
    app_dir: str | Path | None = None,
) -> Preview:
    """What `score` would do with the same arguments; a few micro-batches are scored, nothing is written.

    Raises:
        ParityError: what `score` raises before its first row, or where the sample cannot be read.
    """
    ready = prepare(inputs, handler, columns, settings, app_dir)
    plan, layout = ready.plan, ready.plan.layout
    schema = part_schema(layout.schema, layout.columns, ready.loaded, {}, ready.settings.form)
    sample = _sample(ready, schema)
    rows, whole = plan.num_rows, sum(unit.num_rows for unit in plan.units)
    share = sample.rows / sample.read_rows if sample.read_rows else 1.0
    seconds = None
    if ready.settings.engine == LOCAL and sample.read_rows:
        workers = ready.settings.workers or default_workers(ready.profile.device, ready.preprocess_workers)
        seconds = round(sample.seconds / sample.read_rows * whole / workers + sample.load_seconds, 1)
    mapping = {
        field: (layout.fields[field], str(layout.schema.field(layout.fields[field]).type))
        if field in layout.fields
        else None
        for field in ready.loaded.inputs
    }
    return Preview(
        handler=f"{ready.loaded.name}@{ready.loaded.version}",
        files=len(plan.sources) + len(plan.skipped),
        rows=rows,
        kept_rows=min(rows, round(share * whole)) if ready.settings.where else rows,
        units=len(plan.units),
        read_bytes=sum(unit.size_bytes for unit in plan.units),
        mapping=mapping,
        schema={field.name: str(field.type) for field in schema},
        notes=list(plan.notes),
        skipped_files=dict(plan.skipped),
        sample_rows=sample.rows,
        sample_row_errors=sample.row_errors,
        sample_error=sample.error,
        load_seconds=round(sample.load_seconds, 2),
        estimated_seconds=seconds,
        estimated_bytes=round(sample.size_bytes / sample.read_rows * whole) if sample.rows else 0,
        batch_rows=sample.batch_rows,
        sizing=sample.sizing,
    )


@dataclass
class _Sample:
    batch_rows: int
    sizing: Sizing | None = None
    rows: int = 0
    read_rows: int = 0
    row_errors: int = 0
    error: str = ""
    seconds: float = 0.0
    load_seconds: float = 0.0
    size_bytes: int = 0


def _sample(ready: Prepared, schema: pa.Schema) -> _Sample:
    found = _Sample(ready.given_rows or ready.default_rows)
    units = [unit for unit in ready.plan.units if unit.kept_rows]
    if not units:
        return found
    chosen = {units[len(units) * at // _SAMPLED_UNITS].part: None for at in range(_SAMPLED_UNITS)}
    started = time.perf_counter()
    written: list[pa.Table] = []
    with (
        few_of_a_kind(tells_texts=ready.settings.log_failures),
        Engine(ready.loaded, ready.profile) as engine,
    ):
        found.load_seconds = time.perf_counter() - started
        if ready.given_rows is None:
            found.sizing = size_up(ready, lambda: engine)
            found.batch_rows = found.sizing.rows
        for number, unit in enumerate(unit for unit in units if unit.part in chosen):
            written += _sample_unit(ready, engine, unit, schema, found, warm=number == 0)
    if not written:  # the condition holds for no row of the sample
        return found
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.concat_tables(written).unify_dictionaries(), sink, compression="zstd", compression_level=1
    )
    found.size_bytes = sink.getvalue().size
    return found


def _sample_unit(
    ready: Prepared, engine: Engine, unit: Unit, schema: pa.Schema, found: _Sample, *, warm: bool
) -> list[pa.Table]:
    written: list[pa.Table] = []
    read = 0
    with contextlib.closing(read_unit(unit, ready.plan.layout, found.batch_rows)) as batches:
        for number in range(_SAMPLED_BATCHES):
            started = time.perf_counter()
            rows = next(batches, None)
            if rows is None:
                read = unit.num_rows
                found.seconds += time.perf_counter() - started
                break
            positions = positions_of(rows)
            read = positions[-1] + 1 - unit.first_row if positions else read + rows.num_rows
            result = engine.score(decoded_rows(ready.loaded.inputs, rows, ready.plan.layout))
            if warm and number == 0:  # the first batch also pays for what is set up once
                started = time.perf_counter()
                engine.score(decoded_rows(ready.loaded.inputs, rows, ready.plan.layout))
            written.append(part_rows(with_absent(rows, ready.plan.layout), result, schema))
            found.seconds += time.perf_counter() - started
            found.rows += rows.num_rows
            found.row_errors += len(result.errors)
            if result.errors and not found.error:
                error = result.errors[0]
                told = error.message if ready.settings.log_failures else _without_text(error)
                found.error = f"{unit.source.name}: {told}"
    found.read_rows += read
    return written


def _without_text(error: RowError) -> str:
    return f"{kind_of(error)}, {error.type}" if error.type else kind_of(error)
