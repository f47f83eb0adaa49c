"""Batch scoring against Polars, DuckDB, Daft, Ray Data, Spark, MLflow, datasets, pandas and a loop by hand.

`python -m benchmarks batch_peers` makes an environment for each peer (some gigabytes, kept for the next run)
and both datasets, then runs ours and every peer as whole processes in interleaved rounds; see
`benchmarks.batch`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.batch.data import dataset
from benchmarks.batch.peers import PEERS
from benchmarks.batch.rounds import contest
from benchmarks.batch.table import bars, markdown, write
from benchmarks.environments import TORCH, Environments, chosen

ASKED_ONLY = True
_PAGE = Path(__file__).parent.parent / "docs" / "reference" / "benchmarks.md"
_CACHE = Path(__file__).parent / "out" / "batch_peers"


def run(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Both workloads; the bars, and everything that was measured."""
    asked = _asked(arguments)
    environments = Environments(asked.cache / "environments")
    peers = [peer for peer in PEERS if peer.name in asked.peers]
    rows_of = {"table": asked.rows, "picture": asked.pictures}
    inputs = {name: dataset(asked.cache / "data", name, rows_of[name]) for name in asked.workloads}
    versions: dict[str, dict[str, str]] = {}
    for peer in peers:
        environments.make(peer.environment, peer.packages)
        versions[peer.name] = environments.versions(peer.environment, [TORCH, *peer.packages])
    if asked.setup_only:
        return {"bars": [], "versions": versions}
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=asked.cache) as scratch:
        found = [
            contest(name, inputs[name], peers, environments, asked.rounds, Path(scratch)) for name in inputs
        ]
    text = markdown(found, versions)
    print(text)
    if asked.docs:
        write(_PAGE, text)
    measured = {item.workload: {name: _told(item.measured[name]) for name in item.measured} for item in found}
    return {"bars": bars(found), "versions": versions, **measured}


def _told(rounds: Sequence[Any]) -> dict[str, list[float]]:
    return {
        "seconds": [round(took.seconds, 2) for took in rounds],
        "cpu_s": [round(took.cpu_s, 2) for took in rounds],
        "peak_mb": [round(took.peak_bytes / 1e6) for took in rounds],
    }


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    known = [peer.name for peer in PEERS]
    parser = argparse.ArgumentParser("python -m benchmarks batch_peers")
    parser.add_argument("--peers", default=",".join(known), help="which, of %(default)s")
    parser.add_argument("--workloads", default="table,picture", help="which, of %(default)s")
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of the table")
    parser.add_argument("--pictures", type=int, default=2_000, help="JPEG files")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache", type=Path, default=_CACHE, help="folder of environments and data")
    parser.add_argument("--setup-only", action="store_true", help="make environments and data, run nothing")
    parser.add_argument("--docs", action="store_true", help=f"write the tables into {_PAGE.name}")
    return chosen(parser, arguments, {"peers": known, "workloads": ["table", "picture"]})
