"""Online: requests per second with preprocess on workers of its own over one thread for all stages.

The handler photo_quality decodes and scales photos, most of which releases the GIL, and then measures them.
One photo of 1280 pixels a request as JSON, 16 connections, closed loop. Rounds alternate between the servers,
which run one at a time; the ratio is of the medians. The bar needs two cores: on one nothing can overlap.
"""

from __future__ import annotations

import base64
import io
import json
import statistics
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from PIL import Image

from benchmarks.servers import ROOT, bar, load, metric, parity_server

ROUNDS = 3
SECONDS = 4.0
CONNECTIONS = 16
SIDE = 1280
KINDS = (" jpeg", " progressive", " full chroma", " blurred", " dark", " bright")
"""The photos of the sample that are whole."""

WAYS: dict[str, tuple[str, ...]] = {
    "one thread": (),
    "1 worker": ("--preprocess-workers", "1"),
    "2 workers": ("--preprocess-workers", "2"),
    "3 workers": ("--preprocess-workers", "3"),
}


def run() -> dict[str, object]:
    """The figures, and the bars they are held to."""
    speeds: dict[str, list[float]] = {name: [] for name in WAYS}
    latencies: dict[str, list[float]] = {name: [] for name in WAYS}
    rows: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        bodies = _bodies(Path(folder) / "bodies.jsonl")
        for _ in range(ROUNDS):
            for name, options in WAYS.items():
                with parity_server(*options, handler="handlers/photo_quality") as url:
                    target = f"{url}/predictions/photo_quality"
                    load(target, bodies, CONNECTIONS, 1.0)
                    found = load(target, bodies, CONNECTIONS, SECONDS)
                    speeds[name].append(found["rps"])
                    latencies[name].append(found["p99_ms"])
                    rows[name] = metric(url, "parity_batch_rows_sum") / metric(url, "parity_batch_rows_count")
    median = {name: statistics.median(found) for name, found in speeds.items()}
    return {
        "rps": median,
        "p99_ms": {name: statistics.median(found) for name, found in latencies.items()},
        "mean_batch": rows,
        "bars": [
            bar(
                "requests/s with 2 workers over one thread's",
                median["2 workers"] / median["one thread"],
                1.15,
            ),
        ],
    }


def _bodies(path: Path) -> Path:
    table = pq.read_table(ROOT / "data" / "photo_quality" / "photo_quality-0.parquet")
    rows = [row for row in table.to_pylist() if row["made"].endswith(KINDS)]
    lines = [json.dumps({"photo": base64.b64encode(_enlarged(row["photo"])).decode()}) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _enlarged(photo: bytes) -> bytes:
    """The photo as a camera might have taken it."""
    image = Image.open(io.BytesIO(photo))
    height = round(SIDE * image.height / image.width)
    sink = io.BytesIO()
    image.convert("RGB").resize((SIDE, height), Image.Resampling.BICUBIC).save(sink, "JPEG", quality=85)
    return sink.getvalue()


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
