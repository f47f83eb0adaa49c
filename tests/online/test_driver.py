"""The asyncio driver in virtual time: deadlines, hang-ups, failures, large requests and draining."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from parity_online.batcher import BatchingPolicy, QueueFullError
from parity_online.driver import DeadlineExceededError, DrainingError, Driver
from tests.online.virtual_time import run


class Model:
    """Answers each item with "<item>!" after `seconds`, and remembers its batches."""

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds = seconds
        self.batches: list[list[str]] = []
        self.fail: Exception | None = None

    def __call__(self, items: list[str]) -> "asyncio.Future[Sequence[str | Exception]]":
        self.batches.append(items)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sequence[str | Exception]] = loop.create_future()

        def finish() -> None:
            if self.fail is not None:
                future.set_exception(self.fail)
            else:
                future.set_result([ValueError("bad") if item == "bad" else f"{item}!" for item in items])

        loop.call_later(self.seconds, finish)
        return future


class Callback:
    """A promise whose listener is told at once, as requests of the fast path are."""

    def __init__(self, listener: Callable[[Any, BaseException | None], None]) -> None:
        self._listener = listener
        self._is_done = False

    def done(self) -> bool:
        return self._is_done

    def set_result(self, result: object, /) -> None:
        self._is_done = True
        self._listener(result, None)

    def set_exception(self, exception: BaseException, /) -> None:
        self._is_done = True
        self._listener(None, exception)

    def cancel(self) -> None:
        if not self._is_done:
            self.set_exception(asyncio.CancelledError())


def picky(model: Model) -> Callable[[list[str]], object]:
    """The model, whose batches fail as a whole where they hold "poison"."""

    def start(items: list[str]) -> object:
        future = model(items)
        if "poison" in items:
            failed: asyncio.Future[object] = asyncio.get_running_loop().create_future()
            future.add_done_callback(lambda _: failed.set_exception(OSError("poison")))
            return failed
        return future

    return start


class Seen:
    def __init__(self) -> None:
        self.waits: list[list[float]] = []
        self.rows: list[int] = []
        self.expiries = 0
        self.cancellations = 0

    def dispatched(self, waits_s: Sequence[float], rows: int) -> None:
        self.waits.append(list(waits_s))
        self.rows.append(rows)

    def expired(self, requests: int) -> None:
        self.expiries += requests

    def cancelled(self, requests: int) -> None:
        self.cancellations += requests


def make(
    model: Callable[..., object],
    seen: Seen | None = None,
    *,
    timer_slack_s: float = 0.0,
    runs_apart: Callable[[BaseException], bool] = lambda _: False,
    capacity: int = 1,
    share: Callable[[int], int] | None = None,
    **policy: float,
) -> Driver[str, str]:
    return Driver(
        BatchingPolicy(**policy),  # pyright: ignore[reportArgumentType]
        model,  # pyright: ignore[reportArgumentType]
        loop=asyncio.get_running_loop(),
        observer=seen,
        timer_slack_s=timer_slack_s,
        runs_apart=runs_apart,
        capacity=capacity,
        share=share,
    )


def test_requests_of_one_turn_share_a_batch_and_later_ones_the_next():
    async def main() -> None:
        model, seen = Model(), Seen()
        driver = make(model, seen, max_batch=8)
        first = [driver.submit(name) for name in "abc"]
        await asyncio.sleep(0.5)
        second = [driver.submit(name) for name in "de"]
        assert await asyncio.gather(*first, *second) == ["a!", "b!", "c!", "d!", "e!"]
        assert model.batches == [["a", "b", "c"], ["d", "e"]]
        assert seen.rows == [3, 2]
        assert seen.waits == [[0.0, 0.0, 0.0], [0.5, 0.5]]
        assert asyncio.get_running_loop().time() == 2.0

    run(main())


@pytest.mark.parametrize(
    ("seconds", "batches"), [(0.001, [["a"], ["b", "a again"]]), (0.5, [["a"], ["b"], ["a again"]])]
)
def test_after_a_short_batch_only_the_next_waits_for_whom_it_answered(
    seconds: float, batches: list[list[str]]
) -> None:
    async def main() -> None:
        model = Model(seconds)
        driver = make(model, max_batch=8)
        first = driver.submit("a")
        await asyncio.sleep(seconds / 2)
        second = driver.submit("b")
        await first
        third = driver.submit("a again")
        await asyncio.gather(second, third)
        assert model.batches == batches

    run(main())


def test_batches_that_run_at_once_share_the_rows() -> None:
    async def main() -> None:
        model = Model()
        driver = make(model, max_batch=8, capacity=2, share=lambda rows: -(-rows // 2))
        first = [driver.submit(name) for name in "abcdefg"]
        await asyncio.sleep(0.5)
        assert model.batches == [list("abcd"), list("efg")]
        second = [driver.submit(name) for name in "hij"]
        large = driver.submit("k", 8)
        await asyncio.gather(*first, *second, large)
        # Of 18 rows, seven of which had just run, each gets nine: what there is, to the size of a batch.
        assert model.batches[2:] == [["h", "i", "j"], ["k"]]

    run(main())


def test_answers_do_not_wait_for_the_next_batch_where_batches_hold_the_loop() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        seen: list[str] = []

        def hold(items: list[str]) -> asyncio.Future[Sequence[str]]:
            time.sleep(0.003)
            seen.append(f"batch {items}")
            future: asyncio.Future[Sequence[str]] = loop.create_future()
            future.set_result(items)
            return future

        driver = Driver(BatchingPolicy(max_batch=1), hold, loop=loop, clock=time.monotonic)
        futures = [driver.submit(name) for name in "abc"]
        for name, future in zip("abc", futures, strict=True):
            future.add_done_callback(lambda _, name=name: seen.append(f"{name} is told"))
        await asyncio.gather(*futures)
        assert seen == [
            *("batch ['a']", "a is told", "batch ['b']", "b is told", "batch ['c']", "c is told"),
        ]

    asyncio.run(main())


@pytest.mark.parametrize("seconds", [0.001, 0.5])
def test_what_is_run_apart_goes_on_after_short_batches_and_long_ones(seconds: float) -> None:
    async def main() -> None:
        model = Model(seconds)
        driver = make(picky(model), runs_apart=lambda error: isinstance(error, OSError), max_batch=8)
        told = await asyncio.gather(
            *(driver.submit(name) for name in ("a", "poison", "b")), return_exceptions=True
        )
        assert [told[0], told[2]] == ["a!", "b!"]
        assert isinstance(told[1], OSError)
        assert await driver.drain(1.0) == 0

    run(main())


def test_a_lone_request_pays_the_delay_and_no_more():
    async def main() -> None:
        driver = make(Model(seconds=0.0), max_batch=8, max_delay_s=0.25)
        await driver.submit("a")
        assert asyncio.get_running_loop().time() == pytest.approx(0.25)

    run(main())


def test_late_timers_are_set_so_much_earlier_and_never_fire_in_vain():
    async def main() -> None:
        loop = asyncio.get_running_loop()
        model = Model(seconds=0.0)
        driver = make(model, max_batch=8, max_delay_s=0.25, timer_slack_s=0.01)
        await driver.submit("a")
        assert loop.time() == pytest.approx(0.24)
        started = loop.time()
        quick = make(Model(seconds=10.0), max_batch=1, timer_slack_s=0.01)
        busy = quick.submit("a")
        with pytest.raises(DeadlineExceededError):
            await quick.submit("b", deadline=started + 1.0)
        assert loop.time() == pytest.approx(started + 0.99)
        await busy

    run(main())


def test_a_deadline_in_the_queue_is_answered_when_it_passes():
    async def main() -> None:
        model, seen = Model(seconds=10.0), Seen()
        driver = make(model, seen, max_batch=1)
        busy = driver.submit("a")
        late = driver.submit("b", deadline=3.0)
        with pytest.raises(DeadlineExceededError, match=r"after 3\.000 s, in the queue"):
            await late
        assert asyncio.get_running_loop().time() == pytest.approx(3.0)
        await busy
        assert model.batches == [["a"]]
        assert seen.expiries == 1

    run(main())


def test_a_deadline_during_the_batch_is_answered_when_it_passes():
    async def main() -> None:
        driver = make(Model(seconds=10.0), max_batch=2)
        late = driver.submit("a", deadline=3.0)
        patient = driver.submit("b")
        with pytest.raises(DeadlineExceededError, match="while its batch ran"):
            await late
        assert asyncio.get_running_loop().time() == pytest.approx(3.0)
        assert await patient == "b!"

    run(main())


def test_a_client_that_leaves_is_dropped_from_the_queue():
    async def main() -> None:
        model, seen = Model(), Seen()
        driver = make(model, seen, max_batch=1)
        gone: set[str] = set()
        running = driver.submit("a", is_gone=lambda: "a" in gone)
        waiting = driver.submit("b", is_gone=lambda: "b" in gone)
        abandoned = driver.submit("c")
        last = driver.submit("d")
        await asyncio.sleep(0.5)
        gone.update("ab")
        abandoned.cancel()
        assert await running == "a!", "a batch that runs is not taken back"
        assert await last == "d!"
        assert waiting.cancelled()
        assert model.batches == [["a"], ["d"]]
        assert seen.cancellations == 2

    run(main())


def test_a_failed_batch_fails_its_requests_and_the_next_one_runs():
    async def main() -> None:
        model = Model()
        driver = make(model, max_batch=2)
        model.fail = OSError("device lost")
        answers = await asyncio.gather(driver.submit("a"), driver.submit("b"), return_exceptions=True)
        assert [type(answer) for answer in answers] == [OSError, OSError]
        model.fail = None
        assert await driver.submit("c") == "c!"

    run(main())


def test_the_requests_of_a_failed_batch_run_once_more_alone_where_one_may_be_to_blame():
    async def main() -> None:
        model = Model()
        seen = Seen()
        driver = make(picky(model), seen, max_batch=3, runs_apart=lambda error: isinstance(error, OSError))
        asked = [driver.submit(name) for name in ("a", "poison", "b")]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [answers[0], type(answers[1]), answers[2]] == ["a!", OSError, "b!"]
        assert model.batches == [["a", "poison", "b"], ["a"], ["poison"], ["b"]]
        assert seen.rows == [3], "they left the queue once"
        assert await driver.submit("c") == "c!"

    run(main())


def test_requests_that_run_apart_keep_their_deadlines_and_are_drained():
    async def main() -> None:
        model = Model()
        driver = make(picky(model), max_batch=4, runs_apart=lambda _: True)
        names = ("a", "poison", "late", "b")
        futures = [driver.submit(name, deadline=2.5 if name == "late" else None) for name in names]
        drained = asyncio.create_task(driver.drain(timeout_s=60.0))
        answers = await asyncio.gather(*futures, return_exceptions=True)
        assert answers[0] == "a!"
        assert [type(answer) for answer in answers[1:3]] == [OSError, DeadlineExceededError]
        assert answers[3] == "b!"
        assert await drained == 0
        assert ["late"] not in model.batches

    run(main())


def test_requests_that_wait_to_run_apart_are_given_up_with_the_rest():
    async def main() -> None:
        driver = make(picky(Model()), max_batch=3, runs_apart=lambda _: True)
        futures = [driver.submit(name) for name in ("a", "poison", "b")]
        assert await driver.drain(timeout_s=1.5) == 3
        answers = await asyncio.gather(*futures, return_exceptions=True)
        assert [type(answer) for answer in answers] == [DrainingError] * 3

    run(main())


def test_an_answer_that_is_an_exception_concerns_its_own_request_only():
    async def main() -> None:
        driver = make(Model(), max_batch=3)
        answers = await asyncio.gather(
            *(driver.submit(name) for name in ("a", "bad", "c")), return_exceptions=True
        )
        assert answers[0] == "a!"
        assert isinstance(answers[1], ValueError)
        assert answers[2] == "c!"

    run(main())


def test_a_batch_that_cannot_start_fails_its_requests():
    async def main() -> None:
        def broken(items: list[str]) -> object:
            raise LookupError("no slot")

        driver = make(broken, max_batch=3)
        with pytest.raises(LookupError):
            await driver.submit("a")

    run(main())


def test_a_wrong_number_of_answers_is_an_error_not_a_shift():
    async def main() -> None:
        def short(items: list[str]) -> object:
            future: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
            future.set_result(["only one"])
            return future

        driver = make(short, max_batch=3)
        answers = await asyncio.gather(driver.submit("a"), driver.submit("b"), return_exceptions=True)
        assert [type(answer) for answer in answers] == [RuntimeError, RuntimeError]

    run(main())


def test_a_large_request_is_split_and_reassembled_in_order():
    async def main() -> None:
        model = Model()
        driver = make(model, max_batch=4, queue_rows=20)
        other = driver.submit("x")
        parts = [("a", 4), ("b", 4), ("c", 2)]
        answers, lone = await asyncio.gather(driver.submit_parts(parts), other)
        assert answers == ["a!", "b!", "c!"]
        assert lone == "x!"
        assert model.batches == [["x"], ["a"], ["b"], ["c"]]

    run(main())


def test_a_large_request_that_does_not_fit_is_refused_whole():
    async def main() -> None:
        model = Model()
        driver = make(model, max_batch=4, queue_rows=8)
        with pytest.raises(QueueFullError):
            await driver.submit_parts([("a", 4), ("b", 4), ("c", 4)])
        assert driver.queued_rows == 0

    run(main())


def test_a_failed_part_drops_the_parts_that_still_wait():
    async def main() -> None:
        model = Model()
        driver = make(model, max_batch=1)
        with pytest.raises(ValueError, match="bad"):
            await driver.submit_parts([("bad", 1), ("b", 1), ("c", 1)])
        assert await driver.submit("d") == "d!"
        assert model.batches[-1] == ["d"]
        assert ["c"] not in model.batches

    run(main())


def test_draining_finishes_what_was_accepted_and_refuses_the_rest():
    async def main() -> None:
        model = Model()
        driver = make(model, max_batch=1)
        accepted = [driver.submit(name) for name in "abc"]
        drained = asyncio.create_task(driver.drain(timeout_s=60.0))
        await asyncio.sleep(0)
        with pytest.raises(DrainingError):
            driver.submit("d")
        assert await asyncio.gather(*accepted) == ["a!", "b!", "c!"]
        assert await drained == 0
        assert await driver.drain(1.0) == 0

    run(main())


def test_draining_gives_up_after_its_time():
    async def main() -> None:
        model = Model(seconds=10.0)
        driver = make(model, max_batch=1)
        futures = [driver.submit(name) for name in "abc"]
        assert await driver.drain(timeout_s=12.0) == 2
        answers = await asyncio.gather(*futures, return_exceptions=True)
        assert [type(answer) for answer in answers] == [str, DrainingError, DrainingError]

    run(main())


def test_a_callback_hears_at_once_and_once_what_a_future_would():
    async def main() -> None:
        loop = asyncio.get_running_loop()
        model, heard = Model(), dict[str, tuple[object, float]]()

        def listen(name: str) -> Callback:
            def told(answer: str | None, error: BaseException | None) -> None:
                assert name not in heard
                heard[name] = (answer if error is None else type(error), loop.time())

            return Callback(told)

        driver = make(model, max_batch=2, queue_rows=6)
        driver.offer(listen("first"), "a")
        driver.offer(listen("bad"), "bad")
        driver.offer(listen("late"), "b", deadline=0.5)
        driver.offer(listen("gone"), "c", is_gone=lambda: True)
        driver.offer(listen("next"), "d")
        await asyncio.sleep(1.5)
        driver.offer(listen("given up"), "e")
        for _ in range(5):
            driver.offer(Callback(lambda _answer, _error: None), "f")
        with pytest.raises(QueueFullError):
            driver.offer(listen("too many"), "f")
        assert await driver.drain(0.1) > 0
        assert heard == {
            "first": ("a!", 1.0),
            "bad": (ValueError, 1.0),
            "late": (DeadlineExceededError, 0.5),
            "gone": (asyncio.CancelledError, 1.0),
            "next": (DrainingError, pytest.approx(1.6)),
            "given up": (DrainingError, pytest.approx(1.6)),
        }
        with pytest.raises(DrainingError):
            driver.offer(listen("refused"), "g")

    run(main())


def test_a_busy_driver_takes_no_turn_of_the_loop_for_a_request_and_misses_no_deadline():
    async def main() -> None:
        loop = asyncio.get_running_loop()
        driver = make(Model(seconds=10.0), max_batch=1, queue_rows=64)
        busy = driver.submit("a", deadline=100.0)
        await asyncio.sleep(1.0)
        turns, call_soon = 0, loop.call_soon

        def counted(*args: object, **more: object) -> object:
            nonlocal turns
            turns += 1
            return call_soon(*args, **more)  # pyright: ignore

        loop.call_soon = counted  # pyright: ignore
        waiting = [driver.submit("b", deadline=50.0 + place) for place in range(5)]
        assert turns == 0 or turns == 1
        sooner = driver.submit("c", deadline=3.0)
        loop.call_soon = call_soon  # pyright: ignore
        with pytest.raises(DeadlineExceededError):
            await sooner
        assert loop.time() == pytest.approx(3.0)
        assert await asyncio.gather(busy, *waiting[:3]) == ["a!", "b!", "b!", "b!"]
        await asyncio.gather(*waiting, return_exceptions=True)

    run(main())
