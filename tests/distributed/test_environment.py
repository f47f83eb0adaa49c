"""A worker with another environment than the driver's refuses, or says what differs."""

from __future__ import annotations

import os
import pickle  # noqa: TID251 - what clusters send work with
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from parity.distributed import Placement
from parity.distributed.environment import LENIENT_VARIABLE, differences
from parity.profile import Profile
from parity.registry import load_handler
from tests.batch.jobs import ORDERS
from tests.distributed.elsewhere import another_version

_WORKER = "import sys, pickle; pickle.load(sys.stdin.buffer).load(); print('loaded')"


def worker(placement: Placement, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """A process with other variables that loads a placement."""
    return subprocess.run(
        [sys.executable, "-c", _WORKER],
        input=pickle.dumps(placement),
        capture_output=True,
        check=False,
        env={**os.environ, **variables},
    )


@pytest.mark.slow
def test_a_process_with_another_version_of_a_library_refuses_and_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow = os.pathsep.join([another_version(tmp_path / "numpy"), os.environ.get("PYTHONPATH", "")])
    placement = Placement.of(load_handler(ORDERS), Profile())
    assert worker(placement).stdout == b"loaded\n"
    refused = worker(placement, PYTHONPATH=shadow)
    assert refused.returncode == 1
    assert f"numpy 1.0.1 in place of {np.__version__}; give all machines" in refused.stderr.decode()
    monkeypatch.setenv(LENIENT_VARIABLE, "warn")
    allowed = worker(Placement.of(load_handler(ORDERS), Profile()), PYTHONPATH=shadow)
    assert allowed.stdout == b"loaded\n"
    assert "worker environment differs: numpy 1.0.1" in allowed.stderr.decode()


@pytest.mark.parametrize(
    ("key", "driver", "there", "refused"),
    [
        ("package.torch", "2.13.0", "2.12.1", True),
        ("package.torch", "2.13.0", None, False),
        ("python", "3.11.7", "3.12.1", True),
        ("python", "3.11.7", "3.11.9", False),
        ("cpu", "AMD EPYC", "Intel Xeon", False),
        ("env.ATEN_CPU_CAPABILITY", None, "default", False),
    ],
)
def test_what_is_refused_and_what_is_told(
    key: str, driver: str | None, there: str | None, refused: bool
) -> None:
    one, other = ({} if value is None else {key: value} for value in (driver, there))
    found = differences(one, other)
    assert [len(items) for items in found] == ([1, 0] if refused else [0, 1])


def test_a_library_that_only_the_worker_has_is_nobodys_business() -> None:
    assert differences({}, {"package.polars": "1.0"}) == ([], [])
