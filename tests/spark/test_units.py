"""`parity batch --engine spark`: the same bytes as the local engine's, also when a worker is killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.batch_engines import find_batch_engine
from parity.distributed.environment import LENIENT_VARIABLE
from parity.errors import ConfigError, FingerprintError, RowsError
from parity_batch import Settings, plan, score
from parity_spark.units import SparkBatchEngine
from tests.batch.deletes import delete_of_delta
from tests.batch.jobs import ORDERS, contents, orders, read_parts
from tests.distributed.deadly import dataset, deadly_orders, deaths
from tests.distributed.elsewhere import another_version

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings("ignore"),  # Spark warns of its own code
]


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(plan, "UNIT_BYTES", 5000)
    folder = dataset(tmp_path / "in")
    bad = orders(200, 3000).set_column(
        2, "quantity", pa.array([666 if row % 50 == 7 else row for row in range(200)])
    )
    pq.write_table(bad, folder / "bad.parquet")
    return folder


def test_units_give_the_same_bytes_and_a_job_may_change_its_engine(
    session, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = score(inputs, "here", ORDERS, columns=["id"])
    there = score("in", "there", ORDERS, columns=["id"], settings=Settings(engine="spark"))
    assert (there.engine, there.parts) == ("spark", here.parts)
    assert there.parts > 8
    assert there.row_errors == here.row_errors
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    (tmp_path / "there" / "part-00002-u00000.parquet").unlink()
    again = score("in", "there", ORDERS, columns=["id"], settings=Settings(engine="spark", workers=2))
    assert again.resumed_parts == here.parts - 1
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_rows_that_a_table_has_deleted_are_left_out(session, tmp_path: Path) -> None:
    table = tmp_path / "table"
    for first in range(0, 2000, 500):
        deltalake.write_deltalake(table, orders(500, first), mode="append")
    delete_of_delta(table, 1, [[0, *range(90, 140), 499]])
    here = score(table, tmp_path / "here", ORDERS, columns=["id"])
    settings = Settings(engine="spark", workers=2)
    there = score(table, tmp_path / "there", ORDERS, columns=["id"], settings=settings)
    assert here.rows == there.rows == 1948
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_a_worker_that_is_killed_loses_and_doubles_nothing(session, inputs: Path, tmp_path: Path) -> None:
    handler = deadly_orders(tmp_path, deaths=2)
    settings = Settings(engine="spark", workers=2)
    done = score(inputs, tmp_path / "there", handler, columns=["id"], settings=settings)
    assert deaths(handler) == 2
    assert done.rows == 2300
    score(inputs, tmp_path / "here", handler, columns=["id"])
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_errors_of_a_task_and_of_the_job_end_it(session, inputs: Path, tmp_path: Path) -> None:
    with pytest.raises(RowsError, match="rows failed and --max-errors allows 1"):
        score(inputs, tmp_path / "out", ORDERS, settings=Settings(engine="spark", max_errors=1))
    handler = deadly_orders(tmp_path, deaths=0)

    class Changing(SparkBatchEngine):
        def run(self, units, task, *, workers, device):
            (handler / "artifacts" / "factor.json").write_text("9")
            return super().run(units, task, workers=workers, device=device)

    with pytest.raises(FingerprintError, match="its artifacts on this worker"):
        score(inputs, tmp_path / "out2", handler, settings=Settings(engine=cast("Any", Changing())))


def test_spark_reads_what_the_batch_runner_writes(session, inputs: Path, tmp_path: Path) -> None:
    score(inputs, tmp_path / "out", ORDERS, columns=["id"])
    found = session.read.parquet(str(tmp_path / "out")).orderBy("id").toArrow()
    expected = read_parts(tmp_path / "out").sort_by("id")
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        assert found[name].to_pylist() == expected[name].to_pylist(), name
    errors = session.read.parquet(str(tmp_path / "out" / "_errors"))
    assert errors.count() == 4


def test_a_worker_with_another_version_of_a_library_ends_the_job(
    session, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow = another_version(tmp_path / "elsewhere")
    monkeypatch.setitem(session.sparkContext.environment, "PYTHONPATH", shadow)
    settings = Settings(engine="spark", workers=1)
    with pytest.raises(FingerprintError, match=r"numpy 1\.0\.1 in place of "):
        score(inputs, tmp_path / "out", ORDERS, settings=settings)
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    monkeypatch.setenv(LENIENT_VARIABLE, "warn")
    done = score(inputs, tmp_path / "out", ORDERS, settings=settings)
    assert any("a worker's environment differs: numpy 1.0.1" in note for note in done.notes)
    assert done.rows == 2300


def test_options_are_checked(java: None) -> None:
    engine = find_batch_engine("spark", {"master": "local[2]", "spark.executor.memory": "2g"})
    assert engine == SparkBatchEngine("local[2]", {"spark.executor.memory": "2g"})
    with pytest.raises(ConfigError, match="has no option 'mastre'; did you mean 'master'"):
        find_batch_engine("spark", {"mastre": "local"})
