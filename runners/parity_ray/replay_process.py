"""The process of replays: a local Ray cluster, and the rows of each job through it as a user's job would go.

Run as `python -m parity_ray.replay_process` by `ClusterRunner.replay`.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from parity.distributed.standing import ROW_COLUMN, Job, serve
from parity.registry import load_handler
from parity.stages import TAP_VARIABLE
from parity_ray.local import local_cluster
from parity_ray.scoring import score

FILES = 3


def replayed(job: Job, rows: pa.Table) -> pa.Table:
    """The rows written as Parquet files, read, scored and written by Ray, and read back."""
    import ray.data

    loaded = load_handler(job.handler, app_dir=job.app_dir)
    with tempfile.TemporaryDirectory(prefix="parity-ray-") as temporary:
        inputs, output = Path(temporary, "in"), Path(temporary, "out")
        write_dataset(rows, inputs)
        if rows.num_rows == 0:
            return pa.table({})
        os.environ.pop(TAP_VARIABLE, None)
        if job.tap is not None:
            os.environ[TAP_VARIABLE] = job.tap
        dataset = ray.data.read_parquet(str(inputs))
        scored = score(dataset, loaded, profile=job.to_profile(), columns=[ROW_COLUMN])
        scored.write_parquet(str(output))
        return pa.concat_tables([pq.ParquetFile(path).read() for path in sorted(output.glob("*.parquet"))])


def write_dataset(rows: pa.Table, folder: Path) -> None:
    """The rows and their positions as several files."""
    folder.mkdir()
    numbered = rows.append_column(ROW_COLUMN, pa.array(range(rows.num_rows), pa.int64()))
    size = max(1, -(-rows.num_rows // FILES))
    for start in range(0, rows.num_rows, size):
        pq.write_table(numbered.slice(start, size), folder / f"rows-{start:09d}.parquet")


@contextlib.contextmanager
def start() -> Generator[Callable[[Job, pa.Table], pa.Table]]:
    """A local cluster, and `replayed` on it."""
    with local_cluster():
        yield replayed


if __name__ == "__main__":
    serve(start)
