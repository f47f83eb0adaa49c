"""Gives the pure batcher time and a slot: one asyncio loop, one timer, one promise a request.

Everything here runs on the event loop's thread. What a batch does and where it runs (a thread, or the loop
itself) is `run_batch`'s business; the driver only waits for its future.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from parity.errors import ParityError
from parity_online.batcher import Batcher, BatchingPolicy, Priority, QueueFullError, Step, Ticket
from parity_online.promise import Promise

Item = TypeVar("Item")
Answer = TypeVar("Answer")

RunBatch = Callable[[list[Item]], asyncio.Future[Sequence[Answer]]]
"""Starts a batch and returns a future of its answers, one an item, in order. An answer that is an exception
is raised to its own request only."""

logger = logging.getLogger(__name__)

GATHER_BELOW_S = 0.002
"""After a batch that took less, the next one waits for the requests that its answers bring; see `_pump_soon`.

After a longer one that ran beside the event loop it goes at once, before the loop hears of more requests:
the slot has hardly a pause, and whoever has just been answered waits for no more than the batch that has
begun. Of 8 clients with a model of 3 ms a row, some waited for 12 rows before.
"""


class DeadlineExceededError(ParityError):
    """The request's deadline passed before its answer was ready."""


class DrainingError(ParityError):
    """The server is shutting down and takes no new work, or ran out of time to finish it."""


class Observer(Protocol):
    """What a driver tells its metrics. Called on the loop; must be quick and must not raise."""

    def dispatched(self, waits_s: Sequence[float], rows: int) -> None:
        """A batch of `rows` rows left; `waits_s` holds each ticket's seconds in the queue."""
        ...

    def expired(self, requests: int) -> None:
        """So many tickets passed their deadline, in the queue or in a batch."""
        ...

    def cancelled(self, requests: int) -> None:
        """So many tickets were dropped from the queue because nobody waits for them."""
        ...


@dataclass(slots=True, eq=False)
class _Waiter(Generic[Item, Answer]):
    """An item and the promise to whoever waits for it."""

    item: Item
    future: Promise[Answer]
    is_gone: Callable[[], bool] | None


@dataclass(slots=True, eq=False)
class _Run(Generic[Item, Answer]):
    """A batch that runs; `held_loop` says that the event loop did nothing else meanwhile."""

    batch: tuple[Ticket[_Waiter[Item, Answer]], ...]
    started_at: float
    held_loop: bool = False


