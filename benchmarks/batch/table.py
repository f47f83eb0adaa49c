"""The result as Markdown, and as the bars of `python -m benchmarks`."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.batch.peers import PEERS
from benchmarks.batch.rounds import Contest

BY_HAND_BAR = 0.9
BEGIN, END = "<!-- batch_peers: begin -->", "<!-- batch_peers: end -->"
_TITLES = {
    "table": "{rows:,} rows of 32 float32 and three other columns, a dense network 32-256-256-1",
    "picture": "{rows:,} JPEG files of 640x480, decoded and scored by a small convolutional network",
}


def bars(contests: Sequence[Contest]) -> list[dict[str, Any]]:
    """At least 0.9 of the loop by hand, faster than every other peer, and the same answers."""
    found: list[dict[str, Any]] = []
    for item in contests:
        for peer in PEERS:
            if peer.name not in item.agreement:
                continue
            what = f"{item.workload}: speed as a multiple of {peer.title}"
            bar = BY_HAND_BAR if peer.by_hand else 1.0
            found.append({"what": what, "value": item.speed(peer.name), "bar": bar, "at": "least"})
            agreed = float(item.agreement[peer.name].ok)
            what = f"{item.workload}: {peer.title} has our answers"
            found.append({"what": what, "value": agreed, "bar": 1.0, "at": "least"})
    return found


def markdown(contests: Sequence[Contest], versions: Mapping[str, Mapping[str, str]]) -> str:
    """A table for each workload, with how it was measured."""
    lines = [
        f"Measured on {datetime.datetime.now(datetime.UTC):%Y-%m-%d} on 2 x86 cores, whole processes with "
        "their start-up, as medians of interleaved rounds. *Speed* is `parity batch` as a multiple of the "
        "peer: above 1 it is faster. CPU seconds and memory are of the whole process tree. *Equal* is the "
        "share of scores that are equal to ours bit for bit; all lie within 1e-6.",
    ]
    for item in contests:
        rounds = len(item.measured["parity"])
        title = _TITLES[item.workload].format(rows=item.rows)
        lines += ["", f"**{title}** ({rounds} {'round' if rounds == 1 else 'rounds'})", ""]
        lines += ["| | seconds | CPU seconds | peak MB | speed | equal |", "|---|---:|---:|---:|---:|---:|"]
        titles = {"parity": "`parity batch`"} | {peer.name: peer.title for peer in PEERS}
        for name in sorted(item.measured, key=item.seconds):
            agreement = item.agreement.get(name)
            speed = "" if agreement is None else f"{item.speed(name):.2f}"
            equal = "" if agreement is None else f"{_percent(agreement.equal)} %"
            lines.append(
                f"| {titles[name]} | {item.seconds(name):.1f} | {item.cpu_s(name):.1f} | "
                f"{item.peak_bytes(name) / 1e6:,.0f} | {speed} | {equal} |"
            )
    found = sorted({f"{name} {version}" for each in versions.values() for name, version in each.items()})
    return "\n".join([*lines, "", f"Versions: {', '.join(found)}."])


def write(page: Path, text: str, begin_mark: str = BEGIN, end_mark: str = END) -> None:
    """Put the text between a page's two marks.

    Raises:
        RuntimeError: the page lacks them.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(begin_mark)
    _, end, after = rest.partition(end_mark)
    if not begin or not end:
        raise RuntimeError(f"{page} has no {begin_mark} and {end_mark} to write between")
    page.write_text(f"{before}{begin_mark}\n{text}\n{end_mark}{after}", encoding="utf-8")


def _percent(share: float) -> str:
    """100 only where every row is equal."""
    return "100" if share == 1 else f"{min(share * 100, 99.9):.1f}"
