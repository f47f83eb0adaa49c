"""Online: requests per second against a plain FastAPI endpoint that calls the same model row by row.

One JSON row of 32 floats a request, 32 connections, closed loop. Rounds alternate between the servers, which
run one at a time; the ratio is of the medians. Bars: at least 3 times the faster of the two plain endpoints,
a mean batch above 8 rows, and, with one connection, at most `max_delay` plus 2 ms more than the plain one.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from benchmarks.servers import bar, load, metric, parity_server, plain_server, write_bodies

ROUNDS = 5
SECONDS = 3.0
MAX_DELAY_MS = 5.0


def run() -> dict[str, object]:
    """The figures, and the bars they are held to."""
    with tempfile.TemporaryDirectory() as folder:
        bodies = write_bodies(Path(folder) / "bodies.jsonl")
        ours: list[float] = []
        plain: dict[str, list[float]] = {"async": [], "def": []}
        lone: dict[str, list[float]] = {"parity": [], "delayed": [], "async": []}
        batches: list[float] = []
        for _ in range(ROUNDS):
            with parity_server() as url:
                target = f"{url}/predictions/tabular"
                load(target, bodies, 32, 1.0)
                before = metric(url, "parity_batch_rows_sum"), metric(url, "parity_batch_rows_count")
                ours.append(load(target, bodies, 32, SECONDS)["rps"])
                after = metric(url, "parity_batch_rows_sum"), metric(url, "parity_batch_rows_count")
                batches.append((after[0] - before[0]) / (after[1] - before[1]))
                lone["parity"].append(load(target, bodies, 1, 1.0)["p50_ms"])
            with parity_server("--max-delay-ms", str(MAX_DELAY_MS)) as url:
                lone["delayed"].append(load(f"{url}/predictions/tabular", bodies, 1, 1.0)["p50_ms"])
            with plain_server() as url:
                for kind, figures in plain.items():
                    load(f"{url}/{kind}", bodies, 32, 1.0)
                    figures.append(load(f"{url}/{kind}", bodies, 32, SECONDS)["rps"])
                lone["async"].append(load(f"{url}/async", bodies, 1, 1.0)["p50_ms"])
    best_plain = max(statistics.median(figures) for figures in plain.values())
    ratio = statistics.median(ours) / best_plain
    mean_batch = statistics.median(batches)
    alone = {kind: statistics.median(figures) for kind, figures in lone.items()}
    return {
        "parity_rps": statistics.median(ours),
        "plain_async_rps": statistics.median(plain["async"]),
        "plain_def_rps": statistics.median(plain["def"]),
        "ratio": ratio,
        "mean_batch": mean_batch,
        "lone_parity_ms": alone["parity"],
        "lone_plain_ms": alone["async"],
        "lone_delayed_ms": alone["delayed"],
        "bars": [
            bar("requests/s over the faster plain endpoint's", ratio, 3),
            bar("mean rows of a batch at 32 connections", mean_batch, 8),
            bar("ms that a lone request takes longer", alone["parity"] - alone["async"], 2, at="most"),
            bar(
                f"and with a max delay of {MAX_DELAY_MS:g} ms",
                alone["delayed"] - alone["async"],
                MAX_DELAY_MS + 2,
                at="most",
            ),
        ],
    }


if __name__ == "__main__":
    import json

    print(json.dumps(run(), indent=2))
