"""The Ray runner's replay: rows through Parquet files and a real local cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from parity.engine import Engine
from parity.errors import ConfigError, RunnerError
from parity.registry import Runner, find_runner, load_handler
from parity.triage.sides import runner_side
from tests.batch.jobs import ORDERS
from tests.distributed.rows import scored_here, troubled_orders

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def runner():
    found = find_runner("ray")
    assert isinstance(found, Runner)
    yield found
    cast("Any", found).close()


def inputs(rows: int) -> pa.Table:
    return troubled_orders(rows).select(["price", "quantity"])


def test_a_replay_gives_what_the_engine_gives_and_a_second_uses_the_same_cluster(runner) -> None:
    profile = load_handler(ORDERS).profile()
    rows = inputs(300)
    assert runner.replay(str(ORDERS), rows, profile).to_table().equals(scored_here(rows))
    process = runner._standing._process
    assert runner.replay(str(ORDERS), inputs(0), profile).num_rows == 0
    with Engine(load_handler(ORDERS)) as engine:
        side = runner_side(runner, "dataset", engine, inputs(40))
    assert side.answers.equals(scored_here(inputs(40)))
    assert side.traces is not None, "the stages of the actors are tapped"
    assert runner._standing._process is process


def test_another_wire_form_is_refused(runner) -> None:
    with pytest.raises(ConfigError, match="it has 'dataset' only"):
        runner.replay(str(ORDERS), inputs(1), load_handler(ORDERS).profile(), wire="csv")


def test_a_handler_that_does_not_load_is_told(runner, handler: Path) -> None:
    code = (handler / "handler.py").read_text()
    broken = code.replace("self.factor =", 'raise RuntimeError("no factor today")\n        self.factor =')
    (handler / "handler.py").write_text(broken)
    with pytest.raises(RunnerError, match="no factor today"):
        runner.replay(str(handler), inputs(1), load_handler(ORDERS).profile())
