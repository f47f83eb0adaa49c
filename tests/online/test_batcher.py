"""The batcher's rules with plain numbers, and its invariants as a property over any history."""

from typing import get_args

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from parity.errors import ConfigError
from parity_online.batcher import (
    PASSED_OVER_MOST,
    Batcher,
    BatchingPolicy,
    Priority,
    QueueFullError,
    Step,
    Ticket,
)


def make(
    max_batch: int = 4, max_delay_s: float = 0.0, queue_rows: int = 100, preferred: tuple[int, ...] = ()
) -> Batcher[str]:
    return Batcher(BatchingPolicy(max_batch, max_delay_s, queue_rows, preferred))


def items(step: Step[str]) -> list[str]:
    return [ticket.item for ticket in step.batch]


def test_a_lone_item_goes_at_once_without_delay():
    batcher = make()
    batcher.offer("a", 0.0)
    assert items(batcher.step(0.0, slot_free=True)) == ["a"]
    assert batcher.queued_rows == 0


def test_nothing_goes_while_the_slot_is_busy():
    batcher = make()
    for name in "abcde":
        batcher.offer(name, 0.0)
    step = batcher.step(5.0, slot_free=False)
    assert step.batch == ()
    assert step.wake_at is None
    assert items(batcher.step(5.0, slot_free=True)) == ["a", "b", "c", "d"]
    assert items(batcher.step(5.0, slot_free=True)) == ["e"]


def test_a_partial_batch_waits_for_the_delay_of_its_oldest():
    batcher = make(max_delay_s=0.5)
    batcher.offer("a", 1.0)
    batcher.offer("b", 1.25)
    step = batcher.step(1.25, slot_free=True)
    assert step.batch == ()
    assert step.wake_at == 1.5
    assert items(batcher.step(1.5, slot_free=True)) == ["a", "b"]


def test_a_full_batch_goes_before_the_delay():
    batcher = make(max_batch=2, max_delay_s=10.0)
    batcher.offer("a", 0.0)
    batcher.offer("b", 0.0)
    batcher.offer("c", 0.0)
    assert items(batcher.step(0.0, slot_free=True)) == ["a", "b"]
    assert batcher.step(0.0, slot_free=True).batch == ()


def test_a_ticket_is_neither_split_nor_overtaken():
    batcher = make(max_batch=4)
    batcher.offer("a", 0.0, rows=3)
    batcher.offer("b", 0.0, rows=2)
    batcher.offer("c", 0.0, rows=1)
    assert items(batcher.step(0.0, slot_free=True)) == ["a"]
    assert items(batcher.step(0.0, slot_free=True)) == ["b", "c"]


def test_keys_are_never_mixed_and_the_oldest_head_goes_first():
    batcher = make(max_batch=2)
    batcher.offer("a1", 0.0, key="a")
    batcher.offer("b1", 0.1, key="b")
    batcher.offer("a2", 0.2, key="a")
    assert items(batcher.step(1.0, slot_free=True)) == ["a1", "a2"]
    assert items(batcher.step(1.0, slot_free=True)) == ["b1"]


def test_a_rare_key_is_not_starved_by_a_busy_one():
    batcher = make(max_batch=2, max_delay_s=1.0)
    batcher.offer("rare", 0.0, key="rare")
    went: list[str] = []
    for tick in range(1, 8):
        now = tick / 4
        batcher.offer("busy", now, key="busy")
        batcher.offer("busy", now, key="busy")
        went += items(batcher.step(now, slot_free=True))
    assert "rare" in went
    assert went.index("rare") == 6, "the busy key goes while it is full, until the rare one is ripe"


def test_a_deadline_is_met_or_the_ticket_expires():
    batcher = make()
    batcher.offer("a", 0.0, deadline=1.0)
    batcher.offer("b", 0.0, deadline=2.0)
    assert batcher.step(0.5, slot_free=False).wake_at == 1.0
    step = batcher.step(1.0, slot_free=True)
    assert [ticket.item for ticket in step.expired] == ["a"]
    assert items(step) == ["b"]


