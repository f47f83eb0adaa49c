"""What is captured comes back with the same bits, whatever the field types are."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.batch import Batch
from parity.capture import Origin, Scored, read_capture
from parity.codec.arrow import decode_table
from parity.errors import RowError
from parity.result import Result
from parity.schema import Schema
from tests.capture.recording import inputs_of, part_writer
from tests.codec.identity import assert_same_bits
from tests.strategies import batches


@st.composite
def answered(draw: st.DrawFn) -> tuple[Batch, Result]:
    """A batch of any schema, and answers of any other for some of its rows."""
    inputs, answers = draw(batches(most=5)), draw(batches(most=3))
    if answers.num_rows > inputs.num_rows:
        answers = answers.slice(0, inputs.num_rows)
    good = sorted(draw(st.permutations(range(inputs.num_rows)))[: answers.num_rows])
    errors = [
        RowError(row, draw(st.sampled_from(("rejected", "failed"))), f"row {row}", stage="inference")
        for row in range(inputs.num_rows)
        if row not in good
    ]
    buckets = np.full(len(good), 16, np.int32)
    return inputs, Result(inputs.num_rows, answers, np.array(good, np.int64), tuple(errors), buckets=buckets)


def answers_of(table: pa.Table, schema: Schema) -> Batch:
    """The recorded answers of the rows that have one, decoded."""
    good = table.filter(table.column("_error").is_null())
    columns = [good.column(f"output.{name}") for name in schema.names]
    return decode_table(schema, pa.Table.from_arrays(columns, names=list(schema.names))).batch


@pytest.mark.slow
@settings(max_examples=40)
@given(answered())
def test_every_value_comes_back_with_its_bits(pair: tuple[Batch, Result]):
    batch, result = pair
    with tempfile.TemporaryDirectory() as folder:
        writer = part_writer(folder, inputs=batch.schema, outputs=result.outputs.schema)
        shares = [(Origin(f"r{row}", "oip", 10**18 + row, 1.0), (7,), 1) for row in range(batch.num_rows)]
        scored = Scored(batch, result, shares, number=3, finished=1.5)
        writer.add(scored)
        writer.add(scored)
        assert writer.flush()
        if not batch.num_rows:
            assert not list(Path(folder).rglob("*.parquet"))
            return
        capture = read_capture(folder)
        (part,) = capture.parts
        pieces = list(capture.read(part, rows=3))
    table = pa.concat_tables(pieces)
    assert table.num_rows == part.meta.rows == 2 * batch.num_rows
    first = table.slice(0, batch.num_rows)
    assert_same_bits(inputs_of(first, batch.schema), batch)
    assert_same_bits(answers_of(first, result.outputs.schema), result.outputs)
    errors = [row and (row["kind"], row["message"]) for row in column(first, "_error")]
    wanted: list[Any] = [None] * batch.num_rows
    for error in result.errors:
        wanted[error.row] = (error.kind, error.message)
    assert errors == wanted
    assert column(first, "_request_id") == [f"r{row}" for row in range(batch.num_rows)]
    assert column(first, "_position") == list(range(batch.num_rows))
    assert first.column("_time").cast(pa.int64()).to_pylist() == [
        10**18 + row for row in range(batch.num_rows)
    ]
    assert_same_bits(inputs_of(table.slice(batch.num_rows), batch.schema), batch)


def column(table: pa.Table, name: str) -> list[Any]:
    return table.column(name).to_pylist()
