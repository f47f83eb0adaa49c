"""What is logged of failures where many rows are scored."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Generator

import pytest

from parity.failures import ENGINE_LOGGER, FewOfAKind, few_of_a_kind, in_a_worker, unlogged

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
