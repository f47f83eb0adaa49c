"""Rows through the whole batch path: a dataset on disk, `parity batch` in a fresh process, its output read.

The rows are spread over files and row groups that do not line up with micro-batches.
"""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parity.child import run_child
from parity.codec.arrow import decode_table
from parity.errors import ConfigError, RowError, RunnerError
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.registry import load_handler
from parity.result import ERROR_COLUMN, Result, empty_batch

WIRE_FORM = "parquet"
_FILES = 3


def replay(
    handler_ref: str,
    rows: pa.Table,
    profile: Profile,
    *,
    app_dir: str | None = None,
    wire: str | None = None,
) -> Result:
    """The answers of a real batch job to these rows, aligned with them.

    `Result.buckets` is empty: a part does not tell how many rows inference saw at once.

    Raises:
        ConfigError: the wire form is not "parquet".
        RunnerError: the job ended with an error, or its output is not whole.
    """
    if wire not in (None, WIRE_FORM):
        raise ConfigError(f"the batch runner has no wire form {wire!r}; it has {WIRE_FORM!r} only")
    loaded = load_handler(handler_ref, app_dir=app_dir)
    with tempfile.TemporaryDirectory(prefix="parity-batch-") as temporary:
        inputs, output = Path(temporary, "in"), Path(temporary, "out")
        starts = write_dataset(rows, inputs)
        where = ["--app-dir", app_dir] if app_dir is not None else []
        settings = itertools.chain.from_iterable(("--set", text) for text in profile.to_settings())
        arguments = [
            "batch",
            handler_ref,
            str(inputs),
            str(output),
            "--max-errors",
            "100%",
            *where,
            *settings,
        ]
        run_child(["-m", "parity", *arguments], f"runner batch on handler {handler_ref}")
        return read_result(output, loaded, rows.num_rows, starts)


def write_dataset(rows: pa.Table, folder: Path) -> dict[str, int]:
    """Write rows as a dataset of several files and row groups; the first row of each file by its name."""
    folder.mkdir(parents=True)
    sizes = [rows.num_rows // _FILES + (position == 0) for position in range(_FILES - 1)]
    sizes.append(rows.num_rows - sum(sizes))
    starts: dict[str, int] = {}
    start = 0
    for position, size in enumerate(sizes):
        name = f"rows-{position}.parquet"
        pq.write_table(rows.slice(start, size), folder / name, row_group_size=max(1, size * 2 // 5))
        starts[name] = start
        start += size
    return starts


def read_result(output: Path, handler: LoadedHandler, num_rows: int, starts: dict[str, int]) -> Result:
    """The result that a job's output folder holds.

    Args:
        output: the output folder.
        handler: the handler.
        num_rows: how many rows went in.
        starts: the position of the first row of each input file.

    Raises:
        RunnerError: rows are missing, or an answer does not fit the output schema.
    """
    parts = [pq.ParquetFile(path).read() for path in sorted(output.glob("part-*.parquet"))]
    scored = pa.concat_tables(parts) if parts else pa.table({})
    if scored.num_rows != num_rows:
        raise RunnerError(f"runner batch wrote {scored.num_rows} rows for {num_rows}")
    if num_rows == 0:
        return Result(0, empty_batch(handler.outputs), np.empty(0, np.int64))
    good = np.flatnonzero(scored.column(ERROR_COLUMN).is_null().to_numpy())
    answers = scored.select(list(handler.outputs.names)).take(pa.array(good, pa.int64()))
    decoded = decode_table(handler.outputs, answers)
    if decoded.errors:
        raise RunnerError(
            f"runner batch: an answer does not fit the output schema: {decoded.errors[0].message}"
        )
    errors = [
        _row_error(row, starts)
        for path in sorted(output.glob("_errors/*.parquet"))
        for row in pq.ParquetFile(path).read().select(list(_ERROR_COLUMNS)).to_pylist()
    ]
    if len(good) + len(errors) != num_rows:
        raise RunnerError(
            f"runner batch: {num_rows - len(good)} rows have an error in the parts, {len(errors)} in _errors"
        )
    return Result(num_rows, decoded.batch, good, tuple(sorted(errors, key=lambda error: error.row)))


_ERROR_COLUMNS = ("_file", "_row", "_kind", "_stage", "_field", "_type", "_message")


def _row_error(row: dict[str, Any], starts: dict[str, int]) -> RowError:
    return RowError(
        row=starts[row["_file"]] + int(row["_row"]),
        kind=row["_kind"],
        message=row["_message"],
        field=row["_field"],
        stage=row["_stage"],
        type=row["_type"],
    )
