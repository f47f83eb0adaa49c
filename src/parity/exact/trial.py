"""One bucket under trial: copies, random company, hostile neighbours and repetition, compared bit by bit."""

from __future__ import annotations

import itertools
import math
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from parity.batch import Batch
from parity.engine import Engine
from parity.exact.finding import NEIGHBOUR, BucketFinding, Verdict
from parity.exact.neighbours import shuffles
from parity.exact.sheet import STAGES, Sheet, run_sheet

ROUNDS: Final = 16
"""How many random batches each row is put into."""

_COPIED_ROWS = 4
_REPEATED_ROWS = 32
_REPETITION = "repetition"
_MEASURED = 64
"""Differences that are measured in ulp; counting goes on after that."""


@dataclass(frozen=True)
class Trial:
    """What a bucket's trial gave.

    Attributes:
        finding: the verdict and its figures.
        reference: what each row of the pool got in its first run, in whose terms all others are judged.
        shapes: for each place of inference the trailing shapes seen; one for each steady place.
    """

    finding: BucketFinding
    reference: Sheet
    shapes: Mapping[str, set[tuple[int, ...]]] = field(default_factory=dict[str, set[tuple[int, ...]]])


def reference_of(engine: Engine, pool: Batch, bucket: int, *, threads: int | None = None) -> Sheet:
    """What each row of the pool gets when the pool is asked in order, a bucket at a time."""
    return Sheet.concat([run_sheet(engine, piece, bucket, threads=threads) for piece in pool.split(bucket)])


def try_bucket(
    engine: Engine, pool: Batch, hostile: Sequence[tuple[str, Batch]], bucket: int, seed: int = 0
) -> Trial:
    """Try one bucket.

    Args:
        engine: an entered engine.
        pool: the rows that are judged.
        hostile: rows by name that are put beside them, and not judged.
        bucket: the number of rows that inference sees at once.
        seed: of the random company.
    """
    return _Bench(engine, pool, bucket).run(hostile, seed)


