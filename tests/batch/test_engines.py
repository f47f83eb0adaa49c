"""Any engine that calls the task for each unit, in whatever process, writes what the local one writes."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.batch_engines import BatchEngine, batch_engine_names
from parity.errors import ConfigError, DatasetError, ReferenceNotFoundError, RowsError
from parity_batch import Settings, plan, score
from parity_batch.local import LocalEngine
from tests.batch.jobs import ORDERS, contents, orders, write_orders

U = TypeVar("U")
R = TypeVar("R")


class Processes:
    """An engine of fresh processes, which gives reports as they come."""

    name = "processes"

    def __init__(self, twice: bool = False) -> None:
        self.twice = twice

    def run(
        self, units: Sequence[U], task: Callable[[U], R], *, workers: int | None, device: str
    ) -> Iterator[R]:
        assert device == "cpu"
        again = [*units, *units] if self.twice else list(units)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers or 2, mp_context=context) as pool:
            seen: set[str] = set()
            for future in as_completed([pool.submit(task, unit) for unit in again]):
                report = future.result()
                part = report.part  # type: ignore[attr-defined]
                if part not in seen:
                    seen.add(part)
                    yield report


class Forgetful(Processes):
    """Loses the last unit."""

    def run(self, units: Sequence[U], task: Callable[[U], R], **how: object) -> Iterator[R]:
        yield from (task(unit) for unit in units[:-1])


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    write_orders(tmp_path / "in", (900, 500, 0), row_group_rows=200)
    bad = orders(300, 2000).set_column(
        2, "quantity", pa.array([666 if row % 50 == 7 else row for row in range(300)])
    )
    pq.write_table(bad, tmp_path / "in" / "bad.parquet")
    return tmp_path / "in"


@pytest.mark.slow
@pytest.mark.parametrize("twice", [False, True])
def test_units_in_other_processes_give_the_same_bytes(
    inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, twice: bool
) -> None:
    monkeypatch.setattr(plan, "UNIT_BYTES", 5000)
    here = score(inputs, tmp_path / "here", ORDERS, columns=["id"])
    settings = Settings(engine=Processes(twice), workers=2)
    there = score(inputs, tmp_path / "there", ORDERS, columns=["id"], settings=settings)
    assert here.parts > 5
    assert contents(tmp_path / "here") == contents(tmp_path / "there")
    assert (there.rows, there.row_errors, there.failed_rows) == (1700, here.row_errors, 6)
    assert there.step_seconds.keys() == here.step_seconds.keys()
    assert not list((tmp_path / "there").rglob(".part*"))


@pytest.mark.slow
def test_a_job_may_change_its_engine_between_runs(inputs: Path, tmp_path: Path) -> None:
    score(inputs, tmp_path / "out", ORDERS)
    (tmp_path / "out" / "part-00001-u00000.parquet").unlink()
    assert score(inputs, tmp_path / "out", ORDERS, settings=Settings(engine=Processes())).resumed_parts == 3


@pytest.mark.slow
def test_errors_are_counted_over_processes(inputs: Path, tmp_path: Path) -> None:
    with pytest.raises(RowsError, match="6 rows failed and --max-errors allows 5"):
        score(inputs, tmp_path / "out", ORDERS, settings=Settings(engine=Processes(), max_errors=5))
    assert not (tmp_path / "out" / "_SUCCESS").exists()


@pytest.mark.parametrize("engine", ["local", "forgetful"])
def test_an_engine_that_loses_a_unit_is_found_out(inputs: Path, tmp_path: Path, engine: str) -> None:
    lost = Forgetful() if engine == "forgetful" else LocalEngine()
    assert isinstance(lost, BatchEngine)
    if engine == "local":
        assert score(inputs, tmp_path / "out", ORDERS, settings=Settings(engine=lost)).parts == 4
        return
    with pytest.raises(DatasetError, match="ended without 1 of 4 units, part-00003-u00000 first"):
        score(inputs, tmp_path / "out", ORDERS, settings=Settings(engine=lost))
    assert score(inputs, tmp_path / "out", ORDERS).resumed_parts == 3


def test_an_unknown_engine_names_those_that_are_there(inputs: Path, tmp_path: Path) -> None:
    assert "local" in batch_engine_names()
    with pytest.raises(
        ReferenceNotFoundError, match="no batch engine 'locale' is installed; did you mean 'local'"
    ):
        score(inputs, tmp_path / "out", ORDERS, settings=Settings(engine="locale"))
    with pytest.raises(ConfigError, match="the engine 'local' has no option 'address'"):
        score(inputs, tmp_path / "out", ORDERS, settings=Settings(engine_options={"address": "auto"}))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_batch_runner_imports_no_engine_of_another_package() -> None:
    code = "import parity_batch.command, parity_batch.job, sys; print({'ray', 'pyspark'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
