"""One handler being served: its engine on its slot, its batcher, and whether it may take requests.

States: loading -> ready, or refused (a golden case diverged under a strict gate), or failed (it could not be
loaded); recovering while no slot can take a batch, then ready again; draining from the moment the server is
told to stop.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from parity import numerics
from parity.batch import Batch
from parity.capture import CaptureWriter, Refused, Scored, Share
from parity.codec.oip import describe
from parity.codec.rows import RowDecoder
from parity.engine import Engine
from parity.errors import FingerprintError, RunnerError
from parity.handler import LoadedHandler
from parity.pipeline import Overlapped
from parity.profile import Profile
from parity.result import Result
from parity.sizing import Sizing
from parity_online import logs
from parity_online.capturing import open_capture
from parity_online.driver import Driver
from parity_online.metrics import Metrics
from parity_online.place import EngineLike
from parity_online.problems import ProblemError
from parity_online.remote import RemoteEngine, ReplicaDiedError
from parity_online.settings import ModelSettings
from parity_online.shapes import ShapeKeys
from parity_online.size_records import record, recorded
from parity_online.slot import LOOP_BATCH_LIMIT_S, LOOP_BATCH_TOLERATED_S, LoopSlot, SlotKind
from parity_online.slots import RunBatch, SlotHungError, Slots
from parity_online.trace import Ran
from parity_online.works import Columns, Texts, Work, answers_of, assemble

logger = logging.getLogger(__name__)

_SLOW_BATCHES_ALLOWED = 3
_RETIRE_LOOK_S = 0.01

_NO_REQUESTS_FAULT = (ReplicaDiedError, SlotHungError, RunnerError, FingerprintError)

TIMER_SLACK_S = 0.001
"""libuv's timers have milliseconds and fire up to one late."""

State = Literal["loading", "ready", "recovering", "refused", "failed", "draining"]


_TOLD: dict[State, str] = {
    "loading": "it is being loaded",
    "failed": "it could not be loaded",
    "recovering": "its slots are being replaced",
}
"""What requests are told in a state; in others it is the reason."""


Mirror = Callable[[Batch, Result, Sequence[Share]], None]
"""Told, on a slot's thread, of every batch that has been answered."""


