"""`--batch-rows auto`: measured once, before the first row; recorded, told, and used by everybody."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity import Batch, Handler, Int64, Schema
from parity.engine import Engine
from parity.errors import ConfigError, ResumeError
from parity.failures import ENGINE_LOGGER
from parity.profile import Profile
from parity.registry import load_handler
from parity.sizing import Sizing
from parity_batch import Settings, preview, score, sizing, stream
from parity_batch.page import page
from parity_batch.prepared import prepare
from parity_batch.sizing import sample_rows, size_up, sizes_of
from tests.batch.jobs import TRAYS, command, contents, read_parts, run, run_and_kill, write_numbers
from tests.batch.test_engines import Processes

AUTO = Settings(batch_rows="auto")


def manifest_rows(output: Path) -> int:
    return json.loads((output / "_manifest.json").read_text())["batch_rows"]


def measured(found: Sizing | None) -> list[int]:
    assert found is not None
    return [timing.rows for timing in found.timings]


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trays that take long beside all else, and time enough, for a machine that does other things, too."""
    monkeypatch.setenv("TRAY_S", "0.05")
    monkeypatch.setattr(sizing, "_LEAST_BUDGET_S", 30.0)
    monkeypatch.setattr(sizing, "_BUDGET_S", 30.0)


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried")
def test_the_size_is_taken_from_which_more_rows_bring_nothing(tmp_path: Path) -> None:
    write_numbers(tmp_path / "in", range(5000), range(2000))
    found = score(tmp_path / "in", tmp_path / "out", TRAYS, settings=AUTO)
    assert found.sizing is not None
    assert (found.batch_rows, found.sizing.rows, manifest_rows(tmp_path / "out")) == (256, 256, 256)
    assert measured(found.sizing) == [64, 128, 256, 512, 1024]
    scored = read_parts(tmp_path / "out")
    assert scored.column("y").to_pylist() == [2 * x + 1 for x in (*range(5000), *range(2000))]
    assert set(scored.column("rows").to_pylist()) == {256, 5000 % 256, 2000 % 256}
    assert "\n--batch-rows auto: 256 rows, beyond which a batch brings less than 5% more" in found.describe()
    told = json.loads((tmp_path / "out" / "_summary.json").read_text())
    assert (told["batch_rows"], told["sizing"]["rows"]) == (256, 256)
    assert [item["rows"] for item in told["sizing"]["measured"]] == [64, 128, 256, 512, 1024]
    html = page(found)
    assert "Micro-batches that were tried" in html
    assert "256 rows: beyond which" in html

    given = score(tmp_path / "in", tmp_path / "given", TRAYS, settings=Settings(batch_rows=256))
    assert contents(tmp_path / "given") == contents(tmp_path / "out")
    assert (given.batch_rows, given.sizing, given.to_dict()["sizing"]) == (256, None, None)
    assert "Micro-batches that were tried" not in page(given)


