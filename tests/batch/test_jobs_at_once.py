"""Jobs that overlap in one process: each logs its own failures, as it was told to."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity import Handler, Int64, Schema
from parity.errors import ParityError
from parity.failures import ENGINE_LOGGER, TOLD_OF_A_KIND
from parity_batch import Settings, score

ROWS = 40
SECRET = "poison of job "


@pytest.fixture
def told() -> Generator[io.StringIO]:
    """What the engine logs, as plain text."""
    logger = logging.getLogger(ENGINE_LOGGER)
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(logging.Formatter())
    filters = list(logger.filters)
    logger.addHandler(handler)
    yield handler.stream
    logger.removeHandler(handler)
    assert logger.filters == filters


def failing(meet: threading.Barrier) -> type[Handler]:
    """Give a handler whose every row fails at one line, when both jobs have begun."""

    class Fails(Handler):
        inputs = Schema(job=Int64())
        outputs = Schema(answer=Int64())

        def load(self, context: Any) -> None:
            meet.wait(60)

        def preprocess(self, batch: Any) -> Any:
            raise ValueError(f"{SECRET}{batch['job'].numpy()[0]}")

        def inference(self, inputs: Any) -> Any:
            return inputs

        def postprocess(self, outputs: Any, batch: Any) -> Any:
            return {"answer": outputs}

    return Fails


def run_both(tmp_path: Path, more: dict[str, Any], *, texts: tuple[bool, bool]) -> None:
    """Run two jobs at once, on threads, whose rows all fail; as many engines are loaded by each."""
    meet = threading.Barrier(2)
    errors: list[BaseException] = []

    def run(job: int) -> None:
        settings = Settings(max_errors="100%", batch_rows=5, log_failures=texts[job], **more)
        try:
            found = score(tmp_path / f"in{job}", tmp_path / f"out{job}", failing(meet), settings=settings)
            assert found.failed_rows == ROWS
        except (AssertionError, ParityError, threading.BrokenBarrierError) as exc:
            errors.append(exc)
            meet.abort()

    for job in (0, 1):
        (tmp_path / f"in{job}").mkdir()
        pq.write_table(pa.table({"job": pa.array([job] * ROWS)}), tmp_path / f"in{job}" / "a.parquet")
    threads = [threading.Thread(target=run, args=(job,)) for job in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []


WAYS = [{"workers": 1}, {"workers": 2}, {"workers": 1, "preprocess_workers": 1}]
"""One engine on one thread; two that share a unit; stages that overlap on threads of their own."""


@pytest.mark.parametrize("more", WAYS)
def test_each_job_logs_its_own_first_failures(
    tmp_path: Path, told: io.StringIO, more: dict[str, Any]
) -> None:
    run_both(tmp_path, more, texts=(True, True))
    text = told.getvalue()
    for job in (0, 1):
        assert text.count(f"ValueError: {SECRET}{job}") == TOLD_OF_A_KIND
    assert text.count("more like this one are not logged") == 2


@pytest.mark.parametrize("more", WAYS)
def test_each_job_logs_texts_or_none_as_it_was_told(
    tmp_path: Path, told: io.StringIO, more: dict[str, Any]
) -> None:
    run_both(tmp_path, more, texts=(True, False))
    text = told.getvalue()
    assert text.count(f"ValueError: {SECRET}0") == TOLD_OF_A_KIND
    assert f"{SECRET}1" not in text
    assert text.count("event=row_failed") == 2 * TOLD_OF_A_KIND
