"""What sources log of exceptions: each event is known to be over a request or ours, none tells its text."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import parity
import parity_online
from parity_online.logs import OF_REQUESTS

ROOTS = [Path(package.__path__[0]) for package in (parity, parity_online)]
METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log", "_say"}

OURS = {
    "compile_failed": "a model, on example inputs",
    "export_failed": "a model, on example inputs",
    "gate_failed": "goldens",
    "load_failed": "a version's files",
    "poll_failed": "a folder",
    "preprocess_process_not_replaced": "the start of a process",
    "replica_failed": "the start of a process",
    "slot_not_ended": "the end of an engine",
    "slot_not_replaced": "the start of an engine",
    "swap_not_made": "triage, of goldens",
    "cause_not_examined": "triage, of goldens",
    "triage_failed": "goldens",
}
"""Events with an exception that no request has caused, and what has."""

TEXTS = {
    "frame_engine=arrow": "the start of a library",
    "capture_failed": "of OSError alone, which the target raised; see `Attempts`",
    "poll_failed": OURS["poll_failed"],
    "slot_not_replaced": OURS["slot_not_replaced"],
}
"""Events that have an exception's text among their values, and why they may."""


def calls(source: str) -> Iterator[ast.Call]:
    """The calls that log, in a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            owner = node.func.value
            if node.func.attr == "_say" or (isinstance(owner, ast.Name) and owner.id == "logger"):
                yield node


def event_of(call: ast.Call) -> str:
    """The event's name; "" where it is made while running."""
    for arg in call.args:
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
            return arg.value.removeprefix("event=").partition(" ")[0]
    return ""


def has_exception(call: ast.Call) -> bool:
    """Whether a traceback comes with it."""
    given = {keyword.arg for keyword in call.keywords}
    return "exc_info" in given or (isinstance(call.func, ast.Attribute) and call.func.attr == "exception")


def tells_text(call: ast.Call) -> bool:
    """Whether a value of it is made of an exception by anything but its type, and `logs.exception`."""
    return any(_tells(arg) for arg in call.args)


def _tells(node: ast.expr | ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name in ("type", "logs.exception", "logs.failure"):
            return False
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return False  # a field of it, such as a row's number
    if isinstance(node, ast.Name):
        return node.id in ("exc", "error", "exception")
    return any(_tells(child) for child in ast.iter_child_nodes(node))


@functools.cache
def found() -> list[tuple[str, ast.Call]]:
    """Where which calls log, in all modules."""
    return [
        (f"{path.relative_to(root.parent)}:{call.lineno}", call)
        for root in ROOTS
        for path in sorted(root.rglob("*.py"))
        if "logger" in (source := path.read_text())
        for call in calls(source)
    ]


@pytest.mark.slow
def test_each_event_with_an_exception_is_known_to_be_over_a_request_or_ours():
    events: set[str] = set()
    for where, call in found():
        if has_exception(call) and not where.startswith("parity_online/request_log.py"):
            event = event_of(call)
            assert event in OF_REQUESTS or event in OURS, f"{where}: is {event!r} over a request?"
            events.add(event)
    assert not OF_REQUESTS & OURS.keys()
    assert OF_REQUESTS | OURS.keys() == events, "some are not logged any more"


@pytest.mark.slow
def test_no_event_has_the_text_of_an_exception_over_a_request():
    events: set[str] = set()
    for where, call in found():
        if tells_text(call):
            event = event_of(call)
            assert event in TEXTS, f"{where}: logs the text of an exception; use `logs.exception`"
            events.add(event)
    assert events == TEXTS.keys(), "some are not logged any more"


@pytest.mark.parametrize(
    ("line", "tells"),
    [
        ('logger.error("event=a error=%s", exc)', True),
        ('logger.error("event=a error=%s", str(exc))', True),
        ('logger.error("event=a error=%s", logs.text(f"{type(exc).__name__}: {exc}"))', True),
        ('self._say("shadow_unanswered", shares, f"{type(exc).__name__}: {exc}")', True),
        ('logger.error("event=a error=%s", *map(logs.text, (key, error)))', True),
        ('logger.error("event=a error=%s row=%d", type(exc).__name__, error.row)', False),
        ('logger.error("event=a error=%s", logs.text(logs.exception(exc)), exc_info=exc)', False),
    ],
)
def test_a_text_is_found_in_whatever_it_is_wrapped(line: str, tells: bool):
    (call,) = calls(line)
    assert tells_text(call) is tells
