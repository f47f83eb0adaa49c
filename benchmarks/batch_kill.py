"""A batch job killed with SIGKILL at 10 random moments and resumed: the bytes of an uninterrupted one."""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.batch_data import parity_command, timed, write_features

ROWS, FILES, KILLS = 400_000, 20, 10
_TIMING = {"_summary.json", ".parity.lock"}


def run() -> dict[str, Any]:
    """How many files of the resumed job differ from the uninterrupted one's."""
    moments = random.Random(11)
    with tempfile.TemporaryDirectory(prefix="parity-bench-") as temporary:
        root = Path(temporary)
        write_features(root / "in", ROWS, FILES)
        seconds, _ = timed(parity_command(root / "in", root / "whole"))
        expected = _digests(root / "whole")
        command = parity_command(root / "in", root / "out")
        found: list[int] = []
        while len(found) < KILLS:
            if (root / "out" / "_SUCCESS").exists():
                shutil.rmtree(root / "out")
            if _killed_after(command, moments.uniform(0.3, 1.0) * seconds):
                found.append(len(list((root / "out").glob("_units/*.json"))))
        timed(command)
        resumed = _digests(root / "out")
    names = expected.keys() | resumed.keys()
    return {
        "bars": [
            {
                "what": f"files that differ after {KILLS} kills",
                "value": sum(expected.get(name) != resumed.get(name) for name in names),
                "bar": 0,
                "at": "most",
            }
        ],
        "units finished at each kill": found,
    }


def _killed_after(command: list[str], seconds: float) -> bool:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return True
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}\n{said}")
    return False


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in _TIMING
    }
