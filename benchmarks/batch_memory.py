"""Peak memory of batch jobs: row groups of 1 and 2 GB, 10,000 tiny files, and 10 times the rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.batch_data import WIDTH, parity_command, timed, write_features

ROWS, FILES = 1_000_000, 4
GROUP_ROWS, GROUP_MB, TINY_FILES = 2_000_000, 1000, 10_000
_PAYLOAD_BYTES = 350
_CHUNK_ROWS = 50_000
LIMIT_MB = 700


def run(rows: int = ROWS, group_mb: int = GROUP_MB, tiny_files: int = TINY_FILES) -> dict[str, Any]:
    """Peak resident memory of each job against the limit, and of 10 times the rows against once.

    Args:
        rows: the rows of the small job of two that differ only in their number.
        group_mb: the size of the single row group; another job has one of twice that.
        tiny_files: the files of ten rows.
    """
    made: dict[str, Callable[[Path], None]] = {
        f"one row group of {group_mb:,} MB": lambda folder: _one_row_group(folder, group_mb),
        f"one row group of {2 * group_mb:,} MB": lambda folder: _one_row_group(folder, 2 * group_mb),
        f"{tiny_files:,} files of 10 rows": lambda folder: _tiny(folder, tiny_files),
        f"{rows:,} rows": lambda folder: write_features(folder, rows, FILES),
        f"{10 * rows:,} rows": lambda folder: write_features(folder, 10 * rows, FILES),
    }
    found = {what: _job(write) for what, write in made.items()}
    peaks = {what: said["peak_rss_bytes"] / 1e6 for what, (_, said) in found.items()}
    small, large = list(peaks.values())[-2:]
    bars = [
        {"what": f"{what}, peak MB", "value": peak, "bar": LIMIT_MB, "at": "most"}
        for what, peak in peaks.items()
    ]
    bars.append(
        {"what": "peak memory, 10 x the rows / 1 x", "value": large / small, "bar": 1.1, "at": "most"}
    )
    return {
        "bars": bars,
        "seconds": {what: round(seconds, 1) for what, (seconds, _) in found.items()},
        "rows/s": {what: round(said["rows_per_s"]) for what, (_, said) in found.items()},
    }


def _job(write: Callable[[Path], None]) -> tuple[float, dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="parity-bench-") as temporary:
        root = Path(temporary)
        write(root / "in")
        return timed(parity_command(root / "in", root / "out"))


def _one_row_group(folder: Path, size_mb: int) -> None:
    """One row group of so many megabytes: what the handler reads, and a payload that it does not."""
    folder.mkdir()
    rows = size_mb * GROUP_ROWS // GROUP_MB
    fields = [
        ("id", pa.int64()),
        ("x", pa.list_(pa.float32(), WIDTH)),
        ("payload", pa.binary(_PAYLOAD_BYTES)),
    ]
    schema = pa.schema(fields)
    rng = np.random.default_rng(3)
    batches: list[pa.RecordBatch] = []
    for first in range(0, rows, _CHUNK_ROWS):
        count = min(_CHUNK_ROWS, rows - first)
        x: Any = pa.array(rng.standard_normal(count * WIDTH, dtype=np.float32))
        payload = pa.py_buffer(rng.bytes(count * _PAYLOAD_BYTES))
        arrays: list[Any] = [
            pa.array(np.arange(first, first + count)),
            pa.FixedSizeListArray.from_arrays(x, WIDTH),
            pa.FixedSizeBinaryArray.from_buffers(schema.field("payload").type, count, [None, payload]),
        ]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    table = pa.Table.from_batches(batches)
    pq.write_table(table, folder / "one.parquet", compression="none", row_group_size=rows)
    assert pq.ParquetFile(folder / "one.parquet").num_row_groups == 1


def _tiny(folder: Path, files: int) -> None:
    folder.mkdir()
    rows = pa.table(
        {
            "id": pa.array(range(10)),
            "x": pa.array([[0.5] * WIDTH] * 10, pa.list_(pa.float32(), WIDTH)),
        }
    )
    for position in range(files):
        pq.write_table(rows, folder / f"{position:05d}.parquet")
