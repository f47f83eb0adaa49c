"""Planning a job over 1,000,000 Parquet files: time, memory, the manifest's size, `batch status` of it.

A million names and footers are made up, so that the planner itself is measured and no file system: the
footers are copies of one real one. What they leave out, a real listing and footer, is measured beside it on
hard links.
"""

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

FILES, FEW_FILES, REAL_FILES = 1_000_000, 100_000, 20_000
_LINKS = 20_000
"""Names of one file: file systems allow some ten thousand."""

_FOLDER_FILES = 10_000

_PLANNING = """
import json, sys, time
from dataclasses import replace
from pathlib import Path
import pyarrow as pa
from parity_batch import plan
from parity_batch.files import InputFile, find_files
from parity_batch.folder import open_folder
from parity_batch.footers import SourceFile, read_source
from parity_batch.prepared import prepare
from parity_batch.status import status
from parity_batch.summary import peak_rss_bytes
root, made_up, folder_files = Path(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])
seconds, cpu = {}, {}
def timed(what, call):
    started, spent = time.perf_counter(), time.process_time()
    found = call()
    seconds[what], cpu[what] = time.perf_counter() - started, time.process_time() - spent
    return found
prepare(root / "first", sys.argv[2], ["id"], None, None)
before = peak_rss_bytes()
if made_up:
    one = read_source(InputFile(root / "first" / "a.parquet", "a.parquet"), {"id", "x"})
    fields, told = list(one.schema), one.schema.metadata
    def listing(inputs, input_format=None):
        names = (f"{at // folder_files:05d}/{at:07d}.parquet" for at in range(made_up))
        return root / "in", [InputFile(root / "in" / name, name) for name in names]
    def footer(file, columns):
        digest = one.footer_sha256[:32] + one.footer_sha256[32:]  # all objects of its own, as a real one's
        groups = tuple(replace(group) for group in one.row_groups)
        source = SourceFile(file.path, file.name, replace(one.file.stamp))
        return replace(
            one, file=source, footer_sha256=digest, row_groups=groups, schema=pa.schema(fields, metadata=told)
        )
    plan.find_files, plan.read_source = listing, footer
else:
    timed("listing", lambda: find_files([root / "in"]))
ready = timed("plan", lambda: prepare(root / "in", sys.argv[2], ["id"], None, None))
def open_output():
    with open_folder(root / "out", ready.plan, lambda _: ready.manifest(ready.default_rows)) as folder:
        return sum(record is None for record in folder.all_finished(unit.part for unit in ready.plan.units))
assert timed("output", open_output) == len(ready.plan.units)
planned = peak_rss_bytes()
assert timed("output again", open_output) == len(ready.plan.units)
told = timed("status", lambda: status(root / "out"))
assert told.units == len(ready.plan.units)
size = (root / "out" / "_manifest.json").stat().st_size
found = {"seconds": seconds, "cpu": cpu, "units": told.units, "manifest": size}
print(json.dumps({**found, "peak": planned, "before": before, "peak again": peak_rss_bytes()}))
"""


def run(files: int = FILES, few_files: int = FEW_FILES, real_files: int = REAL_FILES) -> dict[str, Any]:
    """What a plan costs for each file: with many and with a tenth of them, and with real ones."""
    real = planned(real_files, real=True)
    few, many = planned(few_files, real=False), planned(files, real=False)
    each, each_of_few = (_planning(found["cpu"]) / n for found, n in ((many, files), (few, few_files)))
    return {
        "bars": [
            {
                "what": f"planning {files:,} files whose names and footers are there, CPU s",
                "value": _planning(many["cpu"]),
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
        **{
            f"{n:,} {kind} files": {
                "seconds": {name: round(spent, 2) for name, spent in found["seconds"].items()},
                "CPU ms a file": {name: round(1000 * spent / n, 3) for name, spent in found["cpu"].items()},
                "peak RSS, MB": round(found["peak"] / 1e6),
                "peak RSS once more, MB": round(found["peak again"] / 1e6),
                "memory a file, bytes": round((found["peak"] - found["before"]) / n),
                "manifest, MB": round(found["manifest"] / 1e6),
            }
            for kind, n, found in (
                ("made-up", files, many),
                ("made-up", few_files, few),
                ("real", real_files, real),
            )
        },
    }


def planned(files: int, *, real: bool) -> dict[str, Any]:
    """What planning a job over so many files took, in a process of its own.

    Real files are few, with many names each: hard links, in folders of 10,000.
    """
    with tempfile.TemporaryDirectory(prefix="parity-bench-") as temporary:
        root = Path(temporary)
        _write(root, files if real else 0)
        made_up = "0" if real else str(files)
        done = subprocess.run(
            [sys.executable, "-c", _PLANNING, str(root), str(HANDLER), made_up, str(_FOLDER_FILES)],
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
