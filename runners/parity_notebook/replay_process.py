"""The process of a replay: read a job, call a session as a notebook would, write what it gave.

Run as `python -m parity_notebook.replay_process FOLDER` by `NotebookRunner.replay`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.codec import frames
from parity.errors import ConfigError, RowError, RunnerError
from parity.profile import Profile
from parity.result import ERROR_COLUMN, Result
from parity_notebook.job import read_job, write_answer
from parity_notebook.session import Session, load

Told = Sequence[Mapping[str, str | None] | None]


def main(folder: Path) -> None:
    """Do the job in the folder."""
    job, rows = read_job(folder)
    profile = Profile(job.profile).with_settings(job.settings)
    with load(job.handler, profile, app_dir=job.app_dir) as session:
        for form in job.forms:
            given = frames.encode(_example_of(form), rows)
            answers = session(given, errors="keep", progress=False)
            write_answer(folder, form, read_back(session, form, answers))


def read_back(session: Session, form: str, answers: Any) -> Result:
    """What the user was given, as a result: nothing but the answers themselves is looked at for its values.

    Raises:
        RunnerError: an answer does not fit the output schema.
    """
    told = _errors_told(form, answers)
    good = [row for row, entry in enumerate(told) if entry is None]
    errors = [_row_error(row, entry) for row, entry in enumerate(told) if entry is not None]
    decoded = frames.decode(session.outputs, _without_errors(form, answers, good))
    if decoded.errors:
        raise RunnerError(f"an answer does not fit the output schema: {decoded.errors[0].message}")
    last = cast("Result", session.last)
    return Result(
        num_rows=len(told),
        outputs=decoded.batch,
        index=np.asarray(good, dtype=np.int64),
        errors=tuple(errors),
        timings=last.timings,
        buckets=last.buckets,
    )


def _example_of(form: str) -> Any:
    if form == "pandas":
        import pandas as pd

        return pd.DataFrame()
    if form == "polars":
        import polars as pl

        return pl.DataFrame()
    if form in ("rows", "arrow"):
        return [] if form == "rows" else pa.table({})
    raise ConfigError(f"form {form!r} is not one of pandas, polars, rows, arrow")


def _errors_told(form: str, answers: Any) -> Told:
    """For each row what its `_error` says, None where it has an answer."""
    if form == "rows":
        return [row[ERROR_COLUMN] for row in answers]
    if form == "pandas":
        return [entry if isinstance(entry, Mapping) else None for entry in answers[ERROR_COLUMN]]
    if form == "polars":
        return answers[ERROR_COLUMN].to_list()
    return answers[ERROR_COLUMN].to_pylist()


def _without_errors(form: str, answers: Any, good: list[int]) -> Any:
    """The rows at `good`, without `_error`, in the form that they are in."""
    if form == "rows":
        return [{name: value for name, value in answers[row].items() if name != ERROR_COLUMN} for row in good]
    if form == "pandas":
        return answers.drop(columns=[ERROR_COLUMN]).iloc[good]
    if form == "polars":
        return answers.drop(ERROR_COLUMN)[good]
    return answers.drop_columns([ERROR_COLUMN]).take(pa.array(good, pa.int64()))


def _row_error(row: int, entry: Mapping[str, str | None]) -> RowError:
    kind = cast("Any", entry["kind"])
    return RowError(row, kind, entry["message"] or "", entry["field"], entry["stage"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
