"""A shadow: a version that answers what others are asked, too, and is compared; nobody waits for it.

What it would be too slow for is lost and counted. Its requests carry the ids of those they copy, so that a
capture of both versions holds both answers under one id.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from parity.batch import Batch
from parity.capture import Share
from parity.compare import Comparison, Tolerances, compare
from parity.errors import ConfigError, did_you_mean
from parity.golden.recording import pair_side
from parity.result import Result
from parity_online import logs
from parity_online.metrics import ModelMetrics
from parity_online.models import Canary, Models
from parity_online.served import Mirror, ServedModel
from parity_online.shapes import Piece, put_back
from parity_online.works import Columns, ColumnsWork

logger = logging.getLogger(__name__)

_LOG_EVERY_S = 1.0


@dataclass(frozen=True)
class ShadowName:
    """A version that is to be a shadow."""

    name: str
    version: str

    @classmethod
    def parse(cls, text: str) -> ShadowName:
        """The shadow of `NAME@VERSION`; raises ConfigError when it is not of this form."""
        found = re.fullmatch(r"(?P<name>[^@]+)@(?P<version>[^=@]+)", text)
        if found is None:
            raise ConfigError(f"--shadow {text!r}: expected NAME@VERSION, such as fashion@2")
        return cls(found["name"], found["version"])


class Shadow:
    """Has a shadow version answer what another version of its name has answered, and compares.

    Args:
        model: the shadow.
        of: the version whose answers are the measure.
        loop: the loop that both are served on.
    """

    def __init__(self, model: ServedModel, of: ServedModel, loop: asyncio.AbstractEventLoop) -> None:
        self.model = model
        self.of = of
        self._loop = loop
        self._metrics: ModelMetrics = model.metrics
        self._waiting_rows = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._said_at = 0.0
        sides = pair_side(of.profile), pair_side(model.profile)
        self._rules = Tolerances.from_mapping(model.loaded.manifest.tolerance).for_pair(*sides)

    def offer(self, batch: Batch, result: Result, shares: Sequence[Share]) -> None:
        """Have a batch that has been answered compared; from any thread, and without waiting."""
        self._loop.call_soon_threadsafe(self._take, batch, result, shares)

    def _take(self, batch: Batch, result: Result, shares: Sequence[Share]) -> None:
        rows = batch.num_rows
        if self.model.state != "ready" or self._waiting_rows + rows > self.model.settings.queue_rows:
            self._count("lost", rows)
            return
        self._waiting_rows += rows
        task = self._loop.create_task(self._compare(batch, result, shares))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _compare(self, batch: Batch, result: Result, shares: Sequence[Share]) -> None:
        rows = batch.num_rows
        try:
            works, pieces = self._works(batch, shares)
            deadline = time.monotonic() + self.model.settings.timeout_s
            parts = [(work, work.batch.num_rows) for work in works]
            keys = [work.key for work in works]
            answers = await self.model.driver.submit_parts(parts, keys=keys, deadline=deadline)
            found = await asyncio.to_thread(self._judge, result, pieces, cast("list[Columns]", answers))
        except Exception as exc:  # noqa: BLE001 - nobody waits for it; it is counted
            self._count("unanswered", rows)
            self._say("shadow_unanswered", shares, logs.exception(exc))
            return
        finally:
            self._waiting_rows -= rows
        schema_differs = any(finding.fails for finding in found.findings)
        different = rows if schema_differs else found.failing
        self._count("different", different)
        self._count("same", rows - different)
        if different:
            # Names only: a log holds no values.
            columns = ",".join(column.name for column in found.divergent()) or "schema"
            self._say("shadow_differs", shares, f"{different} of {rows} rows differ in {columns}")

    def _works(self, batch: Batch, shares: Sequence[Share]) -> tuple[list[ColumnsWork], list[Piece]]:
        """The rows of a batch as work for this model, each request's apart, and where they were."""
        works: list[ColumnsWork] = []
        pieces: list[Piece] = []
        start = 0
        for origin, places, rows in shares:
            asked = batch.slice(start, start + rows)
            for piece in self.model.shapes.cut(asked, self.model.settings.most_rows):
                numbers = piece.rows.tolist()
                mine = numbers if places is None else [places[row] for row in numbers]
                works.append(ColumnsWork(piece.batch, origin, mine, piece.key))
                pieces.append(replace(piece, rows=piece.rows + start))
            start += rows
        return works, pieces

    def _judge(self, result: Result, pieces: Sequence[Piece], answers: Sequence[Columns]) -> Comparison:
        schema = self.model.loaded.outputs
        obtained = put_back([answer.result for answer in answers], pieces, schema)
        return compare(result.to_table(), obtained.to_table(), self._rules)

    def _count(self, verdict: str, rows: int) -> None:
        if rows:
            self._metrics.shadowed(self.of.version, verdict, rows)

    def _say(self, event: str, shares: Sequence[Share], what: str) -> None:
        now = time.monotonic()
        if now - self._said_at < _LOG_EVERY_S:
            return
        self._said_at = now
        ids = [origin.request_id for origin, _, _ in shares if origin is not None]
        logger.warning(
            "event=%s model=%s version=%s of=%s ids=%s what=%s",
            event,
            logs.text(self.model.name),
            logs.text(self.model.version),
            logs.text(self.of.version),
            logs.text(",".join(ids[:5])),
            logs.text(what),
        )


def require_shadows(
    shadows: Sequence[ShadowName], canaries: Sequence[Canary], known: Sequence[tuple[str, str]]
) -> None:
    """Raise ConfigError where a shadow is not there, is a canary, too, or leaves no version that answers."""
    for shadow in shadows:
        versions = {version for name, version in known if name == shadow.name}
        where = f"--shadow {shadow.name}@{shadow.version}"
        if not versions:
            raise ConfigError(
                f"{where}: no such model; {did_you_mean(shadow.name, {name for name, _ in known})}"
            )
        if shadow.version not in versions:
            raise ConfigError(f"{where}: no such version; {did_you_mean(shadow.version, versions)}")
        if any((canary.name, canary.version) == (shadow.name, shadow.version) for canary in canaries):
            raise ConfigError(f"{where}: it is a canary already; a version is one or the other")
        if versions <= {other.version for other in shadows if other.name == shadow.name}:
            raise ConfigError(f"{where}: {shadow.name!r} has no version left that answers; serve one")


def mirror(models: Models, loop: asyncio.AbstractEventLoop) -> None:
    """Let each shadow hear of the batches of the other versions of its name."""
    for model in models:
        names = [(name, version) for name, version in models.shadows if name == model.name]
        found = [models.get(*name) for name in names if (model.name, model.version) not in names]
        shadows = [Shadow(shadow, model, loop) for shadow in found if shadow is not None]
        model.mirror = _all_of(shadows) if shadows else None


def _all_of(shadows: Sequence[Shadow]) -> Mirror:
    def offer(batch: Batch, result: Result, shares: Sequence[Share]) -> None:
        for shadow in shadows:
            shadow.offer(batch, result, shares)

    return offer
