"""The server's log: one event a line, `key=value`, on standard error. Row contents are never logged."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import sys
import time
from collections.abc import Generator

_BATCH: contextvars.ContextVar[int | None] = contextvars.ContextVar("parity_online_batch", default=None)


class KeyValueFormatter(logging.Formatter):
    """`time=... level=... logger=... event=...`; a traceback becomes a quoted value of the same line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        message = record.getMessage()
        if not message.startswith("event="):
            message = f"event=message text={_quoted(message)}"
        level = record.levelname.lower()
        line = f"time={stamp}.{int(record.msecs):03d}Z level={level} logger={record.name} {message}"
        number = _BATCH.get()
        if number is not None:
            line += f" batch={number}"
        if record.exc_info:
            line += f" traceback={_quoted(self.formatException(record.exc_info))}"
        return line.replace("\n", "\\n")


def set_up(level: str) -> None:
    """Send everything at or above `level` to standard error; called by the command, never by the library."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(KeyValueFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)


@contextlib.contextmanager
def batch(number: int) -> Generator[None]:
    """While this lasts, lines of this thread carry `batch=NUMBER`: a failed request finds its traceback."""
    token = _BATCH.set(number)
    try:
        yield
    finally:
        _BATCH.reset(token)


def batch_number() -> int | None:
    """The number of the batch that this thread runs."""
    return _BATCH.get()


def text(value: object) -> str:
    """A value for `key=value`: as it is when it has no blank, quoted otherwise."""
    shown = str(value)
    return shown if shown and not any(sign in shown for sign in ' "=\n') else _quoted(shown)


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
