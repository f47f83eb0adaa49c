"""Laws of failing and of nothing: rows that fail keep to themselves, and an empty batch is no event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.codec import rows as row_codec
from parity.codec.rows import RowDecoder
from parity.errors import RowError
from parity.laws.bench import Bench
from parity.laws.composition import noise_name
from parity.laws.forms import WIRES
from parity.laws.outcome import LawOutcome
from parity.laws.trials import Trial, all_of, judge, suspect_company
from parity.laws.ways import Asked, Pair, Way, alone, joined, taken, together

_TROUBLE: Final = 4
_UNKNOWN_KEY: Final = {"no such field": 1}


class FailingRows:
    """Rows that fail or are rejected, among others, and rows that do not fit the schema."""

    name = "failing-rows"
    sentence = "a row that fails harms no other row, and fails the same way in any company"

    def check(self, bench: Bench) -> LawOutcome:
        """Put failing rows in front of, among, behind and all around golden ones; and send unfit rows."""
        trouble = _trouble(bench)
        golden = [row for row in bench.golden if bench.errors[row] is None]

        def trials() -> Iterator[Trial]:
            for how, batch in _mixtures(golden, trouble):
                pair = Pair(alone(bench.engine), together(bench.engine), {"neighbour": "a failing row"})
                expected = bench.expected.take(pa.array(batch, pa.int64()))
                places = list(range(len(batch)))
                suspects = suspect_company(bench, pair, [batch], [places])
                yield Trial(f"as reference, and {how}", pair, batch, (expected, bench.run(batch)), suspects)
            unfit = Pair(together(bench.engine), among_unfit(bench), {"neighbour": "a row that does not fit"})
            told = [row for row in bench.golden if _can_be_told(bench, row)]
            if told:
                batch = bench.batch(told)
                answers = bench.ask(batch), unfit.other.ask(batch, False).answers
                yield Trial(unfit.how, unfit, told, answers, all_of(bench, told, unfit))

        outcome = judge(self.name, self.sentence, bench, trials(), lambda: noise_name(bench))
        if trouble or outcome.verdict == "broken":
            return outcome
        none = f"no row fails here: {len(bench.judged)} were tried, so only unfit rows were"
        return replace(outcome, detail=f"{outcome.detail}; {none}" if outcome.detail else none)


class EmptyBatch:
    """A batch of no rows, in every form; and the rows after it."""

    name = "empty-batch"
    sentence = "an empty batch gets an empty answer of the declared types, and changes nothing"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask an empty batch, in this process and in each wire form, and the golden rows after it."""
        engine = bench.engine
        empty = bench.batch([])
        expected = bench.reference.to_table()
        wrong: list[str] = []
        asked = 0
        for name, send in {"as columns": None, **WIRES}.items():
            answers = (engine.run(empty) if send is None else engine.score(send(empty))).to_table()
            asked += 1
            if answers.num_rows or answers.schema != expected.schema:
                wrong.append(f"{name}: {answers.num_rows} rows of {answers.schema}")
        if wrong:
            detail = f"an empty batch gets another answer than an empty one: {'; '.join(wrong)}"
            return LawOutcome(self.name, self.sentence, "broken", asked, len(wrong), detail)

        def after_empty(batch: Batch, stages: bool) -> Asked:
            engine.run(empty)
            return joined([(batch, engine.run(batch, stages=stages))], stages)

        code = "engine.run(rows.slice(0, 0))\nANSWERS = engine.run(rows).to_table()"
        pair = Pair(
            together(engine), Way("after an empty batch", after_empty, code), {"before": "an empty batch"}
        )

        def trials() -> Iterator[Trial]:
            answers = expected, pair.other.ask(bench.batch(bench.golden), False).answers
            yield Trial(pair.how, pair, bench.golden, answers, all_of(bench, bench.golden, pair))

        outcome = judge(self.name, self.sentence, bench, trials(), "other bits after an empty batch")
        return replace(outcome, detail=f"{asked} empty batches answered; {outcome.detail}")


def among_unfit(bench: Bench) -> Way:
    """The rows as JSON objects, with objects between them that do not fit the schema."""

    def ask(batch: Batch, stages: bool) -> Asked:
        told = row_codec.loads(row_codec.dumps(row_codec.encode_rows(batch, non_finite="string")))
        mixed: list[Any] = [_UNKNOWN_KEY]
        for row in told:
            mixed += [row, _UNKNOWN_KEY]
        decoded = RowDecoder(batch.schema).decode(mixed)
        result = bench.engine.score(decoded)
        places = np.arange(batch.num_rows) * 2 + 1
        del stages  # what the stages give is of the fitting rows alone
        return taken(Asked(result.to_table()), places)

    code = (
        'mixed = [{"no such field": 1}]\n'
        'for row in loads(dumps(encode_rows(rows, non_finite="string"))):\n'
        '    mixed += [row, {"no such field": 1}]\n'
        "decoded = RowDecoder(loaded.inputs).decode(mixed)\n"
        "ANSWERS = engine.score(decoded).to_table().take(list(range(1, len(mixed), 2)))"
    )
    imports = (
        "from parity.codec.rows import RowDecoder",
        "from parity.codec.rows import dumps, encode_rows, loads",
    )
    return Way("among rows that do not fit the schema", ask, code, imports)


def _trouble(bench: Bench) -> list[int]:
    """Judged rows that fail or are rejected, each in a way of its own."""
    found: dict[tuple[str, str], int] = {}
    for position, error in enumerate(bench.errors):
        if error is not None:
            found.setdefault((error["kind"], str(error["message"])[:40]), position)
    return list(found.values())[:_TROUBLE]


def _mixtures(golden: list[int], trouble: list[int]) -> Iterator[tuple[str, list[int]]]:
    if not trouble:
        return
    for row in trouble:
        yield "with one failing row in front", [row, *golden]
        yield "with one failing row behind", [*golden, row]
    middle = len(golden) // 2
    yield "with failing rows in the middle", [*golden[:middle], *trouble, *golden[middle:]]
    mixed = [row for pair in zip(golden, trouble * len(golden), strict=False) for row in pair]
    if mixed:
        yield "with a failing row after each", mixed
    yield "with failing rows alone", [*trouble, *trouble]


def _can_be_told(bench: Bench, row: int) -> bool:
    return not isinstance(row_codec.encode_rows(bench.batch([row]), non_finite="string")[0], RowError)
