"""The callable that scores one unit, in this process or in another one: what a batch engine is given."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from parity.distributed import Placement
from parity.engine import Engine
from parity.errors import ConfigError
from parity.failures import in_a_worker
from parity.handler import LoadedHandler
from parity.output_form import OutputForm
from parity.profile import Profile
from parity_batch.folder import OutputFolder
from parity_batch.layout import Layout
from parity_batch.lost import UnreadableError
from parity_batch.plan import Unit
from parity_batch.summary import peak_rss_bytes
from parity_batch.unit import Tally, UnitReport, UnitScorer


@dataclass
class UnitTask:
    """Scores the unit that it is called with; may be called by several threads, and pickled.

    A pickled task loads the handler with its first call in a process; the engine then stays in that process
    for all calls of the job's tasks, one engine for each thread that calls at once, until a task of another
    job arrives: models are large, and numerics are the process's.

    Attributes:
        profile: the job's profile.
        layout: what is read of every file.
        folder: where parts go.
        metadata: key-value metadata of every file.
        batch_rows: rows in a micro-batch.
        preprocess_workers: threads that preprocess for each engine.
        preprocess_processes: processes that preprocess for each engine.
        max_row_bytes: the most bytes that the inputs of a row may have.
        form: which types columns are written as.
        log_failures: whether the log of another process tells the texts of handlers' exceptions.
        handler: the handler, in the process that made the task; another process loads `placement`.
        tally: the job's counts, in that process.
        placement: how another process finds the handler.
    """

    profile: Profile
    layout: Layout
    folder: OutputFolder
    metadata: Mapping[str, str]
    batch_rows: int
    preprocess_workers: int = 0
    preprocess_processes: int = 0
    max_row_bytes: int = 64 * 1024 * 1024
    form: OutputForm = field(default_factory=OutputForm)
    log_failures: bool = True
    handler: LoadedHandler | None = None
    tally: Tally | None = None
    placement: Placement | None = None
    _engines: _Engines = field(default_factory=lambda: _Engines(), repr=False)
    _notes: tuple[str, ...] | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self.handler is not None:
            state["placement"] = _placement(self.handler, self.profile)
        state.update(handler=None, tally=None, _engines=None, _notes=None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        in_a_worker(tells_texts=self.log_failures)
        with _SHARED_LOCK:
            self._engines = _SHARED.setdefault(self.folder.job, _Engines())
            for engines in _SHARED.values():
                if engines is not self._engines and engines.idle:
                    engines.close()

    def __call__(self, unit: Unit) -> UnitReport:
        """Score a unit; `UnitReport.problem` says why when its file cannot be read.

        Raises:
            ParityError: whatever must end the job.
        """
        return self.score(unit)

    def score(self, unit: Unit, engines: int = 1) -> UnitReport:
        """Score a unit with a number of engines."""
        with self._engines.taken(engines, self._enter) as taken:
            scorer = UnitScorer(
                engines=taken,
                layout=self.layout,
                folder=self.folder,
                metadata=self.metadata,
                batch_rows=self.batch_rows,
                preprocess_workers=self.preprocess_workers,
                max_row_bytes=self.max_row_bytes,
                form=self.form,
                tally=self.tally if self.tally is not None else Tally(),
            )
            try:
                report = scorer.score(unit)
            except UnreadableError as exc:
                report = UnitReport(unit.part, 0, {}, {}, problem=str(exc))
        if self._notes is None:  # looked at once: it takes as long as a small unit
            self._notes = () if self.placement is None else tuple(self.placement.doubts())
        return replace(
            report, counted=self.tally is not None, peak_rss_bytes=peak_rss_bytes(), notes=self._notes
        )

    def prepare(self, engines: int) -> None:
        """Load the handler for a number of threads, one after the other, before the first call."""
        with self._engines.taken(engines, self._enter):
            pass

    def adopt(self, engine: Engine) -> None:
        """Take over an engine of this handler and profile, entered, in place of loading one more."""
        self._engines.add(engine)

    def close(self) -> None:
        """Let go of what was loaded here."""
        self._engines.close()

    def _enter(self) -> Engine:
        if self.handler is None and self.placement is not None:
            self.handler = self.placement.load()
        assert self.handler is not None
        return Engine(self.handler, self.profile, preprocess_processes=self.preprocess_processes).__enter__()


def _placement(loaded: LoadedHandler, profile: Profile) -> Placement:
    """How another process finds a handler; raises ConfigError for a class that lives in this one only."""
    if not loaded.ref:
        raise ConfigError(
            f"handler {loaded.name}: class {loaded.cls.__name__} lives in this process only, and an engine "
            "of several processes must load it: put it in a file, and name that"
        )
    return Placement.of(loaded, profile)


class _Engines:
    """Engines that nobody uses now; made one at a time, for loading may draw random numbers."""

    def __init__(self) -> None:
        self._free: list[Engine] = []
        self._callers = 0
        self._lock = threading.Lock()
        self._entering = threading.Lock()  # the other one is held as long as a handler loads

    @property
    def idle(self) -> bool:
        """Whether nobody has taken, or is about to take, an engine."""
        return self._callers == 0

    @contextlib.contextmanager
    def taken(self, number: int, make: Any) -> Generator[Sequence[Engine]]:
        taken: list[Engine] = []
        with self._entering:
            self._callers += 1
        try:
            with self._lock:
                while len(taken) < number:
                    taken.append(self._free.pop() if self._free else make())
            yield taken
        finally:
            with self._lock:
                self._free += taken
            with self._entering:
                self._callers -= 1

    def add(self, engine: Engine) -> None:
        with self._lock:
            self._free.append(engine)

    def close(self) -> None:
        with self._lock:
            while self._free:
                self._free.pop().__exit__(None, None, None)


_SHARED: dict[str, _Engines] = {}
_SHARED_LOCK = threading.Lock()
