"""A standing process without a cluster: it runs the engine here, unless the rows tell it to misbehave."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pyarrow as pa

from parity.codec.arrow import decode_table
from parity.distributed.standing import ROW_COLUMN, Job, serve
from parity.engine import Engine
from parity.errors import CertificateError
from parity.registry import load_handler

GO, HANG, DIE, REFUSE, LOSE, DOUBLE, SHUFFLE = range(-107, -100)
MARKS = "PARITY_ECHO_MARKS"
"""Names the folder where the process marks that it was asked, and how it ended."""


def scored(job: Job, rows: pa.Table) -> pa.Table:
    loaded = load_handler(job.handler, app_dir=job.app_dir)
    asked = rows["quantity"].to_pylist()
    print("a library prints what nobody may take for an outcome")  # noqa: T201
    marks = Path(os.environ.get(MARKS, ""))
    if GO in asked:
        (marks / str(os.getpid())).touch()
        if len(list(marks.iterdir())) == 1:
            sys.exit()
    if HANG in asked:
        if MARKS in os.environ:
            (marks / str(os.getpid())).touch()
        time.sleep(3600)
    if DIE in asked:
        os._exit(9)
    if REFUSE in asked:
        raise CertificateError("no certificate holds here")
    with Engine(loaded, job.to_profile()) as engine:
        answers = engine.score(decode_table(loaded.inputs, rows)).to_table()
    answers = answers.append_column(ROW_COLUMN, pa.array(range(rows.num_rows), pa.int64()))
    if LOSE in asked:
        return answers.slice(1)
    if DOUBLE in asked:
        return pa.concat_tables([answers, answers.slice(0, 1)])
    return (
        answers.take(pa.array(range(rows.num_rows - 1, -1, -1), pa.int64())) if SHUFFLE in asked else answers
    )


@contextlib.contextmanager
def start() -> Generator[Any]:
    try:
        yield scored
    finally:
        if MARKS in os.environ:
            (Path(os.environ[MARKS]) / "ended").touch()


if __name__ == "__main__":
    serve(start)
