"""A runner's process: what is told when it fails."""

from __future__ import annotations

import pytest

from parity.child import run_child
from parity.errors import FingerprintError, RunnerError


def script(code: int) -> list[str]:
    return ["-c", f"import sys; print('no room', file=sys.stderr); sys.exit({code})"]


def test_a_process_that_ends_well_raises_nothing():
    run_child(script(0), "runner x")


@pytest.mark.parametrize(
    ("code", "error"), [(1, RunnerError), (2, RunnerError), (6, RunnerError), (4, FingerprintError)]
)
def test_a_refusal_stays_one_and_all_else_is_a_crash(code: int, error: type[Exception]):
    with pytest.raises(error, match=rf"(?s)runner x: ended with code {code}:.*no room"):
        run_child(script(code), "runner x")
