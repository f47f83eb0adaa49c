"""Which signals a server hears: those that end it, and those that custom sends to servers and it ignores."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

logger = logging.getLogger(__name__)

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_OTHERS = (signal.SIGUSR1, signal.SIGUSR2)
"""They would end the process, and every request with it; rotated logs and habit send them."""


@contextlib.contextmanager
def heard(end: Callable[[int, FrameType | None], None]) -> Generator[None]:
    """Call `end` for each signal that ends a server; afterwards handlers are what they were.

    Under `nohup` SIGHUP stays ignored. On another thread than the main one, which alone hears signals,
    nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[signal.Signals, Any] = dict.fromkeys(_ENDING, end)
    handlers |= dict.fromkeys(_OTHERS, _ignore)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        del handlers[signal.SIGHUP]
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Watchdog:
    """Ends the process from a thread of its own where the event loop does not: a handler may hang on it."""

    def __init__(self) -> None:
        self._timers: list[threading.Timer] = []

    def start(self, number: int, limit_s: float) -> None:
        """End the process after `limit_s` seconds, with 128 and the signal's number, unless cancelled."""
        timer = threading.Timer(limit_s, _end, (number,))
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def cancel(self) -> None:
        """The event loop has ended by itself."""
        for timer in self._timers:
            timer.cancel()


def _end(number: int) -> None:
    logger.error("event=ended_stuck signal=%s", signal.Signals(number).name)
    logging.shutdown()
    os._exit(128 + number)


def _ignore(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal API's
    logger.warning("event=signal_ignored signal=%s", signal.Signals(number).name)
