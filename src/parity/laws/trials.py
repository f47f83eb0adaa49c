"""Pairs of ways to ask rows, judged; and the fewest rows that break a law."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from parity.compare import Comparison
from parity.laws.bench import Answers, Bench
from parity.laws.outcome import Counterexample, LawOutcome, summed

_TRIED_ROWS = 8


@dataclass(frozen=True)
class Trial:
    """One pair of ways to ask the rows at some positions, and how to find the fewest that differ."""

    how: str
    positions: Sequence[int]
    answers: Answers
    fewest: Callable[[Comparison], Counterexample | None]


def judge(name: str, sentence: str, bench: Bench, trials: Iterator[Trial], noise: str) -> LawOutcome:
    """Compare trial after trial; the first divergent one ends it, shrunk to the fewest rows."""
    done: list[Comparison] = []
    for trial in trials:
        comparison = bench.compare(trial.positions, trial.answers)
        if comparison.verdict != "divergent":
            done.append(comparison)
            continue
        example = trial.fewest(comparison)
        pairs = comparison.rows + sum(earlier.rows for earlier in done)
        detail = f"{trial.how.format(n=comparison.rows)}: {comparison.summary()}"
        outcome = LawOutcome(name, sentence, "broken", pairs, len(comparison.differing_rows), detail)
        return replace(outcome, worst_ulp=comparison.worst_ulp, counterexample=example)
    return summed(name, sentence, done, noise)


def fewest_of(
    bench: Bench, positions: list[int], ask: Callable[[list[int]], Answers], how: str
) -> Callable[[Comparison], Counterexample | None]:
    """Shrink by asking fewer rows in the same two ways; all of them where that loses the difference."""

    def find(comparison: Comparison) -> Counterexample | None:
        example = bench.smallest(positions, ask, how)
        return example or bench.counterexample(positions, comparison, how.format(n=len(positions)))

    return find


def fewest_in_company(
    bench: Bench, batches: list[list[int]], judged_places: list[list[int]]
) -> Callable[[Comparison], Counterexample | None]:
    """Shrink a failing row's batch to the fewest neighbours that change the answer it gets alone."""
    row_of = [(batch, place) for batch, places in enumerate(judged_places) for place in places]

    def find(comparison: Comparison) -> Counterexample | None:
        failing = comparison.failing_rows.tolist()
        for row in failing[:_TRIED_ROWS]:
            batch, place = row_of[row]
            position = batches[batch][place]
            companies = [(batches[batch], place)]
            if position < len(bench.golden):
                companies.append((bench.golden, position))
            for company, at in companies:
                example = bench.smallest_company(company, at)
                if example is not None:
                    return example
        positions = [batches[batch][place] for batch, place in row_of]
        return bench.counterexample(positions, comparison, "as reference, and in this batch")

    return find
