"""Both slots run jobs and carry whatever they raise."""

import asyncio
import threading
from typing import NoReturn

import pytest

from parity_online.slot import JobCrashedError, LoopSlot, Slot, ThreadSlot


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
