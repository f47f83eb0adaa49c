"""The engine: the only caller of a handler's stages. Padding, row isolation and output checks live here."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import threading
import time
from collections.abc import Generator
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, cast

import numpy as np

from parity import numerics
from parity.batch import Batch
from parity.codec.decoded import Decoded
from parity.codec.outputs import build_outputs
from parity.errors import (
    CompileError,
    ConfigError,
    FingerprintError,
    InputMutatedError,
    ParityError,
    RunnerError,
    StageError,
    shown,
)
from parity.handler import Context, Handler, LoadedHandler
from parity.isolation import Isolation
from parity.padding import UnpaddableError, cut, pad
from parity.preprocessing import Preprocessors
from parity.profile import Profile
from parity.result import Result
from parity.stages import Tap
from parity.under_way import Inside, guard_exit, is_of_stage, new_stream
from parity.work import Answers, Failure, Part, Work, merge

_NO_ROWS_FAULT = (CompileError, InputMutatedError, RunnerError, FingerprintError)
"""What ends a batch as a whole, though it comes out of a stage."""

_READ_ONLY = re.compile(
    r"(.*: )?(assignment destination|((output|sort|partition|underlying) )?array) is read-only"
)
"""What numpy says to who writes into a read-only array."""


class Engine:
    """Runs one handler under one profile.

    Use it as a context manager: entering sets the numerics and loads the handler.

        with Engine(load_handler("handlers/digits")) as engine:
            result = engine.run(batch)

    `preprocess`, `infer` and `postprocess` are `run` in three steps, for a pipeline that overlaps them.
    Each may be called from several threads; the model is called by one of them at a time.

    Args:
        handler: a loaded handler, or a Handler class.
        profile: device, precision, buckets; the handler's default profile when not given.
        preprocess_processes: preprocess in so many processes of its own, which helps where that stage is
            Python that keeps the GIL and several threads call `preprocess`; 0: here.

    Raises:
        ConfigError: the handler has no schemas, or processes are asked for and it lives in this one only.
        CertificateError: the profile is exact, and no certificate holds here.
    """

    def __init__(
        self,
        handler: LoadedHandler | type[Handler],
        profile: Profile | None = None,
        *,
        preprocess_processes: int = 0,
    ) -> None:
        self.loaded = handler if isinstance(handler, LoadedHandler) else LoadedHandler.of(handler)
        self.profile = profile if profile is not None else self.loaded.profile()
        if self.profile.exact:
            from parity.exact import promised

            self.profile = promised(self.loaded, self.profile)
        self._handler: Handler | None = None
        self._inferring = threading.Lock()  # isolation infers on whatever thread postprocesses
        self._tap: Tap | None = None
        self._stream: Any = None
        self._preprocessors: Preprocessors | None = None
        if preprocess_processes:
            self._preprocessors = Preprocessors(self.loaded, self.profile, preprocess_processes)

    def __enter__(self) -> Self:
        """Set the numerics, make the handler and initialize it.

        Raises:
            StageError: the handler's constructor or `initialize` raised; its exception is the cause.
            ConfigError: the profile's device is not there, or a model file does not fit.
            CertificateError: the profile is exact, and rows that are run again get other bits than certified.
        """
        outside = numerics.current_device()
        try:
            return self._entered()
        finally:
            numerics.leave_to(outside)

    def _entered(self) -> Self:
        numerics.apply(self.profile)
        _check_device(self.profile)
        self._stream = new_stream(self.profile)
        guard_exit()
        loaded = self.loaded
        context = Context(
            profile=self.profile,
            root=loaded.root,
            config=loaded.manifest.config,
            logger=logging.getLogger(f"parity.handlers.{loaded.name}"),
        )
        try:
            with Inside(loaded.name, "initialize", 0, self._stream):
                handler = loaded.cls()
                handler.context = context
                handler.initialize(context)
        except ParityError:
            raise
        except BaseException as exc:
            if not is_of_stage(exc):
                raise
            raise StageError(
                f"handler {loaded.name}: initialize raised {type(exc).__name__}: {exc}",
                handler=loaded.name,
                stage="initialize",
            ) from exc
        self._handler = handler
        if self._preprocessors is not None:
            self._preprocessors.open()
        try:
            if self.profile.exact:
                from parity.exact import admit

                admit(self)
            self._tap = Tap.from_environment()
            if self._tap is not None:
                self._tap.enter(self.fingerprint())
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the handler and what it loaded."""
        self._handler = None
        if self._preprocessors is not None:
            self._preprocessors.close()

    def give_up(self) -> None:
        """End the processes that preprocess, from any thread: whoever waits for one gets a RunnerError."""
        if self._preprocessors is not None:
            self._preprocessors.kill()

    def preprocess_here(self, batch: Batch) -> Any:
        """What the handler's preprocess makes of a batch, for a process that does nothing else.

        Raises:
            Exception: whatever it raises.
        """
        part = Part(batch, np.arange(batch.num_rows, dtype=np.int64), None)
        self._preprocess(part, {})
        if part.failure is not None:
            raise part.failure.exc
        return part.value

    def fingerprint(self) -> dict[str, str]:
        """The environment's fingerprint with the handler's name, version and digests."""
        found = numerics.fingerprint(self.profile)
        found["handler"] = f"{self.loaded.name}@{self.loaded.version}"
        for kind, digest in self.loaded.digests.items():
            found[f"digest.{kind}"] = digest
        return found

    def run(self, batch: Batch, *, stages: bool = False, most_rows: int | None = None) -> Result:
        """Answers for every row of a batch; a failing row never harms its neighbours.

        Args:
            batch: rows of the handler's input schema; may be empty, or larger than the largest bucket.
            stages: keep what the stages returned in `Result.stages`.
            most_rows: show the handler no more rows than these at once, as if each so many were a batch.

        Raises:
            InputMutatedError: the handler wrote into its inputs.
        """
        work, answers = self._cut(batch, stages, most_rows), Answers()
        if self.profile.device != "cpu":  # there a stage is still going on when the next part's begins
            return self.postprocess(self.infer(self._preprocessed(work)))
        # Each part to its end: what its stages need is in the cache, and is let go.
        for part in work.parts:
            self._preprocess(part, work.timings)
            self._infer(part, work.timings)
            self._answer(part, work.timings, answers)
        return self._answered(work, answers)

    def score(self, decoded: Decoded, *, stages: bool = False, most_rows: int | None = None) -> Result:
        """Answers for rows that came out of a codec: those it refused keep their errors."""
        return merge(decoded, self.run(decoded.batch, stages=stages, most_rows=most_rows))

    def preprocess(self, batch: Batch, *, stages: bool = False) -> Work:
        """The first step of `run`: cut the batch to bucket size and preprocess it."""
        return self._preprocessed(self._cut(batch, stages))

    def _preprocessed(self, work: Work) -> Work:
        for part in work.parts:
            self._preprocess(part, work.timings)
        return work

    def _cut(self, batch: Batch, stages: bool, most_rows: int | None = None) -> Work:
        if batch.schema != self.loaded.inputs:
            raise ConfigError(f"handler {self.loaded.name}: the batch is not of the handler's input schema")
        work = Work(batch.num_rows, [], keep_stages=stages)
        whole = min(most_rows or batch.num_rows, batch.num_rows)
        for first in range(0, batch.num_rows, whole or 1):
            end = min(first + whole, batch.num_rows)
            size = self.profile.max_rows or whole
            for start in range(first, end, size):
                stop = min(start + size, end)
                piece = batch if stop - start == batch.num_rows else batch.slice(start, stop)
                rows = np.arange(start, stop, dtype=np.int64)
                bucket = self.profile.bucket_for(piece.num_rows)
                kept = stages or self._tap is not None
                work.parts.append(Part(piece, rows, bucket, keep_stages=kept))
        return work

    def infer(self, work: Work) -> Work:
        """The second step of `run`: pad to the bucket, run the model, cut the padding off."""
        for part in work.parts:
            self._infer(part, work.timings)
        return work

    def postprocess(self, work: Work) -> Result:
        """The third step of `run`: postprocess, check the outputs, isolate the rows that failed."""
        answers = Answers()
        for part in work.parts:
            self._answer(part, work.timings, answers)
        return self._answered(work, answers)

    def _answer(self, part: Part, timings: dict[str, float], answers: Answers) -> None:
        outputs = self._postprocess(part, timings)
        if outputs is not None:
            answers.take(part, outputs, self.loaded.name)
        else:
            Isolation(self.loaded.name, self.profile, self._through).settle(part, timings, answers)

    def _answered(self, work: Work, answers: Answers) -> Result:
        if self._tap is None and not work.keep_stages:
            answers.stages.clear()
        result = answers.result(work, self.loaded.outputs)
        if self._tap is not None and work.parts:
            self._tap.record(Batch.concat([part.batch for part in work.parts]), result)
        return result if work.keep_stages or not result.stages else replace(result, stages=())

    # One part through one stage. A stage's exception is kept in the part, and the later stages pass it by.

    def _preprocess(self, part: Part, timings: dict[str, float]) -> None:
        with self._stage(part, "preprocess", timings) as handler:
            if self._preprocessors is None:
                part.value = handler.preprocess(part.batch)
            else:
                part.value = self._preprocessors.preprocess(part.batch)
            part.keep("preprocess")

    def _infer(self, part: Part, timings: dict[str, float]) -> None:
        if part.failure is not None:
            return
        with self._inferring, self._stage(part, "inference", timings) as handler:
            part.value = self._inferred(handler, part)
            part.keep("inference")

    def _inferred(self, handler: Handler, part: Part) -> Any:
        rows, bucket = part.batch.num_rows, part.shape_rows
        if bucket is None:
            return handler.inference(part.value)
        try:
            return cut(handler.inference(pad(part.value, rows, bucket)), rows, bucket)
        except UnpaddableError:
            if self.profile.buckets:
                raise
        # Without buckets only isolation pads, and a value that cannot be is no fault of these rows.
        part.shape_rows = None
        return handler.inference(part.value)

    def _through(self, part: Part, timings: dict[str, float]) -> Batch | None:
        self._preprocess(part, timings)
        self._infer(part, timings)
        return self._postprocess(part, timings)

    def _postprocess(self, part: Part, timings: dict[str, float]) -> Batch | None:
        outputs: Batch | None = None
        if part.failure is None:
            with self._stage(part, "postprocess", timings) as handler:
                returned = handler.postprocess(part.value, part.batch)
                outputs = build_outputs(self.loaded.outputs, returned, part.batch.num_rows, self.loaded.name)
        part.value = None
        return outputs

    @contextlib.contextmanager
    def _stage(self, part: Part, stage: str, timings: dict[str, float]) -> Generator[Handler]:
        if self._handler is None:
            raise ConfigError(f"handler {self.loaded.name} is not loaded; use the engine in a with block")
        outside = numerics.current_device()
        numerics.apply_to_thread(self.profile)
        started = time.perf_counter()
        try:
            with Inside(self.loaded.name, stage, part.batch.num_rows, self._stream):
                yield self._handler
        except BaseException as exc:
            if isinstance(exc, _NO_ROWS_FAULT) or not is_of_stage(exc):
                raise
            if _is_mutation(exc):
                raise InputMutatedError(
                    f"handler {self.loaded.name}: {stage} wrote into its inputs, which are read-only; "
                    "copy first: batch['name'].numpy().copy(), or .torch(), which is a copy"
                ) from exc
            part.failure = Failure(stage, exc)
            part.value = None
        finally:
            numerics.leave_to(outside)
            timings[stage] = timings.get(stage, 0.0) + time.perf_counter() - started


def _is_mutation(exc: BaseException) -> bool:
    return isinstance(exc, ValueError) and _READ_ONLY.fullmatch(str(exc)) is not None


def _check_device(profile: Profile) -> None:
    if profile.device == "cpu":
        return
    torch = cast("Any", sys.modules.get("torch"))
    count = torch.cuda.device_count() if torch is not None and torch.cuda.is_available() else 0
    present = ["cpu", *(f"cuda:{number}" for number in range(count))]
    if profile.device in present or (profile.device == "cuda" and count):
        return
    if torch is None:
        why = "torch is not imported by the handler"
    else:
        why = f"there are {', '.join(present)}" if count else "there is cpu, torch sees no CUDA device"
    raise ConfigError(
        f"profile {profile.name!r} asks for device {shown(profile.device)}, which is not there: {why}; "
        "`parity doctor` shows more"
    )
