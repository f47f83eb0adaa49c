"""Capture: requests per second of a server that records a tenth of them, or all, over one that records none.

One JSON row of 32 floats a request, 32 connections, closed loop; rounds alternate. Bars: at least 0.9 of the
rate while a tenth is recorded, 0.7 while all is, and no request is slowed for a full queue: what is not
recorded is counted as lost.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import pyarrow.dataset as ds

from benchmarks.servers import bar, load, metric, parity_server, write_bodies

ROUNDS = 3
SECONDS = 3.0
SHARES = {"none": None, "a tenth": 0.1, "all": 1.0}


def run() -> dict[str, object]:
    """The figures, and the bars they are held to."""
    rates: dict[str, list[float]] = {share: [] for share in SHARES}
    lost = dict.fromkeys(SHARES, 0.0)
    on_disk = dict.fromkeys(SHARES, 0)
    with tempfile.TemporaryDirectory() as folder:
        bodies = write_bodies(Path(folder) / "bodies.jsonl")
        for turn in range(ROUNDS):
            for share, sample in SHARES.items():
                captured = Path(folder) / f"{share}-{turn}"
                options = (
                    () if sample is None else ("--capture", str(captured), "--capture-sample", str(sample))
                )
                with parity_server(*options) as url:
                    target = f"{url}/predictions/tabular"
                    load(target, bodies, 32, 1.0)
                    rates[share].append(load(target, bodies, 32, SECONDS)["rps"])
                    if sample is not None:
                        lost[share] += metric(url, "parity_capture_lost_rows_total")
                if sample is not None:
                    on_disk[share] += ds.dataset(
                        captured, format="parquet", exclude_invalid_files=True
                    ).count_rows()
    none = statistics.median(rates["none"])
    ratios = {share: statistics.median(found) / none for share, found in rates.items()}
    return {
        "rps": {share: statistics.median(found) for share, found in rates.items()},
        "rows_on_disk": on_disk,
        "rows_lost": lost,
        "bars": [
            bar("requests/s while a tenth is recorded over none", ratios["a tenth"], 0.9),
            bar("requests/s while all are recorded over none", ratios["all"], 0.7),
        ],
    }
