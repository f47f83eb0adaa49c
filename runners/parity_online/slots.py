"""The slots of one model: which is free, how long a batch may take, and replacing those that hang or die.

A thread that hangs cannot be ended: its slot is given up, with its thread, and another engine is made. After
`HUNG_MOST` of them the model fails, since each keeps its memory. A replica that hangs is killed. What is
replaced is tried again and again, with longer and longer pauses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, Self, TypeVar

from parity.batch import Batch
from parity.errors import FingerprintError, ParityError, RunnerError
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.result import Result
from parity_online import logs
from parity_online.remote import RemoteEngine, ReplicaDiedError
from parity_online.slot import LoopSlot, Slot, SlotKind, ThreadSlot

logger = logging.getLogger(__name__)

T = TypeVar("T")

HUNG_MOST = 3
"""So many threads that hang are borne before the model gives up."""

_PAUSE_S = 0.25
_PAUSE_MOST_S = 30.0
_STABLE_S = 60.0
_WATCH_S = 0.2


class EngineLike(Protocol):
    """What a slot runs batches on: an `Engine`, or a `RemoteEngine`."""

    loaded: LoadedHandler
    profile: Profile

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: None, exc: None, trace: None, /) -> None: ...

    def run(self, batch: Batch) -> Result:
        """The answers for a batch."""
        ...

    def fingerprint(self) -> dict[str, str]:
        """What the answers may depend on."""
        ...


class SlotHungError(ParityError):
    """A batch took longer than it may; its slot is being replaced."""


class Observer(Protocol):
    """Hears of the slots; called on the loop."""

    def slots_changed(self, alive: int, reason: str) -> None:
        """So many slots can take a batch; where there are none, why."""
        ...

    def slot_lost(self, cause: str) -> None:
        """A slot was lost: "hung" or "died"."""
        ...


class _Place:
    """An engine and where it runs."""

    def __init__(self, number: int, engine: EngineLike, slot: Slot) -> None:
        self.number = number
        self.engine = engine
        self.slot = slot
        self.is_busy = False
        self.is_given_up = False


def _check_files(loaded: LoadedHandler) -> None:
    """Refuse to make another engine of a handler whose files are not those that were loaded and proven.

    Raises:
        FingerprintError: they have changed.
    """
    now = replace(loaded).digests
    changed = [kind for kind, digest in loaded.digests.items() if now[kind] != digest]
    if changed:
        raise FingerprintError(
            f"the {' and '.join(changed)} of {loaded.name} changed since it was loaded, so that a new slot "
            "would answer otherwise than the others; load it anew, or bring the files back"
        )


class Slots:
    """The slots of one model; everything on the event loop.

    Args:
        make: makes an engine, not yet entered.
        count: how many slots.
        name: the model's name, for threads and logs.
        limit_s: how long a batch may take.
        observer: hears what becomes of the slots.
    """

    def __init__(
        self, make: Callable[[], EngineLike], count: int, name: str, *, limit_s: float, observer: Observer
    ) -> None:
        self._make = make
        self._count = count
        self._name = name
        self._limit_s = limit_s
        self._observer = observer
        self._places: dict[int, _Place] = {}
        self._warm_up: Callable[[EngineLike], float] = lambda _: 0.0
        self._hung_threads = 0
        self._missing: list[_Place] = []
        self._pauses: dict[int, float] = {}
        self._replacing: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._loop_slot: LoopSlot | None = None

    async def open(self, warm_up: Callable[[EngineLike], float]) -> float:
        """Enter all engines and warm them up; the seconds that a warm batch takes on the slowest."""
        self._warm_up = warm_up
        await asyncio.to_thread(lambda: self._make().loaded.digests)  # known before anything can change
        opened = await asyncio.gather(
            *(self._open(number) for number in range(self._count)), return_exceptions=True
        )
        for found in opened:
            if isinstance(found, BaseException):
                await self.close()  # those that did open
                raise found
        if any(isinstance(place.engine, RemoteEngine) for place in self._places.values()):
            self._watch()
        return max(found for found in opened if isinstance(found, float))

    @property
    def alive(self) -> int:
        """How many slots can take a batch, now or when the one they have is done."""
        return len(self._places)

    @property
    def kind(self) -> SlotKind:
        """Where batches run."""
        return "thread" if self._loop_slot is None else "loop"

    @property
    def engine(self) -> EngineLike:
        """An engine that is entered."""
        return next(iter(self._places.values())).engine

    def use_loop(self, slot: LoopSlot | None) -> None:
        """Run batches on the loop itself from now on, or on the thread again (None)."""
        self._loop_slot = slot

    def run(self, job: Callable[[EngineLike], T]) -> asyncio.Future[T]:
        """Run a job on a free slot; there is one as long as no more than `alive` jobs run.

        Raises:
            SlotHungError: (from the future) it took longer than it may.
            ReplicaDiedError: (from the future) its process died.
        """
        place = next(place for place in self._places.values() if not place.is_busy)
        if self._loop_slot is not None:
            return self._loop_slot.run(lambda: job(place.engine))
        loop = asyncio.get_running_loop()
        outer: asyncio.Future[T] = loop.create_future()
        place.is_busy = True
        inner = place.slot.run(lambda: job(place.engine))
        limit = loop.call_later(self._limit_s, self._overrun, place, outer)

        def finished(inner: asyncio.Future[T]) -> None:
            limit.cancel()
            place.is_busy = False
            error = inner.exception()
            if place.is_given_up:
                if not isinstance(place.engine, RemoteEngine):
                    self._hung_threads -= 1
                    place.slot.run(lambda: place.engine.__exit__(None, None, None))
                    place.slot.close()
                    self._replace_missing()
            elif isinstance(error, ReplicaDiedError):
                self._lose(place, "died", str(error))
            if outer.done():
                return
            if error is not None:
                outer.set_exception(error)
            else:
                outer.set_result(inner.result())

        inner.add_done_callback(finished)
        return outer

    def _watch(self) -> None:
        """Notice replicas that die while they have nothing to do, before a batch meets them."""
        if self._is_closed:
            return
        for place in list(self._places.values()):
            if isinstance(place.engine, RemoteEngine) and not place.is_busy and place.engine.is_dead:
                self._lose(place, "died", "a replica died while it waited")
        asyncio.get_running_loop().call_later(_WATCH_S, self._watch)

    async def close(self) -> None:
        """End all engines that do not hang, and kill the replicas that do."""
        self._is_closed = True
        for task in self._replacing:
            task.cancel()
        await asyncio.gather(*self._replacing, return_exceptions=True)
        ends = [self._end(place) for place in self._places.values()]
        self._places.clear()
        await asyncio.gather(*ends)

    async def _end(self, place: _Place) -> None:
        if place.is_busy and isinstance(place.engine, RemoteEngine):
            place.engine.kill()
        if not place.is_busy:
            await place.slot.run(lambda: place.engine.__exit__(None, None, None))
        place.slot.close()

    async def _open(self, number: int) -> float:
        slot = ThreadSlot(asyncio.get_running_loop(), f"parity-slot-{self._name}-{number}")
        engine = self._make()
        try:
            await slot.run(engine.__enter__)
            batch_s = await slot.run(lambda: self._warm_up(engine))
            if self._is_closed:
                raise RunnerError(f"model {self._name} was closed while a slot was opened")
        except BaseException:
            if isinstance(engine, RemoteEngine):
                engine.kill()
            slot.close()
            raise
        self._places[number] = _Place(number, engine, slot)
        return batch_s

    def _overrun(self, place: _Place, outer: asyncio.Future[T]) -> None:
        if outer.done():
            return
        outer.set_exception(
            SlotHungError(
                f"the batch of this request took longer than {self._limit_s:g} s and was given up; its slot "
                "is being replaced"
            )
        )
        place.is_given_up = True
        if isinstance(place.engine, RemoteEngine):
            place.engine.kill()
        else:
            self._hung_threads += 1
        self._lose(place, "hung", f"a batch took longer than {self._limit_s:g} s")

    def _lose(self, place: _Place, cause: str, reason: str) -> None:
        if self._places.get(place.number) is not place or self._is_closed:
            return
        del self._places[place.number]
        self._observer.slot_lost(cause)
        hopeless = self._hung_threads >= HUNG_MOST
        logger.error(
            "event=slot_%s model=%s slot=%d hung_threads=%d reason=%s",
            cause,
            logs.text(self._name),
            place.number,
            self._hung_threads,
            logs.text(reason),
        )
        if hopeless:
            self._missing.append(place)
            reason = (
                f"{self._hung_threads} batches hang, and threads cannot be ended; start the server anew, or "
                "with --replicas 1, where a process that hangs is ended"
            )
        else:
            reason = f"{reason}; its slot is being replaced"
            self._start_replacing(place)
        self._observer.slots_changed(self.alive, reason)

    def _start_replacing(self, place: _Place) -> None:
        task = asyncio.create_task(self._replace(place))
        self._replacing.add(task)
        task.add_done_callback(self._replacing.discard)

    def _replace_missing(self) -> None:
        """Replace what was not while too many threads hung: one of them has ended after all."""
        while self._missing and self._hung_threads < HUNG_MOST and not self._is_closed:
            self._start_replacing(self._missing.pop())

    async def _replace(self, place: _Place) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(place.engine, RemoteEngine):
            place.slot.close()
        while True:
            pause_s = self._pauses.get(place.number, 0.0)
            self._pauses[place.number] = min(max(_PAUSE_S, 2 * pause_s), _PAUSE_MOST_S)
            await asyncio.sleep(pause_s)
            try:
                await asyncio.to_thread(_check_files, place.engine.loaded)
                await self._open(place.number)
            except Exception as exc:
                logger.error(
                    "event=slot_not_replaced model=%s slot=%d error=%s",
                    logs.text(self._name),
                    place.number,
                    logs.text(exc),
                    exc_info=exc,
                )
                why = f"a slot could not be replaced, and is tried again: {exc}"
                self._observer.slots_changed(self.alive, why)
                continue
            logger.info("event=slot_replaced model=%s slot=%d", logs.text(self._name), place.number)
            loop.call_later(_STABLE_S, self._settle, place.number, self._places[place.number])
            self._observer.slots_changed(self.alive, "")
            return

    def _settle(self, number: int, place: _Place) -> None:
        """A slot that has lasted begins with short pauses again."""
        if self._places.get(number) is place:
            self._pauses.pop(number, None)
