"""Files whose schemas differ are read as one where no value can change, and else refused by name."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.errors import DatasetError
from parity.registry import load_handler
from parity_batch import Settings, footers, score
from parity_batch.layout import wider
from parity_batch.plan import make_plan
from tests.batch.jobs import ORDERS, contents, expected_total, orders, read_parts

WORDS = pa.dictionary(pa.int32(), pa.string())
EXACT: list[tuple[Any, Any, Any, list[Any]]] = [
    (pa.int32(), pa.int64(), pa.int64(), [-(2**31), 2**31 - 1, None]),
    (pa.uint32(), pa.int64(), pa.int64(), [0, 2**32 - 1]),
    (pa.float32(), pa.float64(), pa.float64(), [0.1, -0.0, None]),
    (pa.int32(), pa.float64(), pa.float64(), [-(2**31), 2**31 - 1]),
    (pa.int16(), pa.float32(), pa.float32(), [-(2**15), 2**15 - 1]),
    (pa.string(), pa.large_string(), pa.large_string(), ["", "é", None]),
    (pa.string_view(), pa.string(), pa.string(), ["", "é", None, "longer than a view holds inline"]),
    (pa.string_view(), pa.large_string(), pa.large_string(), ["", "é", None]),
    (pa.binary_view(), pa.binary(), pa.binary(), [b"", b"\xff", None]),
    (WORDS, pa.string(), pa.string(), ["a", None, "a"]),
    (pa.null(), pa.int64(), pa.int64(), [None]),
    (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC"),
     [datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC), None]),
    (pa.decimal128(5, 2), pa.decimal128(10, 4), pa.decimal128(10, 4), [decimal.Decimal("999.99")]),
]  # fmt: skip
INEXACT: list[tuple[Any, Any]] = [
    (pa.int64(), pa.float64()),
    (pa.int32(), pa.float32()),
    (pa.uint64(), pa.int64()),
    (pa.string(), pa.int64()),
    (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Madrid")),
    (pa.decimal128(38, 0), pa.decimal128(38, 9)),
    (pa.list_(pa.int32()), pa.list_(pa.int64())),
    (pa.string(), pa.binary()),
]


def write(folder: Path, name: str, column: pa.Array | None, *, first: int = 0) -> pa.Table:
    table = orders(3 if column is None else len(column), first)
    if column is not None:
        table = table.append_column("passed", column)
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / f"{name}.parquet")
    return table


@pytest.mark.parametrize(("narrow", "wide", "joined", "values"), EXACT, ids=lambda item: str(item)[:30])
@pytest.mark.parametrize("turned", [False, True])
def test_types_that_hold_the_same_values_become_one(
    tmp_path: Path, narrow: Any, wide: Any, joined: Any, values: list[Any], turned: bool
) -> None:
    assert wider(narrow, wide) == wider(wide, narrow) == joined
    write(tmp_path / "in", "b" if turned else "a", pa.array(values, narrow))
    write(tmp_path / "in", "a" if turned else "b", pa.array([None, None], wide))
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["passed"])
    found = read_parts(tmp_path / "out").column("passed")
    assert found.type == joined
    expected = pa.array(values, narrow).to_pylist()
    assert found.to_pylist() == ([None, None, *expected] if turned else [*expected, None, None])


@pytest.mark.parametrize(("one", "other"), INEXACT, ids=str)
def test_types_that_do_not_are_refused_and_the_first_file_that_differs_is_named(
    tmp_path: Path, one: Any, other: Any
) -> None:
    assert wider(one, other) is None
    assert wider(other, one) is None
    for name, kind in (("a", one), ("b", one), ("c", other), ("d", other)):
        write(tmp_path, name, pa.nulls(2, kind))
    with pytest.raises(DatasetError) as caught:
        make_plan([tmp_path], load_handler(ORDERS), ["passed"])
    here, there = (pq.read_schema(tmp_path / f"{name}.parquet").field("passed").type for name in "ca")
    assert f"c.parquet: pass-through column 'passed' is {here}, and {there} in a.parquet" in str(caught.value)


END_OF_TIME = datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC)
NOW = datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("turned", [False, True])
def test_times_that_nanoseconds_may_not_hold_are_not_made_nanoseconds(
    tmp_path: Path, unit: Any, statistics: bool, turned: bool
) -> None:
    fine = orders(2).append_column("passed", pa.array([NOW, None], pa.timestamp("ns", "UTC")))
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(fine, folder / ("b.parquet" if turned else "a.parquet"))
    coarse = folder / ("a.parquet" if turned else "b.parquet")
    near = pa.array([NOW, None], pa.timestamp(unit, "UTC"))
    pq.write_table(orders(2).append_column("passed", near), coarse, write_statistics=statistics)
    if statistics:
        score(folder, tmp_path / "out", ORDERS, columns=["passed"])
        assert read_parts(tmp_path / "out").column("passed").to_pylist() == [NOW, None, NOW, None]
        far = pa.array([NOW, END_OF_TIME], pa.timestamp(unit, "UTC"))
        pq.write_table(orders(2).append_column("passed", far), coarse)
    with pytest.raises(DatasetError) as caught:
        score(folder, tmp_path / "other", ORDERS, columns=["passed"])
    assert f"{coarse.name}: column 'passed' is timestamp[{unit}, tz=UTC]" in str(caught.value)
    assert "damaged" not in str(caught.value)
    assert not (tmp_path / "other").exists()


def test_a_value_that_the_wider_type_does_not_hold_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in", "a", pa.array([END_OF_TIME], pa.timestamp("us", "UTC")))
    write(tmp_path / "in", "b", pa.array([NOW], pa.timestamp("ns", "UTC")))
    monkeypatch.setattr(footers, "_within_nanoseconds", lambda metadata, name: True)  # type: ignore[misc]
    with pytest.raises(
        DatasetError, match=r"a\.parquet: column 'passed' .* cannot hold its values"
    ) as caught:
        score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["passed"])
    assert "damaged" not in str(caught.value)


def test_a_column_that_a_file_lacks_is_null_there_and_noted(tmp_path: Path) -> None:
    write(tmp_path / "in", "a", pa.array([1, 2]))
    write(tmp_path / "in", "b", None)
    summary = score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["passed"])
    assert read_parts(tmp_path / "out").column("passed").to_pylist() == [1, 2, None, None, None]
    assert summary.notes == ["column 'passed' is not in b.parquet: null there"]


def test_a_column_that_no_file_has_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "in", "a", pa.array([1, 2]))
    write(tmp_path / "in", "b", None)
    with pytest.raises(
        DatasetError, match=r"a\.parquet and 1 more files: pass-through column 'passd' is not"
    ):
        make_plan([tmp_path / "in"], load_handler(ORDERS), ["passd"])


def test_inputs_of_two_widths_give_the_same_answers_and_one_errors_dataset(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = orders(20).set_column(2, "quantity", pa.array([*range(19), -5], pa.int64()))
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    small = table.set_column(2, "quantity", table.column("quantity").cast(pa.int8()))
    pq.write_table(small, tmp_path / "in" / "b.parquet")
    score(tmp_path / "in", tmp_path / "out", ORDERS)
    total = read_parts(tmp_path / "out").column("total").to_pylist()
    assert total[:19] == total[20:39] == expected_total(table)[:19].tolist()
    failed = [pq.ParquetFile(path).read() for path in sorted((tmp_path / "out" / "_errors").iterdir())]
    assert pa.concat_tables(failed).column("quantity").to_pylist() == [-5, -5]


def test_a_field_is_read_from_the_column_that_it_is_mapped_to(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = orders(30).set_column(2, "quantity", pa.array([-1, *range(29)]))
    pq.write_table(table.rename_columns(["id", "unit_price", "n", "note"]), tmp_path / "in" / "a.parquet")
    renames = {"price": "unit_price", "quantity": "n"}
    settings = Settings(renames=renames)
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["unit_price"], settings=settings)
    scored = read_parts(tmp_path / "out")
    assert scored.column("total").to_pylist()[1:] == expected_total(table).tolist()[1:]
    assert scored.column("unit_price").equals(table.column("price"))
    failed = pq.ParquetFile(tmp_path / "out" / "_errors" / "part-00000-u00000.parquet").read()
    assert failed.column("n").to_pylist() == [-1]
    before = contents(tmp_path / "out")
    with pytest.raises(DatasetError, match=r"map: was \{'price': 'unit_price', 'quantity': 'n'\}, is \{"):
        score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["unit_price"],
              settings=Settings(renames={"price": "unit_price", "quantity": "id"}))  # fmt: skip
    assert contents(tmp_path / "out") == before


def test_a_mapped_field_leaves_a_column_of_its_own_name_alone(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = orders(10).append_column("net", pa.array([2.0] * 10, pa.float32()))
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    score(
        tmp_path / "in",
        tmp_path / "out",
        ORDERS,
        columns=["price"],
        settings=Settings(renames={"price": "net"}),
    )
    scored = read_parts(tmp_path / "out")
    assert scored.column("total").to_pylist() == [2.0 * quantity * 2.5 for quantity in range(10)]
    assert scored.column("price").equals(table.column("price"))


def test_a_missing_field_is_told_how_to_be_mapped(tmp_path: Path) -> None:
    pq.write_table(orders(3).rename_columns(["id", "unit_price", "quantity", "note"]), tmp_path / "a.parquet")
    with pytest.raises(
        DatasetError, match=r"column 'price' .* --map price=unit_price reads it from that column"
    ):
        make_plan([tmp_path], load_handler(ORDERS))


@pytest.mark.parametrize(
    ("renames", "expected"),
    [
        ({"prise": "price"}, "has no input field 'prise'; did you mean 'price'"),
        ({"price": "notes"}, "--map price=notes: column 'notes' is not there; did you mean 'note'"),
        ({"price": "note"}, "column 'price' is of type string"),
    ],
)
def test_a_mapping_that_does_not_hold_is_refused(
    tmp_path: Path, renames: dict[str, str], expected: str
) -> None:
    pq.write_table(orders(3), tmp_path / "a.parquet")
    with pytest.raises(DatasetError, match=expected):
        make_plan([tmp_path], load_handler(ORDERS), (), renames)
