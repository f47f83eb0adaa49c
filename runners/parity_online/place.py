"""One slot of a model: its engine, the threads that run it, and the batches that it has."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Protocol, Self

from parity.batch import Batch
from parity.engine import Engine
from parity.handler import LoadedHandler
from parity.pipeline import Overlapped, Step
from parity.profile import Profile
from parity.result import Result
from parity_online.remote import RemoteEngine
from parity_online.slot import ThreadSlot


class EngineLike(Protocol):
    """What a slot runs batches on: an `Engine`, one whose stages overlap, or one of another process."""

    @property
    def loaded(self) -> LoadedHandler:
        """The handler."""
        ...

    @property
    def profile(self) -> Profile:
        """The profile, with a certificate's buckets."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: None, exc: None, trace: None, /) -> None: ...

    def run(self, batch: Batch) -> Result:
        """The answers for a batch."""
        ...

    def fingerprint(self) -> dict[str, str]:
        """What the answers may depend on."""
        ...


@dataclass(eq=False)
class Run:
    """A batch that runs.

    Attributes:
        lane: the thread that runs it.
        started: when, on `time.monotonic`.
        is_preparing: whether it is not yet past preprocess.
        waits_since: since when it waits for the model; None while it does not.
        waited_s: how long it did before.
    """

    lane: ThreadSlot
    started: float = field(default_factory=time.monotonic)
    is_preparing: bool = True
    waits_since: float | None = None
    waited_s: float = 0.0

    def note(self, step: Step) -> None:
        """A step was made; on any thread."""
        now = time.monotonic()
        if step == "prepared":
            self.waits_since = now
        elif self.waits_since is not None:
            self.waited_s += now - self.waits_since
            self.waits_since = None

    def busy_s(self) -> float:
        """How long it has run by now, without the wait for other batches."""
        now, since = time.monotonic(), self.waits_since
        return now - self.started - self.waited_s - (0.0 if since is None else now - since)


class Place:
    """An engine and the threads that run it: one, or one more than its workers that preprocess."""

    def __init__(self, number: int, engine: EngineLike, lanes: list[ThreadSlot]) -> None:
        self.number = number
        self.engine = engine
        self.lanes = lanes
        self.idle = list(lanes)
        self.runs: dict[Run, asyncio.Future[object]] = {}
        self.is_given_up = False

    @property
    def has_room(self) -> bool:
        """Whether it can take a batch now."""
        preparing = sum(run.is_preparing for run in self.runs)
        return bool(self.idle) and preparing < max(1, len(self.lanes) - 1)

    @property
    def is_replica(self) -> bool:
        """Whether its engine is a process of its own, which can be ended."""
        return isinstance(self.engine, RemoteEngine)

    @property
    def is_dead(self) -> bool:
        """Whether it is a replica that has ended."""
        return isinstance(self.engine, RemoteEngine) and self.engine.is_dead

    def cut_off(self) -> None:
        """Wait no longer for its batches: a replica is ended, a thread that waits for a process goes on."""
        if isinstance(self.engine, RemoteEngine):
            self.engine.kill()
        elif isinstance(self.engine, Engine | Overlapped):
            self.engine.give_up()

    async def end(self) -> None:
        """End the engine, in order where it runs no batch."""
        if self.runs:
            self.cut_off()
        else:
            await self.lanes[0].run(lambda: self.engine.__exit__(None, None, None))
        self.close()

    def close(self) -> None:
        """Let its threads end."""
        for lane in self.lanes:
            lane.close()
