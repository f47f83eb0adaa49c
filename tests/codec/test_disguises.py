"""The same values in every layout that Arrow has for them, and beside rows that do not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.batch import Batch
from parity.codec import frames
from parity.codec.arrow import decode_ipc, decode_table, encode_ipc
from parity.schema import Field, Schema, Struct
from tests.codec.identity import assert_same_bits
from tests.strategies import batches

pa: Any = pyarrow
BATCHES = batches()

pytestmark = pytest.mark.slow


def disguised(array: Any, draw: Any) -> Any:
    """The same values, nulls included, in another layout."""
    kind = array.type
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return disguised_list(array, draw)
    if pa.types.is_struct(kind):
        members = [disguised(member, draw) for member in array.flatten()]
        names = [kind.field(at).name for at in range(kind.num_fields)]
        order = draw(st.permutations(range(len(names)))) if names != ["data", "shape"] else range(2)
        return pa.StructArray.from_arrays(
            [members[at] for at in order], names=[names[at] for at in order], mask=array.is_null()
        )
    if pa.types.is_string(kind):
        array = array.cast(draw(st.sampled_from([pa.string(), pa.large_string(), pa.string_view()])))
    elif pa.types.is_binary(kind):
        array = array.cast(draw(st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()])))
    elif pa.types.is_timestamp(kind) and kind.tz is not None:
        array = array.cast(pa.timestamp(kind.unit, draw(st.sampled_from(["UTC", "Asia/Tokyo", "-03:00"]))))
    elif pa.types.is_integer(kind) or pa.types.is_float16(kind) or pa.types.is_float32(kind):
        wide = {"u": pa.uint64(), "i": pa.int64()}.get(str(kind)[0], pa.float64())
        array = array.cast(draw(st.sampled_from([kind, wide])))
    if (
        draw(st.booleans())
        and not pa.types.is_string_view(array.type)
        and not pa.types.is_binary_view(array.type)
    ):
        array = array.dictionary_encode()
    return array


def disguised_list(array: Any, draw: Any) -> Any:
    items = disguised(array.flatten(), draw)
    lengths = [length or 0 for length in pa.compute.list_value_length(array).to_pylist()]
    ends = np.cumsum([0, *lengths])
    make = draw(st.sampled_from([pa.ListArray, pa.LargeListArray]))
    offsets = pa.array(ends, pa.int32() if make is pa.ListArray else pa.int64())
    return make.from_arrays(offsets, items, mask=array.is_null())


@given(BATCHES, st.data())
def test_layouts_do_not_matter(batch: Batch, data: st.DataObject) -> None:
    arrays = {name: disguised(column.arrow, data.draw) for name, column in batch.items()}
    table = pa.table({**arrays, "more": pa.nulls(batch.num_rows)})
    decoded = decode_table(batch.schema, table)
    assert decoded.errors == ()
    assert_same_bits(decoded.batch, batch)
    streamed = decode_table(batch.schema, decode_ipc(encode_ipc(table.slice(0))))
    assert_same_bits(streamed.batch, batch)


def required(field: Field) -> Field:
    """The field without null."""
    if isinstance(field, Struct):
        return Struct(**cast("Any", field.members))
    return replace(field, nullable=False)


@pytest.mark.parametrize("form", ["arrow", "pandas", "polars", "arrays", "rows"])
@given(data=st.data())
def test_a_null_where_none_belongs_is_its_rows_error_alone(form: str, data: st.DataObject) -> None:
    batch = data.draw(BATCHES)
    like = {"pandas": pd.DataFrame(), "polars": pl.DataFrame(), "arrays": {}, "rows": []}.get(
        form, pa.table({})
    )
    schema = Schema(**{name: required(field) for name, field in batch.schema.items()})
    frame = frames.encode(like, batch.to_table())
    decoded = frames.decode(schema, frame)
    valid = np.all([column.valid for column in batch.values()], axis=0)
    assert decoded.num_rows == batch.num_rows
    assert decoded.index.tolist() == np.flatnonzero(valid).tolist()
    assert [error.row for error in decoded.errors] == np.flatnonzero(~valid).tolist()
    for error in decoded.errors:
        assert error.kind == "invalid"
        assert not batch[str(error.field)].valid[error.row]
        assert "null is not allowed here" in error.message
    good = batch.take(decoded.index)
    for name in schema.names:
        ours, theirs = decoded.batch[name].to_pylist(), good[name].to_pylist()
        assert len(ours) == len(theirs)
        assert repr(ours) == repr(theirs)
