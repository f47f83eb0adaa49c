"""Batches of any size become batches of one size, bounded in bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.codec.arrow_sizes import decoded_bytes, row_bytes
from parity.codec.rebatch import rebatch


@given(sizes=st.lists(st.integers(0, 40), max_size=8), rows=st.integers(1, 30))
def test_every_micro_batch_but_the_last_is_full_and_no_row_is_lost(sizes: list[int], rows: int) -> None:
    table = pa.table({"x": range(sum(sizes))})
    batches: list[pa.RecordBatch] = []
    start = 0
    for size in sizes:
        piece = table.slice(start, size).to_batches()
        batches += piece or [pa.record_batch({"x": pa.array([], pa.int64())})]
        start += size
    found = list(rebatch(batches, rows))
    assert [batch.num_rows for batch in found[:-1]] == [rows] * (len(found) - 1)
    assert [value for batch in found for value in batch.column(0).to_pylist()] == list(range(sum(sizes)))


def test_micro_batches_are_cut_short_by_bytes_and_no_row_is_lost() -> None:
    sizes = [10, 900, 900, 5000, 1, 1, 1, 400, 400, 400]
    table = pa.table({"id": range(len(sizes)), "text": ["x" * size for size in sizes]})
    found = list(rebatch(table.to_batches(max_chunksize=4), 6, most_bytes=1000))
    assert [row for batch in found for row in batch.column(0).to_pylist()] == list(range(10))
    assert all(batch.num_rows == 1 or batch.nbytes <= 1000 for batch in found)
    assert 5 <= len(found) <= 7


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.int64(), pa.string_view()], ids=str)
def test_a_dictionary_is_cut_where_its_plain_values_are(kind: Any) -> None:
    values = [str(row % 7) * (row % 7 * 90) or "0" for row in range(200)]
    plain = pa.array(range(200) if kind == pa.int64() else values).cast(kind)
    plain = pa.concat_arrays([plain, pa.nulls(9, kind), plain])
    words = plain.cast(pa.string() if kind == pa.string_view() else kind).dictionary_encode()
    found = [
        [batch.num_rows for batch in rebatch([pa.record_batch({"x": column})], 50, most_bytes=9000)]
        for column in (plain, words)
    ]
    assert sum(found[1]) == 409
    assert max(len(found[0]), len(found[1])) < 409 / 10
    assert abs(len(found[0]) - len(found[1])) <= 2


def nested(words: Any, shape: str) -> Any:
    """Words, one for each row, inside a list, a struct, a fixed list or a map."""
    count = len(words)
    offsets: Any = pa.array(range(count + 1), pa.int32())
    if shape == "list":
        return pa.ListArray.from_arrays(offsets, words)
    if shape == "fixed":
        return pa.FixedSizeListArray.from_arrays(words, 1)
    if shape == "struct":
        return pa.StructArray.from_arrays([words], ["word"])
    keys = pa.array(["k"] * count)
    return pa.MapArray.from_arrays(offsets, keys, words)


@pytest.mark.parametrize("shape", ["list", "fixed", "struct", "map"])
def test_a_dictionary_inside_another_value_is_measured_by_its_plain_values(shape: str) -> None:
    plain = pa.array(["x" * 1000 if row % 2 else "y" for row in range(200)])
    found = [
        [batch.num_rows for batch in rebatch([pa.record_batch({"x": nested(words, shape)})], 200, 20_000)]
        for words in (plain, plain.dictionary_encode())
    ]
    assert found[0] == found[1]
    assert 6 <= len(found[1]) <= 12, "100 kB in batches of at most 20 kB"


def test_a_value_that_no_row_of_a_dictionary_has_is_not_counted() -> None:
    words = pa.DictionaryArray.from_arrays(
        pa.array([None, 1, None], pa.int8()), pa.array(["x" * 10_000, "y"])
    )
    assert decoded_bytes(words) < 100
    inside = nested(words, "list")
    assert decoded_bytes(inside.slice(1, 1)) < 100


def test_rows_of_a_slice_are_measured_by_their_own_values() -> None:
    rows = pa.array([["a"], None, ["b" * 5000, "c"], []], pa.list_(pa.string()))
    assert decoded_bytes(rows.slice(2)) > 5000 > 100 > decoded_bytes(rows.slice(0, 2))
    pairs = pa.array([[("k", "v" * 5000)], None, [("k", "v")]], pa.map_(pa.string(), pa.string()))
    assert decoded_bytes(pairs.slice(0, 1)) > 5000 > 100 > decoded_bytes(pairs.slice(1))


def test_empty_batches_between_others_change_no_cut() -> None:
    x = pa.array(range(100))
    full = pa.record_batch({"x": x})
    pieces = [full.slice(0, 7), full.slice(7, 0), full.slice(7, 30), full.slice(37, 0), full.slice(37)]
    found = list(rebatch(pieces, 10, most_bytes=1000))
    assert [batch.num_rows for batch in found] == [10] * 10
    assert pa.Table.from_batches(found).column("x").to_pylist() == x.to_pylist()


_VALUES: list[Any] = ["", "ab", None, "abcd", None, "x" * 70]
_LISTS: list[Any] = [None if value is None else [1.0] * len(value) for value in _VALUES]
_KINDS: dict[str, Any] = {
    "string": pa.array(_VALUES, pa.string()),
    "large_string": pa.array(_VALUES, pa.large_string()),
    "binary": pa.array(_VALUES).cast(pa.binary()),
    "large_binary": pa.array(_VALUES).cast(pa.large_binary()),
    "list": pa.array(_LISTS, pa.list_(pa.float32())),
    "large_list": pa.array(_LISTS, pa.large_list(pa.float32())),
    "list_view": pa.array(_LISTS, pa.list_view(pa.float32())),
    "dictionary": pa.array(_VALUES).dictionary_encode(),
}


@pytest.mark.parametrize("kind", _KINDS)
def test_sizes_of_rows_follow_the_values_in_slices_too(kind: str) -> None:
    each = 4 if "list" in kind else 1
    expected = [4.0 + each * len(value or "") for value in _VALUES]
    for start, count in ((0, 6), (1, 4), (2, 1), (5, 1), (3, 0)):
        found = row_bytes(_KINDS[kind].slice(start, count))
        assert np.asarray(found).tolist() == expected[start : start + count]


def test_what_lies_under_a_null_is_not_counted() -> None:
    seen: Any = pa.array([True, False, True])
    whole: Any = pa.array(["ab", "hidden", "c"])
    array = pa.Array.from_buffers(pa.string(), 3, [seen.buffers()[1], *whole.buffers()[1:]])
    assert array.to_pylist() == ["ab", None, "c"]
    assert np.asarray(row_bytes(array)).tolist() == [6, 4, 5]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()])
@pytest.mark.parametrize("values", [[], ["a"], ["", "bcd", "e"], [None, None], ["a", None, "bcd"]])
def test_texts_are_as_large_together_as_row_by_row(kind: pa.DataType, values: list[str | None]) -> None:
    whole: Any = pa.array(["x" * 7, *values, None, "yy"], pa.string()).cast(kind)
    for array in (whole, whole.slice(1, len(values)), pa.array(values, pa.string()).cast(kind)):
        assert decoded_bytes(array) == np.sum(row_bytes(array))
