"""Laws of the batch's composition: alone, how many, beside whom, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.compare import Comparison
from parity.laws.bench import Bench, spread
from parity.laws.explanation import Suspect
from parity.laws.outcome import LawOutcome
from parity.laws.trials import Suspects, Trial, all_of, judge, suspect_company
from parity.laws.ways import Asked, Pair, Places, Way, alone, joined, reordered, taken, together
from parity.result import ERROR_COLUMN

BATCH_SHAPE_NOISE: Final = "batch-shape noise"
NO_SHAPE_NOISE: Final = "no batch-shape noise: it depends on the values of the rows beside"

_NEIGHBOURED_ROWS, _NEIGHBOURED_EDGES = 6, 16
_LARGER_SIZES: Final = (100, 257)


class SingleRow:
    """Golden rows asked alone."""

    name = "single-row"
    sentence = "a row that gets an answer among others gets one alone"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask each golden row alone; where all are answered in company, none may fail."""
        pair = Pair(together(bench.engine), alone(bench.engine), {"batch size": "1"})
        golden = bench.golden if len(bench.golden) > 1 else [0, 0]
        company = bench.reference.to_table() if len(bench.golden) > 1 else bench.run(golden)
        single = bench.alone.take(pa.array(golden, pa.int64()))

        def trials() -> Iterator[Trial]:
            how = "in a batch of {n}, and alone"
            yield Trial(how, pair, golden, (company, single), all_of(bench, golden, pair), (ERROR_COLUMN,))

        return judge(self.name, self.sentence, bench, trials(), "")


class BatchSize:
    """Rows asked in batches of other sizes."""

    name = "batch-size"
    sentence = "the answer for a row does not depend on how many rows are asked at once"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask all rows in batches of 1, 2, 3, 7, 16 and 33, and all at once."""

        def trials() -> Iterator[Trial]:
            judged = bench.judged
            sizes = [size for size in bench.sizes if size < len(judged)]
            for size in [*sizes, len(judged)]:
                if size == 1 and bench.failing_alone:
                    continue  # the law of the single row tells it
                pieces = [judged[start : start + size] for start in range(0, len(judged), size)]
                answers = (
                    bench.alone if size == 1 else pa.concat_tables([bench.run(piece) for piece in pieces])
                )
                pair = Pair(alone(bench.engine), together(bench.engine), {"batch size": str(size)})
                places = [list(range(len(piece))) for piece in pieces]
                suspects = suspect_company(bench, pair, pieces, places)
                yield Trial(
                    f"as reference, and in batches of {size}",
                    pair,
                    judged,
                    (bench.expected, answers),
                    suspects,
                )
            for size in _LARGER_SIZES if bench.thorough else ():
                batch = [bench.golden[row % len(bench.golden)] for row in range(size)]
                places = [list(range(size))]
                pair = Pair(alone(bench.engine), together(bench.engine), {"batch size": str(size)})
                answers = _at(bench.expected, np.asarray(batch)), bench.run(batch)
                suspects = suspect_company(bench, pair, [batch], places)
                yield Trial(
                    f"as reference, and repeated to a batch of {size}", pair, batch, answers, suspects
                )

        return judge(self.name, self.sentence, bench, trials(), lambda: noise_name(bench))


class Neighbours:
    """Rows asked beside hostile ones: zeros, extremes, NaN, null, empty, longest, rejected, failing."""

    name = "neighbours"
    sentence = "the answer for a row does not depend on the rows beside it"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask golden rows by six and some edge rows alone, between ordinary and between hostile rows."""
        golden = bench.golden
        edges = spread(bench.edges, _NEIGHBOURED_EDGES)
        asked = [*golden, *edges]
        starts = range(0, len(golden), _NEIGHBOURED_ROWS)
        chunks = [golden[start : start + _NEIGHBOURED_ROWS] for start in starts]
        chunks += [[edge] for edge in edges]

        def beside(neighbours: Sequence[int]) -> tuple[list[list[int]], pa.Table]:
            batches = [[row, *chunk, row] for row, chunk in zip(neighbours, chunks, strict=True)]
            return batches, pa.concat_tables([bench.run(batch).slice(1, len(batch) - 2) for batch in batches])

        def trials() -> Iterator[Trial]:
            ordinary, expected = beside([golden[(chunk[-1] + 1) % len(golden)] for chunk in chunks])
            for hostile in [*bench.hostile, *bench.troublesome]:
                batches, obtained = beside([hostile] * len(chunks))
                places = [list(range(1, len(batch) - 1)) for batch in batches]
                label = bench.labels[hostile]
                varied = {"neighbour": label.removeprefix("neighbour: ")}
                pair = Pair(alone(bench.engine), together(bench.engine), varied)
                near, far = (suspect_company(bench, pair, asked, places) for asked in (batches, ordinary))
                how = f"beside ordinary rows, and beside {label}"
                yield Trial(how, pair, asked, (expected, obtained), _either(near, far))

        return judge(self.name, self.sentence, bench, trials(), lambda: noise_name(bench))


