"""Errors as answers: one shape, the right status, nothing told that should not be."""

import orjson
import pytest

from parity.codec.decoded import TooManyRowsError
from parity.errors import InputMutatedError, MalformedError, RowError
from parity_online.batcher import QueueFullError
from parity_online.driver import DeadlineExceededError, DrainingError
from parity_online.problems import ProblemError, as_problem, new_id, render, rows_problem

INVALID = RowError(0, "invalid", "field 'age': -1 is below 0", field="age")
FAILED = RowError(2, "failed", "inference raised KeyError: secret", stage="inference", type="KeyError")


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (MalformedError("not JSON"), 400, "malformed"),
        (TooManyRowsError("too many"), 413, "too_many_rows"),
        (QueueFullError(5, 5, 2.5), 503, "queue_full"),
        (DrainingError("bye"), 503, "draining"),
        (DeadlineExceededError("late"), 504, "deadline"),
        (InputMutatedError("wrote"), 500, "internal"),
        (ZeroDivisionError("secret"), 500, "internal"),
        (ProblemError(415, "content_type", "text"), 415, "content_type"),
    ],
)
def test_each_exception_has_its_status(error: Exception, status: int, kind: str):
    problem = as_problem(error)
    assert (problem.status, problem.kind) == (status, kind)
    assert "secret" not in str(problem)
    assert "wrote" not in str(problem)


def test_an_answer_has_error_id_and_rows():
    answer = render(rows_problem([INVALID], show_failures=False), "id-1")
    assert answer.status == 400
    assert orjson.loads(answer.body) == {
        "error": "field 'age': -1 is below 0",
        "id": "id-1",
        "rows": [
            {
                "row": 0,
                "kind": "invalid",
                "field": "age",
                "stage": None,
                "message": "field 'age': -1 is below 0",
            }
        ],
    }
    assert (b"x-request-id", b"id-1") in answer.headers


def test_retry_after_is_whole_seconds_and_at_least_one():
    for seconds, header in ((0.0, b"1"), (0.2, b"1"), (2.1, b"3")):
        answer = render(as_problem(QueueFullError(5, 5, seconds)), "x")
        assert (b"retry-after", header) in answer.headers


def test_a_failure_decides_and_tells_its_place_only():
    problem = rows_problem([INVALID, FAILED], 3, show_failures=False, batch=9)
    assert problem.status == 500
    assert str(problem).startswith("row 2: stage inference failed")
    assert "1 more" in str(problem)
    assert "secret" not in render(problem, "x").body.decode()
    assert problem.detail == "batch 9: row 2: inference raised KeyError"


def test_in_development_a_failure_is_shown():
    problem = rows_problem([FAILED], 3, show_failures=True)
    rows = orjson.loads(render(problem, "x", show_failures=True).body)["rows"]
    assert rows[0]["message"] == "inference raised KeyError: secret"
    assert rows[0]["type"] == "KeyError"


def test_ids_are_not_repeated():
    assert len({new_id() for _ in range(1000)}) == 1000


def test_a_draining_server_closes_connections():
    assert (b"connection", b"close") in render(as_problem(DrainingError("bye")), "x", close=True).headers