def test_a_cancelled_ticket_does_not_go():
    batcher = make()
    ticket = batcher.offer("a", 0.0)
    batcher.offer("b", 0.0)
    assert batcher.cancel(ticket)
    assert not batcher.cancel(ticket)
    assert ticket.state == "cancelled"
    assert items(batcher.step(0.0, slot_free=True)) == ["b"]


def test_items_nobody_waits_for_are_dropped_when_the_batch_is_formed():
    gone = {"a", "c"}
    batcher: Batcher[str] = Batcher(BatchingPolicy(max_batch=2), is_gone=lambda item: item in gone)
    for name in "abcd":
        batcher.offer(name, 0.0)
    step = batcher.step(0.0, slot_free=True)
    assert items(step) == ["b", "d"]
    assert [ticket.item for ticket in step.cancelled] == ["a", "c"]


def test_a_full_queue_refuses_and_says_when_to_return():
    batcher = make(max_batch=2, queue_rows=3)
    batcher.record_service(rows=2, seconds=4.0)
    batcher.offer("a", 0.0, rows=2)
    batcher.offer("b", 0.0)
    with pytest.raises(QueueFullError, match="3 of 3 rows") as caught:
        batcher.offer("c", 0.0)
    assert caught.value.retry_after_s == 6.0
    assert batcher.queued_rows == 3


def test_a_full_queue_first_drops_what_nobody_waits_for():
    gone: set[str] = set()
    batcher: Batcher[str] = Batcher(
        BatchingPolicy(max_batch=1, queue_rows=1), is_gone=lambda item: item in gone
    )
    batcher.offer("a", 0.0)
    gone.add("a")
    batcher.offer("b", 0.0)
    step = batcher.step(0.0, slot_free=True)
    assert items(step) == ["b"]
    assert [ticket.item for ticket in step.cancelled] == ["a"]


@pytest.mark.parametrize("rows", [0, 5])
def test_a_ticket_larger_than_a_batch_or_empty_is_a_callers_mistake(rows: int):
    with pytest.raises(ValueError, match="expected 1 to max_batch"):
        make(max_batch=4).offer("a", 0.0, rows=rows)


@pytest.mark.parametrize(
    ("max_batch", "max_delay_s", "queue_rows"),
    [(0, 0.0, 10), (4, -1.0, 10), (4, float("nan"), 10), (4, float("inf"), 10), (4, 0.0, 3)],
)
def test_a_policy_out_of_range_is_refused(max_batch: int, max_delay_s: float, queue_rows: int):
    with pytest.raises(ConfigError, match="expected"):
        BatchingPolicy(max_batch, max_delay_s, queue_rows)


def test_high_tickets_go_first_and_fill_up_with_normal_ones():
    batcher = make(max_batch=2)
    for name in "abc":
        batcher.offer(name, 0.0)
    batcher.offer("H1", 1.0, priority="high")
    assert items(batcher.step(1.0, slot_free=True)) == ["H1", "a"]
    batcher.offer("H2", 2.0, priority="high")
    batcher.offer("H3", 2.0, priority="high")
    assert items(batcher.step(2.0, slot_free=True)) == ["H2", "H3"]
    assert items(batcher.step(2.0, slot_free=True)) == ["b", "c"]


def test_a_stream_of_high_tickets_does_not_starve_the_normal_ones():
    batcher = make(max_batch=2, queue_rows=1000)
    batcher.offer("normal", 0.0)
    batches = 0
    while True:
        for number in range(2):
            batcher.offer(f"high-{batches}-{number}", float(batches), priority="high")
        batches += 1
        if "normal" in items(batcher.step(float(batches), slot_free=True)):
            break
    assert batches == PASSED_OVER_MOST + 1


