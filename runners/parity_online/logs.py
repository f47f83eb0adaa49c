"""The server's log: one event a line, `key=value` or JSON, on standard error; no row contents."""

from __future__ import annotations

import contextlib
import contextvars
import json
import logging
import re
import sys
import time
from collections.abc import Generator
from typing import Any, Literal

import orjson

from parity.errors import RowError
from parity.failures import without_texts

_PAIR = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*+"|\S*)')
_NUMBER = re.compile(r"(\w+)=%[-+ 0#]*[\d.]*[dfg]")
_ESCAPE = re.compile(r"\\(.)")
_EVENT = re.compile(r"event=(\w+)")
_ASYNCIO_SHOWS = re.compile(r"[\n(]")

OF_REQUESTS = frozenset(("row_failed", "batch_failed", "request_failed", "respond_failed", "capture_failed"))
"""Events whose exception was raised over a request, so that its text may quote what was asked."""

_BATCH: contextvars.ContextVar[int | None] = contextvars.ContextVar("parity_online_batch", default=None)


class Formatter(logging.Formatter):
    """What both forms of the log do with an exception.

    Args:
        tells_failures: whether the texts of exceptions that requests caused are told; where they are not, a
            traceback names types and places in the code.
    """

    def __init__(self, *, tells_failures: bool = False) -> None:
        super().__init__()
        self.tells_failures = tells_failures

    def traceback_of(self, record: logging.LogRecord) -> str:
        """A record's traceback; empty where it has none."""
        if not record.exc_info:
            return ""
        event = _EVENT.match(str(record.msg))
        is_ours = event is not None and event[1] not in OF_REQUESTS
        error = record.exc_info[1]
        if self.tells_failures or is_ours or error is None:
            return self.formatException(record.exc_info)
        return without_texts(error)

    def message_of(self, record: logging.LogRecord) -> str:
        """A record's message; asyncio shows futures and arguments behind its own words."""
        message = record.getMessage()
        if self.tells_failures or record.name != "asyncio" or not record.exc_info:
            return message
        return _ASYNCIO_SHOWS.split(message, maxsplit=1)[0]


class KeyValueFormatter(Formatter):
    """`time=... level=... logger=... event=...`; a traceback becomes a quoted value of the same line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        message = self.message_of(record)
        if not message.startswith("event="):
            message = f"event=message text={_quoted(message)}"
        level = record.levelname.lower()
        line = f"time={stamp}.{int(record.msecs):03d}Z level={level} logger={record.name} {message}"
        number = _BATCH.get()
        if number is not None:
            line += f" batch={number}"
        if record.exc_info:
            line += f" traceback={_quoted(self.traceback_of(record))}"
        line = line.replace("\n", "\\n")
        return line if line.isprintable() else "".join(map(_printable, line))


class JsonFormatter(Formatter):
    """The same keys as an object of JSON; what is logged as a number is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        found: dict[str, Any] = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        message = self.message_of(record)
        if message.startswith("event="):
            numbers = set(_NUMBER.findall(str(record.msg)))
            for key, value in _PAIR.findall(message):
                found[key] = _number(value) if key in numbers else _unquoted(value)
        else:
            found |= {"event": "message", "text": message}
        number = _BATCH.get()
        if number is not None:
            found.setdefault("batch", number)
        if record.exc_info:
            found["traceback"] = self.traceback_of(record)
        try:
            return orjson.dumps(found, default=str).decode()
        except TypeError:  # a lone surrogate, as in a path or a header of odd bytes
            return json.dumps(found, default=str)


def set_up(level: str, form: Literal["text", "json"] = "text", *, tells_failures: bool = False) -> None:
    """Send everything at or above `level` to standard error; called by the command, never by the library.

    Args:
        level: "debug", "info", "warning" or "error".
        form: `key=value`, or JSON.
        tells_failures: see `Formatter`.
    """
    kind = JsonFormatter if form == "json" else KeyValueFormatter
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(kind(tells_failures=tells_failures))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)


def form() -> Literal["text", "json"]:
    """The form that `set_up` has been asked for; a process that this one starts writes the same."""
    found = [handler.formatter for handler in logging.getLogger().handlers]
    return "json" if any(isinstance(formatter, JsonFormatter) for formatter in found) else "text"


def tells_failures() -> bool:
    """Whether `set_up` has been asked to tell the texts of exceptions that requests caused."""
    found = [handler.formatter for handler in logging.getLogger().handlers]
    return any(isinstance(formatter, Formatter) and formatter.tells_failures for formatter in found)


def failure(error: RowError) -> str:
    """What the log says of a row's failure: the exception's text where it may, else its type and stage."""
    if tells_failures():
        return error.message
    stage = error.stage or "the handler"
    field = f" over field {error.field}" if error.field else ""
    return f"{stage} raised {error.type}{field}" if error.type else f"{stage} failed{field}"


def exception(error: BaseException) -> str:
    """What the log says of an exception over a request: its type, and its text where it may."""
    kind = type(error).__name__
    return f"{kind}: {error}" if tells_failures() else kind


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
    return (
        shown
        if shown.isprintable() and shown and not any(sign in shown for sign in ' "=')
        else _quoted(shown)
    )


def _number(value: str) -> float | int | str:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(value)
    return value


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    return _ESCAPE.sub(lambda found: {"n": "\n", "r": "\r"}.get(found[1], found[1]), value[1:-1])


def _printable(character: str) -> str:
    """A character as a log shows it: one that controls a terminal, or turns text around, by its number."""
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
