"""Divergences to diagnose: of two handlers, of a row and its batch, of values put together by hand."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from parity import Engine, Handler
from parity.codec.arrow import decode_table
from parity.compare import Tolerances
from parity.result import ERROR_COLUMN, ERROR_TYPE
from parity.stages import Traces, traces
from parity.triage import Diagnosis, Divergence, Side, Stage, diagnose
from parity.triage.case import Case, Explained
from parity.triage.catalogue import suspect_named
from parity.triage.checks import compare_stages
from parity.triage.trials import Trials


def table_of(handler: type[Handler], rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows in a handler's canonical types."""
    schema = handler.inputs.to_arrow()
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def taken(rows: pa.Table, places: Sequence[int]) -> pa.Table:
    return rows.take(pa.array(list(places), pa.int64()))


def side_of(engine: Engine, batch: pa.Table, places: Sequence[int], name: str = "one way") -> Side:
    """Some rows' answers in a batch."""
    asked = decode_table(engine.loaded.inputs, batch).batch
    result = engine.run(asked, stages=True)
    found = traces(asked, result).take(list(places))
    return Side(name, taken(result.to_table(), places), found, {}, batch, tuple(places))


@contextlib.contextmanager
def against(
    reference: type[Handler], handler: type[Handler], rows: pa.Table, law: str = "golden"
) -> Generator[tuple[Divergence, Engine]]:
    """What `reference` answers, and what `handler` does, with an engine of the latter."""
    every = range(rows.num_rows)
    with Engine(reference) as engine:
        expected = side_of(engine, rows, every, "as recorded")
    with Engine(handler) as engine:
        obtained = side_of(engine, rows, every, "in this process")
        yield Divergence(law, rows, expected, obtained), engine


@contextlib.contextmanager
def in_batch(
    handler: type[Handler], batch: pa.Table, place: int, law: str = "batch-size"
) -> Generator[tuple[Divergence, Engine]]:
    """A row alone, and in a batch."""
    row = batch.slice(place, 1)
    with Engine(handler) as engine:
        alone, together = side_of(engine, row, [0], "alone"), side_of(engine, batch, [place], "together")
        yield Divergence(law, row, alone, together), engine


@contextlib.contextmanager
def asked_again(
    handler: type[Handler], rows: pa.Table, history: Sequence[pa.Table] = (), law: str = "repeatable"
) -> Generator[tuple[Divergence, Engine]]:
    """Rows the first time, and again after other batches, of one handler."""
    every = range(rows.num_rows)
    with Engine(handler) as engine:
        first = side_of(engine, rows, every, "at first")
        for batch in history:
            side_of(engine, batch, [])
        again = side_of(engine, rows, every, "again")
        yield Divergence(law, rows, first, again, history=tuple(history)), engine


def columns(**values: Any) -> pa.Table:
    """A table of these columns."""
    return pa.table({name: pa.array(list(column)) for name, column in values.items()})


def by_hand(
    expected: Any,
    obtained: Any,
    inputs: pa.Table | None = None,
    stage: Stage = "preprocess",
    law: str = "golden",
) -> Divergence:
    """Rows whose values at one place of one stage are these, on two sides that were not asked.

    Later stages differ wherever these values do, earlier ones do not.
    """
    rows = inputs if inputs is not None else pa.table({"row": list(range(len(expected)))})
    sides: list[Side] = []
    first = [np.asarray(value) for value in expected]
    for values in (first, [np.asarray(value) for value in obtained]):
        scores = [0.0 if np.array_equal(one, two) else 1.0 for one, two in zip(first, values, strict=True)]
        preprocess = {"value": values if stage == "preprocess" else first}
        inference = {"value": values} if stage == "inference" else {"value": [np.asarray(x) for x in scores]}
        answers = pa.table({"score": pa.array(scores), ERROR_COLUMN: pa.nulls(len(scores), ERROR_TYPE)})
        sides.append(Side("by hand", answers, Traces(rows, preprocess, inference, answers)))
    return Divergence(law, rows, sides[0], sides[1])


def examined(name: str, divergence: Divergence, engine: Engine | None = None) -> Any:
    """What comes of examining one cause."""
    compared = compare_stages(divergence, Tolerances())
    case = Case(divergence, compared, None if engine is None else Trials(engine))
    suspect = suspect_named(name)
    return suspect.examine(case) if case.group in suspect.groups else None


def claims(name: str, divergence: Divergence, engine: Engine | None = None) -> Diagnosis:
    """Assert that the diagnosis is this cause; the diagnosis."""
    found = diagnose(divergence, engine=engine)
    ruled_out = "\n".join(f"{item.name}: {item.why}" for item in found.ruled_out)
    assert found.cause is not None, f"{found.summary()}\n{ruled_out}"
    assert found.cause.name == name, f"{found.summary()}\n{ruled_out}"
    assert found.cause.evidence
    assert found.cause.sentence
    assert found.cause.remedy
    return found


def denies(name: str, divergence: Divergence, engine: Engine | None = None) -> str:
    """Assert that a cause is not claimed; why it is ruled out, if it was tried."""
    found = examined(name, divergence, engine)
    assert not isinstance(found, Explained), found.evidence
    return "" if found is None else found.why