def test_a_preferred_size_goes_before_the_delay_and_a_batch_is_cut_to_one():
    batcher = make(max_batch=10, max_delay_s=5.0, preferred=(2, 4))
    batcher.offer("a", 0.0)
    assert not batcher.step(0.0, slot_free=True).batch
    batcher.offer("b", 0.0)
    assert items(batcher.step(0.0, slot_free=True)) == ["a", "b"]
    for name in "cdefg":
        batcher.offer(name, 1.0)
    assert items(batcher.step(1.0, slot_free=True)) == ["c", "d", "e", "f"]
    assert not batcher.step(1.0, slot_free=True).batch
    assert items(batcher.step(6.0, slot_free=True)) == ["g"], "the delay is kept all the same"


@pytest.mark.parametrize(
    ("preferred", "most_rows", "expected"),
    [
        ((), 3, "abc"),
        ((), 1, "a"),
        ((), 9, "abcdef"),
        ((2, 4), 3, "abc"),
        ((2, 4), 5, "abcd"),
    ],
)
def test_a_batch_is_cut_to_what_the_caller_wants(preferred: tuple[int, ...], most_rows: int, expected: str):
    batcher: Batcher[str] = Batcher(BatchingPolicy(max_batch=6, preferred=preferred))
    for item in "abcdefg":
        batcher.offer(item, 0.0)
    assert "".join(items(batcher.step(0.0, True, most_rows))) == expected


def test_a_ticket_larger_than_what_the_caller_wants_goes_whole():
    batcher: Batcher[str] = Batcher(BatchingPolicy(max_batch=6))
    batcher.offer("a", 0.0, rows=5)
    batcher.offer("b", 0.0)
    assert items(batcher.step(0.0, True, 2)) == ["a"]


def test_a_ticket_larger_than_a_preferred_size_goes_whole():
    batcher = make(max_batch=10, preferred=(2,))
    batcher.offer("a", 0.0, rows=7)
    batcher.offer("b", 0.0)
    assert items(batcher.step(0.0, slot_free=True)) == ["a"]


@pytest.mark.parametrize("preferred", [(0,), (5,), (2, -1)])
def test_a_preferred_size_that_no_batch_can_have_is_refused(preferred: tuple[int, ...]):
    with pytest.raises(ConfigError, match="preferred"):
        make(max_batch=4, preferred=preferred)


def test_deadlines_of_served_tickets_are_not_kept():
    batcher = make()
    for number in range(5000):
        batcher.offer(str(number), float(number), deadline=number + 1e6)
        batcher.step(float(number), slot_free=True)
    assert len(batcher._deadlines) < 100


