"""The slots of one model: which is free, how long a batch may take, and replacing those that hang or die.

A slot whose stages overlap has several batches at once: it takes another one when fewer than its workers
preprocess, and no more than one is past that. What a batch waits for the model in there is no time it takes.

A thread that hangs cannot be ended: its slot is given up, with its thread, and another engine is made. After
`HUNG_MOST` of them the model fails, since each keeps its memory. A replica that hangs is killed. What is
replaced is tried again and again, with longer and longer pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar, cast

from parity.batch import Batch
from parity.engine import Engine
from parity.errors import FingerprintError, ParityError, RunnerError
from parity.handler import LoadedHandler
from parity.pipeline import Overlapped, Step
from parity.result import Result
from parity_online import logs
from parity_online.place import EngineLike, Place, Run
from parity_online.remote import RemoteEngine, ReplicaDiedError, StartTimeoutError
from parity_online.slot import SHORT_BATCH_S, LoopSlot, SlotKind, ThreadSlot

logger = logging.getLogger(__name__)

T = TypeVar("T")

RunBatch = Callable[[Batch], Result]

HUNG_MOST = 3
"""So many threads that hang are borne before the model gives up."""

_PAUSE_S = 0.25
_PAUSE_MOST_S = 30.0
_STABLE_S = 60.0
_WATCH_S = 0.2


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

    def slot_freed(self) -> None:
        """A slot that has batches can take another one."""
        ...


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
        make: makes the engine of a slot with this number, not yet entered.
        count: how many slots.
        name: the model's name, for threads and logs.
        limit_s: how long a batch may take.
        preprocess_workers: threads that preprocess for each, its stages overlapped; 0: a batch at a time.
        start_timeout_s: how long loading may take before it is said; a replica ends itself then.
        observer: hears what becomes of the slots.
    """

    def __init__(
        self,
        make: Callable[[int], EngineLike],
        count: int,
        name: str,
        *,
        limit_s: float,
        preprocess_workers: int = 0,
        start_timeout_s: float = 600.0,
        observer: Observer,
    ) -> None:
        self._make = make
        self._count = count
        self._name = name
        self._limit_s = limit_s
        self._lanes = preprocess_workers + 1
        self._start_timeout_s = start_timeout_s
        self._device: str | None = None
        self._observer = observer
        self._places: dict[int, Place] = {}
        self._warm_up: Callable[[EngineLike], float] = lambda _: 0.0
        self._hung_threads = 0
        self._missing: list[tuple[int, LoadedHandler]] = []
        self._pauses: dict[int, float] = {}
        self._replacing: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._loop_slot: LoopSlot | None = None

    async def open(self, warm_up: Callable[[EngineLike], float]) -> float:
        """Enter the engines and warm them up; the seconds that a warm batch takes on the slowest.

        Replicas that take too long to load are started again and again, until there is one: with that the
        model is open, and the others follow.
        """
        self._warm_up = warm_up
        loaded = self._make(0).loaded
        await asyncio.to_thread(lambda: loaded.digests)  # known before anything can change
        pause_s = 0.0
        while True:
            await asyncio.sleep(pause_s)
            if self._is_closed:
                raise RunnerError(f"model {self._name} was closed while it loaded")
            opened = await asyncio.gather(
                *(self._open(number) for number in range(self._count)), return_exceptions=True
            )
            for found in opened:
                if isinstance(found, BaseException) and not isinstance(found, StartTimeoutError):
                    await self.close()  # those that did open
                    raise found
            hung = [number for number, found in enumerate(opened) if isinstance(found, StartTimeoutError)]
            for number in hung:
                self._say_late(number, f"{opened[number]}; it is started again")
            if len(hung) < self._count:
                break
            pause_s = min(max(_PAUSE_S, 2 * pause_s), _PAUSE_MOST_S)
        for number in hung:
            self._start_replacing(number, loaded)
        if any(place.is_replica for place in self._places.values()):
            self._watch()
        return max(found for found in opened if isinstance(found, float))

    @property
    def alive(self) -> int:
        """How many slots can take a batch, now or when one that they have is done."""
        return len(self._places)

    @property
    def capacity(self) -> int:
        """How many batches may run at once."""
        return len(self._places) * self._lanes

    @property
    def has_room(self) -> bool:
        """Whether a slot can take a batch now."""
        return self._loop_slot is not None or any(place.has_room for place in self._usable())

    def alive_by_device(self, devices: Sequence[str]) -> dict[str, int]:
        """How many slots on each device, of these at least, can take a batch."""
        found = dict.fromkeys(devices, 0)
        for place in self._places.values():
            device = place.engine.profile.device
            found[device] = found.get(device, 0) + 1
        return found

    def only_on(self, device: str | None) -> None:
        """Run batches on this device only from now on, or on all (None)."""
        self._device = device

    def _usable(self) -> list[Place]:
        return [
            place
            for place in self._places.values()
            if self._device is None or place.engine.profile.device == self._device
        ]

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

    def run(self, job: Callable[[RunBatch], T]) -> asyncio.Future[T]:
        """Run a job on a slot that has room; the job is given what runs a batch there, for one call.

        Raises:
            SlotHungError: (from the future) it took longer than it may.
            ReplicaDiedError: (from the future) its process died.
        """
        if self._loop_slot is not None:
            place = next(iter(self._places.values()))
            return self._loop_slot.run(lambda: job(place.engine.run))
        place = min((place for place in self._usable() if place.has_room), key=lambda place: len(place.runs))
        loop = asyncio.get_running_loop()
        outer: asyncio.Future[T] = loop.create_future()
        run = Run(place.idle.pop())
        place.runs[run] = cast("asyncio.Future[object]", outer)
        engine = place.engine
        if self._lanes > 1 and isinstance(engine, Overlapped | RemoteEngine):
            run_batch = self._noting(engine, place, run, loop)
        else:
            run_batch = engine.run
        inner = run.lane.run(lambda: job(run_batch))
        limit = loop.call_later(self._limit_s, self._look_at, place, run)

        def finished(inner: asyncio.Future[T]) -> None:
            limit.cancel()
            del place.runs[run]
            place.idle.append(run.lane)
            error = inner.exception()
            if place.is_given_up:
                if not place.runs and not place.is_replica:
                    self._hung_threads -= 1
                    place.lanes[0].run(lambda: engine.__exit__(None, None, None))
                    place.close()
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

    def _noting(
        self, engine: Overlapped | RemoteEngine, place: Place, run: Run, loop: asyncio.AbstractEventLoop
    ) -> RunBatch:
        """What runs a batch, and tells the loop when the slot can take another one."""

        def note(step: Step) -> None:
            run.note(step)
            if step == "prepared":
                with contextlib.suppress(RuntimeError):  # the loop has closed, and nobody waits any more
                    loop.call_soon_threadsafe(self._prepared, place, run)

        return lambda batch: engine.run(batch, note)

    def _prepared(self, place: Place, run: Run) -> None:
        run.is_preparing = False
        if place.has_room and not place.is_given_up:
            self._observer.slot_freed()

    def _watch(self) -> None:
        """Notice replicas that die while they have nothing to do, before a batch meets them."""
        if self._is_closed:
            return
        for place in list(self._places.values()):
            if not place.runs and place.is_dead:
                self._lose(place, "died", "a replica died while it waited")
        asyncio.get_running_loop().call_later(_WATCH_S, self._watch)

    async def close(self) -> None:
        """End all engines that do not hang, and kill the replicas that do."""
        self._is_closed = True
        for task in self._replacing:
            task.cancel()
        await asyncio.gather(*self._replacing, return_exceptions=True)
        ends = [place.end() for place in self._places.values()]
        self._places.clear()
        await asyncio.gather(*ends)

    async def _open(self, number: int) -> float:
        loop = asyncio.get_running_loop()
        lanes = [
            ThreadSlot(loop, f"parity-slot-{self._name}-{number}{f'-{lane}' if lane else ''}")
            for lane in range(self._lanes)
        ]
        engine = self._make(number)
        late = None
        if not isinstance(engine, RemoteEngine):
            late = loop.call_later(
                self._start_timeout_s,
                self._say_late,
                number,
                f"loading the handler takes longer than {self._start_timeout_s:g} s; in the server's process "
                "it cannot be ended, with --replicas 1 it can",
            )
        try:
            await lanes[0].run(engine.__enter__)
            batch_s = await self._warm(engine, lanes[0])
            if self._is_closed:
                raise RunnerError(f"model {self._name} was closed while a slot was opened")
        except BaseException:
            if isinstance(engine, RemoteEngine):
                engine.kill()
            # After what the lane still does; where a load hangs, it is not waited for.
            lanes[0].run(lambda: engine.__exit__(None, None, None)).add_done_callback(self._note_exit)
            for lane in lanes:
                lane.close()
            raise
        finally:
            if late is not None:
                late.cancel()
        if isinstance(engine, Engine):
            for lane in lanes:
                lane.is_short = batch_s < SHORT_BATCH_S
        self._places[number] = Place(number, engine, lanes)
        return batch_s

    async def _warm(self, engine: EngineLike, lane: ThreadSlot) -> float:
        """Warm an engine up; the seconds that a warm batch takes.

        Raises:
            StartTimeoutError: a replica takes longer than it may; the caller ends it.
        """
        warming = lane.run(lambda: self._warm_up(engine))
        if not isinstance(engine, RemoteEngine):
            return await warming
        try:
            async with asyncio.timeout(self._start_timeout_s):
                return await warming
        except TimeoutError as exc:
            if warming.done() and not warming.cancelled():
                raise
            raise StartTimeoutError(
                f"a replica of {self._name} on {engine.profile.device} took longer than "
                f"{self._start_timeout_s:g} s to warm up (--start-timeout), and was ended"
            ) from exc

    def _note_exit(self, done: asyncio.Future[None]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            logger.error("event=slot_not_ended model=%s", logs.text(self._name), exc_info=error)

    def _say_late(self, number: int, reason: str) -> None:
        logger.error(
            "event=slot_start_late model=%s slot=%d reason=%s",
            logs.text(self._name),
            number,
            logs.text(reason),
        )
        self._observer.slots_changed(self.alive, reason)

    def _look_at(self, place: Place, run: Run) -> None:
        """Give a slot up whose batch takes too long, and look again later where the batch only waited."""
        if run not in place.runs or place.is_given_up:
            return
        left_s = self._limit_s - run.busy_s()
        if left_s > 0:
            asyncio.get_running_loop().call_later(left_s, self._look_at, place, run)
            return
        for other, outer in place.runs.items():
            if not outer.done():
                what = "the batch of this request" if other is run else "a batch that this request waited for"
                outer.set_exception(
                    SlotHungError(
                        f"{what} took longer than {self._limit_s:g} s and was given up; its slot is being "
                        "replaced"
                    )
                )
        place.is_given_up = True
        place.cut_off()
        self._hung_threads += not place.is_replica
        self._lose(place, "hung", f"a batch took longer than {self._limit_s:g} s")

    def _lose(self, place: Place, cause: str, reason: str) -> None:
        if self._places.get(place.number) is not place or self._is_closed:
            return
        del self._places[place.number]
        if place.is_replica:
            place.close()
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
            self._missing.append((place.number, place.engine.loaded))
            reason = (
                f"{self._hung_threads} batches hang, and threads cannot be ended; start the server anew, or "
                "with --replicas 1, where a process that hangs is ended"
            )
        else:
            reason = f"{reason}; its slot is being replaced"
            self._start_replacing(place.number, place.engine.loaded)
        self._observer.slots_changed(self.alive, reason)

    def _start_replacing(self, number: int, loaded: LoadedHandler) -> None:
        task = asyncio.create_task(self._replace(number, loaded))
        self._replacing.add(task)
        task.add_done_callback(self._replacing.discard)

    def _replace_missing(self) -> None:
        """Replace what was not while too many threads hung: one of them has ended after all."""
        while self._missing and self._hung_threads < HUNG_MOST and not self._is_closed:
            self._start_replacing(*self._missing.pop())

    async def _replace(self, number: int, loaded: LoadedHandler) -> None:
        loop = asyncio.get_running_loop()
        while True:
            pause_s = self._pauses.get(number, 0.0)
            self._pauses[number] = min(max(_PAUSE_S, 2 * pause_s), _PAUSE_MOST_S)
            await asyncio.sleep(pause_s)
            try:
                await asyncio.to_thread(_check_files, loaded)
                await self._open(number)
            except Exception as exc:
                logger.error(
                    "event=slot_not_replaced model=%s slot=%d error=%s",
                    logs.text(self._name),
                    number,
                    logs.text(exc),
                    exc_info=exc,
                )
                why = f"a slot could not be replaced, and is tried again: {exc}"
                self._observer.slots_changed(self.alive, why)
                continue
            logger.info("event=slot_replaced model=%s slot=%d", logs.text(self._name), number)
            loop.call_later(_STABLE_S, self._settle, number, self._places[number])
            self._observer.slots_changed(self.alive, "")
            return

    def _settle(self, number: int, place: Place) -> None:
        """A slot that has lasted begins with short pauses again."""
        if self._places.get(number) is place:
            self._pauses.pop(number, None)
