from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from parity.codec.rows import RowDecoder, dumps, encode_rows
from parity.errors import ConfigError, RowsError, RunnerError
from parity_notebook import Session
from parity_notebook.client import ServerAddress
from tests.notebook.conftest import PRICES, ROWS
from tests.notebook.test_markup import read

Answer = Callable[[dict[str, Any]], tuple[int, bytes]]


@contextmanager
def serving(answer: Answer) -> Generator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """A server on a free port that answers as told; gives its URL and the requests that it got."""
    seen: list[tuple[str, dict[str, Any]]] = []

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            row = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.append((self.path, row))
            status, body = answer(row)
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


def honest(session: Session) -> Answer:
    """Answers as the session does, in the shapes of the online runner."""

    def answer(row: dict[str, Any]) -> tuple[int, bytes]:
        found = session._running().score(RowDecoder(session.inputs).decode([row]))
        if found.errors:
            error = found.errors[0]
            entry = {
                "row": 0,
                "kind": error.kind,
                "field": error.field,
                "stage": error.stage,
                "message": "no",
            }
            return 500 if error.kind == "failed" else 400, json.dumps(
                {"error": "no", "rows": [entry]}
            ).encode()
        return 200, dumps(encode_rows(found.outputs)[0])

    return answer


@pytest.mark.slow
def test_a_server_that_answers_alike_agrees(prices: Session) -> None:
    rows = [{**row, "price": row["price"] + number} for number in range(20) for row in ROWS]
    with serving(honest(prices)) as (url, seen):
        comparison = prices.compare_with(url, rows)
    assert comparison
    assert (comparison.verdict, comparison.comparison.rows) == ("identical", 60)
    assert {path for path, _ in seen} == {"/predictions/prices"}
    assert sorted(row["price"] for _, row in seen) == sorted(row["price"] for row in rows)


def test_rows_that_fail_on_both_sides_agree(prices: Session) -> None:
    rows = [
        {"price": 13.0, "units": 1},
        {"price": 1.0, "units": 1, "name": "reject me"},
        {"price": 1.0, "units": 1},
    ]
    with serving(honest(prices)) as (url, _):
        comparison = prices.compare_with(url, rows)
    assert comparison
    kinds = [error and error["kind"] for error in comparison.obtained["_error"].to_pylist()]
    assert kinds == ["failed", "rejected", None]


def test_nan_and_infinity_survive_the_way_there_and_back(prices: Session) -> None:
    rows = [{"price": value, "units": 1} for value in (float("nan"), float("inf"), -0.0, 5e-324)]
    with serving(honest(prices)) as (url, _):
        assert prices.compare_with(url, rows).verdict == "identical"


def test_a_server_that_differs_is_told_with_row_and_values(prices: Session) -> None:
    def answer(row: dict[str, Any]) -> tuple[int, bytes]:
        status, body = honest(prices)(row)
        answers = json.loads(body)
        if row["price"] == 2.0:
            answers["total"] += 1.0
            answers["greeting"] = "<b>bye</b>"
        return status, json.dumps(answers).encode()

    with serving(answer) as (url, _):
        comparison = prices.compare_with(url, ROWS)
    assert not comparison
    assert comparison.verdict == "divergent"
    assert [column.name for column in comparison.comparison.divergent()] == ["total", "greeting"]
    assert "prices 2.1 against http" in repr(comparison)
    assert "10.0" in repr(comparison)
    page = read(comparison._repr_html_())
    assert "<b>bye</b>" in page.text
    assert "b" not in page.seen


def test_a_row_that_fails_on_the_server_only_is_a_divergence(prices: Session) -> None:
    entry = {"row": 0, "kind": "failed", "field": None, "stage": "inference", "message": "out of memory"}
    with serving(lambda _: (500, json.dumps({"error": "no", "rows": [entry]}).encode())) as (url, _):
        comparison = prices.compare_with(url, ROWS)
    assert not comparison
    assert comparison.comparison.errors_obtained == 3


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, b'{"error": "no model \'prices\'"}', "answered 404.*no model"),
        (503, b'{"error": "queue is full", "id": "x"}', "answered 503.*queue is full"),
        (500, b"<html>oops</html>", "answered 500.*oops"),
        (200, b"[1, 2]", "answered 200"),
        (200, b"not json", "answered 200.*not json"),
        (200, b'{"total": "many"}', "does not fit the output schema"),
        (400, b'{"error": "x", "rows": [{"row": 0, "kind": "strange"}]}', "answered 400"),
        (400, b'{"error": "x", "rows": [7]}', "answered 400"),
    ],
)
def test_what_is_no_answer_is_an_error_of_the_runner(
    prices: Session, status: int, body: bytes, message: str
) -> None:
    with serving(lambda _: (status, body)) as (url, _), pytest.raises(RunnerError, match=message):
        prices.compare_with(url, ROWS)


def test_no_server_is_an_error_of_the_runner(prices: Session) -> None:
    with serving(lambda _: (200, b"{}")) as (url, _):
        pass
    with pytest.raises(RunnerError, match="is `parity serve` running there"):
        prices.compare_with(url, ROWS)


def test_rows_that_cannot_be_sent_raise(prices: Session) -> None:
    with pytest.raises(RowsError, match="row 1"):
        prices.compare_with("http://127.0.0.1:9", [ROWS[0], {"price": "dear", "units": 1}])


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host", "http://", ""])
def test_a_wrong_url_is_told(prices: Session, url: str) -> None:
    with pytest.raises(ConfigError, match="http://HOST:PORT"):
        prices.compare_with(url, ROWS)


def test_an_address_has_the_model_in_its_path() -> None:
    address = ServerAddress.of("https://host:1/base/", "a b/c")
    assert str(address) == "https://host:1/base/predictions/a%20b%2Fc"


@pytest.mark.slow
def test_a_real_server_agrees(prices: Session) -> None:
    command = [sys.executable, "-m", "parity", "serve", str(PRICES), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            events = [json.loads(server.stdout.readline()) for _ in range(2)]
            assert [event["event"] for event in events] == ["listening", "ready"]
            rows = [*ROWS, {"price": 13.0, "units": 1}, {"price": float("nan"), "units": 1}]
            comparison = prices.compare_with(events[0]["url"], rows)
        finally:
            server.terminate()
        with closing(server.stdout):
            assert server.wait(timeout=30) == 0
    assert comparison.verdict == "identical", repr(comparison)
