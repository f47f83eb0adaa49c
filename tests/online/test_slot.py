"""Both slots run jobs and carry whatever they raise."""

import asyncio
import random
import threading
from typing import NoReturn

import pytest

from parity_online.slot import PATIENCE_S, JobCrashedError, LoopSlot, Slot, ThreadSlot


def make(kind: str) -> Slot:
    loop = asyncio.get_running_loop()
    return ThreadSlot(loop, "test-slot") if kind == "thread" else LoopSlot(loop)


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_a_job_gives_its_result(kind: str):
    async def main() -> None:
        slot = make(kind)
        assert await slot.run(lambda: 42) == 42
        assert await slot.run(lambda: None) is None
        name = await slot.run(lambda: threading.current_thread().name)
        assert (name == "test-slot") == (kind == "thread")
        slot.close()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["thread", "loop"])
@pytest.mark.parametrize(
    ("raised", "carried"),
    [(KeyError, KeyError), (StopIteration, JobCrashedError), (SystemExit, JobCrashedError)],
)
def test_a_job_that_raises_does_not_take_the_slot_down(
    kind: str, raised: type[BaseException], carried: type[Exception]
):
    async def main() -> None:
        def job() -> NoReturn:
            raise raised("stop")

        slot = make(kind)
        with pytest.raises(carried, match="stop"):
            await slot.run(job)
        assert await slot.run(lambda: 1) == 1
        slot.close()

    asyncio.run(main())


def test_the_loop_waits_for_a_short_job_and_not_for_one_that_hangs():
    async def main() -> None:
        slot, go = ThreadSlot(asyncio.get_running_loop(), "test-slot"), threading.Event()
        assert not slot.run(go.wait).done()
        go.set()
        slot.is_short = True
        assert await slot.run(lambda: threading.current_thread().name) == "test-slot"
        with pytest.raises(KeyError):
            await slot.run(lambda: {}["x"])
        go.clear()
        hung = slot.run(lambda: go.wait(60))
        assert not hung.done()
        behind = slot.run(lambda: 7)
        assert not behind.done()
        go.set()
        assert (await hung, await behind) == (True, 7)
        slot.close()

    asyncio.run(main())


def test_a_slot_whose_jobs_are_not_short_after_all_is_waited_for_no_more():
    async def main() -> None:
        slot, go = ThreadSlot(asyncio.get_running_loop(), "test-slot"), threading.Event()
        slot.is_short = True
        futures = [slot.run(lambda: go.wait(60)) for _ in range(20)]
        assert not slot.is_short
        go.set()
        assert all(await asyncio.gather(*futures))
        slot.close()

    asyncio.run(main())


@pytest.mark.slow
def test_jobs_that_take_about_as_long_as_the_loop_waits_are_each_answered_once():
    async def main() -> None:
        slot, chance = ThreadSlot(asyncio.get_running_loop(), "test-slot"), random.Random(3)

        def job(number: int, seconds: float) -> int:
            threading.Event().wait(seconds)  # lets go of the GIL, as a model does
            return number

        at_once = 0
        for number in range(300):
            slot.is_short = True
            seconds = PATIENCE_S * chance.choice((0.0, 0.9, 0.98, 1.0, 1.02, 1.5))
            future = slot.run(lambda number=number, seconds=seconds: job(number, seconds))
            at_once += future.done()
            assert await asyncio.wait_for(future, 60) == number
        assert 0 < at_once < 300
        slot.close()

    asyncio.run(main())
