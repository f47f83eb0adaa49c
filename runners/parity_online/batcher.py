"""Which waiting requests go to the model next: pure, with no clock, lock, loop or thread.

`Batcher.offer` queues a ticket, `Batcher.step` decides. The caller owns time: it passes `now` in seconds of
any monotonic clock and calls `step` again no later than `Step.wake_at`.

Rules
    A batch never holds more than `max_batch` rows, and only tickets of one key.
    A key with `max_batch` queued rows goes as soon as a slot is free; otherwise what has queued under it goes
    once its oldest ticket has waited `max_delay_s`.
    Among the keys that may go, the one with the oldest head goes first, so no key starves.
    Within a key and priority tickets leave in the order they came; a ticket is never split and never
    overtaken by one of its own priority.
    High tickets go before normal ones, but after `PASSED_OVER_MOST` batches that took no normal ticket though
    one waited, the next batch begins with the normal ones: neither starves.
    With preferred sizes a batch is cut to the largest of them that has queued, and goes as soon as one has.
    Where the caller wants smaller batches now, a batch of several tickets is cut to that.
    Expired and cancelled tickets leave first. A ticket is never dispatched at or after its deadline.
    At most `queue_rows` rows wait; an offer beyond that raises `QueueFullError`.
"""

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from parity.errors import ConfigError, ParityError

Item = TypeVar("Item")

Priority = Literal["high", "normal"]

TicketState = Literal["waiting", "dispatched", "expired", "cancelled"]

PASSED_OVER_MOST = 4
"""So many batches may be full of high tickets while a normal one waits."""

# How far the newest service time moves the running estimate behind `retry_after_s`.
_SERVICE_WEIGHT = 0.2


class QueueFullError(ParityError):
    """The queue has no room for an offer; `retry_after_s` is when it probably has."""

    def __init__(self, queued_rows: int, queue_rows: int, retry_after_s: float) -> None:
        super().__init__(
            f"the queue is full: {queued_rows} of {queue_rows} rows wait; try again in {retry_after_s:.3g} s"
        )
        self.queued_rows = queued_rows
        self.queue_rows = queue_rows
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class BatchingPolicy:
    """How rows are grouped: `max_batch` and `queue_rows` count rows, `max_delay_s` is in seconds.

    `max_delay_s` 0 (the default) sets no timer: a lone request goes at once, and batches fill while the
    slot is busy. `preferred` holds batch sizes, in rows, that are better than those between them.

    Raises:
        ConfigError: a value is out of range.
    """

    max_batch: int = 32
    max_delay_s: float = 0.0
    queue_rows: int = 1024
    preferred: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(not 1 <= size <= self.max_batch for size in self.preferred):
            raise ConfigError(
                f"preferred is {list(self.preferred)}, expected sizes of 1 to max_batch ({self.max_batch})"
            )
        if self.max_batch < 1:
            raise ConfigError(f"max_batch is {self.max_batch} rows, expected 1 or more")
        if not (math.isfinite(self.max_delay_s) and self.max_delay_s >= 0):
            raise ConfigError(
                f"max_delay_s is {self.max_delay_s}, expected a finite number of seconds, 0 or more"
            )
        if self.queue_rows < self.max_batch:
            raise ConfigError(
                f"queue_rows is {self.queue_rows}, expected at least max_batch ({self.max_batch}):"
                " a smaller queue could never fill a batch; raise queue_rows or lower max_batch"
            )


@dataclass(slots=True, eq=False)
class Ticket(Generic[Item]):
    """One queued item of `rows` rows. `deadline` is on the clock of `now`, None for none."""

    item: Item
    rows: int
    key: Hashable
    enqueued_at: float
    number: int
    deadline: float | None = None
    priority: Priority = "normal"
    state: TicketState = "waiting"


@dataclass(frozen=True, slots=True)
class Step(Generic[Item]):
    """What one step decided: `batch` to run, `expired` and `cancelled` to answer, `wake_at` to step again."""

    batch: tuple[Ticket[Item], ...] = ()
    expired: tuple[Ticket[Item], ...] = ()
    cancelled: tuple[Ticket[Item], ...] = ()
    wake_at: float | None = None


