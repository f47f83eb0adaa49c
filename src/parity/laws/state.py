"""Laws of state: the same batch again, and whatever was asked before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from parity.batch import Batch
from parity.engine import Engine
from parity.errors import StageError
from parity.laws.bench import Bench, spread
from parity.laws.explanation import Suspect
from parity.laws.outcome import LawOutcome
from parity.laws.trials import Trial, judge
from parity.laws.twins import NUDGES, near_twins
from parity.laws.ways import Asked, Pair, Way, joined, together
from parity.laws.workers import refused
from parity.result import Result

RUN_TO_RUN_NOISE: Final = "run-to-run noise"
_BEFORE_ROWS: Final = 24


class Repeatable:
    """The same batch asked again, and asked of a freshly loaded handler."""

    name = "repeatable"
    sentence = "the same batch gets the same answers again, also from a freshly loaded handler"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask all rows three times (six where thorough), then once of a second handler."""
        once = together(bench.engine, "the first time")
        again = replace(once, name="again", code=f"engine.run(rows)\n{once.code}")
        same = Pair(once, again, {"repetition": "again"})
        other = Pair(once, fresh(bench), {"handler": "freshly loaded"})
        pairs = [*([same] * (5 if bench.thorough else 2)), other]

        def trials() -> Iterator[Trial]:
            batch = bench.batch(bench.judged)
            first = once.ask(batch, True)
            for pair in pairs:
                found = pair.other.ask(batch, True)

                def suspects(_: object, pair: Pair = pair) -> Iterator[Suspect]:
                    # A fresh handler shows again what is lost once this one was asked; a random one may not.
                    if pair is same:
                        yield Suspect(bench.candidate(bench.judged), first_and_second(bench))
                    yield Suspect(bench.candidate(bench.judged), pair)

                answers = first.answers, found.answers
                yield Trial(pair.how, pair, bench.judged, answers, suspects, sides=(first, found))

        return judge(self.name, self.sentence, bench, trials(), RUN_TO_RUN_NOISE)


class History:
    """Rows asked of a fresh handler, and of one that was asked other batches before."""

    name = "history"
    sentence = "the answer for a row does not depend on what was asked before"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask a fresh handler; then another after other batches, a failing, a warm-up and an empty one."""
        golden = bench.golden

        def trials() -> Iterator[Trial]:
            batch = bench.batch(golden)
            expected = fresh(bench, as_new=True).ask(batch, True)
            for name, before in _histories(bench):
                pair = after(bench, before, name)
                obtained = pair.other.ask(batch, True)

                def suspects(_: object, pair: Pair = pair) -> Iterator[Suspect]:
                    yield Suspect(
                        bench.candidate(golden),
                        pair,
                        with_history=lambda batches: after(bench, batches),
                    )

                answers = expected.answers, obtained.answers
                yield Trial(pair.how, pair, golden, answers, suspects, sides=(expected, obtained))

        return judge(self.name, self.sentence, bench, trials(), RUN_TO_RUN_NOISE)


def fresh(bench: Bench, name: str = "from a freshly loaded one", *, as_new: bool = False) -> Way:
    """All rows as one batch, asked of a handler loaded for them.

    Args:
        bench: the bench.
        name: what the way is called.
        as_new: first put what outlives a handler back to what it was before anything was asked.
    """

    def ask(batch: Batch, stages: bool) -> Asked:
        if as_new:
            bench.outliving.restore()
        return loaded_anew(bench, batch, lambda engine: engine.run(batch, stages=stages), stages)

    return Way(name, ask, "with Engine(loaded, profile) as fresh:\n    ANSWERS = fresh.run(rows).to_table()")


def first_and_second(bench: Bench) -> Pair:
    """Rows asked of a fresh handler, and of another one that was asked them just before."""

    def twice(engine: Engine, batch: Batch, stages: bool) -> Result:
        engine.run(batch)
        return engine.run(batch, stages=stages)

    def ask(batch: Batch, stages: bool) -> Asked:
        return loaded_anew(bench, batch, lambda engine: twice(engine, batch, stages), stages)

    code = (
        "with Engine(loaded, profile) as used:\n    used.run(rows)\n    ANSWERS = used.run(rows).to_table()"
    )
    first = fresh(bench, "the first time of a fresh handler")
    return Pair(first, Way("the second time", ask, code), {"repetition": "again"})


def after(bench: Bench, before: Sequence[Batch], name: str = "") -> Pair:
    """Rows asked of a fresh handler at once, and of another one after some batches."""

    def after_those(engine: Engine, batch: Batch, stages: bool) -> Result:
        for earlier in before:
            engine.run(earlier)
        return engine.run(batch, stages=stages)

    def ask(batch: Batch, stages: bool) -> Asked:
        return loaded_anew(bench, batch, lambda engine: after_those(engine, batch, stages), stages)

    code = (
        "with Engine(loaded, profile) as used:\n"
        "    for batch in before:\n"
        "        used.run(batch)\n"
        "    ANSWERS = used.run(rows).to_table()"
    )
    if not name:
        sizes = ", ".join(str(batch.num_rows) for batch in before)
        name = f"after a batch of {sizes}" if len(before) == 1 else f"after batches of {sizes}"
    other = Way(name, ask, code, history=tuple(before))
    return Pair(fresh(bench, "first of a fresh handler", as_new=True), other, {"before": name})


def loaded_anew(bench: Bench, batch: Batch, ask: Callable[[Engine], Result], stages: bool) -> Asked:
    """What a second engine of the bench's handler is asked; an error for every row when it does not load."""
    try:
        with Engine(bench.loaded, replace(bench.engine.profile, exact=False)) as engine:
            return joined([(batch, ask(engine))], stages)
    except StageError as exc:
        reply = {"error": str(exc), "stage": exc.stage, "type": type(exc.__cause__ or exc).__name__}
        return Asked(refused(bench.loaded, batch.num_rows, reply))


def _histories(bench: Bench) -> Iterator[tuple[str, tuple[Batch, ...]]]:
    """What is asked before, by its name; all of it at once first, since a handler may load slowly."""
    edges = spread(bench.edges, _BEFORE_ROWS)
    small = tuple(bench.batch([position]) for position in edges[:4])
    others = (*small, bench.batch(edges), bench.batch([*bench.hostile, *edges[:2]]))
    troubled = tuple(bench.batch([position]) for position in bench.troublesome)
    warm = tuple(bench.batch([0] * size) for size in (1, 8, 33))
    empty = (bench.batch([]),)
    alike = tuple(near_twins(bench.batch(bench.golden), nudge) for nudge in NUDGES)
    turned = (bench.batch(bench.golden[::-1]),)
    yield "after other batches", (*others, *troubled, *warm, *empty, *alike, *turned)
    if not bench.thorough:
        return
    yield "after one other row", small[:1]
    if troubled:
        yield "after a batch that fails", troubled
    yield "after a warm-up with copies of one row", warm
    yield "after an empty batch", empty
    yield "after rows that are nearly the same", alike
