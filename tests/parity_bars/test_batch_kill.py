"""Batch jobs killed at random moments; benchmarks has 50 of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.batch_data import parity_command, timed, write_features
from benchmarks.batch_kill import digests, killed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("engine", "kills", "seed"), [("local", 2, 58), ("ray", 1, 4)])
def test_a_killed_job_that_is_started_again_ends_with_the_same_bytes(
    tmp_path: Path, engine: str, kills: int, seed: int
) -> None:
    if engine == "ray":
        pytest.importorskip("ray", reason="pip install 'parity[ray]'")
    write_features(tmp_path / "in", 80_000, files=8)
    timed(parity_command(tmp_path / "in", tmp_path / "whole"))
    found = killed(tmp_path, engine, kills, digests(tmp_path / "whole"), seed)
    assert found.kills.total() == kills
    assert found.differing == []
