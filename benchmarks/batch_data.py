"""Tabular datasets for the batch benchmarks, written in chunks, and batch jobs run as processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WIDTH = 32
ROW_GROUP_ROWS = 100_000
HANDLER = Path(__file__).parent / "handlers" / "tabular"


def write_features(folder: Path, rows: int, files: int) -> None:
    """`rows` rows of an int64 `id` and 32 float32 `x`, zstd, in `files` files with row groups of 100,000."""
    folder.mkdir(parents=True)
    item = pa.field("item", pa.float32(), nullable=False)
    schema = pa.schema([("id", pa.int64()), ("x", pa.list_(item, WIDTH))])
    rng = np.random.default_rng(7)
    first = 0
    for position in range(files):
        last = rows * (position + 1) // files
        with pq.ParquetWriter(
            folder / f"features-{position:02d}.parquet", schema, compression="zstd"
        ) as writer:
            while first < last:
                count = min(ROW_GROUP_ROWS, last - first)
                values = rng.standard_normal(count * WIDTH, dtype=np.float32)
                x = pa.FixedSizeListArray.from_arrays(pa.array(values), type=schema.field("x").type)
                ids = pa.array(np.arange(first, first + count))
                writer.write_table(pa.table([ids, x], schema=schema), row_group_size=ROW_GROUP_ROWS)
                first += count


def parity_command(inputs: Path, output: Path, *options: str) -> list[str]:
    """The command that scores the features and passes `id` through."""
    where = [str(HANDLER), str(inputs), str(output), "--columns", "id", "--json"]
    return [sys.executable, "-m", "parity", "batch", *where, *options]


def timed(command: list[str]) -> tuple[float, dict[str, Any]]:
    """How many seconds a process took, and the JSON object that it printed."""
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}\n{done.stderr}")
    return seconds, json.loads(done.stdout)
