"""`parity_spark.score` in a real local Spark: types, identity, errors, one load a worker, a killed worker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity import Batch, Handler, Schema, Timestamp, UInt64
from parity.codec.sparkable import spark_table
from parity.errors import ConfigError, SchemaError
from parity.profile import Profile
from parity_spark import score
from parity_spark.worker import device_of
from tests.batch.jobs import ORDERS
from tests.distributed.rows import BIG, fragile_copy, fragile_rows, loads, scored_here, troubled_orders

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings("ignore"),  # Spark warns of its own code
]


def written(folder: Path, table: pa.Table, files: int = 1) -> str:
    folder.mkdir()
    size = -(-table.num_rows // files)
    for start in range(0, table.num_rows, size):
        pq.write_table(table.slice(start, size), folder / f"rows-{start:06d}.parquet")
    return str(folder)


def test_every_row_keeps_its_columns_its_place_in_a_file_and_its_error(session, tmp_path: Path) -> None:
    rows = troubled_orders(1000)
    frame = session.read.parquet(written(tmp_path / "in", rows, files=4))
    found = score(frame, ORDERS, identity=True, batch_rows=64).orderBy("_file", "_row").toArrow()
    assert found.select(rows.column_names).equals(rows)
    assert max(key for key in found["key"].to_pylist() if key is not None) == BIG + 999
    expected = spark_table(scored_here(rows))
    for name in expected.column_names:
        assert found[name].to_pylist() == expected[name].to_pylist(), name
    assert found["_row"].to_pylist() == list(range(250)) * 4
    assert len(set(found["_file"].to_pylist())) == 4
    told = [error for error in found["_error"].to_pylist() if error is not None]
    assert {error["kind"] for error in told} == {"invalid", "rejected", "failed"}


def test_a_worker_loads_the_handler_once_and_one_that_is_killed_costs_no_row(session, tmp_path: Path) -> None:
    handler = fragile_copy(tmp_path)
    frame = session.createDataFrame(fragile_rows(400, die=150)).repartition(8)
    scored = score(frame, handler, columns=["id"], batch_rows=10)
    scored.write.parquet(str(tmp_path / "out"))
    found = session.read.parquet(str(tmp_path / "out")).orderBy("id").toArrow()
    assert found["id"].to_pylist() == list(range(400))
    assert found["doubled"].to_pylist() == [2 * row for row in range(400)]
    assert (handler / ".marks" / "died").exists()
    assert loads(handler) <= 3, "two workers, and the one that took the killed one's place"


def test_a_handler_that_was_changed_is_loaded_anew(session, handler: Path) -> None:
    (handler / "scale.py").write_text("SCALE = 1.0\n")
    code = (handler / "handler.py").read_text().replace("self.factor = ", "self.factor = SCALE * ")
    (handler / "handler.py").write_text(
        code.replace("import numpy as np", "import numpy as np\nfrom scale import SCALE")
    )
    frame = session.createDataFrame(troubled_orders(20).select(["price", "quantity"])).coalesce(1)
    first = score(frame, handler).toArrow()["total"].to_pylist()
    (handler / "scale.py").write_text("SCALE = 4.0\n")
    second = score(frame, handler).toArrow()["total"].to_pylist()
    assert second == [None if total is None else total * 4 for total in first]
    assert any(first)


class Wide(Handler):
    """A class of this process, with types that Spark has not."""

    inputs = Schema(at=Timestamp("us", tz="Europe/Madrid"), big=UInt64())
    outputs = Schema(at=Timestamp("ms", tz="Europe/Madrid"), big=UInt64())

    def postprocess(self, outputs, batch: Batch):
        return {"at": outputs["at"].astype("datetime64[ms]"), "big": outputs["big"]}


def test_types_that_spark_lacks_are_widened_and_read_back_from_it(session, tmp_path: Path) -> None:
    from pyspark import cloudpickle

    rows = pa.table(
        {
            "at": pa.array([1_700_000_000_123_000, 0], pa.timestamp("us", tz="Europe/Madrid")),
            "big": pa.array([2**64 - 1, 7], pa.uint64()),
        }
    )
    frame = session.read.parquet(written(tmp_path / "in", rows))
    assert frame.schema["big"].dataType.simpleString() == "decimal(20,0)"
    cloudpickle.register_pickle_by_value(sys.modules[Wide.__module__])
    try:
        found = score(frame, Wide, columns=[]).toArrow()
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[Wide.__module__])
    assert [int(cast("Any", value)) for value in found["big"].to_pylist()] == [2**64 - 1, 7]
    assert (
        found["at"].cast(pa.timestamp("us", tz="UTC")).equals(rows["at"].cast(pa.timestamp("us", tz="UTC")))
    )


def test_what_cannot_work_is_refused_before_a_row_is_scored(session) -> None:
    frame = session.createDataFrame(troubled_orders(10))
    with pytest.raises(SchemaError, match=r"column 'price' .* is missing.*column 'quantity' .* is missing"):
        score(frame.select("id"), ORDERS)
    with pytest.raises(SchemaError, match="'total' is an output of handler orders, too"):
        score(frame.withColumn("total", frame["id"]), ORDERS)
    with pytest.raises(SchemaError, match="'idd' is not there; did you mean 'id'"):
        score(frame, ORDERS, columns=["idd"])
    with pytest.raises(ConfigError, match="which only a DataFrame read from Parquet files has"):
        score(frame, ORDERS, identity=True)
    with pytest.raises(ConfigError, match="Spark chooses the GPU; write device = 'cuda'"):
        score(frame, ORDERS, profile=Profile(device="cuda:1"))


def test_a_task_without_the_gpu_that_the_profile_asks_for_is_told_what_to_set(session) -> None:
    frame = session.createDataFrame(troubled_orders(10))
    with pytest.raises(Exception, match=r"Spark gave this task none: set spark\.task\.resource\.gpu\.amount"):
        score(frame, ORDERS, profile=Profile(device="cuda")).collect()


def test_the_device_is_the_address_that_spark_assigned() -> None:
    from pyspark.resource import ResourceInformation

    assert device_of({"gpu": ResourceInformation("gpu", ["3"])}) == "cuda:3"
    with pytest.raises(ConfigError, match="gave this task none"):
        device_of({})
