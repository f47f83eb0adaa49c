"""What is logged of failures where many rows are scored."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest

from parity.failures import ENGINE_LOGGER, FewOfAKind, few_of_a_kind, in_a_worker, of_this_job, unlogged

SECRET = "very-" + "secret"  # tracebacks quote the code
ENGINE = logging.getLogger(ENGINE_LOGGER)


@pytest.fixture
def engine_logger() -> Generator[logging.Logger]:
    """The engine's logger, with the filters that it had afterwards."""
    before = list(ENGINE.filters)
    ENGINE.filters[:] = [item for item in before if not isinstance(item, FewOfAKind)]
    yield ENGINE
    ENGINE.filters[:] = before


@pytest.fixture
def told(engine_logger: logging.Logger) -> Generator[io.StringIO]:
    """What the logger tells, as plain text.

    Not by pytest's handler: where pyspark has been imported, a handler that is added gets its formatter.
    """
    handler = logging.StreamHandler(io.StringIO())
    engine_logger.addHandler(handler)
    handler.setFormatter(logging.Formatter())
    yield handler.stream
    engine_logger.removeHandler(handler)


def fail(logger: logging.Logger) -> None:
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as exc:
            raise ValueError(SECRET) from exc
    except ValueError:
        logger.warning("event=row_failed handler=x", exc_info=True)


def test_texts_are_left_out_where_they_are_not_wanted(
    engine_logger: logging.Logger, told: io.StringIO
) -> None:
    with few_of_a_kind():
        fail(engine_logger)
    assert told.getvalue().count(SECRET) >= 2
    told.seek(told.truncate(0))
    with few_of_a_kind(tells_texts=False):
        for _ in range(5):
            fail(engine_logger)
    assert told.getvalue().count("event=row_failed") == 3
    assert told.getvalue().count("\nKeyError\n") == told.getvalue().count("\nValueError\n") == 3
    assert "test_failures.py" in told.getvalue()
    assert SECRET not in told.getvalue()


def test_a_worker_does_what_its_latest_job_wants(engine_logger: logging.Logger, told: io.StringIO) -> None:
    in_a_worker()
    in_a_worker(tells_texts=False)
    fail(engine_logger)
    assert "event=row_failed" in told.getvalue()
    assert SECRET not in told.getvalue()
    in_a_worker()
    fail(engine_logger)
    assert SECRET in told.getvalue()


@pytest.mark.parametrize("everywhere", [False, True])
def test_what_is_not_logged_is_not_counted_either(
    engine_logger: logging.Logger, told: io.StringIO, everywhere: bool
) -> None:
    """A job whose process measures something meanwhile still tells its first failures."""
    with few_of_a_kind():
        with unlogged(everywhere=everywhere):
            for _ in range(5):
                fail(engine_logger)
        assert told.getvalue() == ""
        for _ in range(5):
            fail(engine_logger)
    assert told.getvalue().count("event=row_failed") == 3


def test_a_thread_that_logs_nothing_leaves_others_alone(
    engine_logger: logging.Logger, told: io.StringIO
) -> None:
    with few_of_a_kind(), unlogged():
        other = threading.Thread(target=fail, args=(engine_logger,))
        other.start()
        other.join()
        fail(engine_logger)
    assert told.getvalue().count("event=row_failed") == 1
    assert engine_logger.filters == []


def run_in(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_jobs_that_overlap_count_their_own(engine_logger: logging.Logger, told: io.StringIO) -> None:
    begun = threading.Barrier(2)

    def job(*, tells_texts: bool) -> None:
        with few_of_a_kind(tells_texts=tells_texts):
            begun.wait(30)
            for _ in range(4):
                fail(engine_logger)
            begun.wait(30)

    run_in(*(threading.Thread(target=job, kwargs={"tells_texts": texts}) for texts in (True, False)))
    assert told.getvalue().count("event=row_failed") == 6
    assert told.getvalue().count(f"ValueError: {SECRET}") == 3
    assert engine_logger.filters == []


def test_a_thread_that_a_job_began_is_of_that_job(engine_logger: logging.Logger, told: io.StringIO) -> None:
    with few_of_a_kind():
        with ThreadPoolExecutor(1, "outer", of_this_job()) as outer:
            with few_of_a_kind(tells_texts=False), ThreadPoolExecutor(1, "inner", of_this_job()) as inner:
                for _ in range(4):
                    inner.submit(fail, engine_logger).result()
            assert SECRET not in told.getvalue()
            for _ in range(4):
                outer.submit(fail, engine_logger).result()
        fail(engine_logger)
    assert told.getvalue().count("event=row_failed") == 6


def test_a_thread_that_no_job_named_is_of_every_job(engine_logger: logging.Logger, told: io.StringIO) -> None:
    """An engine's own threads: what they log is too much for nobody, and no text that one job wants kept."""
    in_a_worker()
    with few_of_a_kind(tells_texts=False):
        for _ in range(4):
            run_in(threading.Thread(target=fail, args=(engine_logger,)))
    assert told.getvalue().count("event=row_failed") == 3
    assert SECRET not in told.getvalue()


def test_a_worker_among_jobs_leaves_them_what_they_were_told(
    engine_logger: logging.Logger, told: io.StringIO
) -> None:
    with few_of_a_kind(tells_texts=False):
        in_a_worker(tells_texts=True)
        fail(engine_logger)
    assert "event=row_failed" in told.getvalue()
    assert SECRET not in told.getvalue()
