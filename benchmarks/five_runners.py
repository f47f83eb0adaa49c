"""A million rows through notebook, batch, online, Ray and Spark in exact mode: answers of other bits.

`python -m benchmarks five_runners` makes the rows, certifies a bucket, lets each runner do a whole job over
them in a process of its own (`benchmarks.agreement.jobs`), and compares all answers by digest. With --folder
it keeps rows and digests, and a later run does only what is missing: `--handlers films --runners spark`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.agreement.digests import Digests, digests_of
from benchmarks.agreement.jobs import JOBS
from benchmarks.agreement.rows import HANDLERS, ROOT, write_rows
from benchmarks.environments import chosen_names
from benchmarks.servers import bar
from parity import load_handler

ASKED_ONLY = True
ROWS, PHOTOS = 1_000_000, 10_000
BUCKET = 32
LEAST_SHARE = 0.9
"""Of the rows, those that have an answer: some of the photos are none."""

_PHOTO_HANDLER = "photo_quality"
_PROFILES: Final = {_PHOTO_HANDLER: "default"}
_ENVIRONMENT: Final = {"OMP_NUM_THREADS": "1"}
"""What Ray and Spark set for their workers, and so the certificate and all other runners must have."""

_TELL_S = 20.0


def run(arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Rows, rows that differ between two runners, rows without an answer, seconds of each job."""
    asked = _asked(arguments)
    found: dict[str, Any] = {}
    with _folder(asked.folder) as folder:
        for name in asked.handlers:
            rows = asked.photos if name == _PHOTO_HANDLER else asked.rows
            found[name] = agreement(name, rows, asked.runners, folder / f"{name}-{rows}")
    bars: list[dict[str, Any]] = []
    for name, told in found.items():
        bars += [
            bar(f"{name}: {what}", max(told[what].values(), default=0), 0, at="most")
            for what in ("rows of other bits, any two runners", "answers beyond one a row, any runner")
        ]
        share = told["rows with an answer"] / told["rows"]
        bars.append(bar(f"{name}: share of rows with an answer", share, LEAST_SHARE, at="least"))
    packages = ("torch", "numpy", "pyarrow", "pandas", "polars", "ray", "pyspark")
    return {"bars": bars, **found, "versions": {name: version(name) for name in packages}}


def agreement(name: str, rows: int, runners: Sequence[str], folder: Path) -> dict[str, Any]:
    """What the runners made of a handler's rows; what lies in `folder` already is not done again."""
    if not (folder / "rows").is_dir():
        _say(f"{name}: making {rows:,} rows")
        shutil.rmtree(folder / "new", ignore_errors=True)
        write_rows(name, folder / "new", rows)
        (folder / "new").rename(folder / "rows")
    profile = _PROFILES.get(name, "exact")
    settings = ["exact=true", f"buckets=[{BUCKET}]", f"certificate={folder / 'certificates'}"]
    if not (folder / "certificates").is_dir():
        _probe(name, profile, folder)
    digests: dict[str, Digests] = {}
    seconds: dict[str, float] = {}
    for runner in runners:
        kept = folder / f"{runner}.npz"
        if not kept.is_file():
            _score(runner, name, profile, settings, rows, folder)
        with np.load(kept) as found:
            digests[runner] = Digests(found["words"], int(found["twice"]))
            seconds[runner] = float(found["seconds"])
    return {
        "rows": rows,
        "different answers": len(np.unique(digests[runners[0]].words)),
        "rows with an answer": rows - max(found.without for found in digests.values()),
        "rows of other bits, any two runners": {
            f"{one}, {other}": digests[one].differing(digests[other])
            for one, other in itertools.combinations(runners, 2)
        },
        "answers beyond one a row, any runner": {runner: found.twice for runner, found in digests.items()},
        "seconds": {runner: round(spent, 1) for runner, spent in seconds.items()},
    }


def _probe(name: str, profile: str, folder: Path) -> None:
    command = [sys.executable, "-m", "parity", "probe", str(ROOT / HANDLERS[name]), "--profile", profile]
    command += ["--buckets", str(BUCKET), "--certificate", str(folder / "certificates"), "--write", "--quiet"]
    if name == "tabular":
        command += ["--rows", str(sorted((folder / "rows").glob("*.parquet"))[0])]
    environment = {**os.environ, **_ENVIRONMENT}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"parity probe of {name} ended with {done.returncode}: {done.stdout}{done.stderr}")


def _score(runner: str, name: str, profile: str, settings: list[str], rows: int, folder: Path) -> None:
    """Let a runner do its job, and keep the digests."""
    handler, output = ROOT / HANDLERS[name], folder / f"{runner}-answers"
    command = [sys.executable, "-m", "benchmarks.agreement.jobs", runner, str(handler), profile]
    command += [str(folder / "rows"), str(output), *settings]
    started = time.perf_counter()
    with (folder / f"{runner}.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **_ENVIRONMENT}, stdout=log, stderr=log
        )
        code: int | None = None
        while code is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(_TELL_S)
            size = sum(path.stat().st_size for path in output.glob("*.parquet"))
            _say(f"{name}, {runner}: {time.perf_counter() - started:.0f} s, {size / 1e6:.1f} MB of answers")
    seconds = time.perf_counter() - started
    if code:
        raise RuntimeError(f"{name}, {runner}: ended with {code}\n{(folder / f'{runner}.log').read_text()}")
    found = digests_of(output, load_handler(handler).outputs, rows)
    np.savez(folder / f"{runner}.npz", words=found.words, twice=found.twice, seconds=seconds)
    shutil.rmtree(output)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _folder(given: Path | None) -> Generator[Path]:
    if given is not None:
        yield given.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="parity-five-") as temporary:
        yield Path(temporary)


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks five_runners")
    parser.add_argument("--handlers", default=",".join(HANDLERS), help="which, of %(default)s")
    parser.add_argument("--runners", default=",".join(JOBS), help="which, of %(default)s")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each handler but the photos'")
    parser.add_argument("--photos", type=int, default=PHOTOS, help="rows of the photos' handler")
    parser.add_argument("--folder", type=Path, help="keep rows and digests here, and do what is missing")
    return chosen_names(parser, arguments, {"handlers": list(HANDLERS), "runners": list(JOBS)})
