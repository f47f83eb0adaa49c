"""What the replay of every runner with a cluster of its own is held to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from parity.distributed.runner import ClusterRunner
from parity.engine import Engine
from parity.errors import ConfigError, RunnerError
from parity.registry import Runner, find_runner, load_handler
from parity.triage.sides import runner_side
from tests.batch.jobs import ORDERS
from tests.distributed.rows import scored_here, troubled_orders


def inputs(rows: int) -> pa.Table:
    return troubled_orders(rows).select(["price", "quantity"])


class ReplayContract:
    """Tests of a runner whose name and wire form a subclass gives."""

    name: str
    wire_form: str

    @pytest.fixture(scope="class")
    @classmethod
    def runner(cls) -> Any:
        found = find_runner(cls.name)
        assert isinstance(found, Runner)
        assert isinstance(found, ClusterRunner)
        yield found
        found.close()

    def test_it_gives_what_the_engine_gives_and_keeps_its_cluster(self, runner: ClusterRunner) -> None:
        profile = load_handler(ORDERS).profile()
        rows = inputs(300)
        assert runner.replay(str(ORDERS), rows, profile).to_table().equals(scored_here(rows))
        process = runner._standing._process
        assert runner.replay(str(ORDERS), inputs(0), profile).num_rows == 0
        with Engine(load_handler(ORDERS)) as engine:
            side = runner_side(runner, self.wire_form, engine, inputs(40))
        assert side.answers.equals(scored_here(inputs(40)))
        assert side.traces is not None, "the stages of the workers are tapped"
        assert runner._standing._process is process

    def test_another_wire_form_is_refused(self, runner: ClusterRunner) -> None:
        with pytest.raises(ConfigError, match=f"it has '{self.wire_form}' only"):
            runner.replay(str(ORDERS), inputs(1), load_handler(ORDERS).profile(), wire="csv")

    def test_a_handler_that_does_not_load_is_told(self, runner: ClusterRunner, handler: Path) -> None:
        code = (handler / "handler.py").read_text()
        broken = code.replace("self.factor =", 'raise RuntimeError("no factor today")\n        self.factor =')
        (handler / "handler.py").write_text(broken)
        with pytest.raises(RunnerError, match="no factor today"):
            runner.replay(str(handler), inputs(1), load_handler(ORDERS).profile())
