"""A Python process that a runner starts for some work, and what it said last when it failed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from parity.errors import RunnerError

_STDERR_LINES = 20


def run_child(arguments: Sequence[str], what: str) -> None:
    """Run `python ARGUMENTS` to its end, without input; its output is not shown.

    Args:
        arguments: what follows `python`.
        what: who runs what, for the error, such as "runner batch on handler digits".

    Raises:
        RunnerError: it ended with another exit code than 0; the message ends with its last lines.
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
        raise RunnerError("\n  ".join([f"{what}: ended with code {done.returncode}:", *said]))
