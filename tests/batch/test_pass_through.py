"""Pass-through columns come out as they went in: type and value, bit for bit."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity_batch import Settings, preview, score
from tests.batch.jobs import HANDLERS, ORDERS, orders, read_parts

ROWS = 60
CEST = datetime.timezone(datetime.timedelta(hours=2))


def cycled(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([values[row % len(values)] for row in range(ROWS)], kind)


ZOO: dict[str, pa.Array] = {
    "big_int64": cycled([2**53 + 1, None, 2**63 - 1, -(2**63)], pa.int64()),
    "uint64": cycled([2**64 - 1, 0, None], pa.uint64()),
    "int8": cycled([-128, 127, None], pa.int8()),
    "bool": cycled([True, None, False], pa.bool_()),
    "half": cycled([1.5, None], pa.float16()),
    "float": cycled([float("nan"), -0.0, 1e-45, None], pa.float32()),
    "string": cycled(["", "a\0b", "𝄞", None], pa.string()),
    "large_string": cycled(["", "é", None], pa.large_string()),
    "string_view": cycled(["short", "longer than twelve bytes", None], pa.string_view()),
    "binary": cycled([b"\xff\0", b"", None], pa.binary()),
    "fixed_binary": cycled([b"abcd", None], pa.binary(4)),
    "dictionary": cycled(["red", None, "green"], pa.string()).dictionary_encode(),
    "date": cycled([datetime.date(1582, 10, 4), None], pa.date32()),
    "time": cycled([datetime.time(23, 59, 59, 999999), None], pa.time64("us")),
    "duration": cycled([-1, None, 10**12], pa.duration("ns")),
    "naive": cycled([datetime.datetime(1969, 12, 31, 23, 59), None], pa.timestamp("us")),
    "zoned": cycled([datetime.datetime(2024, 7, 31, tzinfo=CEST), None], pa.timestamp("us", "Europe/Madrid")),
    "nanos": cycled([1, -1, None], pa.timestamp("ns", tz="UTC")),
    "decimal": cycled([decimal.Decimal("-1.000000001"), None], pa.decimal128(38, 9)),
    "decimal256": cycled([decimal.Decimal(10**60), None], pa.decimal256(70, 2)),
    "list": cycled([[1, None], [], None], pa.list_(pa.int16())),
    "large_list": cycled([["x"], None], pa.large_list(pa.string())),
    "fixed_list": cycled([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    "struct": cycled([{"a": 1, "b": [{"c": "x"}]}, {"a": None, "b": None}, None],
                     pa.struct([("a", pa.int64()), ("b", pa.list_(pa.struct([("c", pa.string())])))])),
    "map": cycled([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
    "null": pa.nulls(ROWS),
}  # fmt: skip


def shown(column: pa.ChunkedArray) -> list[str]:
    """The values as texts, which tell NaN from null, -0.0 from 0.0 and one nanosecond from the next."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.int64())
    return [repr(value) for value in column.to_pylist()]


@pytest.mark.parametrize("name", sorted(ZOO))
def test_a_column_of_this_type_comes_out_as_it_went_in(tmp_path: Path, name: str) -> None:
    table = orders(ROWS).append_column("passed", ZOO[name])
    quantity = [666 if row in (5, 58) else row for row in range(ROWS)]
    table = table.set_column(2, "quantity", pa.array(quantity))
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=17)
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["passed"], settings=Settings(batch_rows=11))
    given = pq.ParquetFile(tmp_path / "in" / "a.parquet").read().column("passed")
    found = read_parts(tmp_path / "out").column("passed")
    assert found.type == given.type
    assert shown(found) == shown(given)
    failed = pq.ParquetFile(tmp_path / "out" / "_errors" / "part-00000-u00000.parquet").read()
    assert failed.column("passed").type == given.type
    assert shown(failed.column("passed")) == [shown(given)[5], shown(given)[58]]


def test_nullability_and_field_metadata_are_kept(tmp_path: Path) -> None:
    field = pa.field("passed", pa.int64(), nullable=False, metadata={"unit": "km"})
    table = orders(ROWS).append_column(field, pa.array(range(ROWS)))
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["passed"])
    found = read_parts(tmp_path / "out").schema.field("passed")
    assert not found.nullable
    assert (found.metadata or {})[b"unit"] == b"km"


def test_an_input_column_can_be_passed_through_too(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(orders(ROWS), tmp_path / "in" / "a.parquet")
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["quantity", "note"])
    scored = read_parts(tmp_path / "out")
    assert scored.column_names[:2] == ["quantity", "note"]
    assert scored.column("quantity").to_pylist() == orders(ROWS).column("quantity").to_pylist()


@pytest.mark.parametrize("columns", [(), ("country",)])
def test_passing_a_column_through_leaves_the_default_of_its_field_alone(
    tmp_path: Path, columns: tuple[str, ...]
) -> None:
    (tmp_path / "in").mkdir()
    given = pa.table({"weight": [1.0, None, 3.0], "country": ["FR", "FR", "ES"]})
    pq.write_table(given, tmp_path / "in" / "a.parquet")
    pq.write_table(given.select(["weight"]), tmp_path / "in" / "b.parquet")
    score(tmp_path / "in", tmp_path / "out", HANDLERS / "shipping", columns=columns)
    scored = read_parts(tmp_path / "out")
    assert scored.column("cost").to_pylist() == [7.0, None, 6.0, 2.0, None, 6.0]
    failed = [pq.ParquetFile(path).read() for path in sorted((tmp_path / "out" / "_errors").iterdir())]
    assert pa.concat_tables(failed).column("country").to_pylist() == ["FR", None]
    if columns:
        assert scored.column("country").to_pylist() == ["FR", "FR", "ES", None, None, None]
    mapped = preview(tmp_path / "in", HANDLERS / "shipping", columns=columns)
    assert (mapped.sample_rows, mapped.sample_row_errors) == (6, 2)
