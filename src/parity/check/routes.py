"""Rows through runners, each runner started once: what came back by each of their wire forms."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parity.errors import ConfigError, FingerprintError, ParityError, RunnerError
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.registry import Runner, replay_wires
from parity.result import Result
from parity.stages import row_digests

ENGINE = "engine"
"""What reports call the handler run in this process, without a runner."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Route:
    """One way for rows to be answered: this process, or a runner in one of its wire forms.

    Attributes:
        runner: the runner; None for this process.
        wire: the wire form.
        result: what came back; None where the runner crashed or refused, and then `error` says how.
        seconds: the time that it took.
        error: why there is no result.
        refused: whether the runner refused to answer, for its fingerprint or certificate.
    """

    runner: Runner | None
    wire: str
    result: Result | None
    seconds: float
    error: str = ""
    refused: bool = False

    @property
    def runner_name(self) -> str:
        """The runner's name, or `ENGINE`."""
        return ENGINE if self.runner is None else self.runner.name

    @property
    def shown_wire(self) -> str | None:
        """The wire form, where the runner has several."""
        return self.wire if self.runner is not None and len(self.runner.wire_forms) > 1 else None

    @property
    def name(self) -> str:
        """The runner and, where it has several, its wire form."""
        return f"{self.runner_name} {self.shown_wire}" if self.shown_wire else self.runner_name

    def answers(self, start: int, rows: int) -> pa.Table | None:
        """The answers to `rows` rows from `start` on."""
        return None if self.result is None else self.result.to_table().slice(start, rows)

    def buckets(self, start: int, rows: int) -> npt.NDArray[np.int32] | None:
        """For each of `rows` rows from `start` on how many rows inference saw at once; 0 where unknown."""
        result = self.result
        if result is None or len(result.buckets) != len(result.index):
            return None
        found = np.zeros(result.num_rows, np.int32)
        found[result.index] = result.buckets
        return found[start : start + rows]


def through_runners(
    runners: Sequence[Runner],
    loaded: LoadedHandler,
    rows: pa.Table,
    profile: Profile,
    say: Progress,
) -> list[Route]:
    """The rows through each runner in each of its wire forms.

    Raises:
        ConfigError: a profile or setting is wrong for a runner.
    """
    found: list[Route] = []
    for runner in runners:
        say(f"{rows.num_rows} rows through {runner.name}: {', '.join(runner.wire_forms)}")
        found += _through(runner, loaded, rows, profile)
    return found


def _through(runner: Runner, loaded: LoadedHandler, rows: pa.Table, profile: Profile) -> list[Route]:
    found: list[Route] = []
    started = time.perf_counter()
    error, refused = "", False
    try:
        for wire, result in replay_wires(runner, loaded.ref, rows, profile, app_dir=loaded.app_dir):
            if result.num_rows != rows.num_rows:
                raise RunnerError(f"{result.num_rows} answers came back for {rows.num_rows} rows")
            found.append(Route(runner, wire, result, 0.0))
    except (RunnerError, FingerprintError) as exc:
        error, refused = str(exc), isinstance(exc, FingerprintError)
    except Exception as exc:
        if isinstance(exc, ConfigError | ParityError):
            raise
        error = f"{type(exc).__name__}: {exc}"
    failed = [wire for wire in runner.wire_forms if wire not in {route.wire for route in found}]
    found += [Route(runner, wire, None, 0.0, error, refused) for wire in failed]
    share: Any = (time.perf_counter() - started) / len(found)
    return [replace(route, seconds=share) for route in found]


class SentBefore:
    """A runner that rows went through already: asked for the same rows again, it gives what came back then.

    Args:
        runner: the runner.
        rows: the last of the rows that went through it.
        routes: what came back for all of them, by this runner's wire forms among others.
    """

    def __init__(self, runner: Runner, rows: pa.Table, routes: Sequence[Route]) -> None:
        self._runner = runner
        self._rows = rows
        self._routes = [route for route in routes if route.runner is runner]
        self.name = runner.name
        self.command_name = runner.command_name
        self.wire_forms = runner.wire_forms

    @property
    def command(self) -> Any:
        """The runner's own."""
        return self._runner.command

    def replay(
        self,
        handler_ref: str,
        rows: pa.Table,
        profile: Profile,
        *,
        app_dir: str | None = None,
        wire: str | None = None,
    ) -> Result:
        """The answers through the runner, asked anew."""
        return self._runner.replay(handler_ref, rows, profile, app_dir=app_dir, wire=wire)

    def replay_wires(
        self, handler_ref: str, rows: pa.Table, profile: Profile, *, app_dir: str | None = None
    ) -> Iterator[tuple[str, Result]]:
        """The answers that came back for these rows; asked anew for others.

        Raises:
            FingerprintError: the runner refused.
            RunnerError: it crashed.
        """
        if row_digests(rows) != row_digests(self._rows):
            yield from replay_wires(self._runner, handler_ref, rows, profile, app_dir=app_dir)
            return
        for route in self._routes:
            if route.result is None:
                raise (FingerprintError if route.refused else RunnerError)(route.error)
            yield route.wire, last_rows(route.result, rows.num_rows)


def last_rows(result: Result, rows: int) -> Result:
    """The last `rows` rows of a result, numbered from 0."""
    first = result.num_rows - rows
    kept = np.flatnonzero(result.index >= first)
    buckets = result.buckets[kept] if len(result.buckets) == len(result.index) else result.buckets[:0]
    return Result(
        num_rows=rows,
        outputs=result.outputs.take(kept),
        index=result.index[kept] - first,
        errors=tuple(error.at(error.row - first) for error in result.errors if error.row >= first),
        timings=result.timings,
        buckets=buckets,
    )
