"""The law of concurrency: the stages of several batches interleaved, step by step and on real threads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from parity.batch import Batch
from parity.codec.decoded import Decoded
from parity.engine import Engine
from parity.laws.bench import Bench, spread
from parity.laws.explanation import Suspect
from parity.laws.outcome import LawOutcome
from parity.laws.trials import Trial, judge
from parity.laws.ways import Asked, Pair, Way, in_pieces, run_pieces
from parity.pipeline import Pipeline
from parity.result import Result
from parity.stages import Traces, traces
from parity.work import Work

_ROWS: Final = 48
_SIZES: Final = (1, 3, 2, 5, 1, 4)
_SWITCH_INTERVAL_S: Final = 1e-5
"""Threads take turns this often while the law is tried; usually they do every 5 ms, and races hide."""


class Concurrency:
    """Batches asked while others are under way: their stages interleaved, and on threads."""

    name = "concurrency"
    sentence = "the answer for a row does not depend on other batches that are under way"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask batches one after the other; then with their stages interleaved, and through a pipeline."""
        engine = bench.engine
        asked = spread(bench.judged, _ROWS)
        pieces = _pieces(asked)

        def trials() -> Iterator[Trial]:
            batches = [bench.batch(piece) for piece in pieces]
            expected = run_pieces(engine, batches, False).answers
            for name, run, code in _ways(bench.thorough):
                pair = Pair(one_by_one(engine), overlapped(engine, name, run, code), {"stages": name})
                obtained = pa.concat_tables([result.to_table() for result in run(engine, batches)])

                def suspects(_: object, pair: Pair = pair) -> Iterator[Suspect]:
                    yield Suspect(bench.candidate(asked), pair)

                how = f"one batch after the other, and {name}"
                yield Trial(how, pair, asked, (expected, obtained), suspects)

        return judge(self.name, self.sentence, bench, trials(), "other bits when batches overlap")


Run = Callable[[Engine, Sequence[Batch]], list[Result]]


def one_by_one(engine: Engine) -> Way:
    """Each row in a batch of its own, one after the other."""
    way = in_pieces(engine, 1)
    return Way("one by one", way.ask, way.code, way.imports)


def overlapped(engine: Engine, name: str, run: Run, code: str) -> Way:
    """Each row in a batch of its own, with the batches under way at the same time."""

    def ask(batch: Batch, stages: bool) -> Asked:
        pieces = batch.split(1)
        results = run(engine, pieces)
        answers = pa.concat_tables([result.to_table() for result in results])
        kept = all(result.stages for result in results)
        found = [traces(piece, result) for piece, result in zip(pieces, results, strict=True)]
        return Asked(answers, Traces.concat(found) if stages and kept else None)

    imports = ("import pyarrow as pa",)
    if "Pipeline" in code:
        imports = (
            *imports,
            "from parity.codec.decoded import Decoded",
            "from parity.pipeline import Pipeline",
        )
    return Way(name, ask, code, imports)


def interleaved(engine: Engine, batches: Sequence[Batch]) -> list[Result]:
    """A stage runs for every batch before the next stage begins."""
    works = [engine.preprocess(batch, stages=True) for batch in batches]
    works = [engine.infer(work) for work in works]
    return [engine.postprocess(work) for work in works]


def interleaved_backwards(engine: Engine, batches: Sequence[Batch]) -> list[Result]:
    """The same, with the batches preprocessed and inferred in the opposite order, as threads may."""
    works: list[Work] = [engine.preprocess(batch, stages=True) for batch in reversed(batches)]
    works = [engine.infer(work) for work in works]
    return [engine.postprocess(work) for work in reversed(works)]


def staggered(engine: Engine, batches: Sequence[Batch]) -> list[Result]:
    """Each batch is preprocessed while the one before is inferred, as a pipeline does it."""
    results: list[Result] = []
    under_way: list[Work] = []
    for batch in batches:
        under_way.append(engine.preprocess(batch, stages=True))
        if len(under_way) > 2:
            results.append(engine.postprocess(under_way.pop(0)))
        if len(under_way) > 1:
            under_way[-2] = engine.infer(under_way[-2])
    if under_way:
        under_way[-1] = engine.infer(under_way[-1])
    return [*results, *(engine.postprocess(work) for work in under_way)]


def on_threads(engine: Engine, batches: Sequence[Batch]) -> list[Result]:
    """Through a pipeline whose threads take turns often."""
    with _switching_often():
        decoded = [Decoded.of(batch) for batch in batches]
        return list(Pipeline(engine, preprocess_workers=3, depth=4).map(decoded))


_STEPS = (
    "works = [engine.preprocess(row) for row in rows.split(1)]\n"
    "works = [engine.infer(work) for work in works]\n"
)
_FINISH = "ANSWERS = pa.concat_tables([engine.postprocess(work).to_table() for work in works])"
_PIPELINE = (
    "pipeline = Pipeline(engine, preprocess_workers=3, depth=4)\n"
    "ANSWERS = pa.concat_tables(\n"
    "    [done.to_table() for done in pipeline.map(Decoded.of(row) for row in rows.split(1))]\n"
    ")"
)


def _ways(thorough: bool) -> Iterator[tuple[str, Run, str]]:
    yield "with their stages interleaved", interleaved, _STEPS + _FINISH
    backwards = _STEPS.replace("rows.split(1)]", "reversed(rows.split(1))]", 1)
    finish = _FINISH.replace("in works", "in reversed(works)")
    yield "with their stages interleaved backwards", interleaved_backwards, backwards + finish
    staggered_code = (
        "works, answers = [], []\n"
        "for row in rows.split(1):\n"
        "    works.append(engine.preprocess(row))\n"
        "    if len(works) > 2:\n"
        "        answers.append(engine.postprocess(works.pop(0)).to_table())\n"
        "    if len(works) > 1:\n"
        "        works[-2] = engine.infer(works[-2])\n"
        "works[-1] = engine.infer(works[-1])\n"
        "answers += [engine.postprocess(work).to_table() for work in works]\n"
        "ANSWERS = pa.concat_tables(answers)"
    )
    yield "with their stages staggered", staggered, staggered_code
    for _ in range(8 if thorough else 2):
        yield "on the threads of a pipeline", on_threads, _PIPELINE


def _pieces(asked: Sequence[int]) -> list[list[int]]:
    """The rows in batches of several sizes, so that buffers of one do not fit the next."""
    pieces: list[list[int]] = []
    start = 0
    while start < len(asked):
        size = _SIZES[len(pieces) % len(_SIZES)]
        pieces.append(list(asked[start : start + size]))
        start += size
    return pieces


@contextmanager
def _switching_often() -> Generator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
