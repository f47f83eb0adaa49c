"""Interleaved rounds: ours and every peer in turn, each as a whole process; and whether answers agree."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.batch.meter import Measured, measured
from benchmarks.batch.peers import HERE as SCRIPTS
from benchmarks.batch.peers import Peer
from benchmarks.environments import Environments

HANDLERS = Path(__file__).parent / "handlers"
PASSED = {"table": "id,shop,city", "picture": "id"}
TOLERANCE = 1e-6
"""Of a score; rows beside fewer neighbours than 16 may differ in their last bits."""

_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class Agreement:
    """A peer's answers and ours: the share of rows that are equal bit for bit, the largest difference."""

    equal: float
    most: float

    @property
    def ok(self) -> bool:
        """Whether every row is there and within the tolerance."""
        return self.most <= TOLERANCE


@dataclass(frozen=True)
class Contest:
    """One workload's rounds.

    Attributes:
        workload: "table" or "picture".
        rows: how many there are.
        measured: of each name, the rounds; "parity" is ours.
        agreement: of each peer.
    """

    workload: str
    rows: int
    measured: dict[str, list[Measured]]
    agreement: dict[str, Agreement]

    def seconds(self, name: str) -> float:
        """The median of a name's wall seconds."""
        return statistics.median(found.seconds for found in self.measured[name])

    def cpu_s(self, name: str) -> float:
        """The median of a name's CPU seconds."""
        return statistics.median(found.cpu_s for found in self.measured[name])

    def peak_bytes(self, name: str) -> int:
        """The most memory of a name in any round."""
        return max(found.peak_bytes for found in self.measured[name])

    def speed(self, name: str) -> float:
        """Our speed as a multiple of a name's: its median seconds over ours."""
        return self.seconds(name) / self.seconds("parity")


def contest(
    workload: str,
    inputs: Path,
    peers: Sequence[Peer],
    environments: Environments,
    rounds: int,
    scratch: Path,
) -> Contest:
    """Run the rounds; the first one's outputs are compared.

    Raises:
        RuntimeError: a peer failed.
    """
    commands = {"parity": ours(workload, inputs, scratch / "parity")}
    for peer in peers:
        python = str(environments.python(peer.environment))
        commands[peer.name] = [
            python,
            str(SCRIPTS / peer.script),
            workload,
            str(inputs),
            str(scratch / peer.name),
        ]
    rows = sum(pq.read_metadata(path).num_rows for path in inputs.glob("*.parquet"))
    found: dict[str, list[Measured]] = {name: [] for name in commands}
    agreement: dict[str, Agreement] = {}
    expected: pa.Table | None = None
    for position in range(rounds):
        for name, command in commands.items():
            output = scratch / name
            shutil.rmtree(output, ignore_errors=True)
            env = environment(None if name == "parity" else workload)
            took = measured(command, scratch / f"{name}.json", env, scratch / f"{name}.log", _TIMEOUT_S)
            found[name].append(took)
            print(f"  {workload} {name}: {took.seconds:.1f} s", file=sys.stderr, flush=True)
            if position == 0:
                if expected is None:
                    expected = answers(output)
                else:
                    agreement[name] = compared(expected, answers(output), PASSED[workload].split(","))
            shutil.rmtree(output, ignore_errors=True)
    return Contest(workload, rows, found, agreement)


def ours(workload: str, inputs: Path, output: Path) -> list[str]:
    """The command that scores with this library."""
    where = [str(HANDLERS / workload), str(inputs), str(output)]
    return [sys.executable, "-m", "parity", "batch", *where, "--columns", PASSED[workload], "--json"]


def environment(workload: str | None) -> dict[str, str]:
    """This process's variables; for a peer, with the workload's plain torch module on the path."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "VIRTUAL_ENV")
    }
    return kept | ({"PYTHONPATH": str(HANDLERS / workload)} if workload else {})


def answers(output: Path) -> pa.Table:
    """Every row that was written, by its id."""
    files = [
        path
        for path in sorted(output.rglob("*.parquet"))
        if not any(part.startswith(("_", ".")) for part in path.relative_to(output).parts)
    ]
    return pa.concat_tables([pq.read_table(path) for path in files], promote_options="permissive").sort_by(
        "id"
    )


def compared(expected: pa.Table, obtained: pa.Table, passed: Sequence[str]) -> Agreement:
    """How scores agree.

    Raises:
        RuntimeError: rows are missing or doubled, or columns that were to be passed through differ.
    """
    for name in passed:
        ours, theirs = expected.column(name), obtained.column(name)
        if ours.combine_chunks() != cast("Any", theirs.cast(ours.type)).combine_chunks():
            raise RuntimeError(
                f"column {name!r} is not what it was: {len(theirs)} rows, {len(ours)} expected"
            )
    left, right = expected.column("score").to_numpy(), obtained.column("score").to_numpy()
    if right.dtype != np.float32:
        raise RuntimeError(f"scores are {right.dtype}, expected float32")
    return Agreement(float(np.mean(left == right)), float(np.max(np.abs(left - right))))