@pytest.mark.slow
def test_a_killed_job_keeps_its_size_and_measures_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_numbers(tmp_path / "in", *(range(20_000) for _ in range(12)))
    arguments = (TRAYS, tmp_path / "in", tmp_path / "out", "--batch-rows", "auto", "--workers", 1)
    assert run_and_kill(arguments, lambda: len(list((tmp_path / "out").glob("part-*"))) > 1)
    rows = manifest_rows(tmp_path / "out")
    log = tmp_path / "sizes"
    monkeypatch.setenv("TRAYS_LOG", str(log))
    resumed = run(*arguments, "--json")
    assert resumed.returncode == 0, resumed.stderr
    told = json.loads(resumed.stdout)
    assert told["sizing"] == {"rows": rows, "reason": "as the job was begun with", "measured": []}
    assert told["resumed_parts"] > 0
    assert {int(line) for line in log.read_text().split()} == {rows, 20_000 % rows} - {0}
    whole = run(TRAYS, tmp_path / "in", tmp_path / "whole", "--batch-rows", rows)
    assert whole.returncode == 0, whole.stderr
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_job_that_is_continued_without_saying_auto_is_told_the_size_that_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with auto it goes on, too."""
    monkeypatch.setattr(sizing, "_BUDGET_S", 0.03)  # the smallest size, as a row takes 5 ms
    write_numbers(tmp_path / "in", range(3000))
    begun = score(tmp_path / "in", tmp_path / "out", TRAYS, settings=AUTO)
    (tmp_path / "out" / "_SUCCESS").unlink()
    told = rf"batch_rows: was {begun.batch_rows}, is 1024; --batch-rows {begun.batch_rows} continues the job$"
    with pytest.raises(ResumeError, match=told):
        score(tmp_path / "in", tmp_path / "out", TRAYS)
    for settings in (Settings(batch_rows=begun.batch_rows), AUTO):
        found = score(tmp_path / "in", tmp_path / "out", TRAYS, settings=settings)
        assert (found.resumed_parts, found.scored_rows) == (1, 0)


@pytest.mark.slow
def test_restart_measures_again(tmp_path: Path) -> None:
    write_numbers(tmp_path / "in", range(5000))
    score(tmp_path / "in", tmp_path / "out", TRAYS, settings=Settings(batch_rows=50))
    found = score(tmp_path / "in", tmp_path / "out", TRAYS, settings=AUTO)
    assert (found.batch_rows, str(found.sizing)) == (50, "auto: 50 rows, as the job was begun with")
    again = Settings(batch_rows="auto", restart=True)
    assert measured(score(tmp_path / "in", tmp_path / "out", TRAYS, settings=again).sizing)[:2] == [64, 128]


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried")
def test_another_process_uses_what_was_measured_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_numbers(tmp_path / "in", range(5000), range(2000))
    log = tmp_path / "sizes"
    monkeypatch.setenv("TRAYS_LOG", str(log))
    settings = Settings(batch_rows="auto", engine=Processes(), workers=2)
    found = score(tmp_path / "in", tmp_path / "out", TRAYS, settings=settings)
    assert found.batch_rows == manifest_rows(tmp_path / "out") == 256
    assert set(read_parts(tmp_path / "out").column("rows").to_pylist()) == {256, 5000 % 256, 2000 % 256}
    assert log.read_text().split().count("1") == 2  # each warm-up scores one row twice: one process did


@pytest.mark.slow
def test_rows_that_fail_while_measuring_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    numbers = [-1 if row % 500 == 7 else row for row in range(4000)]
    write_numbers(tmp_path / "in", numbers)
    failed = {}
    for name, settings in (("auto", AUTO), ("given", Settings(batch_rows=64))):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            found = score(tmp_path / "in", tmp_path / name, TRAYS, settings=settings)
        told = [record for record in caplog.records if "event=row_failed" in record.getMessage()]
        assert len(told) == 3  # of a kind, as in any job
        assert (found.rows, found.row_errors) == (4000, {"failed": 8})
        errors = pq.ParquetFile(tmp_path / name / "_errors" / "part-00000-u00000.parquet").read()
        failed[name] = errors.column("_row").to_pylist()
    assert failed["auto"] == failed["given"] == list(range(7, 4000, 500))


@pytest.mark.slow
def test_other_jobs_of_the_process_log_while_one_measures(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_numbers(tmp_path / "in", [-1, *range(299)])
    job = ready(tmp_path / "in")

    def load() -> Engine:
        log = logging.getLogger(ENGINE_LOGGER)
        other = threading.Thread(target=log.warning, args=("event=row_failed handler=other",))
        other.start()
        other.join()
        return engine

    with Engine(job.loaded, job.profile) as engine:
        assert size_up(job, load).timings
    assert [record.getMessage() for record in caplog.records] == ["event=row_failed handler=other"]


@pytest.mark.slow
def test_a_dry_run_measures_and_tells(tmp_path: Path) -> None:
    write_numbers(tmp_path / "in", range(3000))
    found = preview(tmp_path / "in", TRAYS, settings=AUTO)
    assert found.sizing is not None
    assert found.batch_rows == found.sizing.rows
    assert "--batch-rows auto: " in found.describe()
    assert "a job that is begun measures again" in found.describe()
    assert found.to_dict()["sizing"]["measured"][0]["rows"] == 64
    plain = preview(tmp_path / "in", TRAYS)
    assert (plain.batch_rows, plain.sizing, plain.to_dict()["sizing"]) == (1024, None, None)


@pytest.mark.parametrize("rows", [0, 1, 63, 100])
def test_too_few_rows_to_measure_with_take_the_default(tmp_path: Path, rows: int) -> None:
    write_numbers(tmp_path / "in", range(rows))
    found = score(tmp_path / "in", tmp_path / "out", TRAYS, settings=AUTO)
    assert str(found.sizing) == f"auto: 1024 rows, for {rows} rows to measure with are too few"
    assert (found.rows, manifest_rows(tmp_path / "out")) == (rows, 1024)


def sized_up(job: Any) -> Sizing:
    with Engine(job.loaded, job.profile) as engine:
        return size_up(job, lambda: engine)


def ready(inputs: Path, **settings: Any) -> Any:
    return prepare(inputs, TRAYS, (), Settings(batch_rows="auto", **settings), None)


def test_the_sample_comes_from_the_first_unit_that_has_rows_and_is_bounded(tmp_path: Path) -> None:
    write_numbers(tmp_path / "in", [], [], range(100_000), range(7), row_group_rows=30_000)
    sample = sample_rows(ready(tmp_path / "in"))
    assert sample is not None
    assert sample.column("x").to_pylist() == list(range(16384))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_condition_that_holds_late_does_not_read_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Statistics do not tell that it holds nowhere in the first row groups: values lie on both sides."""
    monkeypatch.setattr(sizing, "_SAMPLE_BYTES", 1)
    monkeypatch.setattr(stream, "READ_BYTES", 8000)
    early = [0, 400_000] * 50_000
    inputs = write_numbers(tmp_path / "in", [*early, *range(200_000, 250_000)])
    if form == "arrow":
        inputs = tmp_path / "rows.arrow"
        table = pq.read_table(tmp_path / "in")
        with pa.ipc.new_file(str(inputs), table.schema) as writer:
            writer.write_table(table, max_chunksize=1000)
    first = sample_rows(ready(inputs, where="x < 1 or x > 300000"))
    assert first is not None
    assert first.num_rows == 16384
    late = "x >= 200000 and x < 300000"
    assert sample_rows(ready(inputs, where=late)) is None
    settings = Settings(batch_rows="auto", where=late)
    found = score(inputs, tmp_path / "out", TRAYS, settings=settings)
    assert (found.rows, found.batch_rows) == (50_000, 1024)