class Driver(Generic[Item, Answer]):
    """Queues items, runs as many batches at once as there are slots, and answers.

    Args:
        policy: how to batch.
        run_batch: see `RunBatch`.
        loop: the loop that everything happens on.
        clock: seconds, monotonic, at the rate of the loop's own clock; the loop's clock when None.
        observer: hears of batches, expiries and cancellations.
        timer_slack_s: how late the loop's timers fire; delays and deadlines are met so much sooner instead,
            since both are promised as the most that a request waits.
        capacity: how many batches may run at once.
        runs_apart: whether the requests of a batch that failed as a whole, with this exception, are run once
            more, each alone, so that a guilty one harms nobody else.
        has_room: whether another one may begin now, as far as `capacity` lets it; see `look_again`.
        share: of so many rows that wait or run, the most that one batch takes; all when None.
    """

    def __init__(
        self,
        policy: BatchingPolicy,
        run_batch: RunBatch[Item, Answer],
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float] | None = None,
        observer: Observer | None = None,
        timer_slack_s: float = 0.0,
        capacity: int = 1,
        runs_apart: Callable[[BaseException], bool] = lambda _: False,
        has_room: Callable[[], bool] = lambda: True,
        share: Callable[[int], int] | None = None,
    ) -> None:
        self.policy = policy
        self._timer_slack_s = timer_slack_s
        self._run_batch = run_batch
        self._loop = loop
        self._clock = clock or loop.time
        self._observer = observer
        self._batcher: Batcher[_Waiter[Item, Answer]] = Batcher(policy, _nobody_waits)
        self._capacity = capacity
        self._runs_apart = runs_apart
        self._has_room = has_room
        self._share = share
        self._runs: list[_Run[Item, Answer]] = []
        self._apart: deque[Ticket[_Waiter[Item, Answer]]] = deque()
        self._pump_is_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._is_draining = False
        self._idle: asyncio.Future[None] | None = None

    @property
    def queued_rows(self) -> int:
        """Rows that wait now."""
        return self._batcher.queued_rows

    @property
    def queued(self) -> int:
        """Requests that wait now; the parts of one that is split count for themselves."""
        return self._batcher.queued

    def set_capacity(self, capacity: int) -> None:
        """Let so many batches run at once from now on; 0 keeps what comes in the queue."""
        self._capacity = capacity
        self._pump_soon()

    def look_again(self) -> None:
        """There is room that was not there before."""
        self._pump_soon()

    def submit(
        self,
        item: Item,
        rows: int = 1,
        *,
        key: Hashable = None,
        deadline: float | None = None,
        priority: Priority = "normal",
        is_gone: Callable[[], bool] | None = None,
    ) -> asyncio.Future[Answer]:
        """Queue an item of at most `max_batch` rows; the future gives its answer.

        Cancelling the future, or `is_gone` turning true, drops the item while it waits.

        Raises:
            QueueFullError: there is no room.
            DrainingError: the driver takes no more work.
            DeadlineExceededError: (from the future) the deadline passed first.
        """
        future: asyncio.Future[Answer] = self._loop.create_future()
        self.offer(future, item, rows, key=key, deadline=deadline, priority=priority, is_gone=is_gone)
        return future

    def offer(
        self,
        promise: Promise[Answer],
        item: Item,
        rows: int = 1,
        *,
        key: Hashable = None,
        deadline: float | None = None,
        priority: Priority = "normal",
        is_gone: Callable[[], bool] | None = None,
    ) -> None:
        """As `submit`, for a promise of the caller's; where this raises, the promise is left alone."""
        if self._is_draining:
            raise DrainingError("the server is shutting down; send the request elsewhere")
        waiter = _Waiter(item, promise, is_gone)
        try:
            self._batcher.offer(
                waiter, self._clock(), rows=rows, key=key, deadline=deadline, priority=priority
            )
        except QueueFullError:
            self._pump_soon()  # it may have found leavers
            raise
        if not self._pump_is_due and self._must_look(deadline):
            self._pump_soon()

    def _must_look(self, deadline: float | None) -> bool:
        """Whether a new item changes anything now: a slot may take it, or the timer would be late for it.

        Where all slots are busy, the first of them to be free looks; a turn of the loop for each request
        would cost a system call.
        """
        return self._slot_free or (
            deadline is not None and (self._timer is None or deadline < self._timer_at)
        )

    async def submit_parts(
        self,
        parts: Sequence[tuple[Item, int]],
        *,
        keys: Sequence[Hashable] | None = None,
        deadline: float | None = None,
        priority: Priority = "normal",
        is_gone: Callable[[], bool] | None = None,
    ) -> list[Answer]:
        """Queue the parts (item, rows) of one large request, all or none, and return their answers in order.

        `keys` has the key of each part; without it all have the same.
        The first failure fails the request; parts that still wait are then dropped.

        Raises:
            QueueFullError: there is no room for all of them.
        """
        self._batcher.require_room(sum(rows for _, rows in parts))
        futures = [
            self.submit(item, rows, key=key, deadline=deadline, priority=priority, is_gone=is_gone)
            for (item, rows), key in zip(parts, keys or [None] * len(parts), strict=True)
        ]
        try:
            return await asyncio.gather(*futures)
        finally:
            for future in futures:
                future.cancel()

    async def drain(self, timeout_s: float) -> int:
        """Take no more work, finish what was accepted, and return how many requests were given up.

        Those that are unfinished after `timeout_s` get `DrainingError`.
        """
        self._is_draining = True
        if self._is_idle:
            return 0
        self._idle = self._loop.create_future()
        self._pump_soon()
        try:
            await asyncio.wait_for(asyncio.shield(self._idle), timeout_s)
        except TimeoutError:
            return self._give_up()
        return 0

    def _pump_soon(self) -> None:
        """Step once the requests that this turn of the loop and the next bring have all been queued.

        Clients that just got their answers send their next requests within a turn: waiting for them made
        batches of a small model 1.5 times larger and the server 1.2 times faster at concurrency 32. A lone
        request pays some microseconds.
        """
        if not self._pump_is_due:
            self._pump_is_due = True
            self._loop.call_soon(self._loop.call_soon, self._pump)

    def _pump(self, ahead_s: float = 0.0) -> None:
        self._pump_is_due = False
        now = self._clock()
        while self._apart and self._slot_free:
            ticket = self._apart.popleft()
            if not _nobody_waits(ticket.item):
                self._start((ticket,), now)
        while True:
            step = self._batcher.step(now + ahead_s, self._slot_free, self._most_rows())
            self._answer_leavers(step)
            if not step.batch:
                break
            if self._observer is not None:
                waits_s = [now - ticket.enqueued_at for ticket in step.batch]
                self._observer.dispatched(waits_s, sum(ticket.rows for ticket in step.batch))
            self._start(step.batch, now)
        wake_at = step.wake_at
        for ticket in self._taken():
            deadline = ticket.deadline
            if deadline is None or ticket.item.future.done():
                continue
            if deadline <= now + ahead_s:
                self._expire(ticket)
            elif wake_at is None or deadline < wake_at:
                wake_at = deadline
        self._wake_by(wake_at, now)
        if self._is_idle and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def _start(self, batch: tuple[Ticket[_Waiter[Item, Answer]], ...], now: float) -> None:
        run = _Run(batch, now)
        self._runs.append(run)
        try:
            answers = self._run_batch([ticket.item.item for ticket in batch])
        except Exception as exc:  # noqa: BLE001 - answered to each request of the batch
            answers = self._loop.create_future()
            answers.set_exception(exc)
        run.held_loop = answers.done()
        answers.add_done_callback(lambda answers: self._finished(run, answers))

    def _finished(self, run: _Run[Item, Answer], answers: asyncio.Future[Sequence[Answer]]) -> None:
        batch = run.batch
        self._runs.remove(run)
        seconds = self._clock() - run.started_at
        self._batcher.record_service(sum(ticket.rows for ticket in batch), seconds / max(1, self._capacity))
        error = asyncio.CancelledError() if answers.cancelled() else answers.exception()
        if error is None and len(answers.result()) != len(batch):
            error = RuntimeError(f"run_batch gave {len(answers.result())} answers for {len(batch)} items")
        if error is not None:
            self._failed(batch, error)
            return
        for ticket, answer in zip(batch, answers.result(), strict=True):
            _resolve(ticket.item.future, answer)
        if seconds < GATHER_BELOW_S or run.held_loop:  # then the next would hold it, too
            self._pump_soon()
        else:
            self._pump()

    def _failed(self, batch: tuple[Ticket[_Waiter[Item, Answer]], ...], error: BaseException) -> None:
        self._pump_soon()
        logger.error("event=batch_failed items=%d error=%s", len(batch), type(error).__name__, exc_info=error)
        if len(batch) > 1 and self._runs_apart(error):
            self._apart.extend(batch)
            return
        for ticket in batch:
            _resolve(ticket.item.future, error)

    def _most_rows(self) -> int | None:
        """The most rows of the next batch; None for what the policy says."""
        if self._share is None:
            return None
        return self._share(self._batcher.queued_rows + sum(ticket.rows for ticket in self._taken()))

    @property
    def _slot_free(self) -> bool:
        return len(self._runs) < self._capacity and self._has_room()

    @property
    def _is_idle(self) -> bool:
        return not self._runs and not self._apart and not self._batcher.queued_rows

    def _taken(self) -> Iterator[Ticket[_Waiter[Item, Answer]]]:
        """What has left the queue and is not finished."""
        for run in self._runs:
            yield from run.batch
        yield from self._apart

    def _answer_leavers(self, step: Step[_Waiter[Item, Answer]]) -> None:
        for ticket in step.expired:
            self._expire(ticket)
        for ticket in step.cancelled:
            ticket.item.future.cancel()
        if step.cancelled and self._observer is not None:
            self._observer.cancelled(len(step.cancelled))

    def _expire(self, ticket: Ticket[_Waiter[Item, Answer]]) -> None:
        future = ticket.item.future
        if not future.done():
            where = "in the queue" if ticket.state == "expired" else "while its batch ran"
            waited = self._clock() - ticket.enqueued_at
            future.set_exception(DeadlineExceededError(f"the deadline passed after {waited:.3f} s, {where}"))
            if self._observer is not None:
                self._observer.expired(1)

    def _wake_by(self, wake_at: float | None, now: float) -> None:
        """Keep one timer that fires no later than `wake_at`; waking early is harmless."""
        if wake_at is None or (self._timer is not None and self._timer_at <= wake_at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = wake_at
        self._timer = self._loop.call_later(max(0.0, wake_at - now - self._timer_slack_s), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._pump(self._timer_slack_s)

    def _give_up(self) -> int:
        """Answer all that is unfinished with `DrainingError`; what a running batch still gives is ignored."""
        given_up = 0
        error = DrainingError("the server is shutting down and ran out of time to finish this request")
        queued = self._batcher.leave_all()
        for ticket in (*self._taken(), *queued):
            if not ticket.item.future.done():
                ticket.item.future.set_exception(error)
                given_up += 1
        return given_up


def _nobody_waits(waiter: _Waiter[Item, Answer]) -> bool:
    return waiter.future.done() or (waiter.is_gone is not None and waiter.is_gone())


def _resolve(future: Promise[Answer], answer: Answer | BaseException) -> None:
    if future.done():
        return
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)