class Order:
    """The same rows in another order, and one row at every place."""

    name = "order"
    sentence = "the answer for a row does not depend on its place in the batch or on the order of the others"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask all rows reversed, rotated and shuffled twice; then batches of one row repeated."""
        engine, judged = bench.engine, bench.judged
        straight = bench.run(judged)

        def trials() -> Iterator[Trial]:
            for name, (order, code) in _ORDERS.items():
                pair = Pair(
                    together(engine, "in this order"), reordered(engine, name, order, code), {"order": name}
                )
                obtained = pair.other.ask(bench.batch(judged), False).answers
                yield Trial(pair.how, pair, judged, (straight, obtained), all_of(bench, judged, pair))
            for position in bench.golden[:3]:
                for size in (2, 16, 33):
                    batch = [position] * size
                    pair = Pair(
                        _first_place(bench), together(engine, "in another one"), {"place": str(size - 1)}
                    )
                    answers = bench.run(batch)
                    first = _at(answers, np.zeros(size, np.int64))
                    how = "in the first place, and in another one, of {n} copies"
                    yield Trial(how, pair, batch, (first, answers), all_of(bench, batch, pair))

        return judge(self.name, self.sentence, bench, trials(), lambda: noise_name(bench))


def _either(*several: Suspects) -> Suspects:
    """Look in one place after the other."""

    def suspects(comparison: Comparison) -> Iterator[Suspect]:
        for some in several:
            yield from some(comparison)

    return suspects


def noise_name(bench: Bench) -> str:
    """What a difference within tolerance is called: natural noise is blind to the values of neighbours."""
    return BATCH_SHAPE_NOISE if bench.noise_floor.natural else NO_SHAPE_NOISE


def _first_place(bench: Bench) -> Way:
    """Every row gets the answer of the row in the first place; for batches of copies."""

    def ask(batch: Batch, stages: bool) -> Asked:
        found = joined([(batch, bench.engine.run(batch, stages=stages))], stages)
        return taken(found, np.zeros(batch.num_rows, np.int64))

    code = "ANSWERS = engine.run(rows).to_table().take([0] * len(rows))"
    return Way("in the first place", ask, code)


def _at(answers: pa.Table, places: Places) -> pa.Table:
    return answers.take(cast("Any", pa.array(places)))


def _reversed(rows: int) -> Places:
    return np.arange(rows)[::-1]


def _rotated(rows: int) -> Places:
    return np.roll(np.arange(rows), 1)


def _shuffled(rows: int) -> Places:
    return np.random.default_rng(rows).permutation(rows)


def _shuffled_again(rows: int) -> Places:
    return np.random.default_rng(rows + 1).permutation(rows)


_ORDERS: Final[dict[str, tuple[Callable[[int], Places], str]]] = {
    "reversed": (_reversed, "np.arange(len(rows))[::-1]"),
    "rotated by one place": (_rotated, "np.roll(np.arange(len(rows)), 1)"),
    "shuffled": (_shuffled, "np.random.default_rng(len(rows)).permutation(len(rows))"),
    "shuffled again": (_shuffled_again, "np.random.default_rng(len(rows) + 1).permutation(len(rows))"),
}
