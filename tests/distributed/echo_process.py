"""A standing process without a cluster: it runs the engine here, unless the rows tell it to misbehave."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator
from typing import Any

import pyarrow as pa

from parity.codec.arrow import decode_table
from parity.distributed.standing import ROW_COLUMN, Job, serve
from parity.engine import Engine
from parity.errors import CertificateError
from parity.registry import load_handler

HANG, DIE, REFUSE, LOSE, DOUBLE, SHUFFLE = range(-106, -100)


def scored(job: Job, rows: pa.Table) -> pa.Table:
    loaded = load_handler(job.handler, app_dir=job.app_dir)
    asked = rows["quantity"].to_pylist()
    print("a library prints what nobody may take for an outcome")  # noqa: T201
    if HANG in asked:
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
    yield scored


if __name__ == "__main__":
    serve(start)
