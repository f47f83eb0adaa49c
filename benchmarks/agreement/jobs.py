"""A runner's whole job over a dataset, as its users would run it: Parquet in, Parquet out, bounded memory.

notebook   a session called with 20,000 rows at a time, in turn as pandas, Polars and Arrow
batch      `parity batch`
online     `parity serve`, and 16 connections that ask for 1 to 128 rows at a time as Arrow
ray        `parity_ray.score` over a local Ray, from read_parquet to write_parquet
spark      `parity_spark.score` over a local Spark, from read.parquet to write.parquet

`python -m benchmarks.agreement.jobs RUNNER HANDLER PROFILE IN OUT SETTING...` is such a job; OUT then holds
Parquet files with `row`, the outputs, and `_error` of rows without an answer.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.agreement.rows import ROW
from parity import load_handler
from parity.codec.arrow import decode_table
from parity.result import ERROR_COLUMN

_CALL_ROWS = 20_000
_MOST_ROWS = 128
_CONNECTIONS = 16
_TURN_ROWS = 4096


@dataclass(frozen=True)
class Job:
    """A handler and its profile, where rows are, and where the answers go."""

    handler: str
    profile: str
    settings: tuple[str, ...]
    inputs: Path
    output: Path

    @property
    def chosen(self) -> Any:
        """The profile with its settings."""
        return load_handler(self.handler).profile(self.profile).with_settings(self.settings)

    @property
    def options(self) -> list[str]:
        """The profile as options of a command."""
        given = itertools.chain.from_iterable(("--set", text) for text in self.settings)
        return ["--profile", self.profile, *given]

    def pieces(self, rows: int) -> Iterator[pa.Table]:
        """The dataset's rows in order, so many at a time."""
        for path in sorted(self.inputs.glob("*.parquet")):
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(rows):
                    yield pa.Table.from_batches([batch])


def notebook(job: Job) -> None:
    """Call a session again and again."""
    import pandas as pd
    import polars as pl

    from parity.codec import frames
    from parity_notebook import load

    forms: Iterator[Any] = itertools.cycle([pd.DataFrame(), pl.DataFrame(), pa.table({})])
    with load(job.handler, job.chosen) as session, _Answers(job.output) as answers:
        for rows in job.pieces(_CALL_ROWS):
            given = frames.encode(next(forms), rows.drop_columns([ROW]))
            answered = session(given, errors="keep", progress=False)
            decoded = frames.decode(session.outputs, _without_errors(answered))
            answers.write(rows.column(ROW).to_numpy(), decoded.index, decoded.batch.to_table())


def _without_errors(answered: Any) -> Any:
    """The answers in their form without `_error`; a row that has none has nulls, which are no answer."""
    if isinstance(answered, pa.Table):
        return answered.drop_columns([ERROR_COLUMN])
    return answered.drop(columns=[ERROR_COLUMN]) if hasattr(answered, "iloc") else answered.drop(ERROR_COLUMN)


def batch(job: Job) -> None:
    """Run the command."""
    command = [sys.executable, "-m", "parity", "batch", job.handler, str(job.inputs), str(job.output)]
    subprocess.run([*command, "--columns", ROW, *job.options, "--json"], check=True, stdout=sys.stderr)


def online(job: Job) -> None:
    """Start a server, and ask it for everything."""
    from parity_online.process import ServerProcess

    queue = ["--queue-rows", str(2 * _CONNECTIONS * _MOST_ROWS), "--timeout-s", "300"]
    options = [*job.options, "--gate", "off", "--log-level", "warning", *queue]
    with ServerProcess([job.handler, *options]) as server, _Answers(job.output) as answers:
        asyncio.run(_ask(server.url, job, answers))


async def _ask(url: str, job: Job, answers: _Answers) -> None:
    from parity_online.client import Client
    from parity_online.forms import GROUP_FORMS

    loaded, form = load_handler(job.handler), GROUP_FORMS["arrow"]
    random = np.random.default_rng(23)

    async with Client(url, _CONNECTIONS) as client:

        async def asked(rows: pa.Table) -> None:
            decoded = decode_table(loaded.inputs, rows.drop_columns([ROW]))
            sent = form.encode(loaded, decoded.batch)
            reply = await client.send("POST", sent.path, sent.body, sent.headers)
            if reply.status != 200:
                raise RuntimeError(f"the server answered {reply.status}: {reply.body[:500]!r}")
            got = form.decode(loaded, reply)
            failed = {error.row for error in got.errors}
            good = decoded.index[[place not in failed for place in range(decoded.batch.num_rows)]]
            table = pa.table({}) if got.outputs is None else got.outputs.to_table()
            answers.write(rows.column(ROW).to_numpy(), good, table)

        for rows in job.pieces(_TURN_ROWS):
            cuts = np.cumsum(random.integers(1, _MOST_ROWS + 1, rows.num_rows))
            places = [0, *cuts[cuts < rows.num_rows].tolist(), rows.num_rows]
            await asyncio.gather(
                *(asked(rows.slice(start, stop - start)) for start, stop in itertools.pairwise(places))
            )


def ray(job: Job) -> None:
    """Score a Ray dataset."""
    import ray.data

    from parity_ray import score
    from parity_ray.local import local_cluster

    with local_cluster(_cpus() + 1):
        scored = score(ray.data.read_parquet(str(job.inputs)), job.handler, profile=job.chosen, columns=[ROW])
        scored.write_parquet(str(job.output))


def spark(job: Job) -> None:
    """Score a Spark DataFrame, of the same rows in Spark's types."""
    from parity.codec.sparkable import spark_table
    from parity_spark import score
    from parity_spark.local import local_session

    with tempfile.TemporaryDirectory(prefix="spark-rows-", dir=job.output.parent) as scratch:
        for place, rows in enumerate(job.pieces(_CALL_ROWS)):
            pq.write_table(spark_table(rows), Path(scratch, f"rows-{place:06d}.parquet"))
        with local_session() as session:
            scored = score(session.read.parquet(scratch), job.handler, profile=job.chosen, columns=[ROW])
            scored.write.parquet(str(job.output))


JOBS: Final[dict[str, Callable[[Job], None]]] = {
    "notebook": notebook,
    "batch": batch,
    "online": online,
    "ray": ray,
    "spark": spark,
}


class _Answers:
    """Writes the answers of some rows after the other into one file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._path = folder / "answers.parquet"
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.Table] = []
        self._rows = 0

    def __enter__(self) -> _Answers:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def write(self, rows: Any, good: Any, outputs: pa.Table) -> None:
        """Keep the outputs of the rows at `good`; the others failed, and have none."""
        if outputs.num_rows:
            self._held.append(outputs.add_column(0, ROW, pa.array(rows[good])))
            self._rows += outputs.num_rows
        if self._rows >= _CALL_ROWS:
            self._flush()

    def _flush(self) -> None:
        if not self._held:
            return
        table = pa.concat_tables(self._held)
        self._held, self._rows = [], 0
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table)


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


def main(arguments: Sequence[str]) -> None:
    """Do one job."""
    runner, handler, profile, inputs, output, *settings = arguments
    folder = Path(output)
    shutil.rmtree(folder, ignore_errors=True)
    JOBS[runner](Job(handler, profile, tuple(settings), Path(inputs), folder))


if __name__ == "__main__":
    main(sys.argv[1:])
