"""From a divergence of many rows to the fewest and simplest that still diverge, and why they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from parity.batch import Batch
from parity.compare import Comparison
from parity.errors import ParityError
from parity.laws.bench import Bench
from parity.laws.candidates import Candidate
from parity.laws.outcome import Counterexample, worst_row
from parity.laws.shrink import Budget, shrink
from parity.laws.simpler import simplest, simplify, value_of
from parity.laws.snippets import snippet
from parity.laws.ways import Asked, Pair, Way
from parity.triage import Diagnosis, Divergence, Side, diagnose


@dataclass(frozen=True)
class Suspect:
    """Rows that are likely to diverge when they are asked in two ways.

    Attributes:
        candidate: the rows, and which of their answers count.
        pair: the ways.
        needed: places that shrinking keeps.
        with_history: the pair for other batches asked before, where such batches may be what matters.
        shrinkable: whether asking is cheap enough to ask again and again.
    """

    candidate: Candidate
    pair: Pair
    needed: tuple[int, ...] = ()
    with_history: Callable[[tuple[Batch, ...]], Pair] | None = None
    shrinkable: bool = True


@dataclass(frozen=True)
class _Found:
    """A counterexample on its way."""

    candidate: Candidate
    pair: Pair
    comparison: Comparison
    sides: tuple[Asked, Asked]


def explain(
    bench: Bench,
    law: str,
    whole: Suspect,
    sides: tuple[Asked, Asked],
    comparison: Comparison,
    suspects: Iterable[Suspect],
    columns: tuple[str, ...] | None = None,
) -> tuple[Counterexample | None, Diagnosis | None]:
    """The smallest counterexample, and what triage says of the divergence.

    Triage is given all rows of the suspect that diverged, since a cause must explain them all; the
    counterexample only where it finds no cause in them.

    Args:
        bench: the rows and the engine.
        law: the name of the law that is broken.
        whole: all rows that were asked, and the two ways.
        sides: what they got in the two ways.
        comparison: how these compare.
        suspects: where to look, the best place first.
        columns: the only columns that count.
    """
    worst = worst_row(comparison)
    if worst is None:
        return None, None
    for suspect in suspects:
        first = _shown(bench, suspect, columns)
        if first is None:
            continue
        column = worst[0] if _diverges(first.comparison, worst[0]) else _worst_column(first)
        fewest = (
            _Shrinking(bench, suspect, column, columns, bench.budget()).run() if suspect.shrinkable else None
        )
        shown = first if fewest is None else _shown(bench, fewest, columns) or first
        if fewest is not None and suspect.with_history is not None:  # with no more before them than it takes
            first = _shown(bench, replace(suspect, pair=fewest.pair), columns) or first
        diagnosis = _diagnosed(bench, law, first)
        if diagnosis.cause is None and shown is not first:
            smaller = _diagnosed(bench, law, shown)
            diagnosis = smaller if smaller.cause is not None else diagnosis
        example = _counterexample(bench, shown)
        return example, replace(diagnosis, rows=_differing(shown))
    # Asked again, they agree: all that can be shown is what they got the first time.
    found = _Found(whole.candidate, whole.pair, comparison, sides)
    example = _counterexample(bench, found)
    return example.only_row(), replace(_diagnosed(bench, law, found), rows=(0,))


class _Shrinking:
    """Shrinks one suspect: rows, then the batches before them, then values."""

    def __init__(
        self, bench: Bench, suspect: Suspect, column: str, columns: tuple[str, ...] | None, budget: Budget
    ) -> None:
        self._bench = bench
        self._suspect = suspect
        self._pair = suspect.pair
        self._column = column
        self._columns = columns
        self._budget = budget

    def run(self) -> Suspect:
        """The smallest candidate found, in the same two ways; at least the one that was suspected."""
        candidate = self._fewer_rows(self._suspect.candidate)
        self._shorter_history(candidate)
        return replace(self._suspect, candidate=self._simpler(candidate), pair=self._pair)

    def _fails(self, candidate: Candidate) -> bool:
        """Whether the candidate diverges in the column that is looked into."""
        try:
            found = compared(self._bench, self._pair, candidate, self._columns)
        except ParityError:  # simpler rows may hit another fault, which is not the one to be explained
            return False
        return _diverges(found, self._column)

    def _fewer_rows(self, candidate: Candidate) -> Candidate:
        needed = set(self._suspect.needed)
        free = [place for place in range(len(candidate)) if place not in needed]

        def kept(places: list[int]) -> Candidate:
            return candidate.take(sorted([*places, *needed]))

        def fails(places: list[int]) -> bool:
            chosen = kept(places)
            return any(chosen.judged) and self._fails(chosen)

        if needed and self._budget.take() and self._fails(kept([])):
            return kept([])
        return kept(shrink(free, fails, self._budget)) if free else candidate

    def _shorter_history(self, candidate: Candidate) -> None:
        """Fewer batches before the rows, then fewer rows in the last that is left."""
        rebuild = self._suspect.with_history
        if rebuild is None:
            return

        def fails(batches: Sequence[Batch]) -> bool:
            before = self._pair
            self._pair = rebuild(tuple(batches))
            found = self._fails(candidate)
            if not found:
                self._pair = before
            return found

        kept = shrink(self._pair.other.history, fails, self._budget)
        if len(kept) == 1:
            batch = kept[0]
            shrink(range(batch.num_rows), lambda rows: fails([batch.take(rows)]), self._budget)

    def _simpler(self, candidate: Candidate) -> Candidate:
        """Simpler values, column by column: in all rows at once where that will do, else row by row."""
        rows = list(range(len(candidate)))
        for name, field in candidate.batch.schema.items():
            if len(rows) > 1:
                changed = candidate.with_value(name, rows, simplest(field))
                if self._budget.take() and self._fails(changed):
                    candidate = changed
                    continue
            for row in rows:
                candidate = self._simpler_value(candidate, name, row)
        return candidate

    def _simpler_value(self, candidate: Candidate, name: str, row: int) -> Candidate:
        def fails(value: Any) -> bool:
            return self._fails(candidate.with_value(name, [row], value))

        value = value_of(candidate.batch, name, row)
        found = simplify(candidate.batch[name].field, value, fails, self._budget)
        return candidate if found is None else candidate.with_value(name, [row], found)


def compared(
    bench: Bench, pair: Pair, candidate: Candidate, columns: tuple[str, ...] | None = None
) -> Comparison:
    """The judged answers of a candidate asked in two ways."""
    sides = pair.one.ask(candidate.batch, False), pair.other.ask(candidate.batch, False)
    return _judged(bench, candidate, sides, columns)


def _shown(bench: Bench, suspect: Suspect, columns: tuple[str, ...] | None) -> _Found | None:
    """What a suspect shows when it is asked with its stage values kept; None when that is no divergence."""
    pair, batch = suspect.pair, suspect.candidate.batch
    try:
        sides = pair.one.ask(batch, True), pair.other.ask(batch, True)
    except ParityError:
        return None
    comparison = _judged(bench, suspect.candidate, sides, columns)
    if comparison.verdict != "divergent" or worst_row(comparison) is None:
        return None
    return _Found(suspect.candidate, pair, comparison, sides)


def _judged(
    bench: Bench, candidate: Candidate, sides: tuple[Asked, Asked], columns: tuple[str, ...] | None
) -> Comparison:
    places: Any = pa.array(candidate.places, pa.int64())
    answers = sides[0].answers.take(places), sides[1].answers.take(places)
    return bench.compare([candidate.origins[place] for place in candidate.places], answers, columns)


def _diverges(found: Comparison, column: str) -> bool:
    return column in {item.name for item in found.divergent()} and worst_row(found) is not None


def _worst_column(found: _Found) -> str:
    worst = worst_row(found.comparison)
    return "" if worst is None else worst[0]


def _differing(found: _Found) -> tuple[int, ...]:
    """The places of the rows that differ, in the counterexample's rows."""
    return tuple(found.candidate.places[row] for row in found.comparison.failing_rows.tolist())


