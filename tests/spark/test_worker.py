"""What a Spark Python worker keeps from one job to the next; no Spark is started."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from parity import numerics
from parity.distributed import Placement
from parity.profile import Profile
from parity.registry import load_handler
from parity_spark import worker
from tests.batch.jobs import ORDERS

torch: Any = pytest.importorskip("torch")


def test_a_kept_handler_runs_under_its_own_profile_after_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_kept", {})
    monkeypatch.setattr(worker, "_last", [])
    loaded = load_handler(ORDERS)
    works = [
        worker.Work(Placement.of(loaded, Profile(tf32=tf32)), (), 8, pa.schema([]), False, None)
        for tf32 in (True, False)
    ]
    try:
        found: list[tuple[object, str]] = []
        for work in (*works, *works, works[1]):
            scorer = worker.kept_scorer(work, None)
            found.append((scorer, torch.get_float32_matmul_precision()))
        assert [precision for _, precision in found] == ["high", "highest", "high", "highest", "highest"]
        assert len({id(scorer) for scorer, _ in found}) == 2
    finally:
        numerics.apply(Profile())
