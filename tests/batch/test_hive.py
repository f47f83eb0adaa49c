"""Folders named KEY=VALUE are kept in the output, and are columns for the handler and for conditions."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from parity.errors import DatasetError
from parity_batch import Settings, preview, score, status
from tests.batch.jobs import HANDLERS, ORDERS, contents, orders


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    first = 0
    for day in ("2024-07-01", "2024-07-02"):
        for shop in (3, 12):
            folder = tmp_path / "in" / f"day={day}" / f"shop={shop}"
            folder.mkdir(parents=True)
            table = orders(20, first)
            if first == 40:
                table = table.set_column(2, "quantity", pa.array([-1, *range(19)]))
            pq.write_table(table, folder / "data.parquet")
            first += 20
    return tmp_path / "in"


def names(output: Path) -> list[str]:
    return sorted(path.relative_to(output).as_posix() for path in output.rglob("part-*.parquet"))


def test_parts_lie_in_the_folders_of_their_files(inputs: Path, tmp_path: Path) -> None:
    summary = score(inputs, tmp_path / "out", ORDERS, columns=["id", "shop"])
    out = tmp_path / "out"
    assert names(out) == [
        "_errors/part-00003-u00000.parquet",
        "day=2024-07-01/shop=12/part-00000-u00000.parquet",
        "day=2024-07-01/shop=3/part-00001-u00000.parquet",
        "day=2024-07-02/shop=12/part-00002-u00000.parquet",
        "day=2024-07-02/shop=3/part-00003-u00000.parquet",
    ]
    assert summary.notes == ["column 'shop' is in the names of the parts' folders"]
    part = pq.ParquetFile(out / "day=2024-07-01/shop=3/part-00001-u00000.parquet")
    assert part.schema_arrow.names == ["id", "total", "size", "vector", "_error"]
    found = pads.dataset(out, partitioning="hive").to_table().to_pandas()
    assert sorted(found["id"]) == list(range(80))
    assert set(found[found["id"] < 20]["shop"]) == {3}
    duck = duckdb.sql(f"select shop, count(*) from read_parquet('{out}/day=*/*/*.parquet', hive_partitioning = true) group by shop order by shop")  # fmt: skip  # noqa: E501
    assert duck is not None
    assert duck.fetchall() == [(3, 40), (12, 40)]
    assert pl.scan_parquet(out / "day=*/*/*.parquet", hive_partitioning=True).select("shop").collect()["shop"].sum() == 600  # fmt: skip  # noqa: E501


def test_such_a_job_resumes_restarts_and_tells_its_status(inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    score(inputs, out, ORDERS)
    before = contents(out)
    part = out / "day=2024-07-01/shop=12/part-00000-u00000.parquet"
    part.unlink()
    stray = part.with_name(f".{part.name}.x.tmp")
    stray.write_bytes(b"half")
    assert score(inputs, out, ORDERS).resumed_parts == 3
    assert contents(out) == before
    assert (status(out).done_rows, status(out).state) == (80, "complete")
    (inputs / "day=2024-07-01/shop=12/data.parquet").unlink()
    (inputs / "day=2024-07-01/shop=12").rmdir()
    score(inputs, out, ORDERS, settings=Settings(restart=True))
    assert len(names(out)) == 4
    assert not (out / "day=2024-07-01/shop=12").exists()


def test_a_condition_on_a_folder_reads_its_files_only(inputs: Path, tmp_path: Path) -> None:
    score(
        inputs,
        tmp_path / "out",
        ORDERS,
        columns=["id"],
        settings=Settings(where="shop == 3 and day > '2024-07-01'"),
    )
    found = pads.dataset(tmp_path / "out", partitioning="hive").to_table()
    assert found.column("id").to_pylist() == list(range(40, 60))


def test_a_number_is_not_compared_with_a_folder_whose_values_are_text(tmp_path: Path) -> None:
    for month in ("01", "02", "12"):
        folder = tmp_path / "in" / f"month={month}"
        folder.mkdir(parents=True)
        pq.write_table(orders(3), folder / "a.parquet")
    with pytest.raises(
        DatasetError, match=r"5 cannot be compared with column 'month' \(string\): .*write '5'"
    ):
        score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(where="month < 5"))
    summary = score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(where="month < '05'"))
    assert summary.rows == 6


def test_a_column_that_is_also_a_folders_is_not_lost_in_silence(tmp_path: Path) -> None:
    for day in (1, 2):
        folder = tmp_path / "in" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(orders(3).append_column("day", pa.array([7, 8, 9])), folder / "a.parquet")
    with pytest.raises(
        DatasetError, match=r"day=1/a\.parquet and 1 more files: .* 'day' is in the file and in"
    ):
        score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id", "day"])
    assert not (tmp_path / "out").exists()
    assert score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id"]).rows == 6


def test_a_handler_may_read_a_folders_value(tmp_path: Path) -> None:
    for value in ("a", "%C3%B1o", "__HIVE_DEFAULT_PARTITION__"):
        folder = tmp_path / "in" / f"text={value}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"x": [1, 2]}), folder / "a.parquet")
    assert preview(tmp_path / "in", HANDLERS / "lengths").mapping == {"text": ("text", "string")}
    summary = score(tmp_path / "in", tmp_path / "out", HANDLERS / "lengths")
    lengths = pads.dataset(tmp_path / "out", partitioning="hive").to_table().column("length").to_pylist()
    assert sorted(lengths, key=str) == [1, 1, 2, 2, None, None]
    assert summary.row_errors == {"invalid": 2}
