"""Batches and results cross to another process and back without a bit of them changing."""

import pyarrow as pa
import pytest
from hypothesis import given

from parity import load_handler
from parity.batch import Batch
from parity.codec.frames_ipc import decode_batch, decode_result, encode_batch, encode_result
from parity.engine import Engine
from parity.errors import MalformedError
from parity.examples import example_batch
from parity.result import Result, empty_batch
from parity.schema import Schema
from tests.online.serving import LINEAR
from tests.strategies import batches


def same(first: Batch, second: Batch) -> bool:
    """Equal in every bit: NaN, -0.0 and null are what they were."""
    tables = [first.to_table(), second.to_table()]
    streams: list[bytes] = []
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        streams.append(sink.getvalue().to_pybytes())
    return streams[0] == streams[1]


@given(batches())
def test_a_batch_comes_back_as_it_was(batch: Batch):
    found, meta = decode_batch(batch.schema, encode_batch(batch, number=7))
    assert meta["number"] == 7
    assert found.num_rows == batch.num_rows
    assert same(found, batch)


def test_a_result_comes_back_with_its_errors_buckets_and_timings():
    loaded = load_handler(LINEAR)
    rows = example_batch(loaded.inputs, 9)
    table = rows.to_table()
    names = ["reject me" if row in (2, 5) else "raise" if row == 7 else "x" for row in range(9)]
    place = table.column_names.index("name")
    from parity.codec.arrow import decode_table

    batch = decode_table(loaded.inputs, table.set_column(place, "name", pa.array(names))).batch
    with Engine(loaded) as engine:
        result = engine.run(batch)
    found = decode_result(loaded.outputs, encode_result(result))
    assert found.errors == result.errors
    assert len(found.errors) == 3
    assert found.index.tolist() == result.index.tolist()
    assert found.buckets.tolist() == result.buckets.tolist()
    assert found.buckets.dtype == result.buckets.dtype
    assert dict(found.timings) == dict(result.timings)
    assert same(found.outputs, result.outputs)


def test_no_rows_and_no_answers_are_something_too():
    loaded = load_handler(LINEAR)
    empty = empty_batch(loaded.inputs)
    assert decode_batch(loaded.inputs, encode_batch(empty))[0].num_rows == 0
    nothing = Result(0, empty_batch(loaded.outputs), Engine(loaded).__enter__().run(empty).index)
    assert decode_result(loaded.outputs, encode_result(nothing)).num_rows == 0
    assert decode_batch(Schema(), encode_batch(Batch(Schema(), {}, 3)))[0].num_rows == 3


def test_another_schema_is_refused():
    loaded = load_handler(LINEAR)
    with pytest.raises(MalformedError, match="expected"):
        decode_batch(loaded.outputs, encode_batch(example_batch(loaded.inputs, 2)))
