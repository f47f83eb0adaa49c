"""When to write again to a target that fails: later and later, with one log line of many failures."""

from __future__ import annotations

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

FIRST_RETRY_S = 1.0
LAST_RETRY_S = 60.0
LOG_EVERY = 100
"""Of so many failures in a row one is logged."""


class Attempts:
    """The failures in a row of what writes parts; for one thread at a time.

    Args:
        handler: whose traffic it is, for the log.
        clock: seconds, monotonic.

    Attributes:
        retry_at: when to try again, on the clock; None where the last attempt did not fail.
    """

    def __init__(self, handler: str, clock: Callable[[], float]) -> None:
        self._handler = handler
        self._clock = clock
        self._failures = 0
        self.retry_at: float | None = None

    def failed(self, exc: Exception, rows: int) -> None:
        """Note an attempt to write so many rows that failed."""
        wait_s = min(LAST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(self._failures, 10))
        self.retry_at = self._clock() + wait_s
        if self._failures % LOG_EVERY == 0:
            is_targets = isinstance(exc, OSError)  # any other may quote a row
            logger.error(
                "event=capture_failed handler=%s rows=%d failures=%d error=%s",
                self._handler,
                rows,
                self._failures + 1,
                _one_line(exc) if is_targets else type(exc).__name__,
                exc_info=None if is_targets else exc,
            )
        self._failures += 1

    def over(self) -> None:
        """Forget the failures: nothing waits to be written any more."""
        if self._failures:
            logger.info("event=capture_recovered handler=%s failures=%d", self._handler, self._failures)
        self._failures = 0
        self.retry_at = None


def _one_line(exc: Exception) -> str:
    text = f"{type(exc).__name__}: {exc}".replace('"', "'").replace("\n", " ")
    return f'"{text}"'