class ServedModel:
    """A handler with everything that serves it.

    Args:
        loaded: the handler.
        profile: what it runs with.
        settings: how it is batched and gated.
        metrics: the server's metrics.

    Attributes:
        is_late: it came while the server ran; others of its name serve until it is ready.
        sizing: how `max_batch = "auto"` was decided, once it is.
        goldens: a sentence for each golden case that was run.
        form: what the status page makes its form from, once made.
        mirror: hears of its batches, where another version shadows it.
        in_flight: requests that have picked it and are not answered yet.
    """

    def __init__(
        self, loaded: LoadedHandler, profile: Profile, settings: ModelSettings, metrics: Metrics
    ) -> None:
        self.loaded = loaded
        self.name = loaded.name
        self.version = loaded.version
        if settings.devices:
            profile = replace(profile, device=settings.devices[0])
        self.engine = Engine(loaded, profile)
        self._configured = profile
        self.profile = self.engine.profile  # with the buckets of a certificate, where the profile is exact
        self.settings = settings.fitting(self.profile)
        self.sizing: Sizing | None = None
        if settings.max_batch == "auto" and self.settings.max_batch != "auto":
            self.sizing = Sizing(self.settings.max_batch, (), "the largest that its certificate proves exact")
        self.decoder = RowDecoder(loaded.inputs)
        self.shapes = ShapeKeys(loaded.inputs, mix=self.settings.mix_shapes)
        self.input_tensors = describe(loaded.inputs)
        self.output_tensors = describe(loaded.outputs)
        self.state: State = "loading"
        self.reason = self._told = _TOLD["loading"]
        self.slot_kind: SlotKind = "thread"
        self.metrics = metrics.model(loaded.name, loaded.version)
        self.is_late = False
        self.in_flight = 0
        self.mirror: Mirror | None = None
        self.goldens: list[str] = []
        self.load_id = secrets.token_hex(8)
        self.form: dict[str, Any] | None = None
        self._is_shown = False
        self._capturing = threading.Lock()
        self._driver: Driver[Work, Texts | Columns] | None = None
        self._slots: Slots | None = None
        self._capture: CaptureWriter | None = None
        self._slow_batches = 0
        self._batches = itertools.count(1)

    @property
    def devices(self) -> list[str]:
        """The devices that it runs on, each once."""
        return list(dict.fromkeys(self.settings.devices)) or [self.profile.device]

    @property
    def captures(self) -> bool:
        """Whether requests are recorded."""
        return self._capture is not None

    @property
    def driver(self) -> Driver[Work, Texts | Columns]:
        """The queue; for the gate, which must pass before the model is ready.

        Raises:
            ProblemError: (503) the handler is not loaded yet.
        """
        if self._driver is None:
            raise self._not_ready()
        return self._driver

    def require_ready(self) -> Driver[Work, Texts | Columns]:
        """The queue, for requests.

        Raises:
            ProblemError: (503) the model takes no requests now.
        """
        if self.state != "ready":
            raise self._not_ready()
        return self.driver

    def refuse(self, refused: Refused | None, rows: int) -> None:
        """Count rows that do not fit, and record their request where there is a capture. For any thread."""
        self.metrics.refused_rows(rows)
        if refused is not None and self._capture is not None:
            with self._capturing:
                self._capture.offer_refused(refused)

    async def load(
        self,
        warm_up: Callable[[EngineLike, int], float],
        size_up: Callable[[EngineLike, ModelSettings], Sizing],
    ) -> None:
        """Load the handler on each slot, warm them up, and open the queue.

        Args:
            warm_up: runs batches of up to so many rows through the engine and returns the seconds that a warm
                one takes; called on the slot's thread.
            size_up: does so and decides how many rows, where `max_batch` is "auto" and no record tells.
        """
        loop = asyncio.get_running_loop()
        started = time.perf_counter()
        settings = self.settings
        sizings: list[Sizing] = []
        measured: list[EngineLike] = []

        def warm(engine: EngineLike) -> float:
            if self.settings.max_batch != "auto":
                return warm_up(engine, self.settings.most_rows)
            known = recorded(engine, settings)
            if known is not None:
                sizings.append(known)
                return warm_up(engine, known.rows)
            sizings.append(size_up(engine, settings))
            measured.append(engine)
            return sizings[-1].batch_s

        slots = self._slots = Slots(
            self._make_engine,
            max(1, settings.replicas),
            self.name,
            limit_s=settings.batch_limit_s or settings.timeout_s,
            preprocess_workers=settings.preprocess_workers,
            start_timeout_s=settings.start_timeout_s,
            observer=self,
        )
        batch_s = await slots.open(warm)
        if sizings:  # one a slot; each must keep its promise
            self.sizing = min(sizings, key=lambda sizing: sizing.rows)
            self.settings = settings.sized(self.sizing.rows)
            if settings.record_max_batch:
                for engine in {engine.profile.device: engine for engine in measured}.values():
                    await asyncio.to_thread(record, engine, settings, self.sizing)
        if self.sizing is not None:
            logger.info(
                "event=sized model=%s version=%s max_batch=%d how=%s",
                logs.text(self.name),
                logs.text(self.version),
                self.sizing.rows,
                logs.text(str(self.sizing)),
            )
        wanted = "thread" if settings.replicas or settings.preprocess_workers else settings.slot
        if wanted == "loop" or (wanted == "auto" and batch_s < LOOP_BATCH_LIMIT_S):
            # Torch keeps its thread count per thread: without this the loop's matrix products would use all
            # cores, 40 times slower when these are busy, and give other bits.
            numerics.apply(self.profile)
            slots.use_loop(LoopSlot(loop))
        self.slot_kind = slots.kind
        if self.settings.capture.folder:
            self._capture = await asyncio.to_thread(self._open_capture, slots.engine)
        self._driver = Driver(
            self.settings.policy(),
            self._run_batch,
            loop=loop,
            clock=time.monotonic,  # uvloop's own is cached and counts whole milliseconds
            observer=self.metrics,
            timer_slack_s=TIMER_SLACK_S,
            capacity=slots.capacity,
            has_room=lambda: slots.has_room,
            share=self._share_of if self._shares else None,
            # One request may be to blame; not where a slot, or a process that preprocesses, is lost.
            runs_apart=lambda error: not isinstance(error, _NO_REQUESTS_FAULT),
        )
        self.metrics.show_slots(slots.alive_by_device(self.devices))
        logger.info(
            "event=loaded model=%s version=%s device=%s load_s=%.3f warm_batch_ms=%.3f slot=%s max_batch=%d",
            logs.text(self.name),
            logs.text(self.version),
            ",".join(self.devices),
            time.perf_counter() - started,
            batch_s * 1000.0,
            self.slot_kind,
            self.settings.most_rows,
        )

    def set_state(self, state: State, reason: str = "", *, told: str = "") -> None:
        """Move to another state.

        Args:
            state: the state.
            reason: shown to whoever asks whether the model is ready, and why not.
            told: what requests are told instead, since a reason may quote what the handler says.
        """
        if self.state == "draining":
            return
        self.state = state
        self.reason = reason
        self._told = told or _TOLD.get(state, reason)
        if self._is_shown:
            self.metrics.ready.set(1 if state == "ready" else 0)

    def show(self) -> None:
        """Be the one that the gauges of this name and version tell of."""
        self._is_shown = True
        self.metrics.show(self._queued_rows, self._queued)
        self.metrics.ready.set(1 if self.state == "ready" else 0)

    def hide(self) -> None:
        """Be that one no more."""
        self._is_shown = False

    async def retire(self, timeout_s: float) -> int:
        """Once no new requests come: finish those that have picked this model, and let go of the handler.

        Returns:
            The number of requests that were given up.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while self.in_flight and loop.time() < until:  # noqa: ASYNC110 - the hot path counts, and no more
            await asyncio.sleep(_RETIRE_LOOK_S)
        return await self.drain(max(0.0, until - loop.time()))

    async def drain(self, timeout_s: float) -> int:
        """Finish what was accepted; the number of requests that were given up."""
        given_up = 0
        if self._driver is not None:
            given_up = await self._driver.drain(timeout_s)
        if self._slots is not None:
            await self._slots.close()
        if self._capture is not None:
            await asyncio.to_thread(self._capture.close)
        return given_up

    def _not_ready(self) -> ProblemError:
        kind = "draining" if self.state == "draining" else "not_ready"
        return ProblemError(503, kind, f"model {self.name!r} is not ready: {self._told}", retry_after_s=1.0)

    def slots_changed(self, alive: int, reason: str) -> None:
        """See `parity_online.slots.Observer`."""
        if self._slots is not None:
            self.metrics.show_slots(self._slots.alive_by_device(self.devices))
        if self.state == "loading" and reason:
            self.reason = reason
        if self._driver is not None:
            self._driver.set_capacity(self._slots.capacity if self._slots is not None else alive)
        if alive == 0 and self.state in ("ready", "recovering"):
            self.set_state("recovering", reason)
        elif alive and self.state == "recovering":
            self.set_state("ready")

    def slot_lost(self, cause: str) -> None:
        """See `parity_online.slots.Observer`."""
        self.metrics.lost_slot(cause)

    def slot_freed(self) -> None:
        """See `parity_online.slots.Observer`."""
        if self._driver is not None:
            self._driver.look_again()

    def only_on(self, device: str | None) -> None:
        """Let batches run on this device only, as the gate does for one after the other; None: on all."""
        if self._slots is not None:
            self._slots.only_on(device)
        self.slot_freed()

    def _make_engine(self, number: int) -> EngineLike:
        workers, processes = self.settings.preprocess_workers, self.settings.preprocess_processes
        if self.settings.replicas:
            devices = self.settings.devices or (self.profile.device,)
            device = devices[number % len(devices)]
            return RemoteEngine(
                self.loaded,
                replace(self._configured, device=device),
                replace(self.profile, device=device),
                preprocess_workers=workers,
                preprocess_processes=processes,
                start_timeout_s=self.settings.start_timeout_s,
            )
        engine = Engine(self.loaded, self._configured, preprocess_processes=processes)
        return Overlapped(engine, preprocess_workers=workers) if workers else engine

    def _open_capture(self, engine: EngineLike) -> CaptureWriter:
        return open_capture(engine, self.settings.capture, self.metrics.capture)

    def _queued_rows(self) -> float:
        return 0.0 if self._driver is None else self._driver.queued_rows

    def _queued(self) -> float:
        return 0.0 if self._driver is None else self._driver.queued

    def _run_batch(self, works: list[Work]) -> asyncio.Future[Sequence[Texts | Columns]]:
        assert self._slots is not None, "the driver is made after the slots"
        started = time.perf_counter()
        answers = self._slots.run(lambda run: self._score(run, works))
        if self.slot_kind == "loop" and self.settings.slot == "auto":
            self._leave_loop_if_slow(time.perf_counter() - started)
        return answers

    @property
    def _shares(self) -> bool:
        """Whether batches that overlap share the rows: not where fuller ones are wanted, or cost no more."""
        settings = self.settings
        if settings.max_delay_ms or settings.preferred or self.profile.device != "cpu":
            return False
        return bool(settings.preprocess_workers)

    def _share_of(self, rows: int) -> int:
        """The rows of each batch where so many are spread over all that may be in the slots at once."""
        assert self._slots is not None, "the driver is made after the slots"
        share = -(-rows // max(1, self._slots.capacity))
        most = self.profile.max_rows
        return share if most is None or share > most else self.profile.bucket_for(share) or share

    def _leave_loop_if_slow(self, batch_s: float) -> None:
        """Batches slower than the warm-up promised would keep the loop from answering anybody else."""
        self._slow_batches += batch_s > LOOP_BATCH_TOLERATED_S
        if self._slow_batches >= _SLOW_BATCHES_ALLOWED:
            assert self._slots is not None, "a batch has run"
            self._slots.use_loop(None)
            self.slot_kind = "thread"
            logger.warning(
                "event=slot_moved model=%s slot=thread batch_s=%.4f", logs.text(self.name), batch_s
            )

    def _score(self, run: RunBatch, works: list[Work]) -> Sequence[Texts | Columns]:
        """Run one batch and cut its answers to the works; on the slot."""
        number = next(self._batches)
        batch = assemble(works, self.decoder)
        started = time.perf_counter()
        with logs.batch(number):
            result = run(batch)
        mirror = self.mirror
        if self._capture is not None or mirror is not None:
            shares = [work.share for work in works]
            if self._capture is not None:
                with self._capturing:  # its writer takes one thread at a time, and there may be several slots
                    self._capture.offer(Scored(batch, result, shares, number, time.perf_counter()))
            if mirror is not None and self.state == "ready":  # the goldens are nobody's traffic
                mirror(batch, result, shares)
        self.metrics.scored(result, batch.num_rows, len(works))
        self._count_padding(result)
        ran = Ran(number, started, result.timings)
        return answers_of(works, result, ran)

    def _count_padding(self, result: Result) -> None:
        if self.profile.buckets and len(result.index):
            shape_rows = int(result.buckets[0])
            self.metrics.padded(max(0.0, 1.0 - result.num_rows / shape_rows) if shape_rows else 0.0)