def test_a_unit_that_cannot_be_read_is_left_to_the_job(tmp_path: Path) -> None:
    write_numbers(tmp_path / "in", range(3000), range(3000, 3200))
    first = tmp_path / "in" / "0.parquet"
    data = bytearray(first.read_bytes())
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:end] = b"\xff" * (end - 4)
    first.write_bytes(data)
    sample = sample_rows(ready(tmp_path / "in"))
    assert sample is not None
    assert sample.column("x").to_pylist() == list(range(3000, 3200))


def test_an_exact_profile_measures_nothing(tmp_path: Path) -> None:
    write_numbers(tmp_path / "in", range(3000))
    job = ready(tmp_path / "in")
    exact = type(job)(job.loaded, job.settings, Profile(exact=True, buckets=(48,)), job.plan)

    def load() -> Any:
        raise AssertionError

    found = size_up(exact, load)
    assert (found.rows, found.timings) == (1008, ())
    assert found.reason == "which fills the largest bucket that its certificate proves exact"


@pytest.mark.parametrize(
    ("buckets", "sizes"),
    [
        ((), [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]),
        ((16, 4096), [16, 4096, 8192, 16384]),
        ((6000,), [6000, 12000]),
        ((20000,), [20000]),
        ((64, 20000), [64, 20000]),
    ],
)
def test_buckets_are_tried_and_then_whole_ones_of_the_largest(
    buckets: tuple[int, ...], sizes: list[int]
) -> None:
    assert sizes_of(Profile(buckets=buckets)) == sizes


@pytest.mark.slow
def test_a_profile_with_buckets_takes_whole_ones(tmp_path: Path) -> None:
    write_numbers(tmp_path / "in", range(5000))
    profile = load_handler(TRAYS).profile("bucket")
    settings = Settings(batch_rows="auto", profile=profile)
    found = score(tmp_path / "in", tmp_path / "out", TRAYS, settings=settings)
    assert measured(found.sizing)[:2] == [48, 96]
    assert found.batch_rows % 48 == 0


def test_a_slow_model_is_not_measured_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_numbers(tmp_path / "in", range(3000))
    monkeypatch.setattr(sizing, "_BUDGET_S", 0.03)  # a row takes 5 ms, and 8 may take 40
    found = score(tmp_path / "in", tmp_path / "out", TRAYS, settings=AUTO)
    assert found.batch_rows == 64
    assert str(found.sizing).startswith("auto: 64 rows, the smallest, for a batch of 1 takes 0.0")


@pytest.mark.slow
def test_the_budget_ends_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_numbers(tmp_path / "in", range(5000))
    monkeypatch.setenv("TRAY_S", "0.2")
    monkeypatch.setattr(sizing, "_WARM_ROWS", ())
    # One of 64 rows, and two to measure it, take 0.6 s; two of 128 would take as long again, and more.
    monkeypatch.setattr(sizing, "_LEAST_BUDGET_S", 1.0)
    monkeypatch.setattr(sizing, "_JOB_SHARE", 0.0)
    found = sized_up(ready(tmp_path / "in"))
    assert measured(found) == [64]
    assert "to measure one of 128 would take more than the 1 s that measuring may" in str(found)


