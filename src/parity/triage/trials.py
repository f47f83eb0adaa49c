"""The handler asked again, through the engine: other rows, other company, a fresh one, a changed one.

Whoever changes a handler here makes a subclass of it, so that its stages are still called by the engine only.
"""

from __future__ import annotations

import contextlib
import random
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.codec.arrow import decode_table
from parity.engine import Engine
from parity.errors import ParityError
from parity.failures import unlogged
from parity.handler import Context, Handler, LoadedHandler
from parity.result import ERROR_COLUMN
from parity.stages import Traces, Value, traces
from parity.triage.model import Stage
from parity.triage.values import places_of

Values = Sequence[Value | None]

LARGEST: Final = 1_000_000_000
"""Bytes of a handler's folder that is still loaded a second time beside the first."""

SECONDS: Final = 10.0
"""How long all trials of one diagnosis may take together; what is under way is finished."""


class OutOfTimeError(ParityError):
    """No further trial is made: the time for them is used up, or the handler is too large to load again."""


@dataclass(frozen=True)
class Run:
    """What came of asking a batch: each row's values by stage and place, and its answers."""

    traces: Traces
    answers: pa.Table

    @cached_property
    def _outputs(self) -> dict[str, list[Value | None]]:
        found = places_of(self.answers.drop_columns([ERROR_COLUMN]))
        kinds = [None if item is None else np.asarray(str(item["kind"])) for item in self.errors]
        return {**found, ERROR_COLUMN: kinds}

    @property
    def num_rows(self) -> int:
        """The rows asked."""
        return self.answers.num_rows

    @property
    def errors(self) -> list[Any]:
        """Each row's error, or None."""
        return self.answers.column(ERROR_COLUMN).to_pylist()

    def at(self, stage: Stage | None, place: str) -> Values:
        """Each row's value at a place of a stage; of the answers for None and the last stages."""
        if stage == "decode":
            return places_of(self.traces.inputs).get(place, [None] * self.num_rows)
        if stage in ("preprocess", "inference") and place != ERROR_COLUMN:
            return self.traces.stage(stage).get(place, [None] * self.num_rows)
        return self._outputs.get(place, [None] * self.num_rows)


class Trials:
    """Asks a handler again, within a time.

    Args:
        engine: an entered engine of the handler.
        seconds: how long all trials may take together.
    """

    def __init__(self, engine: Engine, seconds: float = SECONDS) -> None:
        self.engine = engine
        self._ends = time.monotonic() + seconds
        self._bytes = _bytes_in(engine.loaded.root)

    @property
    def loaded(self) -> LoadedHandler:
        """The handler."""
        return self.engine.loaded

    def check_time(self) -> None:
        """Raise OutOfTimeError when no further trial should begin."""
        if time.monotonic() > self._ends:
            raise OutOfTimeError("the time for trials is used up")

    def batch(self, rows: pa.Table) -> Batch | None:
        """The rows as a batch in memory of its own; None where a value does not fit the schema."""
        decoded = decode_table(self.loaded.inputs, rows)
        if decoded.errors:
            return None
        return decoded.batch.take(np.arange(decoded.batch.num_rows))

    def run(self, rows: pa.Table, engine: Engine | None = None) -> Run | None:
        """What came of asking the rows as one batch; None where they cannot be asked."""
        self.check_time()
        batch = self.batch(rows)
        if batch is None:
            return None
        with unlogged(everywhere=True):
            try:
                result = (engine or self.engine).run(batch, stages=True)
            except ParityError:
                return None
        return Run(traces(batch, result), result.to_table())

    def overlapped(self, batches: Sequence[pa.Table]) -> list[Run] | None:
        """What came of batches of which all go through a stage before the first goes through the next."""
        self.check_time()
        made = [self.batch(rows) for rows in batches]
        engine = self.engine
        with unlogged(everywhere=True):
            try:
                works = [
                    (batch, engine.preprocess(batch, stages=True)) for batch in made if batch is not None
                ]
                works = [(batch, engine.infer(work)) for batch, work in works]
                done = [(batch, engine.postprocess(work)) for batch, work in works]
            except ParityError:
                return None
        return [Run(traces(batch, result), result.to_table()) for batch, result in done]

    @contextlib.contextmanager
    def fresh(self, altered: type[Handler] | None = None) -> Generator[Engine]:
        """A freshly loaded handler, or a subclass of it, under the same profile.

        Raises:
            OutOfTimeError: no further trial should begin.
            ParityError: the handler does not load.
        """
        self.check_time()
        if self._bytes > LARGEST:
            raise OutOfTimeError(f"the handler's {self._bytes / 1e9:.1f} GB are not loaded a second time")
        loaded = self.loaded if altered is None else replace(self.loaded, cls=altered)
        with unlogged(everywhere=True), Engine(loaded, self.engine.profile) as engine:
            yield engine


@contextlib.contextmanager
def patched(owner: object, name: str, value: object) -> Generator[None]:
    """An attribute of a module or class is another one meanwhile, for every thread."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def around_stages(
    base: type[Handler], stage: Callable[[], contextlib.AbstractContextManager[object]]
) -> type[Handler]:
    """A subclass whose stages run inside a context manager."""

    class Around(base):
        def preprocess(self, batch: Batch) -> Any:
            with stage():
                return super().preprocess(batch)

        def inference(self, inputs: Any) -> Any:
            with stage():
                return super().inference(inputs)

        def postprocess(self, outputs: Any, batch: Batch) -> Any:
            with stage():
                return super().postprocess(outputs, batch)

    return Around


def after_loading(base: type[Handler], change: Callable[[Handler], None]) -> type[Handler]:
    """A subclass that is changed once it is initialized."""

    class Changed(base):
        def initialize(self, context: Context) -> None:
            super().initialize(context)
            change(self)

    return Changed


@contextlib.contextmanager
def generators_kept() -> Generator[None]:
    """The global generators of Python, numpy and torch are afterwards as they were before."""
    torch = cast("Any", sys.modules.get("torch"))
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - others draw from it
    state = None if torch is None else torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002 - as above
        if torch is not None:
            torch.set_rng_state(state)


def _bytes_in(folder: Path | None) -> int:
    if folder is None:
        return 0
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
