"""The laws. Each is a small class with a name, a sentence, and a way to try it.

Natural float noise (a matrix product of another size adds in another order) is told apart from dependence by
the tolerance, and is called by its name. The order, in which a broken law explains the later ones, is fixed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.codec.decoded import Decoded
from parity.compare import Tolerances
from parity.engine import Engine
from parity.errors import ConfigError, InputMutatedError, RunnerError, did_you_mean
from parity.laws.bench import Answers, Bench, spread
from parity.laws.outcome import LawOutcome
from parity.laws.trials import Trial, fewest_in_company, fewest_of, judge
from parity.laws.wires import WIRES, carried_rows, runner_trials
from parity.registry import Runner

_Places = np.ndarray[Any, np.dtype[np.int64]]

BATCH_SIZES = (1, 2, 3, 7, 16, 33)
_OVERLAPPED_ROWS = 16
_NEIGHBOURED_ROWS = 6
_NEIGHBOURED_EDGES = 16
_WIRE_NOISE = "other bits by another form, or in a runner's own batches"
_BATCH_NOISE = "natural float noise of batch shapes"


class Law(Protocol):
    """What an answer must not depend on."""

    @property
    def name(self) -> str:
        """How reports and `--law` call it."""
        ...

    @property
    def sentence(self) -> str:
        """What it says."""
        ...

    def check(self, bench: Bench) -> LawOutcome:
        """Try the law; it holds only when answers were compared."""
        ...


class Repeatable:
    """The same batch asked again, and asked of a freshly loaded handler."""

    name = "repeatable"
    sentence = "the same batch gets the same answers again, also from a freshly loaded handler"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask all rows three times, then once of a second handler; the rows must stay as they are."""
        bench.check_unwritten(bench.judged)
        first = bench.run(bench.judged)

        def again(positions: list[int]) -> Answers:
            return bench.run(positions), bench.run(positions)

        def fresh(positions: list[int]) -> Answers:
            expected = bench.run(positions)
            with Engine(bench.loaded, bench.engine.profile) as engine:
                return expected, engine.run(bench.batch(positions)).to_table()

        def trials() -> Iterator[Trial]:
            for how, ask in (
                ("the first time, and again", again),
                ("from this handler, and from a freshly loaded one", fresh),
            ):
                for _ in range(2 if ask is again else 1):
                    fewest = fewest_of(bench, bench.judged, ask, how)
                    yield Trial(how, bench.judged, (first, ask(bench.judged)[1]), fewest)

        return judge(self.name, self.sentence, bench, trials(), "not repeatable to the bit")


class BatchSize:
    """Rows asked in batches of other sizes, and while other batches are under way."""

    name = "batch-size"
    sentence = (
        "the answer for a row does not depend on how many rows are asked at once, or on batches under way"
    )

    def check(self, bench: Bench) -> LawOutcome:
        """Ask all rows in batches of 1, 2, 3, 7, 16 and 33, and all at once; some with stages overlapped."""

        def overlapped(positions: list[int]) -> Answers:
            alone = pa.concat_tables([bench.run([position]) for position in positions])
            return alone, bench.run_overlapped(positions)

        def trials() -> Iterator[Trial]:
            judged = bench.judged
            for size in [*(size for size in BATCH_SIZES if size < len(judged)), len(judged)]:
                pieces = [judged[start : start + size] for start in range(0, len(judged), size)]
                obtained = pa.concat_tables([bench.run(piece) for piece in pieces])
                fewest = fewest_in_company(bench, pieces, [list(range(len(piece))) for piece in pieces])
                yield Trial(f"in batches of {size}", judged, (bench.expected, obtained), fewest)
            some = spread(judged, _OVERLAPPED_ROWS)
            how = "one by one, and with the stages of {n} batches overlapped"
            yield Trial(how, some, overlapped(some), fewest_of(bench, some, overlapped, how))

        return judge(self.name, self.sentence, bench, trials(), _BATCH_NOISE)


class Neighbours:
    """Rows asked beside hostile ones: zeros, extremes, NaN, null, empty, longest, rejected, failing."""

    name = "neighbours"
    sentence = "the answer for a row does not depend on the rows beside it"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask golden rows six at a time and some edge rows alone, with a hostile row in front and behind."""

        def trials() -> Iterator[Trial]:
            golden = bench.golden
            edges = spread(bench.judged[len(golden) :], _NEIGHBOURED_EDGES)
            asked = [*golden, *edges]
            expected = _at(bench.expected, np.asarray(asked, np.int64))
            starts = range(0, len(golden), _NEIGHBOURED_ROWS)
            chunks = [golden[start : start + _NEIGHBOURED_ROWS] for start in starts]
            chunks += [[edge] for edge in edges]
            for hostile in [*bench.hostile, *bench.troublesome]:
                batches = [[hostile, *chunk, hostile] for chunk in chunks]
                obtained = [bench.run(batch).slice(1, len(batch) - 2) for batch in batches]
                places = [list(range(1, len(batch) - 1)) for batch in batches]
                fewest = fewest_in_company(bench, batches, places)
                how = f"beside {bench.labels[hostile]}"
                yield Trial(how, asked, (expected, pa.concat_tables(obtained)), fewest)

        return judge(self.name, self.sentence, bench, trials(), _BATCH_NOISE)


class Order:
    """The same rows in another order, and one row at every place."""

    name = "order"
    sentence = "the answer for a row does not depend on its place in the batch or on the order of the others"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask all rows reversed, rotated and shuffled twice; then batches of one row repeated."""
        straight = bench.run(bench.judged)

        def permuted(permute: Callable[[int], _Places], positions: list[int]) -> Answers:
            order = permute(len(positions))
            answers = bench.run([positions[place] for place in order])
            return bench.run(positions), _at(answers, np.argsort(order))

        def copies(positions: list[int]) -> Answers:
            answers = bench.run(positions)
            return _at(answers, np.zeros(len(positions), np.int64)), answers

        def trials() -> Iterator[Trial]:
            for name, permute in _PERMUTATIONS.items():
                how = f"in this order, and {name}"

                def ask(positions: list[int], permute: Callable[[int], _Places] = permute) -> Answers:
                    return permuted(permute, positions)

                fewest = fewest_of(bench, bench.judged, ask, how)
                yield Trial(how, bench.judged, (straight, ask(bench.judged)[1]), fewest)
            for position in bench.golden[:3]:
                for size in (2, 16, 33):
                    batch = [position] * size
                    how = "in the first place, and in another one, of {n} copies"
                    yield Trial(how, batch, copies(batch), fewest_of(bench, batch, copies, how))

        return judge(self.name, self.sentence, bench, trials(), _BATCH_NOISE)


