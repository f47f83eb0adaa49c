"""`parity batch --engine ray`: the same bytes as the local engine's, also when an actor is killed."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any, cast

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.batch_engines import batch_engine_names, find_batch_engine
from parity.errors import ConfigError, FingerprintError, RowsError, RunnerError
from parity_batch import Settings, plan, score
from parity_ray import units
from parity_ray.units import RETRIES, RayBatchEngine
from tests.batch.deletes import delete_of_delta
from tests.batch.jobs import ORDERS, contents, orders, read_parts, run
from tests.distributed.deadly import dataset, deadly_orders, deaths
from tests.distributed.elsewhere import another_version

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings("ignore"),  # Ray warns of its own code
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
    cluster: None, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = score(inputs, "here", ORDERS, columns=["id"])
    there = score("in", "there", ORDERS, columns=["id"], settings=Settings(engine="ray", workers=2))
    assert (there.engine, there.parts) == ("ray", here.parts)
    assert there.parts > 8
    assert there.row_errors == here.row_errors
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    (tmp_path / "there" / "part-00002-u00000.parquet").unlink()
    again = score("in", "there", ORDERS, columns=["id"], settings=Settings(engine="ray"))
    assert again.resumed_parts == here.parts - 1
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_rows_that_a_table_has_deleted_are_left_out(cluster: None, tmp_path: Path) -> None:
    table = tmp_path / "table"
    for first in range(0, 2000, 500):
        deltalake.write_deltalake(table, orders(500, first), mode="append")
    delete_of_delta(table, 1, [[0, *range(90, 140), 499]])
    here = score(table, tmp_path / "here", ORDERS, columns=["id"])
    settings = Settings(engine="ray", workers=2)
    there = score(table, tmp_path / "there", ORDERS, columns=["id"], settings=settings)
    assert here.rows == there.rows == 1948
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_an_actor_that_is_killed_loses_and_doubles_nothing(
    cluster: None, inputs: Path, tmp_path: Path
) -> None:
    handler = deadly_orders(tmp_path, deaths=2)
    score(inputs, tmp_path / "there", handler, columns=["id"], settings=Settings(engine="ray", workers=2))
    assert deaths(handler) == 2
    score(inputs, tmp_path / "here", handler, columns=["id"])
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_a_unit_that_kills_every_actor_ends_the_job_and_is_named(
    cluster: None, inputs: Path, tmp_path: Path
) -> None:
    handler = deadly_orders(tmp_path, deaths=RETRIES + 1)
    with pytest.raises(RunnerError, match=r"unit part-00001-u0000\d killed each of 4 actors"):
        score(inputs, tmp_path / "out", handler, settings=Settings(engine="ray", workers=1))
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    score(inputs, tmp_path / "out", handler)  # the four deaths are past: the same job, continued here
    score(inputs, tmp_path / "here", handler)
    assert contents(tmp_path / "out") == contents(tmp_path / "here")


def test_errors_of_a_task_and_of_the_job_end_it(cluster: None, inputs: Path, tmp_path: Path) -> None:
    with pytest.raises(RowsError, match="rows failed and --max-errors allows 1"):
        score(inputs, tmp_path / "out", ORDERS, settings=Settings(engine="ray", max_errors=1))
    handler = deadly_orders(tmp_path, deaths=0)

    class Changing(RayBatchEngine):
        def run(self, units, task, *, workers, device):
            (handler / "artifacts" / "factor.json").write_text("9")
            return super().run(units, task, workers=workers, device=device)

    with pytest.raises(FingerprintError, match="its artifacts on this worker"):
        score(inputs, tmp_path / "out2", handler, settings=Settings(engine=cast("Any", Changing())))
    with pytest.raises(
        ConfigError, match=r"9 workers need 9 CPUs .* this cluster has 3 .* at most --workers 3"
    ):
        score(inputs, tmp_path / "out3", ORDERS, settings=Settings(engine="ray", workers=9))


def test_an_actor_with_another_version_of_a_library_ends_the_job(
    cluster: None, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    shadow = os.pathsep.join([another_version(tmp_path / "elsewhere"), os.environ.get("PYTHONPATH", "")])
    elsewhere = functools.partial(ray.remote, runtime_env={"env_vars": {"PYTHONPATH": shadow}})
    monkeypatch.setattr(ray, "remote", lambda **options: elsewhere(**options))
    settings = Settings(engine="ray", workers=1)
    with pytest.raises(FingerprintError, match=r"numpy 1\.0\.1 in place of "):
        score(inputs, tmp_path / "out", ORDERS, settings=settings)
    assert not (tmp_path / "out" / "_SUCCESS").exists()


def test_options_are_checked() -> None:
    assert {"local", "ray", "spark"} <= set(batch_engine_names())
    engine = find_batch_engine("ray", {"num_cpus": "0.5", "address": "auto"})
    assert engine == RayBatchEngine(address="auto", num_cpus=0.5)
    with pytest.raises(ConfigError, match="has no option 'num_cpu'; did you mean 'num_cpus'"):
        find_batch_engine("ray", {"num_cpu": "1"})
    with pytest.raises(ConfigError, match="num_gpus = 'two' is not a number of at least 0"):
        find_batch_engine("ray", {"num_gpus": "two"})


def test_what_ray_lost_and_what_died_is_told_as_an_error_of_the_runner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ray
    from ray import exceptions

    class TaskError(Exception):
        pass

    def outcome(exc: Exception, what: str) -> BaseException:
        def get(reference: object) -> object:
            raise exc

        monkeypatch.setattr(ray, "get", get)
        with pytest.raises(Exception, match="") as caught:  # noqa: PT011 - whatever it is
            units._got(object(), what)
        return caught.value

    for exc, what, said in (
        (exceptions.RayActorError(), "an actor", "an actor could not be started: "),
        (exceptions.RayActorError(), "unit part-1", "unit part-1 killed each of 4 actors"),
        (exceptions.ObjectLostError("00", None, ""), "unit part-1", "Ray lost unit part-1: ObjectLostError"),
        (exceptions.RaySystemError("no raylet"), "an actor", "Ray lost an actor: RaySystemError"),
    ):
        found = outcome(exc, what)
        assert isinstance(found, RunnerError)
        assert said in str(found)
    bad = TaskError("of the task")
    assert outcome(exceptions.RayTaskError("score", "traceback", bad), "unit part-1") is bad


def test_a_cluster_that_lost_its_nodes_for_good_ends_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    room = [(0.0, 0.0)]
    monkeypatch.setattr(units, "cluster_resources", lambda: room[0])
    patient, hasty = RayBatchEngine(start_timeout_s=60.0), RayBatchEngine(start_timeout_s=0.0)
    since = patient._lacking(None, 0.0)
    assert since is not None
    assert patient._lacking(since, 0.0) == since, "nodes may come back"
    with pytest.raises(RunnerError, match=r"an actor needs 1 CPUs and 0 GPUs, and for .* only 0 and 0"):
        hasty._lacking(since - 1, 0.0)
    room[0] = (1.0, 0.0)
    assert hasty._lacking(since - 1, 0.0) is None
    assert hasty._lacking(None, 1.0) is not None, "a GPU is needed, and there is none"


def test_the_command_starts_a_cluster_of_its_own_and_ends_it(tmp_path: Path) -> None:
    folder = dataset(tmp_path / "in")
    done = run(ORDERS, folder, tmp_path / "there", "--columns", "id", "--engine", "ray", "--workers", "1")
    assert done.returncode == 0, done.stderr
    score(folder, tmp_path / "here", ORDERS, columns=["id"])
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_ray_reads_what_the_batch_runner_writes(cluster: None, inputs: Path, tmp_path: Path) -> None:
    import ray
    import ray.data

    score(inputs, tmp_path / "out", ORDERS, columns=["id"])
    parts = ray.data.read_parquet(str(tmp_path / "out"), file_extensions=["parquet"])
    found = pa.concat_tables(cast("Any", ray).get(parts.to_arrow_refs())).sort_by("id")
    expected = read_parts(tmp_path / "out").sort_by("id")
    assert found.select(expected.column_names).equals(expected)
