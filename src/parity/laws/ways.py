"""Ways to ask rows, each with the Python that does the same in a notebook; and pairs of them.

A way gives an answer for every row, in the order of the rows, whatever batches it asks them in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.engine import Engine
from parity.result import Result
from parity.stages import Traces, traces
from parity.triage import Side

Places = np.ndarray[Any, np.dtype[np.int64]]


def _nothing() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Asked:
    """What came of asking some rows one way.

    Attributes:
        answers: a row each, see `Result.to_table`.
        traces: what the stages gave for each row, where that was asked for and is known.
        company: the batch that all of them were asked in, where it was one.
        places: the place in `company` of each row.
        fingerprint: the environment that answered, where it is not this process's.
    """

    answers: pa.Table
    traces: Traces | None = None
    company: pa.Table | None = None
    places: tuple[int, ...] = ()
    fingerprint: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Way:
    """One way to ask rows.

    Attributes:
        name: the way in words; `{n}` stands for the number of rows.
        ask: asks rows that way; the flag says whether to keep what the stages give.
        code: Python lines that do so and name what they get ANSWERS; they know `engine`, `loaded`,
            `profile`, `rows`, and `before`, the batches of `history`.
        imports: Python lines that the code needs first.
        history: batches that are asked before the rows.
        again: asks rows of the canonical types that way for triage, where an engine cannot by itself.
    """

    name: str
    ask: Callable[[Batch, bool], Asked]
    code: str = ""
    imports: tuple[str, ...] = ()
    history: tuple[Batch, ...] = ()
    again: Callable[[pa.Table], Side] | None = None


@dataclass(frozen=True)
class Pair:
    """Two ways to ask the same rows.

    Attributes:
        one: the way that is taken to be right.
        other: the way that is tried.
        varied: what is varied between the two, by name.
        why_no_snippet: why no snippet can be written; empty where the ways' code makes one.
        snippet: writes the snippet, given the rows, the column and the row's place, where the ways' code
            in one process is not enough.
    """

    one: Way
    other: Way
    varied: Mapping[str, str] = field(default_factory=_nothing)
    why_no_snippet: str = ""
    snippet: Callable[[Batch, str, int], str] | None = None

    @property
    def how(self) -> str:
        """The two ways in words."""
        return f"{self.one.name}, and {self.other.name}"


def together(engine: Engine, name: str = "in this batch of {n}") -> Way:
    """All rows as one batch."""

    def ask(batch: Batch, stages: bool) -> Asked:
        return joined([(batch, engine.run(batch, stages=stages))], stages)

    return Way(name, ask, "ANSWERS = engine.run(rows).to_table()")


def alone(engine: Engine) -> Way:
    """Each row in a batch of its own."""
    return replace(in_pieces(engine, 1), name="alone")


def in_pieces(engine: Engine, size: int) -> Way:
    """The rows in batches of `size`."""

    def ask(batch: Batch, stages: bool) -> Asked:
        return run_pieces(engine, batch.split(size), stages)

    code = f"ANSWERS = pa.concat_tables([engine.run(piece).to_table() for piece in rows.split({size})])"
    return Way(f"in batches of {size}", ask, code, ("import pyarrow as pa",))


def reordered(engine: Engine, name: str, order: Callable[[int], Places], code: str) -> Way:
    """All rows as one batch in another order; the answers are put back.

    Args:
        engine: whom to ask.
        name: the order in words.
        order: which row comes at each place, for a number of rows.
        code: a Python expression for that, of `len(rows)`.
    """

    def ask(batch: Batch, stages: bool) -> Asked:
        places = order(batch.num_rows)
        moved = batch.take(places)
        return taken(joined([(moved, engine.run(moved, stages=stages))], stages), np.argsort(places))

    lines = f"order = {code}\nANSWERS = engine.run(rows.take(order)).to_table().take(np.argsort(order))"
    return Way(name, ask, lines, ("import numpy as np",))


def run_pieces(engine: Engine, pieces: Sequence[Batch], stages: bool) -> Asked:
    """The rows of several batches, asked one batch after the other."""
    return joined([(piece, engine.run(piece, stages=stages)) for piece in pieces], stages)


def joined(parts: Sequence[tuple[Batch, Result]], stages: bool) -> Asked:
    """What several batches got, one after the other."""
    answers = pa.concat_tables([result.to_table() for _, result in parts])
    one = len(parts) == 1
    company = parts[0][0].to_table() if one else None
    places = tuple(range(answers.num_rows)) if one else ()
    found = Traces.concat([traces(batch, result) for batch, result in parts]) if stages else None
    return Asked(answers, found, company, places)


def taken(asked: Asked, places: Places | Sequence[int]) -> Asked:
    """What the rows at some places got, in that order."""
    rows = np.asarray(places, np.int64)
    answers = asked.answers.take(cast("Any", pa.array(rows)))
    found = None if asked.traces is None else asked.traces.take(rows.tolist())
    kept = tuple(asked.places[row] for row in rows.tolist()) if asked.places else ()
    return Asked(answers, found, asked.company, kept, asked.fingerprint)
