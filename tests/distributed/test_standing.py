"""A standing process is started once, answers in row order, and is ended when it hangs or dies."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pyarrow as pa
import pytest

from parity.distributed.standing import Standing
from parity.errors import CertificateError, FingerprintError, RunnerError
from parity.registry import load_handler
from tests.batch.jobs import ORDERS, orders
from tests.distributed import echo_process
from tests.distributed.rows import scored_here, troubled_orders

MODULE = "tests.distributed.echo_process"

pytestmark = pytest.mark.slow


@pytest.fixture
def standing() -> Generator[Standing]:
    found = Standing(MODULE, "runner echo", timeout_s=60)
    yield found
    found.close()


def rows_with(signal: int) -> pa.Table:
    table = orders(5).select(["price", "quantity"])
    return table.set_column(1, "quantity", pa.array([1, 2, 3, 4, signal], pa.int64()))


def replay(standing: Standing, rows: pa.Table):
    loaded = load_handler(ORDERS)
    return standing.replay(loaded, rows, loaded.profile())


def test_one_process_answers_all_jobs_in_row_order(standing: Standing) -> None:
    rows = troubled_orders(200).select(["price", "quantity"])
    assert replay(standing, rows).to_table().equals(scored_here(rows))
    process = standing._process
    shuffled = rows_with(echo_process.SHUFFLE)
    assert replay(standing, shuffled).to_table().equals(scored_here(shuffled))
    assert replay(standing, rows.slice(0, 0)).num_rows == 0
    assert standing._process is process


def test_another_environment_gets_another_process(
    standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay(standing, rows_with(1))
    process = standing._process
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    replay(standing, rows_with(1))
    assert standing._process is not process
    assert process is not None
    assert process.poll() == 0, "the one before has ended in order"


@pytest.mark.parametrize(
    ("signal", "message"),
    [
        (echo_process.LOSE, "4 answers of 4 rows came back for 5 rows"),
        (echo_process.DOUBLE, "6 answers of 5 rows came back for 5 rows"),
    ],
)
def test_a_row_that_is_lost_or_doubled_is_an_error(standing: Standing, signal: int, message: str) -> None:
    with pytest.raises(RunnerError, match=message):
        replay(standing, rows_with(signal))


def test_a_refusal_stays_one(standing: Standing) -> None:
    with pytest.raises(FingerprintError, match="no certificate holds here") as caught:
        replay(standing, rows_with(echo_process.REFUSE))
    assert caught.value.exit_code == CertificateError.exit_code


def test_a_process_that_dies_is_told_and_the_next_job_starts_another(standing: Standing) -> None:
    with pytest.raises(RunnerError, match=r"ended with code 9:\n  .*a library prints"):
        replay(standing, rows_with(echo_process.DIE))
    assert replay(standing, rows_with(1)).num_rows == 5


def test_a_process_that_went_away_while_idle_is_started_again(standing: Standing) -> None:
    replay(standing, rows_with(1))
    assert standing._process is not None
    standing._process.kill()
    standing._process.wait()
    assert replay(standing, rows_with(1)).num_rows == 5


def test_a_process_that_went_away_just_when_it_was_asked_is_started_again(
    standing: Standing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(echo_process.MARKS, str(tmp_path))
    assert replay(standing, rows_with(echo_process.GO)).num_rows == 5
    assert len([mark for mark in tmp_path.iterdir() if mark.name != "ended"]) == 2


def test_one_that_ends_in_order_without_an_answer_again_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ends_at_once.py").write_text("print(end='')\n")
    code = (
        "from parity.distributed.standing import Standing\n"
        "from tests.distributed.test_standing import replay, rows_with\n"
        "replay(Standing('ends_at_once', 'runner echo'), rows_with(1))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path.cwd())])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert "RunnerError: runner echo on handler" in done.stderr
    assert "ended with code 0" in done.stderr


def test_a_job_ends_in_order_when_who_asked_is_killed(tmp_path: Path) -> None:
    code = (
        "from parity.distributed.standing import Standing\n"
        "from tests.distributed.test_standing import MODULE, echo_process, replay, rows_with\n"
        "replay(Standing(MODULE, 'runner echo'), rows_with(echo_process.HANG))"
    )
    environment = {**os.environ, echo_process.MARKS: str(tmp_path)}
    asker = subprocess.Popen([sys.executable, "-c", code], env=environment)
    while not (asked := list(tmp_path.iterdir())):
        with contextlib.suppress(subprocess.TimeoutExpired):
            pytest.fail(f"ended with {asker.wait(0.05)}")
    ending = os.pidfd_open(int(asked[0].name))
    try:
        asker.kill()
        asker.wait()
        ready, _, _ = select.select([ending], [], [], 20)
        assert ready, "the process of the job outlives who asked"
        assert (tmp_path / "ended").exists()
    finally:
        os.close(ending)


def test_a_process_that_hangs_is_ended_after_its_time() -> None:
    hanging = Standing(MODULE, "runner echo", timeout_s=3)
    with pytest.raises(RunnerError, match="no answer within 3 s, and it was ended"):
        replay(hanging, rows_with(echo_process.HANG))
    assert hanging._process is None


def test_it_ends_with_the_process_that_started_it() -> None:
    code = (
        "from parity.distributed.standing import Standing\n"
        "from parity.registry import load_handler\n"
        "from tests.distributed.test_standing import MODULE, ORDERS, rows_with\n"
        "standing = Standing(MODULE, 'runner echo')\n"
        "standing.replay(load_handler(ORDERS), rows_with(1), load_handler(ORDERS).profile())\n"
        "print(standing._process.pid)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
