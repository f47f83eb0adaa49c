"""CPU seconds and peak memory of comparing 10 million rows of 10 columns, in order and by key.

Two pairs of datasets: one identical, and one in which every float differs by 1 to 3 ulp. Each comparison is a
process of its own; its CPU seconds are those of all its threads together, so that they are the wall-clock
time it would take on one core. `python -m benchmarks.compare_speed EXPECTED OBTAINED [KEY]` measures one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROWS, GROUP_ROWS, OTHER_GROUP_ROWS = 10_000_000, 250_000, 300_000
MAX_SECONDS, MAX_BYTES = 10.0, 1 << 30


def run() -> dict[str, Any]:
    """The figures of each kind of comparison, and the bars."""
    with tempfile.TemporaryDirectory(prefix="parity-bench-") as temporary:
        folder = Path(temporary)
        write_pair(folder)
        regroup(folder / "noisy.parquet", folder / "regrouped.parquet")
        shuffle(folder / "noisy.parquet", folder / "shuffled.parquet")
        found = {
            "identical, in order": measure(folder / "plain.parquet", folder / "again.parquet"),
            "every float differs, in order": measure(folder / "plain.parquet", folder / "noisy.parquet"),
            "every float differs, in order, other row groups": measure(
                folder / "plain.parquet", folder / "regrouped.parquet"
            ),
            "every float differs, by key, same order": measure(
                folder / "plain.parquet", folder / "noisy.parquet", "id"
            ),
            "every float differs, by key, shuffled": measure(
                folder / "plain.parquet", folder / "shuffled.parquet", "id"
            ),
        }
    wanted = ["identical, in order", "every float differs, in order"]
    bars: list[dict[str, Any]] = []
    for name in wanted:
        cpu, peak = found[name]["cpu_seconds"], found[name]["peak_rss_bytes"]
        bars.append({"what": f"CPU seconds, {name}", "value": cpu, "bar": MAX_SECONDS, "at": "most"})
        bars.append({"what": f"peak bytes, {name}", "value": peak, "bar": MAX_BYTES, "at": "most"})
    return {"bars": bars, "rows": ROWS, "columns": 10, **found}


def write_pair(folder: Path) -> None:
    """Write plain.parquet, a copy of it as again.parquet, and noisy.parquet."""
    random = np.random.default_rng(7)
    names = ("plain", "again", "noisy")
    writers: list[pq.ParquetWriter] = []
    for start in range(0, ROWS, GROUP_ROWS):
        tables = rows(random, start, GROUP_ROWS)
        if not writers:
            writers = [pq.ParquetWriter(folder / f"{name}.parquet", tables[0].schema) for name in names]
        for writer, table in zip(writers, (tables[0], tables[0], tables[1]), strict=True):
            writer.write_table(table, row_group_size=GROUP_ROWS)
    for writer in writers:
        writer.close()


def rows(random: np.random.Generator, start: int, count: int) -> tuple[pa.Table, pa.Table]:
    """Some rows, and the same rows with noise in every float."""
    ids = np.arange(start, start + count)
    words: Any = pa.array([f"category {number}" for number in range(50)])
    lengths = random.integers(0, 8, count)
    numbers: Any = pa.array(random.integers(0, 2**40, count))
    offsets = pa.array(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]), pa.int32())
    same: dict[str, Any] = {
        "id": ids,
        "count": random.integers(0, 1000, count),
        "label": words.take(pa.array(random.integers(0, 50, count))),
        "text": cast("Any", pc).binary_join_element_wise("text of", numbers.cast(pa.string()), " "),
    }
    floats: dict[str, npt.NDArray[Any]] = {
        "a": random.standard_normal(count, dtype=np.float32),
        "b": random.standard_normal(count, dtype=np.float32),
        "c": random.standard_normal(count),
        "d": random.standard_normal(count),
        "scores": random.random(int(lengths.sum()), dtype=np.float32) + np.float32(0.1),
        "box": random.random(4 * count, dtype=np.float32) + np.float32(0.1),
    }

    def table(values: dict[str, npt.NDArray[Any]]) -> pa.Table:
        lists: dict[str, Any] = {
            "scores": pa.ListArray.from_arrays(offsets, pa.array(values["scores"])),
            "box": pa.FixedSizeListArray.from_arrays(pa.array(values["box"]), 4),
        }
        columns: Any = {**same, **values, **lists}
        return pa.table(columns)

    noise = {
        name: values + random.integers(1, 4, len(values)).astype(values.dtype) * np.spacing(values)
        for name, values in floats.items()
    }
    return table(floats), table(noise)


def regroup(source: Path, target: Path) -> None:
    """The same rows in row groups of another length."""
    with pq.ParquetFile(source) as file, pq.ParquetWriter(target, file.schema_arrow) as writer:
        for batch in file.iter_batches(OTHER_GROUP_ROWS):
            writer.write_batch(batch, row_group_size=OTHER_GROUP_ROWS)


def shuffle(source: Path, target: Path) -> None:
    """The same rows in random order."""
    table = pq.read_table(source)
    order = np.random.default_rng(3).permutation(table.num_rows)
    pq.write_table(table.take(order), target, row_group_size=GROUP_ROWS)


def measure(expected: Path, obtained: Path, key: str = "") -> dict[str, Any]:
    """What one comparison took, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.compare_speed", str(expected), str(obtained)]
    done = subprocess.run(
        [*command, *([key] if key else [])],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent,
    )
    return json.loads(done.stdout)


def compare_here(expected: str, obtained: str, key: str = "") -> dict[str, Any]:
    """Compare in this process, and tell what it has taken since it started."""
    import gc

    from parity.compare import compare_datasets

    gc.freeze()
    started = time.perf_counter()
    found = compare_datasets(expected, obtained, key=key or None)
    if not found or found.rows != ROWS:
        raise RuntimeError(f"{expected} and {obtained}: {found.summary()}")
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return {
        "verdict": found.verdict,
        "cpu_seconds": round(time.process_time(), 2),
        "wall_seconds": round(time.perf_counter() - started, 2),
        "peak_rss_bytes": int(peak.split()[1]) * 1024,
    }


if __name__ == "__main__":
    print(json.dumps(compare_here(*sys.argv[1:])))
