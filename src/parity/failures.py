"""Where many rows are scored a few failures of each kind are logged: the answers have every one's reason."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Generator

TOLD_OF_A_KIND = 3
ENGINE_LOGGER = "parity.engine"
"""Logs what stages raise, of whichever module: the name by which people quieten it."""

_EVENTS = ("event=row_failed", "event=batch_failed")
_ENGINE = logging.getLogger(ENGINE_LOGGER)
_FILTERS = threading.Lock()
_JOB: contextvars.ContextVar[object | None] = contextvars.ContextVar("parity_job", default=None)
"""Whose failures a thread logs, where jobs overlap in a process; None in a thread that no job has named.

Threads that run a handler's stages must be named, by `of_this_job`; those that read or list files log none.
"""

_JOINTS = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)


class FewOfAKind(logging.Filter):
    """Lets the first failures through that come from one line of code with one type of exception.

    Those of another job are let through: they are that job's to count.

    Args:
        job: whose failures it counts, beside those of threads that no job has named; only these when None.
        tells_texts: whether the exceptions' texts are logged, which may quote rows; where they are not, a
            traceback names types and places in the code.
    """

    def __init__(self, job: object | None = None, *, tells_texts: bool = True) -> None:
        super().__init__()
        self.job = job
        self.tells_texts = tells_texts
        self._seen: Counter[object] = Counter()
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log a record."""
        if not isinstance(record.msg, str) or not record.msg.startswith(_EVENTS) or not record.exc_info:
            return True
        if _JOB.get() not in (None, self.job):
            return True
        kind, error, trace = record.exc_info
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = None if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        with self._lock:
            self._seen[kind, place] += 1
            seen = self._seen[kind, place]
        if seen == TOLD_OF_A_KIND:
            record.msg += " note='more like this one are not logged; every failed row keeps its reason'"
        if error is not None and not self.tells_texts:
            record.exc_info, record.exc_text = None, without_texts(error)
        return seen <= TOLD_OF_A_KIND


@contextlib.contextmanager
def few_of_a_kind(*, tells_texts: bool = True) -> Generator[None]:
    """Log few failures of each kind of this job meanwhile; see `FewOfAKind`.

    The job is what the caller's thread runs, and threads that begin with `of_this_job`.
    """
    job = object()
    with _filtered(FewOfAKind(job, tells_texts=tells_texts)):
        before = _JOB.set(job)
        try:
            yield
        finally:
            _JOB.reset(before)


def of_this_job() -> Callable[[], None]:
    """What a new thread calls first, so that the failures that it logs are those of the caller's job."""
    job = _JOB.get()

    def begin() -> None:
        _JOB.set(job)

    return begin


@contextlib.contextmanager
def unlogged(*, everywhere: bool = False) -> Generator[None]:
    """Log no failure of rows meanwhile that this thread runs; or of none, where it has others run some."""
    thread = threading.get_ident()

    class Loud(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            return not everywhere and record.thread != thread

    with _filtered(Loud(), first=True):  # so that `FewOfAKind` does not count what is not logged
        yield


@contextlib.contextmanager
def _filtered(item: logging.Filter, *, first: bool = False) -> Generator[None]:
    """Filter what the engine logs meanwhile, before the other filters do or after them.

    Other threads log at the same time, so a list of filters is replaced and never changed.
    """
    with _FILTERS:
        _ENGINE.filters = [item, *_ENGINE.filters] if first else [*_ENGINE.filters, item]
    try:
        yield
    finally:
        with _FILTERS:
            _ENGINE.filters = [other for other in _ENGINE.filters if other is not item]


def in_a_worker(*, tells_texts: bool = True) -> None:
    """Log few failures of each kind in this process, from now on; see `FewOfAKind`."""
    known = next(
        (item for item in _ENGINE.filters if isinstance(item, FewOfAKind) and item.job is None), None
    )
    if known is None:
        _ENGINE.addFilter(FewOfAKind(tells_texts=tells_texts))
    else:
        known.tells_texts = tells_texts


def without_texts(error: BaseException) -> str:
    """A traceback of all exceptions that led here: types and places in the code, and none of their texts."""
    told: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        kind = type(current)
        name = (
            kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        )
        frames = "".join(traceback.format_tb(current.__traceback__))
        told.append(f"Traceback (most recent call last):\n{frames}{name}" if frames else name)
        cause = current.__cause__
        context = None if current.__suppress_context__ else current.__context__
        if cause is not None or context is not None:
            told.append(_JOINTS[cause is None])
        current = cause or context
    return "\n\n".join(reversed(told))
