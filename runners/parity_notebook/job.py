"""What a replay and its process hand each other: a folder with the job, the rows, later the answers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from parity.codec.arrow import decode_table
from parity.errors import RowError, RunnerError
from parity.result import Result
from parity.schema import Schema

_JOB, _ROWS, _ANSWERS, _REST = "job.json", "rows.arrow", "answers-{}.arrow", "answers-{}.json"


@dataclass(frozen=True)
class Job:
    """Which handler to load, how, and the forms in which to give it the rows, one after the other."""

    handler: str
    app_dir: str | None
    profile: str
    settings: list[str]
    forms: list[str]


def write_job(folder: Path, job: Job, rows: pa.Table) -> None:
    """Put a job into the folder."""
    (folder / _JOB).write_text(json.dumps(asdict(job)), encoding="utf-8")
    _write_table(rows, folder / _ROWS)


def read_job(folder: Path) -> tuple[Job, pa.Table]:
    """The job in the folder, and its rows."""
    job = Job(**json.loads((folder / _JOB).read_text(encoding="utf-8")))
    return job, _read_table(folder / _ROWS)


def write_answer(folder: Path, form: str, result: Result) -> None:
    """Put the result of the rows in one form into the folder, exactly."""
    _write_table(result.outputs.to_table(), folder / _ANSWERS.format(form))
    rest: dict[str, Any] = {
        "num_rows": result.num_rows,
        "index": result.index.tolist(),
        "buckets": result.buckets.tolist(),
        "timings": dict(result.timings),
        "errors": [asdict(error) for error in result.errors],
    }
    (folder / _REST.format(form)).write_text(json.dumps(rest), encoding="utf-8")


def read_answer(folder: Path, form: str, outputs: Schema) -> Result:
    """The result of the rows in one form that is in the folder.

    Raises:
        RunnerError: the answers do not fit the output schema.
    """
    rest: dict[str, Any] = json.loads((folder / _REST.format(form)).read_text(encoding="utf-8"))
    decoded = decode_table(outputs, _read_table(folder / _ANSWERS.format(form)))
    if decoded.errors:
        raise RunnerError(f"runner notebook gave an answer outside the schema: {decoded.errors[0].message}")
    return Result(
        num_rows=rest["num_rows"],
        outputs=decoded.batch,
        index=np.asarray(rest["index"], dtype=np.int64),
        errors=tuple(RowError(**error) for error in rest["errors"]),
        timings=rest["timings"],
        buckets=np.asarray(rest["buckets"], dtype=np.int32),
    )


def _write_table(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _read_table(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source, ipc.open_file(source) as reader:
        return reader.read_all()
