"""Where many rows are scored a few failures of each kind are logged: the answers have every one's reason."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Generator

TOLD_OF_A_KIND = 3
ENGINE_LOGGER = "parity.engine"
"""Logs what stages raise, of whichever module: the name by which people quieten it."""

_EVENTS = ("event=row_failed", "event=batch_failed")
_ENGINE = logging.getLogger(ENGINE_LOGGER)


class FewOfAKind(logging.Filter):
    """Lets the first failures through that come from one line of code with one type of exception."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: Counter[object] = Counter()
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log a record."""
        if not isinstance(record.msg, str) or not record.msg.startswith(_EVENTS) or not record.exc_info:
            return True
        kind, _, trace = record.exc_info
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = None if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        with self._lock:
            self._seen[kind, place] += 1
            seen = self._seen[kind, place]
        if seen == TOLD_OF_A_KIND:
            record.msg += " note='more like this one are not logged; every failed row keeps its reason'"
        return seen <= TOLD_OF_A_KIND


@contextlib.contextmanager
def few_of_a_kind() -> Generator[None]:
    """Log few failures of each kind meanwhile."""
    found = FewOfAKind()
    _ENGINE.addFilter(found)
    try:
        yield
    finally:
        _ENGINE.removeFilter(found)


@contextlib.contextmanager
def unlogged(*, everywhere: bool = False) -> Generator[None]:
    """Log no failure of rows meanwhile that this thread runs; or of none, where it has others run some."""
    thread = threading.get_ident()

    def is_loud(record: logging.LogRecord) -> bool:
        return not everywhere and record.thread != thread

    _ENGINE.addFilter(is_loud)
    try:
        yield
    finally:
        _ENGINE.removeFilter(is_loud)


def in_a_worker() -> None:
    """Log few failures of each kind in this process, from now on."""
    if not any(isinstance(item, FewOfAKind) for item in _ENGINE.filters):
        _ENGINE.addFilter(FewOfAKind())