class _Bench:
    """Runs batches at one bucket, and counts what differs from each row's first run."""

    def __init__(self, engine: Engine, pool: Batch, bucket: int) -> None:
        self.engine = engine
        self.pool = pool
        self.bucket = bucket
        self.comparisons = 0
        self.tests: Counter[str] = Counter()
        self.stages: Counter[str] = Counter()
        self.rows: set[int] = set()
        self.positions: set[int] = set()
        self.ulp = 0.0
        self.best_s = math.inf
        self.shapes: dict[str, set[tuple[int, ...]]] = {}
        self.pieces = pool.split(bucket)
        sheets = [self._ask(piece) for piece in self.pieces]
        self.reference = Sheet.concat(sheets)
        self._first_shape = [sheet.shape for sheet in sheets for _ in range(sheet.num_rows)]
        self._answers = [path for path in self.reference.leaves if path.startswith("postprocess")]
        # For each trailing shape of a batch, the digests of the answers that rows got under it.
        self._by_shape: dict[str, dict[int, str]] = {}
        for row, shape in enumerate(self._first_shape):
            self._by_shape.setdefault(shape, {})[row] = self.reference.digest(row, self._answers)
        self._differs_within_shape = False
        self._suspect: tuple[Batch, Sheet] | None = None

    def run(self, hostile: Sequence[tuple[str, Batch]], seed: int) -> Trial:
        if all(self.reference.errors):
            return self._trial("failed")
        self._repeat()
        if not self.tests and self.bucket > 1:
            self._copies()
            for rows in shuffles(self.pool.num_rows, self.bucket, ROUNDS, seed):
                self._judge("random company", self.pool.take(rows), rows)
            for kind, neighbours in hostile:
                self._hostile(kind, neighbours)
            self._repeat()
        if self.tests[_REPETITION]:
            return self._trial("nondeterministic")
        if not self.tests:
            return self._trial("holds")
        if self._suspect is not None and self._is_unsteady(*self._suspect):
            return self._trial("nondeterministic")
        if self.positions:
            return self._trial("position")
        return self._trial("neighbours" if self._differs_within_shape else "length")

    def _ask(self, batch: Batch) -> Sheet:
        started = time.perf_counter()
        sheet = run_sheet(self.engine, batch, self.bucket)
        if batch.num_rows == self.bucket:
            self.best_s = min(self.best_s, time.perf_counter() - started)
        for path in sheet.leaves:
            self.shapes.setdefault(path, set()).update(sheet.shape_of(path))
        return sheet

    def _repeat(self) -> None:
        """The first batches again as they were asked first: nothing but time and history is different."""
        start = 0
        for piece in self.pieces[: max(2, _REPEATED_ROWS // self.bucket)]:
            rows = range(start, start + piece.num_rows)
            for _ in range(2):
                self._judge(_REPETITION, piece, rows)
            start = rows.stop

    def _copies(self) -> None:
        """Batches of one row only: neither neighbours nor their number can matter, only the position."""
        count = min(_COPIED_ROWS, self.pool.num_rows)
        for row in np.linspace(0, self.pool.num_rows - 1, count).round().astype(int).tolist():
            copies = [row] * self.bucket
            sheet = self._judge("copies", self.pool.take(copies), copies)
            self.positions |= {
                position
                for position in range(1, self.bucket)
                if sheet.first_difference(position, sheet, 0) is not None
            }
            self._judge("alone", self.pool.slice(row, row + 1), [row])

    def _hostile(self, kind: str, neighbours: Batch) -> None:
        """Real rows with hostile neighbours at every other place, and everywhere but at one."""
        places = range(self.bucket)
        if any(run_sheet(self.engine, neighbours.slice(0, 1), self.bucket).errors):
            # A row that fails makes the engine search for it: one of them is enough.
            patterns = [[place == self.bucket // 2 for place in places]]
        else:
            patterns = [
                [place % 2 == 1 for place in places],
                [place != self.bucket // 3 for place in places],
            ]
        rows = itertools.cycle(range(self.pool.num_rows))
        for pattern in patterns:
            real = [next(rows) for is_hostile in pattern if not is_hostile]
            material = Batch.concat([self.pool.take(real), neighbours])
            kinds = itertools.cycle(range(len(real), material.num_rows))
            reals = iter(range(len(real)))
            batch = material.take([next(kinds) if is_hostile else next(reals) for is_hostile in pattern])
            judged = [place for place, is_hostile in enumerate(pattern) if not is_hostile]
            self._judge(f"{NEIGHBOUR}{kind}", batch, real, judged)

    def _judge(
        self, test: str, batch: Batch, rows: Sequence[int], places: Sequence[int] | None = None
    ) -> Sheet:
        """Ask a batch, and compare its rows, or those at `places`, with the first run of these rows."""
        sheet = self._ask(batch)
        known = self._by_shape.setdefault(sheet.shape, {})
        for place, row in zip(range(len(rows)) if places is None else places, rows, strict=True):
            self.comparisons += 1
            digest = sheet.digest(place, self._answers)
            same_in_shape = known.setdefault(row, digest) == digest
            stage = self.reference.first_difference(row, sheet, place)
            if stage is None:
                continue
            self.tests[test] += 1
            self.stages[stage] += 1
            self.rows.add(row)
            if self.stages.total() <= _MEASURED:
                self.ulp = max(self.ulp, self.reference.ulp(row, sheet, place))
            if not same_in_shape or sheet.shape == self._first_shape[row]:
                self._differs_within_shape = True
            if self._suspect is None:
                self._suspect = (batch, sheet)
        return sheet

    def _is_unsteady(self, batch: Batch, sheet: Sheet) -> bool:
        """Whether a batch whose rows differed gets yet other bits when it is asked again."""
        again = self._ask(batch)
        return any(sheet.first_difference(row, again, row) is not None for row in range(sheet.num_rows))

    def _lengths(self) -> tuple[tuple[str, ...], ...]:
        """The trailing shapes that inference saw, those together under which no answer differed."""
        groups: list[list[str]] = []
        for shape in sorted(self._by_shape, key=_natural):
            home = next((group for group in groups if all(self._agree(shape, one) for one in group)), None)
            if home is None:
                groups.append([shape])
            else:
                home.append(shape)
        return tuple(tuple(group) for group in groups)

    def _agree(self, one: str, other: str) -> bool:
        known, answers = self._by_shape[one], self._by_shape[other]
        return all(answers.get(row, digest) == digest for row, digest in known.items())

    def _trial(self, verdict: Verdict) -> Trial:
        finding = BucketFinding(
            bucket=self.bucket,
            verdict=verdict,
            rows=self.pool.num_rows,
            comparisons=self.comparisons,
            rows_differing=len(self.rows),
            positions_differing=len(self.positions),
            ulp=self.ulp,
            stage=next((stage for stage in STAGES if self.stages[stage]), ""),
            tests=dict(self.tests),
            lengths=self._lengths() if len(self._by_shape) > 1 else (),
            ms_per_batch=round(self.best_s * 1000.0, 4) if math.isfinite(self.best_s) else 0.0,
            reason=self.reference.reason if verdict == "failed" else "",
        )
        return Trial(finding, self.reference, self.shapes)


def _natural(text: str) -> list[tuple[int, str]]:
    """A key that sorts numbers in a text by their size."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]