def _counterexample(bench: Bench, found: _Found) -> Counterexample:
    worst = worst_row(found.comparison)
    assert worst is not None
    column, row = worst
    candidate, pair = found.candidate, found.pair
    place = candidate.places[row.row]
    history = pair.other.history
    code, why_not = snippet(bench.loaded, bench.engine.profile, pair, candidate.batch, column, place)
    return Counterexample(
        rows=candidate.batch.to_table(),
        labels=candidate.labels,
        row=place,
        column=column,
        expected=row.expected,
        obtained=row.obtained,
        how=pair.how.format(n=len(candidate)),
        before=history[-1].to_table() if history else None,
        snippet=code,
        why_no_snippet=why_not,
    )


def _diagnosed(bench: Bench, law: str, found: _Found) -> Diagnosis:
    pair = found.pair
    divergence = Divergence(
        law=law,
        rows=found.candidate.batch.to_table(),
        expected=_side(bench, pair.one, found.sides[0]),
        obtained=_side(bench, pair.other, found.sides[1]),
        varied=pair.varied,
        history=tuple(batch.to_table() for batch in pair.other.history),
        scale_from=bench.golden_scale,
        ask=pair.other.again,
    )
    return diagnose(divergence, tolerances=bench.tolerances, engine=bench.engine)


def _side(bench: Bench, way: Way, asked: Asked) -> Side:
    fingerprint = bench.engine.fingerprint() if asked.fingerprint is None else asked.fingerprint
    name = way.name.format(n=asked.answers.num_rows)
    return Side(name, asked.answers, asked.traces, fingerprint, asked.company, asked.places)
