"""Columns: numpy, Arrow, torch and Python views of the same values; immutable."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parity.batch import Batch
from parity.column import Column, python_values
from parity.errors import SchemaError
from parity.schema import (
    BFLOAT16,
    BFloat16,
    Bool,
    Date,
    Decimal,
    Field,
    Float16,
    Float32,
    Image,
    Int8,
    Int64,
    List,
    String,
    Struct,
    Tensor,
    Timestamp,
)
from tests.codec.identity import same
from tests.strategies import batches

NULLS = Column(Int64(nullable=True), arrow=pa.array([1, None, 2**53 + 1]))


def assert_equal_rows(got: Column, want: list[Any]) -> None:
    assert len(got) == len(want)
    assert all(same(a, b) for a, b in zip(got.to_pylist(), want, strict=True))


def test_a_column_tells_its_bytes_in_the_form_it_has():
    assert Column(Int64(), numpy=np.arange(6)).slice(1, 4).nbytes == 24
    assert NULLS.nbytes == pa.array([1, None, 2**53 + 1]).nbytes
    assert Column(String(), arrow=pa.array(["abc", ""])).nbytes >= 3


@pytest.mark.parametrize(
    ("field", "given", "text"),
    [
        (Int64(), {}, "exactly one of arrow and numpy"),
        (Int64(), {"arrow": pa.array([1]), "numpy": np.array([1])}, "exactly one of arrow and numpy"),
        (Int64(), {"arrow": pa.array([1], pa.int8())}, "needs Arrow type int64, got int8"),
        (Int64(), {"numpy": np.array([1], np.int8)}, "needs numpy dtype int64"),
        (Int64(), {"numpy": np.array([[1]])}, "rows of shape ()"),
        (String(), {"numpy": np.array(["a"])}, "needs numpy dtype None"),
        (Tensor("int8", (2,)), {"numpy": np.zeros((1, 3), np.int8)}, "rows of shape (2,)"),
    ],
)
def test_a_column_takes_canonical_forms_only(field: Field, given: dict[str, Any], text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Column(field, **given)
    assert text in str(caught.value)


def test_numpy_is_a_read_only_view() -> None:
    own = np.arange(6, dtype=np.float32).reshape(3, 2)
    column = Column(Tensor("float32", (2,)), numpy=own)
    assert np.shares_memory(column.numpy(), own)
    with pytest.raises(ValueError, match="read-only"):
        column.numpy()[0, 0] = 1
    own[0, 0] = 7  # the owner still may
    assert np.shares_memory(column.arrow.flatten().to_numpy(), own)  # type: ignore[attr-defined]
    back = Column(Tensor("float32", (2,)), arrow=column.arrow.slice(1))
    assert back.numpy().tolist() == [[2, 3], [4, 5]]
    assert np.shares_memory(back.numpy(), own)


def test_numpy_refuses_nulls_and_names_a_row() -> None:
    with pytest.raises(
        SchemaError, match=r"row 1 is null \(rows that are: 1\) in a column of Int64 or null: numpy has no"
    ):
        NULLS.numpy()
    assert NULLS.valid.tolist() == [True, False, True]
    assert not NULLS.valid.flags.writeable
    assert NULLS.null_count == 1
    assert Column(Int64(), numpy=np.array([1])).valid.tolist() == [True]


@pytest.mark.parametrize(
    ("field", "array", "dtype"),
    [
        (Bool(), pa.array([True, False]), np.bool_),
        (Float16(), pa.array([0.5], pa.float16()), np.float16),
        (BFloat16(), pa.array([0.5], pa.float32()), BFLOAT16),
        (Timestamp(tz="Asia/Tokyo"), pa.array([-1], pa.timestamp("us", "Asia/Tokyo")), np.dtype("M8[us]")),
        (Date(), pa.array([-1], pa.date32()), np.dtype("M8[D]")),
        (String(), pa.array(["a"]), object),
        (Tensor("bool", (1,)), pa.array([[True]], Tensor("bool", (1,)).arrow_type), np.bool_),
        (Tensor("bfloat16", (1,)), pa.array([[0.5]], Tensor("bfloat16", (1,)).arrow_type), BFLOAT16),
        (Int64(), pa.array([], pa.int64()), np.int64),
        (Int64(), pa.Array.from_buffers(pa.int64(), 0, [None, None]), np.int64),
    ],
)
def test_numpy_has_the_fields_dtype(field: Field, array: Any, dtype: Any) -> None:
    values = Column(field, arrow=array).numpy()
    assert values.dtype == dtype
    assert len(values) == len(array)


def test_variable_tensors_come_as_arrays() -> None:
    field = Tensor("int8", (None, 2), nullable=True)
    column = Column(field, arrow=pa.array([[1, 2], None, [], [3, 4, 5, 6]], field.arrow_type).slice(1))
    arrays = column.arrays()
    assert [None if array is None else array.tolist() for array in arrays] == [None, [], [[3, 4], [5, 6]]]
    assert arrays[1] is not None
    assert arrays[1].shape == (0, 2)
    assert not arrays[1].flags.writeable
    with pytest.raises(SchemaError, match=r"differ in shape; use \.arrays\(\)"):
        column.slice(1, 3).numpy()
    with pytest.raises(SchemaError, match=r"arrays\(\) is for Tensor columns"):
        NULLS.arrays()


def test_torch_tensors_are_new_aligned_memory() -> None:
    own = np.arange(6, dtype=np.float32).reshape(3, 2)
    column = Column(Tensor("float32", (2,)), numpy=own)
    for rows in (column, column.slice(1, 3), column.take([2, 0])):
        tensor = rows.torch()
        assert tensor.data_ptr() % 64 == 0
        assert tensor.tolist() == rows.numpy().tolist()
        tensor[:] = 0
    assert own.sum() == 15
    assert Column(BFloat16(), numpy=np.array([0.5], BFLOAT16)).torch().dtype == torch.bfloat16
    assert Column(Bool(), numpy=np.array([True])).torch().dtype == torch.bool
    assert Column(Date(), numpy=np.array([-1], "M8[D]")).torch().tolist() == [-1]
    with pytest.raises(SchemaError, match="has no tensor dtype"):
        Column(String(), arrow=pa.array(["a"])).torch()
    with pytest.raises(SchemaError, match="numpy has no null"):
        NULLS.torch()


def test_fill_null_gives_a_column_without_nulls() -> None:
    filled = NULLS.fill_null(7)
    assert filled.to_pylist() == [1, 7, 2**53 + 1]
    assert not filled.field.nullable
    assert Column(Int64(nullable=True), arrow=pa.array([1])).fill_null(0).field == Int64()
    assert NULLS.fill_null(np.int8(7)).to_pylist()[1] == 7
    halves = Column(BFloat16(nullable=True), arrow=pa.array([None], pa.float32()))
    assert halves.fill_null(0.1).numpy().tolist() == [BFLOAT16.type(0.1)]
    assert halves.fill_null(0.1).arrow.to_pylist() == [float(BFLOAT16.type(0.1))]
    floats = Column(Float32(nullable=True), arrow=pa.array([None], pa.float32()))
    assert np.isnan(floats.fill_null(float("nan")).numpy()[0])
    assert floats.fill_null(1).to_pylist() == [1.0]
    times = Column(Timestamp(tz="UTC", nullable=True), arrow=pa.array([None], pa.timestamp("us", "UTC")))
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert times.fill_null(np.datetime64(0, "s")).to_pylist() == [epoch]
    assert times.fill_null(epoch).to_pylist() == [epoch]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (Int64(nullable=True), 1.5),
        (Int64(nullable=True), 1.0),
        (Int64(nullable=True), True),
        (Int64(nullable=True), "x"),
        (Int8(nullable=True), 128),
        (Float32(nullable=True), True),
        (Float32(nullable=True), 1e39),
        (String(nullable=True), 1),
        (Timestamp(nullable=True), np.datetime64("NaT")),
        (Timestamp(unit="s", nullable=True), np.datetime64(1, "ms")),
        (Timestamp(tz="UTC", nullable=True), datetime.datetime(1970, 1, 1)),
        (Timestamp(nullable=True), datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)),
    ],
)
def test_fill_null_takes_no_value_that_would_be_changed(field: Field, value: Any) -> None:
    column = Column(field, arrow=pa.array([None], field.arrow_type))
    with pytest.raises(SchemaError, match="does not fit"):
        column.fill_null(value)


def test_fill_null_is_for_scalars() -> None:
    with pytest.raises(SchemaError, match="fill_null is for scalar columns"):
        Column(List(Int8(), nullable=True), arrow=pa.array([None], List(Int8()).arrow_type)).fill_null([])


def test_python_values_of_times_that_python_does_not_know() -> None:
    ticks = pa.array([0, 253402300800, None], pa.timestamp("s", "UTC"))
    field = Timestamp(unit="s", tz="UTC", nullable=True)
    values = Column(field, arrow=ticks).to_pylist()
    assert values == [
        datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
        np.datetime64("10000-01-01T00:00:00"),
        None,
    ]
    assert python_values(field, ticks, zoned_as_text=True)[1] == "10000-01-01T00:00:00Z"
    nanos = List(Timestamp(unit="ns"))
    assert Column(nanos, arrow=pa.array([[5]], nanos.arrow_type)).to_pylist() == [[np.datetime64(5, "ns")]]
    days = Column(Date(), arrow=pa.array([2**31 - 1, 0], pa.date32())).to_pylist()
    assert days == [np.datetime64(2**31 - 1, "D"), datetime.date(1970, 1, 1)]


def test_python_values_of_nested_tensors_have_their_shape() -> None:
    field = List(Struct(x=Tensor("int8", (1, 2)), nullable=True))
    arrow = pa.array([[{"x": [1, 2]}, None], []], field.arrow_type)
    first, second = Column(field, arrow=arrow).to_pylist()
    assert first[0]["x"].shape == (1, 2)
    assert first[1] is None
    assert second == []


def test_items_iteration_and_arrays_protocol() -> None:
    assert list(NULLS) == [1, None, 2**53 + 1]
    assert NULLS[-1] == 2**53 + 1
    assert NULLS[1] is None
    with pytest.raises(IndexError, match="row 3 of a column of 3 rows"):
        NULLS[3]
    column = Column(Int64(), numpy=np.array([1, 2]))
    assert np.asarray(column).tolist() == [1, 2]
    assert np.array(column, dtype=np.float32).dtype == np.float32
    assert np.array(column).flags.writeable
    assert repr(column) == "Column(Int64, 2 rows)"


def test_images_as_arrays_are_tensors() -> None:
    field = Image(form="array")
    row = {"data": [1, 2, 3], "shape": [1, 1, 3]}
    assert Column(field, arrow=pa.array([row], field.arrow_type)).arrays()[0].shape == (1, 1, 3)  # type: ignore[union-attr]


def test_objects_columns_in_numpy() -> None:
    lists = Column(List(Int8()), arrow=pa.array([[1, 2], [3, 4]], List(Int8()).arrow_type)).numpy()
    assert lists.shape == (2,)
    assert lists[0] == [1, 2]
    decimals = Column(Decimal(), arrow=pa.array([1], pa.decimal128(38, 0))).numpy()
    assert decimals.dtype == object


def columns_of(batch: Batch) -> list[Column]:
    return list(batch.values())


@pytest.mark.slow
@given(batches(), st.data())
def test_slicing_and_taking_agree_with_python_lists(batch: Batch, data: st.DataObject) -> None:
    rows = batch.num_rows
    start = data.draw(st.integers(0, rows))
    stop = data.draw(st.integers(0, rows))
    picks = data.draw(st.lists(st.integers(0, rows - 1), max_size=6)) if rows else []
    for column in columns_of(batch):
        values = column.to_pylist()
        assert_equal_rows(column.slice(start, stop), values[start:stop])
        assert_equal_rows(column.take(picks), [values[pick] for pick in picks])
        assert_equal_rows(column.slice(start, rows).take(list(range(rows - start))), values[start:])
        assert_equal_rows(Column.concat([column.slice(0, start), column.slice(start, rows)]), values)
        if rows:
            assert same(column[rows - 1], values[-1])


@pytest.mark.slow
@given(batches())
def test_numpy_and_arrow_forms_agree(batch: Batch) -> None:
    for column in columns_of(batch):
        if column.field.row_shape is None or column.null_count:
            continue
        again = Column(column.field, numpy=column.numpy().copy())
        assert again.arrow.type == column.field.arrow_type
        again.arrow.validate(full=True)
        assert_equal_rows(again, column.to_pylist())
        assert_equal_rows(Column.concat([again, column]), column.to_pylist() * 2)
