"""What a job of the engine `local` sets for the whole process, and takes back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from parity_batch import Settings, score
from parity_batch.local import LocalEngine
from parity_batch.unit import UnitReport
from tests.batch.jobs import ORDERS, write_orders

Found = tuple[float, str]


def settings() -> Found:
    return sys.getswitchinterval(), pa.default_memory_pool().backend_name


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> Iterator[Found]:
    """The process's settings, of which none is what a job sets."""
    interval, pool = sys.getswitchinterval(), pa.default_memory_pool()
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    sys.setswitchinterval(0.005)
    pa.set_memory_pool(pa.system_memory_pool())
    yield settings()
    sys.setswitchinterval(interval)
    pa.set_memory_pool(pool)


class Task:
    """Scores nothing."""

    tally = None
    preprocess_workers = 0

    def prepare(self, engines: int) -> None:
        """Nothing."""

    def score(self, unit: str, engines: int) -> UnitReport:
        return UnitReport(unit, 0, {}, {})


def begun() -> Callable[[], object]:
    """Begin a job that waits with its first unit done; what ends it."""
    units, task = cast("Any", ["one", "two"]), cast("Any", Task())
    reports = LocalEngine().run(units, task, workers=1, device="cpu")
    next(reports)
    return lambda: list(reports)


@pytest.mark.parametrize("first", [0, 1])
def test_jobs_that_overlap_leave_what_was_there_before(before: Found, first: int) -> None:
    ends = [begun(), begun()]
    during = settings()
    assert during[0] < before[0]
    ends.pop(first)()
    assert settings() == during
    ends.pop()()
    assert settings() == before
    again = begun()
    assert settings() == during
    again()
    assert settings() == before


def test_what_others_set_meanwhile_stays(before: Found) -> None:
    end = begun()
    sys.setswitchinterval(0.002)
    end()
    assert settings() == (0.002, before[1])
    end = begun()
    pa.set_memory_pool(pa.system_memory_pool())
    end()
    assert settings() == (0.002, "system")


def test_a_real_job_takes_back_what_it_sets(before: Found, tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (5, 5))
    score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(workers=2))
    assert settings() == before