class BatcherHistory(RuleBasedStateMachine):
    """Any interleaving of offers, cancellations, hang-ups, priorities, time and slots."""

    preferred: tuple[int, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.policy = BatchingPolicy(max_batch=5, max_delay_s=0.25, queue_rows=12, preferred=self.preferred)
        self.gone: set[int] = set()
        self.batcher: Batcher[int] = Batcher(self.policy, is_gone=self.gone.__contains__)
        self.now = 0.0
        self.offered = 0
        self.waiting: dict[int, Ticket[int]] = {}
        self.last_sent: dict[object, int] = {}
        self.wake_at: float | None = None
        self.passed_over: dict[object, int] = {}

    @rule(
        rows=st.integers(1, 5),
        key=st.integers(0, 2),
        patience=st.one_of(st.none(), st.sampled_from([0.0, 0.125, 0.5, 2.0])),
        priority=st.sampled_from(get_args(Priority)),
    )
    def offer(self, rows: int, key: int, patience: float | None, priority: Priority) -> None:
        deadline = None if patience is None else self.now + patience
        before = self.batcher.queued_rows
        try:
            ticket = self.batcher.offer(
                self.offered, self.now, rows=rows, key=key, deadline=deadline, priority=priority
            )
        except QueueFullError:
            assert before + rows > self.policy.queue_rows
        else:
            self.waiting[self.offered] = ticket
        self.offered += 1

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.waiting)))
        ticket = self.waiting[number]
        was_waiting = ticket.state == "waiting"
        assert self.batcher.cancel(ticket) == was_waiting
        if was_waiting:
            del self.waiting[number]

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def hang_up(self, data: st.DataObject) -> None:
        self.gone.add(data.draw(st.sampled_from(sorted(self.waiting))))

    @rule(
        seconds=st.sampled_from([0.0, 0.0625, 0.125, 0.25, 1.0]),
        slot_free=st.booleans(),
        most_rows=st.one_of(st.none(), st.integers(1, 7)),
    )
    def step(self, seconds: float, slot_free: bool, most_rows: int | None = None) -> None:
        self.now += seconds
        step = self.batcher.step(self.now, slot_free, most_rows)
        self.wake_at = step.wake_at
        assert sum(ticket.rows for ticket in step.batch) <= self.policy.max_batch
        if most_rows is not None and len(step.batch) > 1:
            assert sum(ticket.rows for ticket in step.batch) <= most_rows
        assert len({ticket.key for ticket in step.batch}) <= 1
        assert slot_free or not step.batch
        for state, tickets in (
            ("dispatched", step.batch),
            ("expired", step.expired),
            ("cancelled", step.cancelled),
        ):
            for ticket in tickets:
                assert self.waiting.pop(ticket.item) is ticket, "each ticket leaves exactly once"
                assert ticket.state == state
        for ticket in step.batch:
            assert ticket.deadline is None or self.now < ticket.deadline
            assert ticket.item not in self.gone
            level = (ticket.key, ticket.priority)
            assert self.last_sent.get(level, -1) < ticket.item, "order within a key and priority"
            self.last_sent[level] = ticket.item
        self.check_starvation(step)
        for ticket in step.expired:
            assert ticket.deadline is not None
            assert ticket.deadline <= self.now
        if slot_free and not step.batch:
            assert all(self.now < t.enqueued_at + self.policy.max_delay_s for t in self.waiting.values())
        self.check_wake(slot_free and not step.batch)

    def check_starvation(self, step: Step[int]) -> None:
        """A normal ticket sees at most so many batches of its key pass that have none of its kind."""
        if not step.batch:
            return
        key = step.batch[0].key
        waits = any(t.key == key and t.priority == "normal" for t in self.waiting.values())
        only_high = all(ticket.priority == "high" for ticket in step.batch)
        self.passed_over[key] = self.passed_over.get(key, 0) + 1 if waits and only_high else 0
        assert self.passed_over[key] <= PASSED_OVER_MOST

    def check_wake(self, slot_stays_free: bool) -> None:
        """Nothing that a step would do happens before `wake_at`."""
        moments = [t.deadline for t in self.waiting.values() if t.deadline is not None]
        if slot_stays_free:
            moments += [t.enqueued_at + self.policy.max_delay_s for t in self.waiting.values()]
        assert self.wake_at == min(moments, default=None)

    @invariant()
    def the_queue_is_bounded_and_counted(self) -> None:
        assert self.batcher.queued_rows <= self.policy.queue_rows
        assert self.batcher.queued_rows == sum(
            ticket.rows for ticket in self.waiting.values() if ticket.state == "waiting"
        )

    def teardown(self) -> None:
        """With time and slots, everything that still waits leaves."""
        self.now += 10.0
        for _ in range(len(self.waiting) + 1):
            self.step(0.0, slot_free=True)
        assert not self.waiting
        assert self.batcher.queued_rows == 0


TestBatcherHistory = BatcherHistory.TestCase
TestBatcherHistory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestBatcherHistory.pytestmark = [pytest.mark.slow]  # pyright: ignore[reportAttributeAccessIssue]


class PreferredHistory(BatcherHistory):
    """The same with preferred sizes."""

    preferred = (2, 4)


TestPreferredHistory = PreferredHistory.TestCase
TestPreferredHistory.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestPreferredHistory.pytestmark = [pytest.mark.slow]  # pyright: ignore[reportAttributeAccessIssue]
