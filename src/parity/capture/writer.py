"""The thread between a server and its capture: takes batches from a bounded queue and never holds anybody up.

What does not fit the queue is lost and counted; whatever goes wrong is counted and logged; nothing is raised
into the server.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from parity.capture.format import Source
from parity.capture.gathering import Scored
from parity.capture.parts import CaptureObserver, PartWriter
from parity.capture.places import Place
from parity.capture.privacy import Privacy
from parity.capture.refused import Refused, RefusedWriter
from parity.capture.settings import CaptureSettings
from parity.schema import Schema

logger = logging.getLogger(__name__)

_CLOSE = object()

CLOSE_S = 10.0
"""How long `close` waits for the last part."""


class CaptureWriter:
    """Records what a server answers, on a thread of its own.

    `offer` and `offer_refused` may be called by one thread at a time; they cost some microseconds.

    Args:
        source: what answers the rows.
        inputs: the handler's input schema.
        outputs: its output schema.
        settings: sample, rotation, queue and what to hide.
        place: where parts go.
        observer: hears of rows and failures.
        clock: seconds, monotonic, for the age of parts.
    """

    def __init__(
        self,
        source: Source,
        inputs: Schema,
        outputs: Schema,
        settings: CaptureSettings,
        place: Place,
        *,
        observer: CaptureObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parts = PartWriter(source, inputs, outputs, settings, place, observer=observer, clock=clock)
        self._refused = RefusedWriter(
            source,
            Privacy.of(settings, inputs, outputs),
            settings,
            place,
            lose=self._parts.lose,
            observer=observer,
            clock=clock,
        )
        self._name = source.handler
        self._clock = clock
        self._limit_bytes = settings.queue_bytes
        self._queue: queue.SimpleQueue[tuple[Scored | Refused | object, int]] = queue.SimpleQueue()
        self._is_closed = False
        # Each counter is written by one thread only, so that none needs a lock.
        self._offered_bytes = 0
        self._offered_lost_rows = 0
        self._taken_bytes = 0
        self._taken_lost_rows = 0
        self._thread = threading.Thread(target=self._work, name=f"parity-capture-{self._name}", daemon=True)
        self._thread.start()

    def offer(self, scored: Scored) -> None:
        """Have a batch recorded, or lose it when the queue is full. Never waits and never raises."""
        self._offer(scored)

    def offer_refused(self, refused: Refused) -> None:
        """Have a request recorded whose rows did not fit, or lose it. Never waits and never raises."""
        self._offer(refused)

    def close(self, timeout_s: float = CLOSE_S) -> bool:
        """Write what there is and end the thread; whether it ended in time. Later offers are ignored."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put((_CLOSE, 0))
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            logger.error("event=capture_close_timeout handler=%s seconds=%g", self._name, timeout_s)
        return not self._thread.is_alive()

    def _offer(self, offered: Scored | Refused) -> None:
        if self._is_closed:
            return
        size = offered.nbytes
        waiting = self._offered_bytes - self._taken_bytes
        if waiting and waiting + size > self._limit_bytes:
            self._offered_lost_rows += offered.due_rows
            return
        self._offered_bytes += size
        self._queue.put((offered, size))

    def _work(self) -> None:
        is_open = True
        while is_open:
            waiting = self._take()
            try:
                self._count_lost()
                if waiting is not None:
                    is_open = waiting is not _CLOSE
                    if isinstance(waiting, Scored):
                        self._parts.add(waiting)
                    elif isinstance(waiting, Refused):
                        self._refused.add(waiting)
                self._parts.tick()
                self._refused.tick()
            except Exception as exc:
                logger.error("event=capture_failed handler=%s", self._name, exc_info=exc)
        if not self._refused.flush():
            self._refused.give_up()
        if not self._parts.flush():
            self._parts.give_up()

    def _take(self) -> Scored | Refused | object | None:
        """What was offered next, `_CLOSE`, or None when something is to be written before that came."""
        due = [due_at for due_at in (self._parts.due_at, self._refused.due_at) if due_at is not None]
        wait_s = max(0.0, min(due) - self._clock()) if due else None
        try:
            waiting, size = self._queue.get(timeout=wait_s)
        except queue.Empty:
            return None
        self._taken_bytes += size
        return waiting

    def _count_lost(self) -> None:
        lost = self._offered_lost_rows
        if lost > self._taken_lost_rows:
            self._parts.lose(lost - self._taken_lost_rows)
            self._taken_lost_rows = lost
