"""Peak memory of a batch job over 2 and over 8 million rows: it must not follow the number of rows."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.batch_data import parity_command, timed, write_features

SMALL_ROWS, LARGE_ROWS, FILES = 2_000_000, 8_000_000, 4


def run() -> dict[str, Any]:
    """Peak resident memory of both, and their ratio."""
    peaks: dict[int, int] = {}
    for rows in (SMALL_ROWS, LARGE_ROWS):
        with tempfile.TemporaryDirectory(prefix="parity-bench-") as temporary:
            root = Path(temporary)
            write_features(root / "in", rows, FILES)
            _, said = timed(parity_command(root / "in", root / "out"))
            peaks[rows] = said["peak_rss_bytes"]
    return {
        "bars": [
            {
                "what": "peak memory, 8 million rows / 2 million rows",
                "value": peaks[LARGE_ROWS] / peaks[SMALL_ROWS],
                "bar": 1.15,
                "at": "most",
            }
        ],
        "peak RSS, MB": {f"{rows:,} rows": round(peak / 1e6) for rows, peak in peaks.items()},
    }