class WireForm:
    """Rows sent in each wire form."""

    name = "wire-form"
    sentence = "the answer for a row does not depend on the form that it is sent in"

    def check(self, bench: Bench) -> LawOutcome:
        """Send the rows as JSON rows, V2 JSON and Arrow IPC, and through runners in each of their forms."""
        carried = carried_rows(bench)
        straight = bench.run(carried)

        def trials() -> Iterator[Trial]:
            for wire, send in WIRES.items():
                how = f"as columns, and as {wire}"

                def ask(positions: list[int], send: Callable[[Batch], Decoded] = send) -> Answers:
                    sent = send(bench.batch(positions))
                    return bench.run(positions), bench.engine.score(sent).to_table()

                yield Trial(how, carried, (straight, ask(carried)[1]), fewest_of(bench, carried, ask, how))
            yield from runner_trials(bench, carried)

        return judge(self.name, self.sentence, bench, trials(), _WIRE_NOISE)


LAWS: tuple[Law, ...] = (Repeatable(), BatchSize(), Neighbours(), Order(), WireForm())


def laws_named(names: Sequence[str] | None) -> tuple[Law, ...]:
    """The laws of these names, all for None; raises ConfigError with near names for an unknown one."""
    if names is None:
        return LAWS
    known = {law.name: law for law in LAWS}
    for name in names:
        if name not in known:
            raise ConfigError(f"no law {name!r}; {did_you_mean(name, known)}")
    return tuple(law for law in LAWS if law.name in names)


def check_laws(
    engine: Engine,
    batch: Batch,
    *,
    laws: Sequence[Law] = LAWS,
    labels: Sequence[str] | None = None,
    tolerances: Tolerances | None = None,
    runners: Sequence[Runner] = (),
) -> list[LawOutcome]:
    """Try laws on rows and on edge rows made from the schema; an outcome for each law.

    Args:
        engine: an entered engine; its profile is the one that is tried.
        batch: rows of the handler's input schema.
        laws: the laws, all by default.
        labels: a name for each row.
        tolerances: what is still noise; handler.toml's by default.
        runners: runners that the wire-form law sends the rows through.

    Raises:
        ConfigError: there are no rows.
    """
    if batch.num_rows == 0:
        raise ConfigError(f"handler {engine.loaded.name}: no rows to try the laws on")
    bench = Bench(engine, batch, labels=labels, tolerances=tolerances, runners=runners)
    outcomes: list[LawOutcome] = []
    with _failures_unlogged():
        for law in laws:
            try:
                outcomes.append(law.check(bench))
            except RunnerError as exc:
                outcomes.append(LawOutcome(law.name, law.sentence, "broken", 0, detail=str(exc)))
            except InputMutatedError as exc:
                outcomes.append(LawOutcome(law.name, law.sentence, "broken", 0, detail=str(exc)))
                break
    why = "not tried: the handler writes into its inputs"
    untried = laws[len(outcomes) :]
    return [*outcomes, *(LawOutcome(law.name, law.sentence, "nothing", 0, detail=why) for law in untried)]


@contextmanager
def _failures_unlogged() -> Generator[None]:
    """Keep the engine from logging the failures that the laws provoke on purpose."""
    logger = logging.getLogger("parity.engine")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _at(answers: pa.Table, places: _Places) -> pa.Table:
    return answers.take(cast("Any", places))


def _reversed(rows: int) -> _Places:
    return np.arange(rows)[::-1]


def _rotated(rows: int) -> _Places:
    return np.roll(np.arange(rows), 1)


def _shuffled(rows: int) -> _Places:
    return np.random.default_rng(rows).permutation(rows)


def _shuffled_again(rows: int) -> _Places:
    return np.random.default_rng(rows + 1).permutation(rows)


_PERMUTATIONS: dict[str, Callable[[int], _Places]] = {
    "reversed": _reversed,
    "rotated by one place": _rotated,
    "shuffled": _shuffled,
    "shuffled again": _shuffled_again,
}
