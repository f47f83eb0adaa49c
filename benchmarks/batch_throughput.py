"""Batch scoring of 2 million rows against a hand-written loop: same model, batch size and one torch thread.

Whole processes are timed, start-up included, in interleaved rounds; a ratio is of the medians of one run.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.batch_data import parity_command, timed, write_features

ROWS, FILES, ROUNDS, BATCH_ROWS = 2_000_000, 4, 3, 1024


def run() -> dict[str, Any]:
    """Rows per second of both, the ratio, and whether the answers are the same."""
    with tempfile.TemporaryDirectory(prefix="parity-bench-") as temporary:
        root = Path(temporary)
        write_features(root / "in", ROWS, FILES)
        by_hand = [
            sys.executable,
            "-m",
            "benchmarks.batch_hand_written",
            str(root / "in"),
            str(root / "hand"),
        ]
        commands = {
            "hand-written": [*by_hand, str(BATCH_ROWS)],
            "parity": parity_command(root / "in", root / "parity"),
            "parity, 1 worker": parity_command(root / "in", root / "parity-1", "--workers", "1"),
        }
        folders = {"hand-written": "hand", "parity": "parity", "parity, 1 worker": "parity-1"}
        walls: dict[str, list[float]] = {name: [] for name in commands}
        rates: dict[str, list[float]] = {name: [] for name in commands}
        said: dict[str, Any] = {}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                shutil.rmtree(root / folders[name], ignore_errors=True)
                seconds, said[name] = timed(command)
                walls[name].append(seconds)
                rates[name].append(said[name]["rows_per_s"])
        scores = [_scores(root / folder) for folder in ("hand", "parity", "parity-1")]
        same = all(other.equals(scores[0]) for other in scores[1:])
    wall = {name: statistics.median(values) for name, values in walls.items()}
    rate = {name: statistics.median(values) for name, values in rates.items()}
    return {
        "bars": [
            {
                "what": "parity / hand-written, rows per second, whole processes",
                "value": wall["hand-written"] / wall["parity"],
                "bar": 0.8,
                "at": "least",
            },
            {"what": "answers equal bit for bit", "value": float(same), "bar": 1.0, "at": "least"},
        ],
        "ratio, start-up left out": round(rate["parity"] / rate["hand-written"], 3),
        "ratio, one worker": round(wall["hand-written"] / wall["parity, 1 worker"], 3),
        "seconds": {name: [round(value, 2) for value in values] for name, values in walls.items()},
        "rows_per_s, start-up left out": {name: round(value) for name, value in rate.items()},
        "parity's steps, seconds over all workers": said["parity"]["step_seconds"],
        "peak RSS, MB": {name: round(said[name]["peak_rss_bytes"] / 1e6) for name in commands},
    }


def _scores(folder: Path) -> Any:
    files = sorted(path for path in folder.iterdir() if path.suffix == ".parquet")
    return pq.ParquetDataset(files).read(columns=["id", "score"]).combine_chunks()
