"""Planning a job over 1,000,000 Parquet files: time, memory, the manifest's size, `batch status` of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.batch_data import HANDLER, WIDTH

FILES, FEW_FILES = 1_000_000, 100_000
_LINKS = 20_000
"""Names of one file: file systems allow some ten thousand."""

_FOLDER_FILES = 10_000

_PLANNING = """
import json, sys, time
from pathlib import Path
from parity_batch.files import find_files
from parity_batch.folder import open_folder
from parity_batch.prepared import prepare
from parity_batch.status import status
from parity_batch.summary import peak_rss_bytes
root = Path(sys.argv[1])
seconds, cpu = {}, {}
def timed(what, call):
    started, spent = time.perf_counter(), time.process_time()
    found = call()
    seconds[what], cpu[what] = time.perf_counter() - started, time.process_time() - spent
    return found
prepare(root / "first", sys.argv[2], ["id"], None, None)
before = peak_rss_bytes()
timed("listing", lambda: find_files([root / "in"]))
ready = timed("plan", lambda: prepare(root / "in", sys.argv[2], ["id"], None, None))
def open_output():
    with open_folder(root / "out", ready.plan, ready.manifest) as folder:
        return sum(record is None for record in folder.all_finished(unit.part for unit in ready.plan.units))
assert timed("output", open_output) == len(ready.plan.units)
planned = peak_rss_bytes()
assert timed("output again", open_output) == len(ready.plan.units)
told = timed("status", lambda: status(root / "out"))
assert told.units == len(ready.plan.units)
size = (root / "out" / "_manifest.json").stat().st_size
found = {"seconds": seconds, "cpu": cpu, "units": told.units, "manifest": size}
print(json.dumps({**found, "peak": planned, "before": before}))
"""


def run(files: int = FILES, few_files: int = FEW_FILES) -> dict[str, Any]:
    """What a plan costs for each file, with many and with a tenth of them."""
    many, few = planned(files), planned(few_files)
    each, each_of_few = (_planning(found["cpu"]) / n for found, n in ((many, files), (few, few_files)))
    return {
        "bars": [
            {
                "what": f"planning {files:,} files, s",
                "value": _planning(many["seconds"]),
                "bar": 600,
                "at": "most",
            },
            {
                "what": f"CPU time a file, {files:,} files / {few_files:,} files",
                "value": each / each_of_few,
                "bar": 1.5,
                "at": "most",
            },
            {
                "what": "memory of the plan, bytes a file",
                "value": (many["peak"] - many["before"]) / files,
                "bar": 4096,
                "at": "most",
            },
        ],
        "seconds": {name: round(spent, 2) for name, spent in many["seconds"].items()},
        "CPU seconds": {name: round(spent, 2) for name, spent in many["cpu"].items()},
        f"CPU seconds, {few_files:,} files": {name: round(spent, 2) for name, spent in few["cpu"].items()},
        "peak RSS, MB": round(many["peak"] / 1e6),
        "manifest, MB": round(many["manifest"] / 1e6),
    }


def planned(files: int) -> dict[str, Any]:
    """What planning a job over so many files took, in a process of its own.

    A few real files have many names each: hard links, in folders of 10,000.
    """
    with tempfile.TemporaryDirectory(prefix="parity-bench-") as temporary:
        root = Path(temporary)
        _write(root, files)
        done = subprocess.run(
            [sys.executable, "-c", _PLANNING, str(root), str(HANDLER)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["units"] == files
        return found


def _planning(seconds: dict[str, float]) -> float:
    return seconds["plan"] + seconds["output"]


def _write(root: Path, files: int) -> None:
    item = pa.field("item", pa.float32(), nullable=False)
    schema = pa.schema([("id", pa.int64()), ("x", pa.list_(item, WIDTH))])
    x: Any = pa.FixedSizeListArray.from_arrays(
        pa.array([0.5] * WIDTH, pa.float32()), type=schema.field(1).type
    )
    rows = pa.table([pa.array([1]), x], schema=schema)
    (root / "first").mkdir()
    pq.write_table(rows, root / "first" / "a.parquet")
    source = root / "source"
    for position in range(files):
        if position % _LINKS == 0:
            source = root / f"source-{position}.parquet"
            pq.write_table(rows, source)
        folder = root / "in" / f"{position // _FOLDER_FILES:05d}"
        if position % _FOLDER_FILES == 0:
            folder.mkdir(parents=True)
        os.link(source, folder / f"{position:07d}.parquet")
