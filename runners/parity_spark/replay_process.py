"""The process of replays: a local Spark, and the rows of each job through it as a user's job would go.

Run as `python -m parity_spark.replay_process` by `ClusterRunner.replay`.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import urllib.parse
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from parity.codec.sparkable import spark_table
from parity.distributed.standing import ROW_COLUMN, Job, serve
from parity.registry import load_handler
from parity.stages import TAP_VARIABLE
from parity_spark.local import local_session
from parity_spark.scoring import FILE_COLUMN, score

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 3


def replayed(session: SparkSession, job: Job, rows: pa.Table) -> pa.Table:
    """The rows written as Parquet in Spark's types, read, scored and written by Spark, and read back."""
    if rows.num_rows == 0:
        return pa.table({})
    os.environ.pop(TAP_VARIABLE, None)
    if job.tap is not None:
        os.environ[TAP_VARIABLE] = job.tap
    loaded = load_handler(job.handler, app_dir=job.app_dir)
    with tempfile.TemporaryDirectory(prefix="parity-spark-") as temporary:
        inputs, output = Path(temporary, "in"), Path(temporary, "out")
        starts = write_dataset(spark_table(rows), inputs)
        dataframe = session.read.parquet(str(inputs))
        scored = score(dataframe, loaded, profile=job.to_profile(), columns=[], identity=True)
        scored.write.parquet(str(output))
        answers = pa.concat_tables(
            [pq.ParquetFile(path).read() for path in sorted(output.glob("part-*.parquet"))]
        )
    files: list[Any] = answers.column(FILE_COLUMN).to_pylist()
    rows_of_files: list[Any] = answers.column(ROW_COLUMN).to_pylist()
    places = [starts[_file_name(url)] + row for url, row in zip(files, rows_of_files, strict=True)]
    where = answers.column_names.index(ROW_COLUMN)
    return answers.set_column(where, ROW_COLUMN, pa.array(places, pa.int64())).drop_columns([FILE_COLUMN])


def write_dataset(rows: pa.Table, folder: Path) -> dict[str, int]:
    """The rows as several files; the position of the first row of each by its name."""
    folder.mkdir()
    size = max(1, -(-rows.num_rows // FILES))
    starts: dict[str, int] = {}
    for start in range(0, rows.num_rows, size):
        name = f"rows-{start:09d}.parquet"
        pq.write_table(rows.slice(start, size), folder / name)
        starts[name] = start
    return starts


def _file_name(url: str) -> str:
    return urllib.parse.unquote(urllib.parse.urlsplit(url).path).rpartition("/")[2]


@contextlib.contextmanager
def start() -> Generator[Callable[[Job, pa.Table], pa.Table]]:
    """A local Spark, and `replayed` in it."""
    with local_session() as session:
        yield lambda job, rows: replayed(session, job, rows)


if __name__ == "__main__":
    serve(start)
