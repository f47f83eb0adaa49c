"""The rows of a batch sent to a running server, one request each, several at a time. No comparison here."""

from __future__ import annotations

import http.client
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast, get_args

import numpy as np

from parity.batch import Batch
from parity.codec.rows import RowDecoder, dumps, encode_rows, loads
from parity.errors import ConfigError, MalformedError, RowError, RowErrorKind, RunnerError, shown
from parity.result import Result
from parity.schema import Schema


@dataclass(frozen=True)
class ServerAddress:
    """Where a model answers.

    Attributes:
        scheme: "http" or "https".
        netloc: host and port.
        path: the path that single rows are posted to.
    """

    scheme: str
    netloc: str
    path: str

    @staticmethod
    def of(url: str, model: str) -> ServerAddress:
        """The address of `model` on the server at `url`.

        Raises:
            ConfigError: the URL is not that of a server.
        """
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ConfigError(
                f"url {shown(url)} is not of the form http://HOST:PORT, as `parity serve` prints it"
            )
        path = f"{parts.path.rstrip('/')}/predictions/{urllib.parse.quote(model, safe='')}"
        return ServerAddress(parts.scheme, parts.netloc, path)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.path}"

    def connect(self, timeout_s: float) -> http.client.HTTPConnection:
        """A connection, opened by its first request."""
        secure = self.scheme == "https"
        make = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        return make(self.netloc, timeout=timeout_s)


def score_on_server(
    address: ServerAddress, batch: Batch, outputs: Schema, *, connections: int, timeout_s: float
) -> Result:
    """The server's answers, aligned with the batch.

    Args:
        address: the model.
        batch: rows of the input schema; each is one request.
        outputs: the schema that the answers must fit.
        connections: how many requests are under way at a time.
        timeout_s: how long one request may take.

    Returns:
        Answers, and as row errors those that the server reports of a row.

    Raises:
        RunnerError: the server cannot be reached, does not serve the model, or gives something that is
            neither an answer nor a row's error.
        ConfigError: `connections` is below 1.
    """
    if connections < 1:
        raise ConfigError(f"connections = {connections} must be at least 1")
    bodies: list[bytes | RowError] = [
        row if isinstance(row, RowError) else dumps(row) for row in encode_rows(batch, non_finite="string")
    ]
    found: list[object] = [None] * len(bodies)

    def send_every(first: int) -> None:
        connection = address.connect(timeout_s)
        try:
            for row in range(first, len(bodies), connections):
                body = bodies[row]
                found[row] = body if isinstance(body, RowError) else _ask(address, connection, body, row)
        finally:
            connection.close()

    workers = min(connections, max(1, len(bodies)))
    with ThreadPoolExecutor(workers, thread_name_prefix="parity-client") as pool:
        for done in [pool.submit(send_every, first) for first in range(workers)]:
            done.result()
    return _as_result(found, outputs, address)


def _ask(address: ServerAddress, connection: http.client.HTTPConnection, body: bytes, row: int) -> object:
    """One row's answer as the server gives it, or its RowError."""
    try:
        connection.request("POST", address.path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        status, text = response.status, response.read()
    except (OSError, http.client.HTTPException) as exc:
        raise RunnerError(
            f"row {row}: no answer from {address}: {type(exc).__name__}: {exc}; "
            "is `parity serve` running there?"
        ) from exc
    try:
        answer: Any = loads(text)
    except MalformedError:
        answer = None
    if status == 200 and isinstance(answer, dict):
        return cast("object", answer)
    error = _row_error(answer, row) if status in (400, 422, 500) else None
    if error is None:
        raise RunnerError(f"row {row}: {address} answered {status}: {_told(answer, text)}")
    return error


def _row_error(answer: Any, row: int) -> RowError | None:
    """The error of the one row of a request; None where the answer speaks of no row."""
    entries = cast("dict[str, Any]", answer).get("rows") if isinstance(answer, dict) else None
    entry = cast("list[Any]", entries)[0] if isinstance(entries, list) and entries else None
    if not isinstance(entry, dict):
        return None
    told = cast("dict[str, Any]", entry)
    kind = told.get("kind")
    if kind not in get_args(RowErrorKind):
        return None
    field, stage = told.get("field"), told.get("stage")
    return RowError(
        row,
        cast("RowErrorKind", kind),
        str(told.get("message", "")),
        field if isinstance(field, str) else None,
        stage if isinstance(stage, str) else None,
    )


def _told(answer: Any, text: bytes) -> str:
    if isinstance(answer, dict) and "error" in answer:
        return shown(cast("dict[str, Any]", answer)["error"], 300)
    return shown(text, 300)


def _as_result(found: list[object], outputs: Schema, address: ServerAddress) -> Result:
    errors = [item for item in found if isinstance(item, RowError)]
    rows = [row for row, item in enumerate(found) if not isinstance(item, RowError)]
    decoded = RowDecoder(outputs).decode([found[row] for row in rows])
    if decoded.errors:
        wrong = decoded.errors[0]
        raise RunnerError(
            f"row {rows[wrong.row]}: the answer of {address} does not fit the output schema: "
            f"{wrong.message}; does the server run another version of the handler?"
        )
    return Result(len(found), decoded.batch, np.asarray(rows, dtype=np.int64), tuple(errors))
