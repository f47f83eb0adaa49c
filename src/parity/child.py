"""A Python process that a runner starts for some work, and what it said last when it failed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from parity.errors import FingerprintError, RunnerError

_STDERR_LINES = 20


def _sees_working_folder() -> bool:
    try:
        return "" in sys.path or str(Path.cwd()) in sys.path
    except OSError:  # it is gone
        return False


MODULE_FLAGS: Final = ("-m",) if _sees_working_folder() else ("-P", "-m")
"""What `python` takes before a module of ours, so that it imports from the working folder only if this
process does: a `queue.py` that lies there is not to be run. Handlers name the folders that they need.
"""


def run_child(arguments: Sequence[str], what: str) -> None:
    """Run `python ARGUMENTS` to its end, without input; its output is not shown.

    Args:
        arguments: what follows `python`.
        what: who runs what, for the error, such as "runner batch on handler digits".

    Raises:
        FingerprintError: it refused to run here, with the exit code that says so.
        RunnerError: it ended with any other code but 0; both messages end with its last lines.
    """
    done = subprocess.run(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").rstrip().splitlines()[-_STDERR_LINES:]
        raise child_error(done.returncode, f"{what}: ended with code {done.returncode}", said)


def child_error(code: int, what: str, said: Sequence[str]) -> RunnerError | FingerprintError:
    """The error for a process that ended with an exit code: a refusal stays one, all else is a crash."""
    kind = FingerprintError if code == FingerprintError.exit_code else RunnerError
    return kind("\n  ".join([f"{what}:", *said]))
