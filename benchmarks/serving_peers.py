"""Online: requests/s and latencies against LitServe, BentoML, Ray Serve, Mosec, MLServer and plain FastAPI.

`python -m benchmarks serving_peers` makes an environment for each peer (some gigabytes, kept for the next
run), then runs ours and every peer in interleaved rounds: the same plain torch module, one model process, a
closed loop of 8, 32 and 64 connections from a process of its own, every answer checked; see
`benchmarks.serving`.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.batch.table import write
from benchmarks.environments import TORCH, Environments, chosen
from benchmarks.serving.contest import LOOP, OURS, Contest, contest
from benchmarks.serving.peers import PEERS

ASKED_ONLY = True
LOOP_BAR = 0.9
_PAGE = Path(__file__).parent.parent / "docs" / "reference" / "benchmarks.md"
_CACHE = Path(__file__).parent / "out" / "serving_peers"
_SECONDS = {"vector": 2.0, "picture": 4.0}
_WORKLOADS = {
    "vector": "JSON rows of 32 numbers, a dense network 32-256-256-1",
    "picture": "JPEG files of 640x480, decoded and scored by a small convolutional network",
}


def run(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """The workloads that are asked for; the bars, and everything that was measured."""
    asked = _asked(arguments)
    environments = Environments(asked.cache / "environments")
    peers = [peer for peer in PEERS if peer.name in asked.peers]
    versions: dict[str, str] = {}
    for peer in peers:
        environments.make(peer.name, peer.packages)
        versions |= environments.versions(peer.name, [TORCH, peer.packages[0]])
    if asked.setup_only:
        return {"bars": [], "versions": versions}
    found: list[Contest] = []
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=asked.cache) as scratch:
        for workload in asked.workloads:
            place = Path(scratch) / workload
            place.mkdir()
            seconds = asked.seconds or _SECONDS[workload]
            found.append(contest(workload, peers, environments, asked.rounds, seconds, place))
    for item in found:
        text = markdown(item, versions)
        print(text)
        if asked.docs:
            write(_PAGE, text, *marks(item.workload))
    measured = {item.workload: {"runs": item.runs, "loop_rps": item.loop_rps} for item in found}
    return {"bars": [bar for item in found for bar in bars(item)], "versions": versions, **measured}


def marks(workload: str) -> tuple[str, str]:
    """Between which a workload's table is written."""
    return f"<!-- serving_peers {workload}: begin -->", f"<!-- serving_peers {workload}: end -->"


def bars(item: Contest) -> list[dict[str, Any]]:
    """More requests and a lower p99 than every peer at every concurrency, and no wrong answer from us."""
    found: list[dict[str, Any]] = []
    for peer in (peer for peer in PEERS if peer.name in item.runs):
        for number in item.runs[OURS]:
            where = f"{item.workload}, {number} connections"
            rate = item.median(OURS, number, "rps") / max(item.median(peer.name, number, "rps"), 1e-9)
            found.append(_bar(f"{where}: requests/s over {peer.title}'s", rate, 1.0))
            p99 = item.median(peer.name, number, "p99_ms") / item.median(OURS, number, "p99_ms")
            found.append(_bar(f"{where}: {peer.title}'s p99 over ours", p99, 1.0))
    found.append(_bar(f"{item.workload}: our answers that are right", float(not item.wrong(OURS)), 1.0))
    if item.workload == "picture":
        best = max(item.median(OURS, number, "rps") for number in item.runs[OURS])
        found.append(_bar("picture: requests/s over the loop's", best / _loop_rps(item), LOOP_BAR))
    return found


def markdown(item: Contest, versions: Mapping[str, str]) -> str:
    """A table, with how it was measured."""
    numbers = list(item.runs[OURS])
    rounds = len(item.runs[OURS][numbers[0]])
    titles = {OURS: "`parity serve`"} | {peer.name: peer.title for peer in PEERS}
    heads = " | ".join(f"{number}: requests/s | p50 ms | p99 ms" for number in numbers)
    date = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    lines = [
        f"**{_WORKLOADS[item.workload]}** ({date}, 2 x86 cores, medians of {rounds} "
        f"{'round' if rounds == 1 else 'rounds'}; *times*: our requests/s over theirs)",
        "",
        f"| | {heads} | times | wrong |",
        f"|---|{'---:|' * (3 * len(numbers) + 2)}",
    ]
    for name in sorted(item.runs, key=lambda name: -item.median(name, numbers[-1], "rps")):
        cells = [
            f"{item.median(name, number, 'rps'):,.0f} | {item.median(name, number, 'p50_ms'):.1f} | "
            f"{item.median(name, number, 'p99_ms'):.1f}"
            for number in numbers
        ]
        ratios = [
            item.median(OURS, number, "rps") / max(item.median(name, number, "rps"), 1e-9)
            for number in numbers
        ]
        times = "" if name == OURS else f"{min(ratios):.1f} to {max(ratios):.1f}"
        lines.append(f"| {titles[name]} | {' | '.join(cells)} | {times} | {item.wrong(name)} |")
    told = ", ".join(sorted(f"{name} {version}" for name, version in versions.items()))
    lines += [
        "",
        f"A {LOOP} in one thread, without a server: {_loop_rps(item):,.0f} rows/s. Versions: {told}.",
    ]
    return "\n".join(lines)


def _loop_rps(item: Contest) -> float:
    return sorted(item.loop_rps)[len(item.loop_rps) // 2]


def _bar(what: str, value: float, limit: float) -> dict[str, Any]:
    return {"what": what, "value": value, "bar": limit, "at": "least"}


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    known = [peer.name for peer in PEERS]
    parser = argparse.ArgumentParser("python -m benchmarks serving_peers")
    parser.add_argument("--peers", default=",".join(known), help="which, of %(default)s")
    parser.add_argument("--workloads", default=",".join(_WORKLOADS), help="which, of %(default)s")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="of each run: 2 for vector, 4 for picture")
    parser.add_argument("--cache", type=Path, default=_CACHE, help="folder of environments")
    parser.add_argument("--setup-only", action="store_true", help="make the environments, run nothing")
    parser.add_argument("--docs", action="store_true", help=f"write the tables into {_PAGE.name}")
    return chosen(parser, arguments, {"peers": known, "workloads": list(_WORKLOADS)})
