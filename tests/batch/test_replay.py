"""Replay sends rows through a real job in a fresh process, and gives what the engine would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from parity.codec.arrow import decode_table
from parity.engine import Engine
from parity.errors import ConfigError, RunnerError
from parity.registry import Runner, find_runner, load_handler
from parity_batch import runner
from tests.batch.jobs import ORDERS, orders


def canonical(table: pa.Table) -> pa.Table:
    handler = load_handler(ORDERS)
    return table.select(list(handler.inputs.names)).cast(handler.inputs.to_arrow(), safe=True)


def test_the_runner_is_registered() -> None:
    assert isinstance(runner, Runner)
    assert type(find_runner("batch")) is type(runner)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1, 5, 300])
def test_a_replay_gives_what_the_engine_gives(rows: int) -> None:
    table = canonical(orders(rows))
    quantity = [
        {2: 666, 4: -3, 299: 666}.get(row, value) for row, value in enumerate(table.column(1).to_pylist())
    ]
    table = table.set_column(1, table.schema.field(1), pa.array(quantity, pa.int64()))
    handler = load_handler(ORDERS)
    profile = handler.profile("bucket")
    with Engine(handler, profile) as engine:
        expected = engine.score(decode_table(handler.inputs, table))
    found = runner.replay(str(ORDERS), table, profile)
    assert found.num_rows == rows
    assert found.errors == expected.errors
    np.testing.assert_array_equal(found.index, expected.index)
    assert found.outputs.to_table().equals(expected.outputs.to_table())


def test_another_wire_form_is_refused() -> None:
    with pytest.raises(ConfigError, match="it has 'parquet' only"):
        runner.replay(str(ORDERS), canonical(orders(1)), load_handler(ORDERS).profile(), wire="csv")


@pytest.mark.slow
def test_a_job_that_fails_says_why(handler: Path) -> None:
    code = (handler / "handler.py").read_text()
    broken = code.replace("self.factor =", 'raise RuntimeError("no factor today")\n        self.factor =')
    (handler / "handler.py").write_text(broken)
    with pytest.raises(RunnerError, match="no factor today"):
        runner.replay(str(handler), canonical(orders(1)), load_handler(ORDERS).profile())
