"""The main job end to end on real data: score, serve, call from a notebook, and prove that all of it agrees.

Run as `make demo`. For each example handler it

1. scores the committed sample of real rows with the batch runner,
2. sends the same rows, one request each and many at a time, to a real server,
3. calls the notebook runner with the same rows as a pandas DataFrame,
4. compares the three with each other, row by row, labels exactly,
5. runs `parity check`: the recorded goldens through every runner, and the laws.

It leaves the scored files and one HTML report for each handler in demo/out/, prints a table, and exits with 1
when anything disagrees.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

import parity_notebook
from parity.compare import Comparison, Tolerances, compare
from parity.report.words import percent

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "demo" / "out"
HANDLERS = ("fashion", "films")


def main() -> int:
    """Run everything; 0 when all of it agrees."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    for name in HANDLERS:
        step(f"batch: scoring data/{name} into demo/out/scored/{name}")
        parity("batch", f"handlers/{name}", f"data/{name}", f"demo/out/scored/{name}", "--columns", "id")
    lines: list[tuple[str, str, Comparison]] = []
    step("online: starting one server for both handlers (it answers the goldens before it is ready)")
    with server() as url:
        for name in HANDLERS:
            lines += compare_runners(name, url)
    print_table(lines)
    codes = [check(name) for name in HANDLERS]
    agreed = all(comparison for _, _, comparison in lines) and not any(codes)
    print(f"\n{'AGREES' if agreed else 'DIVERGES'}: scored files in demo/out/scored/, reports in demo/out/")
    return 0 if agreed else 1


def compare_runners(name: str, url: str) -> list[tuple[str, str, Comparison]]:
    """The sample's answers from the batch runner against the notebook's and the server's."""
    with parity_notebook.load(ROOT / "handlers" / name) as session:
        table = pq.read_table(ROOT / "data" / name).select(list(session.inputs))
        scored = pq.read_table(OUT / "scored" / name).select(list(session.outputs))
        tolerances = Tolerances.from_mapping(session.loaded.manifest.tolerance)
        step(f"notebook: calling {name} with {table.num_rows} rows as a pandas DataFrame")
        frame = table.to_pandas(types_mapper=pd.ArrowDtype)  # keeps integers with nulls integers
        called = session.score(frame, progress=False).to_table().select(scored.column_names)
        step(f"online: {table.num_rows} requests to {name}, many at a time")
        served = session.compare_with(url, table).obtained.select(scored.column_names)
    return [
        (name, "notebook", compare(scored, called, tolerances, inputs=table)),
        (name, "online", compare(scored, served, tolerances, inputs=table)),
    ]


def print_table(lines: list[tuple[str, str, Comparison]]) -> None:
    """One line for each comparison of the sample's rows."""
    print("\nThe sample's rows, against the batch runner's answers:")
    print(f"{'handler':<10}{'runner':<10}{'rows':>6}{'identical':>12}{'worst':>10}  verdict")
    for handler, runner, comparison in lines:
        share = percent(comparison.identical_rows, comparison.rows)
        worst = "-" if comparison.worst_ulp is None else f"{comparison.worst_ulp:.0f} ulp"
        verdict = comparison.verdict
        print(f"{handler:<10}{runner:<10}{comparison.rows:>6}{share:>12}{worst:>10}  {verdict}")
        if not comparison:
            print(f"  {comparison.summary()}")


def check(name: str) -> int:
    """Prove one handler with `parity check`; its exit code."""
    step(f"check: goldens of {name} through every runner, and the laws")
    report = f"demo/out/{name}.html"
    return parity("check", f"handlers/{name}", "--html", report, may_fail=True)


@contextmanager
def server() -> Generator[str]:
    """The URL of a ready server of both handlers; stopped by SIGTERM at the end."""
    command = [sys.executable, "-m", "parity", "serve", *(f"handlers/{name}" for name in HANDLERS)]
    command += ["--port", "0", "--log-level", "warning"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = ""
            for line in process.stdout:
                event = json.loads(line)
                url = event.get("url", url)
                if event["event"] == "ready":
                    break
            else:
                raise SystemExit(f"the server ended with exit code {process.wait()} before it was ready")
            yield url
        finally:
            process.terminate()
            process.wait(60)


def parity(*arguments: str, may_fail: bool = False) -> int:
    """Run `parity ...` as a user would; its exit code."""
    code = subprocess.run([sys.executable, "-m", "parity", *arguments], cwd=ROOT, check=False).returncode
    if code and not may_fail:
        raise SystemExit(f"parity {arguments[0]} ended with exit code {code}")
    return code


def step(text: str) -> None:
    """Say what comes next, with the time since the start."""
    print(f"\n[{time.perf_counter() - STARTED:5.1f} s] {text}", flush=True)


STARTED = time.perf_counter()

if __name__ == "__main__":
    raise SystemExit(main())
