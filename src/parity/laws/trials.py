"""Pairs of ways to ask rows, compared trial by trial; the first that diverges is explained.

A law is tried by the trials it yields: the same rows asked in two ways, with both answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from parity.compare import Comparison
from parity.laws.bench import Answers, Bench
from parity.laws.explanation import Suspect, explain
from parity.laws.noise import column_noise, size, worst_noise
from parity.laws.outcome import LawOutcome
from parity.laws.ways import Asked, Pair

Suspects = Callable[[Comparison], Iterator[Suspect]]


@dataclass(frozen=True)
class Trial:
    """The same rows asked in two ways.

    Attributes:
        how: the two ways in words; `{n}` stands for the number of rows.
        pair: the two ways.
        positions: the rows, by their position in the bench's pool.
        answers: what they got either way.
        suspects: where to look for a small counterexample when the answers diverge, the best place first.
        columns: the only columns that count; all when None.
        sides: the same answers with what the stages gave, where that was kept; for ways that do not give the
            same twice.
    """

    how: str
    pair: Pair
    positions: Sequence[int]
    answers: Answers
    suspects: Suspects
    columns: tuple[str, ...] | None = None
    sides: tuple[Asked, Asked] | None = None


def try_pair(bench: Bench, positions: Sequence[int], pair: Pair, expected: pa.Table | None = None) -> Trial:
    """Ask rows in the two ways of a pair.

    Args:
        bench: the rows and the engine.
        positions: the rows.
        pair: the ways.
        expected: what they get in the first way, where that is known already.
    """
    batch = bench.batch(positions)
    one = pair.one.ask(batch, False).answers if expected is None else expected
    other = pair.other.ask(batch, False).answers
    return Trial(pair.how, pair, positions, (one, other), all_of(bench, positions, pair))


def all_of(bench: Bench, positions: Sequence[int], pair: Pair) -> Suspects:
    """Suspect all the rows, asked again in the same two ways."""

    def suspects(comparison: Comparison) -> Iterator[Suspect]:
        del comparison
        yield Suspect(bench.candidate(positions), pair)

    return suspects


def judge(
    name: str, sentence: str, bench: Bench, trials: Iterable[Trial], noise: str | Callable[[], str]
) -> LawOutcome:
    """Compare trial after trial; the first divergent one ends it, shrunk to the fewest and simplest rows.

    Args:
        name: the law's.
        sentence: the law's.
        bench: what it is tried on.
        trials: the law's.
        noise: what a difference within tolerance is called; asked only where there is one.
    """
    done: list[Comparison] = []
    executed: list[str] = []
    for trial in trials:
        bench.check_time()
        comparison = bench.compare(trial.positions, trial.answers, trial.columns)
        executed.append(trial.how.format(n=len(trial.positions)))
        if comparison.verdict != "divergent":
            done.append(comparison)
            continue
        example, diagnosis = explain(
            bench,
            name,
            Suspect(bench.candidate(trial.positions), trial.pair),
            trial.sides or (Asked(trial.answers[0]), Asked(trial.answers[1])),
            comparison,
            trial.suspects(comparison),
            trial.columns,
        )
        pairs = comparison.rows + sum(earlier.rows for earlier in done)
        detail = f"{executed[-1]}: {comparison.summary()}"
        outcome = LawOutcome(name, sentence, "broken", pairs, len(comparison.differing_rows), detail)
        return replace(
            outcome,
            worst_ulp=comparison.worst_ulp,
            counterexample=example,
            diagnosis=diagnosis,
            noise=column_noise([*done, comparison]),
            executed=tuple(executed),
        )
    return _summed(name, sentence, done, noise, tuple(executed))


def _summed(
    name: str,
    sentence: str,
    comparisons: Sequence[Comparison],
    noise: str | Callable[[], str],
    executed: tuple[str, ...],
) -> LawOutcome:
    """The outcome of comparisons none of which diverges."""
    pairs = sum(comparison.rows for comparison in comparisons)
    differing = sum(len(comparison.differing_rows) for comparison in comparisons)
    distances = [item.worst_ulp for item in comparisons if item.worst_ulp is not None]
    worst = max(distances, default=None)
    answered = sum(item.rows - item.errors_expected for item in comparisons if item.verdict != "nothing")
    outcome = LawOutcome(name, sentence, "nothing", pairs, noise=column_noise(comparisons), executed=executed)
    if answered == 0:
        return replace(outcome, detail="no answer was compared")
    outcome = replace(outcome, worst_ulp=worst, differing=differing)
    if differing == 0:
        return replace(outcome, verdict="holds", detail=f"{pairs} pairs bit-identical")
    told = worst_noise(outcome.noise)
    far = "" if told is None or told.ulp is None else f", {told.column} {size(told)}"
    called = noise if isinstance(noise, str) else noise()
    detail = f"{called}: {differing} of {pairs} pairs differ within tolerance{far}"
    return replace(outcome, verdict="noise", detail=detail)


def suspect_company(
    bench: Bench, pair: Pair, batches: Sequence[Sequence[int]], judged: Sequence[Sequence[int]], most: int = 6
) -> Suspects:
    """Suspect the batches that failing rows were asked in, then the batch of all golden rows.

    Args:
        bench: the rows.
        pair: asks the rows of a batch alone, and together.
        batches: the batches that were asked, as positions.
        judged: for each batch the places whose answers were compared, in the order of the comparison.
        most: how many failing rows are looked into.
    """
    place_of = [(batch, place) for batch, places in enumerate(judged) for place in places]

    def suspects(comparison: Comparison) -> Iterator[Suspect]:
        for row in comparison.failing_rows.tolist()[:most]:
            batch, place = place_of[row]
            company = list(batches[batch])
            yield Suspect(bench.candidate(company, [place]), pair, needed=(place,))
            position = company[place]
            if position < len(bench.golden):
                yield Suspect(bench.candidate(bench.golden, [position]), pair, needed=(position,))

    return suspects
