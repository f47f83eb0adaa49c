"""CPU seconds that a million rows cost `parity batch`, and that any job costs, by jobs of two sizes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.batch.data import dataset

HANDLERS = Path(__file__).parent / "batch" / "handlers"
SIZES = {"table": (50_000, 1_000_000), "picture": (200, 2_000)}
ROUNDS = 3
_MOST = {"table": 30.0, "picture": 15_000.0}
_MOST_FIXED_S = 10.0


def run(rounds: int = ROUNDS) -> dict[str, Any]:
    """CPU seconds a million rows, the slope between the two sizes, and of a job without rows.

    Both are of the least that a job took in so many rounds. User and system time of all processes count.
    """
    bars: list[dict[str, Any]] = []
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="parity-bench-") as temporary:
        root = Path(temporary)
        for workload, sizes in SIZES.items():
            inputs = [dataset(root / "data", workload, rows) for rows in sizes]
            taken: list[list[float]] = [[], []]
            for turn in range(rounds):
                for position, folder in enumerate(inputs):
                    taken[position].append(_cpu_s(workload, folder, root / f"{workload}-{position}-{turn}"))
            few, many = map(min, taken)
            each = (many - few) / (sizes[1] - sizes[0])
            fixed = few - each * sizes[0]
            for what, value, most in (
                (f"{workload}: CPU s a million rows", each * 1e6, _MOST[workload]),
                (f"{workload}: CPU s of a job without rows", fixed, _MOST_FIXED_S),
            ):
                bars.append({"what": what, "value": value, "bar": most, "at": "most"})
            told[f"{workload}: CPU s of {sizes[0]:,} and of {sizes[1]:,} rows, median"] = [
                round(statistics.median(found), 2) for found in taken
            ]
    return {"bars": bars, **told}


def _cpu_s(workload: str, inputs: Path, output: Path) -> float:
    """The CPU seconds of one job and of the processes that it started and waited for."""
    where = [str(HANDLERS / workload), str(inputs), str(output), "--columns", "id"]
    command = [sys.executable, "-m", "parity", "batch", *where]
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said) as process,
    ):
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}\n{said.read()}")
    return used.ru_utime + used.ru_stime
