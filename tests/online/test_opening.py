"""Slots that are opened in vain leave no process, no thread and no descriptor behind."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from parity import Engine, load_handler
from parity.errors import RunnerError
from parity.pipeline import Overlapped
from parity_online.remote import RemoteEngine
from parity_online.slots import EngineLike, Slots
from tests.online.serving import HANDLERS, until

pytestmark = pytest.mark.slow


class Deaf:
    """Observes nothing."""

    def slots_changed(self, alive: int, reason: str) -> None: ...
    def slot_lost(self, cause: str) -> None: ...
    def slot_freed(self) -> None: ...


LOADED = load_handler(HANDLERS / "steps")


def overlapped(_: int) -> EngineLike:
    return Overlapped(Engine(LOADED, preprocess_processes=1), preprocess_workers=1)


def remote(_: int) -> EngineLike:
    return RemoteEngine(LOADED, LOADED.profile(), LOADED.profile(), preprocess_workers=1)


def slots_of(make: Callable[[int], EngineLike]) -> Slots:
    return Slots(make, 1, "steps", limit_s=60, preprocess_workers=1, observer=Deaf())


def held() -> tuple[set[int], int, set[str]]:
    """The children, the number of open descriptors, and the threads of slots."""
    names = {thread.name for thread in threading.enumerate()}
    return (
        {child.pid for child in psutil.Process().children()},
        len(list(Path("/proc/self/fd").iterdir())),
        {name for name in names if name.startswith(("parity-slot-steps", "parity-inference", "parity-rep"))},
    )


def no_more_than(before: tuple[set[int], int, set[str]]) -> bool:
    """Whether nothing is held that was not; what another test had left may have gone meanwhile."""
    children, descriptors, threads = held()
    return children <= before[0] and descriptors <= before[1] and threads <= before[2]


@pytest.mark.parametrize("make", [overlapped, remote])
def test_a_warm_up_that_fails_ends_the_engine(make: Callable[[int], EngineLike]):
    def fail(_: EngineLike) -> float:
        raise ValueError("a golden that does not fit")

    async def opened() -> None:
        with pytest.raises(ValueError, match="does not fit"):
            await slots_of(make).open(fail)

    asyncio.run(asyncio.sleep(0))  # what the first loop of a process leaves open is no leak
    before = held()
    asyncio.run(opened())
    until(lambda: no_more_than(before))


def test_a_close_while_a_slot_is_opened_ends_the_engine():
    entered, go = threading.Event(), threading.Event()

    def wait(_: EngineLike) -> float:
        entered.set()
        assert go.wait(60)
        return 0.0

    async def closed() -> None:
        slots = slots_of(overlapped)
        opening = asyncio.create_task(slots.open(wait))
        assert await asyncio.to_thread(entered.wait, 60)
        await slots.close()
        go.set()
        with pytest.raises(RunnerError, match="was closed while"):
            await opening

    asyncio.run(asyncio.sleep(0))
    before = held()
    asyncio.run(closed())
    until(lambda: no_more_than(before))
