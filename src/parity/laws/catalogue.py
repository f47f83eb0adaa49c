"""The laws. Each is a small class with a name, a sentence, and a way to try it.

Natural float noise (a matrix product of another size adds in another order) is told apart from dependence by
the tolerance, and is called by its name. The order, in which a broken law explains the later ones, is fixed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.codec import arrow, oip, rows
from parity.codec.decoded import Decoded
from parity.compare import Comparison, Tolerances
from parity.engine import Engine
from parity.errors import ConfigError, InputMutatedError, RowError, RunnerError, did_you_mean
from parity.laws.bench import Answers, Bench, spread
from parity.laws.outcome import Counterexample, LawOutcome, summed
from parity.registry import Runner

_Places = np.ndarray[Any, np.dtype[np.int64]]

BATCH_SIZES = (1, 2, 3, 7, 16, 33)
_NEIGHBOURED_ROWS = 6
_NEIGHBOURED_EDGES = 16
_TRIED_ROWS = 8
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


@dataclass(frozen=True)
class _Trial:
    """One pair of ways to ask rows, and how to find the fewest that differ."""

    how: str
    answers: Answers
    fewest: Callable[[Comparison], Counterexample | None]


class Repeatable:
    """The same batch asked again, and asked of a freshly loaded handler."""

    name = "repeatable"
    sentence = "the same batch gets the same answers again, also from a freshly loaded handler"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask all rows three times, then once of a second handler."""
        first = bench.run(bench.judged)

        def again(positions: list[int]) -> Answers:
            return bench.run(positions), bench.run(positions)

        def fresh(positions: list[int]) -> Answers:
            expected = bench.run(positions)
            with Engine(bench.loaded, bench.engine.profile) as engine:
                return expected, engine.run(bench.batch(positions)).to_table()

        def trials() -> Iterator[_Trial]:
            for how, ask in (
                ("the first time, and again", again),
                ("from this handler, and from a freshly loaded one", fresh),
            ):
                for _ in range(2 if ask is again else 1):
                    fewest = _fewest(bench, bench.judged, ask, how)
                    yield _Trial(how, (first, ask(bench.judged)[1]), fewest)

        return _judge(self, bench, trials(), "not repeatable to the bit")


class BatchSize:
    """Rows asked in batches of other sizes."""

    name = "batch-size"
    sentence = "the answer for a row does not depend on how many rows are asked at once"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask all rows in batches of 1, 2, 3, 7, 16 and 33, and all at once."""

        def trials() -> Iterator[_Trial]:
            judged = bench.judged
            for size in [*(size for size in BATCH_SIZES if size < len(judged)), len(judged)]:
                pieces = [judged[start : start + size] for start in range(0, len(judged), size)]
                obtained = pa.concat_tables([bench.run(piece) for piece in pieces])
                fewest = _fewest_in_company(bench, pieces, [list(range(len(piece))) for piece in pieces])
                yield _Trial(f"in batches of {size}", (bench.expected, obtained), fewest)

        return _judge(self, bench, trials(), _BATCH_NOISE)


class Neighbours:
    """Rows asked beside hostile ones: zeros, extremes, NaN, null, empty, longest, rejected, failing."""

    name = "neighbours"
    sentence = "the answer for a row does not depend on the rows beside it"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask golden rows six at a time and some edge rows alone, with a hostile row in front and behind."""

        def trials() -> Iterator[_Trial]:
            golden = bench.golden
            edges = spread(bench.judged[len(golden) :], _NEIGHBOURED_EDGES)
            expected = _at(bench.expected, np.asarray([*golden, *edges], np.int64))
            starts = range(0, len(golden), _NEIGHBOURED_ROWS)
            chunks = [golden[start : start + _NEIGHBOURED_ROWS] for start in starts]
            chunks += [[edge] for edge in edges]
            for hostile in [*bench.hostile, *bench.troublesome]:
                batches = [[hostile, *chunk, hostile] for chunk in chunks]
                obtained = [bench.run(batch).slice(1, len(batch) - 2) for batch in batches]
                places = [list(range(1, len(batch) - 1)) for batch in batches]
                fewest = _fewest_in_company(bench, batches, places)
                how = f"beside {bench.labels[hostile]}"
                yield _Trial(how, (expected, pa.concat_tables(obtained)), fewest)

        return _judge(self, bench, trials(), _BATCH_NOISE)


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

        def trials() -> Iterator[_Trial]:
            for name, permute in _PERMUTATIONS.items():
                how = f"in this order, and {name}"

                def ask(positions: list[int], permute: Callable[[int], _Places] = permute) -> Answers:
                    return permuted(permute, positions)

                fewest = _fewest(bench, bench.judged, ask, how)
                yield _Trial(how, (straight, ask(bench.judged)[1]), fewest)
            for position in bench.golden[:3]:
                for size in (2, 16, 33):
                    batch = [position] * size
                    how = "in the first place, and in another one, of {n} copies"
                    yield _Trial(how, copies(batch), _fewest(bench, batch, copies, how))

        return _judge(self, bench, trials(), _BATCH_NOISE)


