"""`parity_ray.score` on a real local cluster: order, identity, errors, one load an actor, a killed actor."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from parity import Batch, Handler, Int64, Schema
from parity.errors import ConfigError, SchemaError
from parity.profile import Profile
from parity_ray import score
from tests.batch.jobs import ORDERS
from tests.distributed.rows import fragile_copy, fragile_rows, loads, scored_here, troubled_orders

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),  # Ray warns of its own code
]


def dataset(table: pa.Table, blocks: int = 1):
    import ray.data

    size = -(-table.num_rows // blocks)
    return ray.data.from_arrow([table.slice(start, size) for start in range(0, table.num_rows, size)])


def collected(scored) -> pa.Table:
    import ray

    return pa.concat_tables(ray.get(scored.to_arrow_refs()))


def test_every_row_keeps_its_place_its_columns_and_its_error() -> None:
    rows = troubled_orders(1000)
    found = collected(score(dataset(rows, blocks=7), ORDERS, batch_rows=64, actors=2))
    assert found.select(rows.column_names).equals(rows)
    expected = scored_here(rows)
    assert found.select(expected.column_names).equals(expected)
    told = [error for error in found["_error"].to_pylist() if error is not None]
    assert {error["kind"] for error in told} == {"invalid", "rejected", "failed"}
    assert len(told) == 31


def test_named_columns_are_passed_through_and_no_others() -> None:
    found = score(dataset(troubled_orders(50)), ORDERS, columns=["id"], actors=1)
    assert collected(found).column_names == ["id", "total", "size", "vector", "_error"]


def test_an_actor_loads_the_handler_once_and_one_that_is_killed_costs_no_row(tmp_path: Path) -> None:
    handler = fragile_copy(tmp_path)
    rows = fragile_rows(400, die=150)
    found = collected(score(dataset(rows, blocks=8), handler, batch_rows=10, actors=2))
    assert found["id"].to_pylist() == list(range(400))
    assert found["doubled"].to_pylist() == [2 * row for row in range(400)]
    assert (handler / ".marks" / "died").exists()
    assert loads(handler) == 3, "two actors, and the one that took the killed one's place"


class Halves(Handler):
    """A class of this process, which no worker can import."""

    inputs = Schema(id=Int64())
    outputs = Schema(half=Int64())

    def inference(self, inputs):
        return inputs["id"] // 2

    def postprocess(self, outputs, batch: Batch):
        return {"half": outputs}


def test_a_class_without_a_file_of_its_own_travels_by_value() -> None:
    import ray.cloudpickle

    module = __import__(Halves.__module__, fromlist=["x"])
    ray.cloudpickle.register_pickle_by_value(module)
    try:
        found = collected(score(dataset(fragile_rows(20)), Halves, actors=1))
    finally:
        ray.cloudpickle.unregister_pickle_by_value(module)
    assert found["half"].to_pylist() == [row // 2 for row in range(20)]


def test_ray_gives_an_actor_its_gpu(tmp_path: Path) -> None:
    handler = fragile_copy(tmp_path)
    found = collected(score(dataset(fragile_rows(5)), handler, actors=1, num_gpus=1))
    assert found["devices"].to_pylist() == ["0"] * 5


def test_what_cannot_work_is_refused_before_a_row_is_scored(tmp_path: Path) -> None:
    rows = dataset(troubled_orders(10))
    with pytest.raises(ConfigError, match=r"3 actors with 1 CPUs each would leave 0 .* or the job waits"):
        score(rows, ORDERS, actors=3)
    with pytest.raises(SchemaError, match=r"column 'price' .* is missing.*column 'quantity' .* is missing"):
        score(dataset(pa.table({"id": [1]})), ORDERS)
    with pytest.raises(SchemaError, match="'total' is an output of handler orders, too"):
        score(dataset(troubled_orders(1).append_column("total", pa.array([1]))), ORDERS)
    with pytest.raises(SchemaError, match="'idd' is not there; did you mean 'id'"):
        score(rows, ORDERS, columns=["idd"])
    with pytest.raises(ConfigError, match="batch_rows = 0 must be at least 1"):
        score(rows, ORDERS, batch_rows=0)
    with pytest.raises(ConfigError, match="Ray chooses the GPU; write device = 'cuda'"):
        score(rows, ORDERS, profile=Profile(device="cuda:1"))
    with pytest.raises(ConfigError, match="2 actors with 1 GPUs each need 2, and this Ray cluster has 1"):
        score(rows, ORDERS, profile=Profile(device="cuda"), actors=2)
    with pytest.raises(ConfigError, match="num_gpus is 0"):
        score(rows, ORDERS, profile=Profile(device="cuda"), num_gpus=0)


def test_pandas_blocks_in_which_nan_would_become_null_are_refused() -> None:
    import ray.data

    frame = pd.DataFrame({"price": [1.0, float("nan")], "quantity": [1, 2]})
    with pytest.raises(ConfigError, match="every NaN of theirs null"):
        score(ray.data.from_pandas(frame), ORDERS)