class Slow(Handler):
    """Every row takes as long; tells how many rows it saw."""

    inputs = Schema(x=Int64())
    outputs = Schema(y=Int64())
    row_s, rows = 0.0, 0

    def preprocess(self, batch: Batch) -> Any:
        Slow.rows += batch.num_rows
        time.sleep(self.row_s * batch.num_rows)
        return batch["x"].numpy()

    def inference(self, inputs: Any) -> Any:
        return inputs

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, object]:
        return {"y": outputs}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("buckets", "row_s", "size", "rows"),
    [((), 0.005, 64, 10), ((32, 64), 0.005, 32, 10), ((1, 64), 0.06, 1, 2)],
)
def test_a_short_job_of_slow_rows_is_not_measured_for_longer_than_its_share(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    buckets: tuple[int, ...],
    row_s: float,
    size: int,
    rows: int,
) -> None:
    """Its smallest size neither: the first few rows tell that two batches of it would take too long."""
    write_numbers(tmp_path / "in", range(200))
    monkeypatch.setattr(Slow, "row_s", row_s)
    monkeypatch.setattr(Slow, "rows", 0)
    monkeypatch.setattr(sizing, "_LEAST_BUDGET_S", 0.1)
    monkeypatch.setattr(sizing, "_JOB_SHARE", 0.0)
    settings = Settings(batch_rows="auto", profile=Profile(buckets=buckets))
    found = sized_up(prepare(tmp_path / "in", Slow, (), settings, None))
    assert (found.rows, found.timings) == (size, ())
    assert 2 <= Slow.rows <= rows


def test_what_is_neither_a_number_nor_auto_is_refused(tmp_path: Path, handler: Path) -> None:
    expected = "batch_rows = 'fast' is neither a number of rows nor 'auto'"
    with pytest.raises(ConfigError, match=expected):
        Settings(batch_rows="fast")  # type: ignore[arg-type]
    write_numbers(tmp_path / "in", range(3))
    with (handler / "handler.toml").open("a") as file:
        file.write('\n[batch]\nbatch_rows = "fast"\n')
    with pytest.raises(ConfigError, match="batch_rows = 'fast' is not a whole number or 'auto'"):
        score(tmp_path / "in", tmp_path / "out", handler)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fast", "batch_rows = 'fast' is neither a number of rows nor 'auto'"),
        ("0", "batch_rows = 0 must be at least 1"),
        ("-3", "batch_rows = -3 must be at least 1"),
        ("", "batch_rows = '' is neither a number of rows nor 'auto'"),
    ],
)
def test_the_command_refuses_other_words(tmp_path: Path, text: str, expected: str) -> None:
    write_numbers(tmp_path / "in", range(3))
    done = run(TRAYS, tmp_path / "in", tmp_path / "out", f"--batch-rows={text}")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert expected in " ".join(done.stderr.split())


@pytest.mark.slow
def test_handler_toml_may_say_auto_and_a_pipe_takes_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = Path(shutil.copytree(TRAYS, tmp_path / "trays"))
    with (handler / "handler.toml").open("a") as file:
        file.write('\n[batch]\nbatch_rows = "auto"\n')
    write_numbers(tmp_path / "in", range(3000))
    assert score(tmp_path / "in", tmp_path / "out", handler).sizing is not None
    rows = "".join(f'{{"x": {x}}}\n' for x in range(1500))
    piped = subprocess.run(
        command(handler, "-", "-"), input=rows, capture_output=True, text=True, check=False
    )
    assert piped.returncode == 0, piped.stderr
    assert json.loads(piped.stdout.splitlines()[0])["rows"] == 1024
    refused = subprocess.run(
        command(handler, "-", "-", "--batch-rows", "auto"),
        input=rows, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--batch-rows auto measures rows of files" in " ".join(refused.stderr.split())


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried")
def test_micro_batches_are_measured_one_by_one_where_stages_are_overlapped(tmp_path: Path) -> None:
    write_numbers(tmp_path / "in", np.arange(5000).tolist())
    settings = Settings(batch_rows="auto", preprocess_workers=1, workers=1)
    found = score(tmp_path / "in", tmp_path / "out", TRAYS, settings=settings)
    assert found.batch_rows == 256
    assert set(read_parts(tmp_path / "out").column("rows").to_pylist()) == {256, 5000 % 256}