class WireForm:
    """Rows sent in each wire form."""

    name = "wire-form"
    sentence = "the answer for a row does not depend on the form that it is sent in"

    def check(self, bench: Bench) -> LawOutcome:
        """Send the rows as JSON rows, V2 JSON and Arrow IPC, and through runners in each of their forms."""
        carried = _carried(bench)
        straight = bench.run(carried)

        def trials() -> Iterator[_Trial]:
            for wire, send in _WIRES.items():
                how = f"as columns, and as {wire}"

                def ask(positions: list[int], send: Callable[[Batch], Decoded] = send) -> Answers:
                    sent = send(bench.batch(positions))
                    return bench.run(positions), bench.engine.score(sent).to_table()

                yield _Trial(how, (straight, ask(carried)[1]), _fewest(bench, carried, ask, how))
            yield from _runner_trials(bench, carried)

        return _judge(self, bench, trials(), "other bits by another wire form")


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


def _judge(law: Law, bench: Bench, trials: Iterator[_Trial], noise: str) -> LawOutcome:
    """Compare trial after trial; the first divergent one ends it, shrunk to the fewest rows."""
    done: list[Comparison] = []
    for trial in trials:
        comparison = bench.compare(*trial.answers)
        if comparison.verdict != "divergent":
            done.append(comparison)
            continue
        example = trial.fewest(comparison)
        pairs = comparison.rows + sum(earlier.rows for earlier in done)
        detail = f"{trial.how.format(n=comparison.rows)}: {comparison.summary()}"
        outcome = LawOutcome(law.name, law.sentence, "broken", pairs, len(comparison.differing_rows), detail)
        return replace(outcome, worst_ulp=comparison.worst_ulp, counterexample=example)
    return summed(law.name, law.sentence, done, noise)


def _fewest(
    bench: Bench, positions: list[int], ask: Callable[[list[int]], Answers], how: str
) -> Callable[[Comparison], Counterexample | None]:
    """Shrink by asking fewer rows in the same two ways; all of them where that loses the difference."""

    def find(comparison: Comparison) -> Counterexample | None:
        example = bench.smallest(positions, ask, how)
        return example or bench.counterexample(positions, comparison, how.format(n=len(positions)))

    return find


def _fewest_in_company(
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
        return bench.counterexample(bench.judged, comparison, "as reference, and in this batch")

    return find


def _carried(bench: Bench) -> list[int]:
    """The judged rows that JSON can tell: the row, and its answer, which may hold NaN that JSON refuses."""
    result = bench.engine.run(bench.batch(bench.judged))
    sent = rows.encode_rows(bench.batch(bench.judged), non_finite="string")
    mute = {position for position, row in enumerate(sent) if isinstance(row, RowError)}
    answers = rows.encode_rows(result.outputs)
    mute |= {int(result.index[place]) for place, row in enumerate(answers) if isinstance(row, RowError)}
    return [position for position in bench.judged if position not in mute]


def _runner_trials(bench: Bench, carried: list[int]) -> Iterator[_Trial]:
    for runner in bench.runners:
        table = bench.batch(carried).to_table()
        for wire in runner.wire_forms:
            result = runner.replay(
                bench.loaded.ref, table, bench.engine.profile, app_dir=bench.loaded.app_dir, wire=wire
            )
            how = f"in this process, and through the {runner.name} runner as {wire}"
            answers = bench.run(carried), result.to_table()

            def fewest(comparison: Comparison, how: str = how) -> Counterexample | None:
                example = bench.counterexample(carried, comparison, how)
                return None if example is None else example.only_row()

            yield _Trial(how, answers, fewest)


def _by_json_rows(batch: Batch) -> Decoded:
    text = rows.dumps(rows.encode_rows(batch, non_finite="string"))
    return rows.RowDecoder(batch.schema).decode(rows.loads(text))


def _by_v2(batch: Batch) -> Decoded:
    return oip.decode_request(batch.schema, oip.encode_request(batch)).decoded


def _by_arrow_ipc(batch: Batch) -> Decoded:
    return arrow.decode_table(batch.schema, arrow.decode_ipc(arrow.encode_ipc(batch.to_table())))


_WIRES: dict[str, Callable[[Batch], Decoded]] = {
    "JSON rows": _by_json_rows,
    "V2 JSON": _by_v2,
    "Arrow IPC": _by_arrow_ipc,
}


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