@dataclass(slots=True)
class _Line(Generic[Item]):
    """The tickets of one key, by priority, oldest first."""

    high: OrderedDict[Ticket[Item], None] = field(default_factory=OrderedDict)
    normal: OrderedDict[Ticket[Item], None] = field(default_factory=OrderedDict)
    rows: int = 0
    passed_over: int = 0

    def tickets(self, priority: Priority) -> OrderedDict[Ticket[Item], None]:
        return self.high if priority == "high" else self.normal

    @property
    def head(self) -> Ticket[Item]:
        """The oldest ticket."""
        if not self.high:
            return next(iter(self.normal))
        high = next(iter(self.high))
        if not self.normal:
            return high
        normal = next(iter(self.normal))
        return high if high.number < normal.number else normal

    def __iter__(self) -> Iterator[Ticket[Item]]:
        yield from self.high
        yield from self.normal


class Batcher(Generic[Item]):
    """The queue of one handler.

    Args:
        policy: sizes and delay.
        is_gone: tells whether nobody waits for an item any more; asked only when the item would be
            dispatched, or when the queue is full. Must be cheap and free of side effects.
    """

    def __init__(self, policy: BatchingPolicy, is_gone: Callable[[Item], bool] | None = None) -> None:
        self.policy = policy
        self._is_gone = is_gone
        self._lines: dict[Hashable, _Line[Item]] = {}
        self._deadlines: list[tuple[float, int]] = []
        self._by_number: dict[int, Ticket[Item]] = {}
        self._gone: list[Ticket[Item]] = []
        self._offers = 0
        self._rows = 0
        self._seconds_per_row = 0.0
        self._enough = min((policy.max_batch, *policy.preferred))

    @property
    def queued_rows(self) -> int:
        """Rows that wait now."""
        return self._rows

    @property
    def queued(self) -> int:
        """Items that wait now."""
        return sum(len(line.high) + len(line.normal) for line in self._lines.values())

    def require_room(self, rows: int) -> None:
        """Return when `rows` more rows fit. Items found gone on the way are reported by the next step.

        Raises:
            QueueFullError: they do not, even without the items that nobody waits for.
        """
        if self._rows + rows > self.policy.queue_rows:
            self._cancel_gone()
        if self._rows + rows > self.policy.queue_rows:
            raise QueueFullError(self._rows, self.policy.queue_rows, self._retry_after_s())

    def offer(
        self,
        item: Item,
        now: float,
        *,
        rows: int = 1,
        key: Hashable = None,
        deadline: float | None = None,
        priority: Priority = "normal",
    ) -> Ticket[Item]:
        """Queue `item` and return its ticket.

        Raises:
            QueueFullError: the queue has no room for `rows` rows.
            ValueError: `rows` is below 1 or above `max_batch`; the caller splits larger requests.
        """
        if not 1 <= rows <= self.policy.max_batch:
            raise ValueError(f"a ticket of {rows} rows, expected 1 to max_batch ({self.policy.max_batch})")
        if self._rows + rows > self.policy.queue_rows:
            self.require_room(rows)
        self._offers += 1
        ticket = Ticket(item, rows, key, now, self._offers, deadline, priority)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
        (line.high if priority == "high" else line.normal)[ticket] = None
        line.rows += rows
        self._rows += rows
        if deadline is not None:
            self._watch(deadline, ticket)
        return ticket

    def cancel(self, ticket: Ticket[Item]) -> bool:
        """Take a waiting ticket out; False when it has already left."""
        if ticket.state != "waiting":
            return False
        self._leave(ticket, "cancelled")
        return True

    def leave_all(self) -> tuple[Ticket[Item], ...]:
        """Take every waiting ticket out, as cancelled, and return them."""
        waiting = tuple(ticket for line in self._lines.values() for ticket in line)
        for ticket in waiting:
            self._leave(ticket, "cancelled")
        return waiting

    def step(self, now: float, slot_free: bool, most_rows: int | None = None) -> Step[Item]:
        """Decide at time `now`: at most one batch, and only when a slot is free.

        After a batch the slot counts as taken: `wake_at` then only names the next deadline, and the caller
        steps again when a slot is free.

        Args:
            now: seconds.
            slot_free: whether a batch may go.
            most_rows: the most rows of a batch of several tickets, where that is less than `max_batch`.
        """
        expired = self._expire(now)
        cancelled, self._gone = self._gone, []
        batch: tuple[Ticket[Item], ...] = ()
        while slot_free and not batch:
            line = self._next_line(now)
            if line is None:
                break
            batch = self._take(line, cancelled, most_rows)
        wake_at = self._next_deadline()
        if slot_free and not batch and self._lines:
            ripe_at = min(line.head.enqueued_at for line in self._lines.values()) + self.policy.max_delay_s
            wake_at = ripe_at if wake_at is None else min(ripe_at, wake_at)
        return Step(batch, expired, tuple(cancelled), wake_at)

    def record_service(self, rows: int, seconds: float) -> None:
        """Learn from a finished batch how long rows take, for `QueueFullError.retry_after_s`."""
        if rows:
            measured = seconds / rows
            known = self._seconds_per_row
            self._seconds_per_row = measured if known == 0.0 else known + _SERVICE_WEIGHT * (measured - known)

    def _retry_after_s(self) -> float:
        return max(self._rows * self._seconds_per_row, self.policy.max_delay_s)

    def _next_line(self, now: float) -> _Line[Item] | None:
        """The line that goes now: among the full and the ripe ones, that with the oldest head."""
        best: _Line[Item] | None = None
        for line in self._lines.values():
            head = line.head
            # Written as the sum `wake_at` is, so that waking exactly then finds the line ripe.
            ripe = head.enqueued_at + self.policy.max_delay_s <= now
            if (ripe or line.rows >= self._enough) and (
                best is None or head.enqueued_at < best.head.enqueued_at
            ):
                best = line
        return best

    def _take(
        self, line: _Line[Item], cancelled: list[Ticket[Item]], most_rows: int | None
    ) -> tuple[Ticket[Item], ...]:
        """Take the longest run of tickets that fits, dropping the ones that nobody waits for."""
        most = max(
            (size for size in self.policy.preferred if size <= line.rows), default=self.policy.max_batch
        )
        most = most if most_rows is None else min(most, most_rows)
        normal_first = line.passed_over >= PASSED_OVER_MOST
        levels = (line.normal, line.high) if normal_first else (line.high, line.normal)
        taken: list[Ticket[Item]] = []
        rows = 0
        for level in levels:
            while level:
                ticket = next(iter(level))
                if self._is_gone is not None and self._is_gone(ticket.item):
                    self._leave(ticket, "cancelled")
                    cancelled.append(ticket)
                    continue
                if rows + ticket.rows > (most if taken else self.policy.max_batch):
                    break
                ticket.state = "dispatched"  # as `_leave` would; the counts follow below
                self._by_number.pop(ticket.number, None)
                del level[ticket]
                taken.append(ticket)
                rows += ticket.rows
            if level:
                break  # whoever comes next in this level must not be overtaken by the other one
        if taken:
            line.rows -= rows
            self._rows -= rows
            if not line.high and not line.normal:
                self._lines.pop(taken[0].key, None)
            starved = bool(line.normal) and all(ticket.priority == "high" for ticket in taken)
            line.passed_over = line.passed_over + 1 if starved else 0
        return tuple(taken)

    def _expire(self, now: float) -> tuple[Ticket[Item], ...]:
        expired: list[Ticket[Item]] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            ticket = self._by_number.get(heapq.heappop(self._deadlines)[1])
            if ticket is not None:
                self._leave(ticket, "expired")
                expired.append(ticket)
        return tuple(expired)

    def _next_deadline(self) -> float | None:
        while self._deadlines and self._deadlines[0][1] not in self._by_number:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _watch(self, deadline: float, ticket: Ticket[Item]) -> None:
        """Remember the deadline. Tickets that left stay in the heap until they are most of it."""
        if len(self._deadlines) > 2 * len(self._by_number) + 64:
            self._deadlines = [entry for entry in self._deadlines if entry[1] in self._by_number]
            heapq.heapify(self._deadlines)
        self._by_number[ticket.number] = ticket
        heapq.heappush(self._deadlines, (deadline, ticket.number))

    def _cancel_gone(self) -> None:
        if self._is_gone is None:
            return
        waiting = [ticket for line in self._lines.values() for ticket in line]
        for ticket in waiting:
            if self._is_gone(ticket.item):
                self._leave(ticket, "cancelled")
                self._gone.append(ticket)

    def _leave(self, ticket: Ticket[Item], state: TicketState) -> None:
        ticket.state = state
        self._by_number.pop(ticket.number, None)
        line = self._lines[ticket.key]
        del line.tickets(ticket.priority)[ticket]
        line.rows -= ticket.rows
        if not line.high and not line.normal:
            del self._lines[ticket.key]
        self._rows -= ticket.rows
