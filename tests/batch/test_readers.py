"""Parts are ordinary Parquet datasets: pandas, Polars, DuckDB and Daft read folder and values as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from parity_batch import score
from tests.batch.jobs import ORDERS, expected_total, orders

ROWS = 3000


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two parts with a bad row, 2^53 + 1 with a null beside it, and a category."""
    folder = tmp_path_factory.mktemp("readers")
    table = orders(ROWS)
    quantity = [666 if row == 1700 else row % 40 for row in range(ROWS)]
    table = table.set_column(2, "quantity", pa.array(quantity, pa.int64()))
    table = table.append_column("big", pa.array([2**53 + 1 if row % 2 else None for row in range(ROWS)]))
    colours = pa.array([["red", "green"][row % 2] for row in range(ROWS)]).dictionary_encode()
    table = table.append_column("colour", colours)
    (folder / "in").mkdir()
    pq.write_table(table.slice(0, 1000), folder / "in" / "a.parquet", row_group_size=300)
    pq.write_table(table.slice(1000), folder / "in" / "b.parquet", row_group_size=300)
    score(folder / "in", folder / "out", ORDERS, columns=["id", "big", "colour"])
    return folder / "out"


def check(ids: list[Any], big: list[Any], totals: list[Any], errors: list[Any]) -> None:
    assert ids == list(range(ROWS))
    assert big == [2**53 + 1 if row % 2 else None for row in range(ROWS)]
    expected = [float(value) for value in expected_total(orders(ROWS))]
    assert totals[:1700] + totals[1701:] == expected[:1700] + expected[1701:]
    assert totals[1700] is None
    assert [row for row, text in enumerate(errors) if text is not None] == [1700]


def test_pandas_reads_the_folder(scored: Path) -> None:
    frame = pd.read_parquet(scored, dtype_backend="pyarrow")
    columns = (frame[name].astype(object) for name in ("id", "big", "total", "_error"))
    check(*([None if pd.isna(value) else value for value in column] for column in columns))
    plain = pd.read_parquet(scored)
    assert plain["colour"].astype(str).tolist()[:2] == ["red", "green"]
    np.testing.assert_array_equal(np.asarray(plain["vector"][2999])[0], np.float32(plain["total"][2999]))


def test_polars_reads_the_folder(scored: Path) -> None:
    frame = pl.read_parquet(scored / "*.parquet")
    check(*(frame[name].to_list() for name in ("id", "big", "total", "_error")))
    assert frame["vector"].dtype == pl.Array(pl.Float32, 3)


def test_duckdb_reads_the_folder(scored: Path) -> None:
    read = duckdb.sql(f"select id, big, total, _error from '{scored}/*.parquet' order by id")
    rows = read.fetchall() if read else []
    ids, big, totals, errors = (list(column) for column in zip(*rows, strict=True))
    check(ids, big, totals, errors)


@pytest.mark.slow
def test_daft_reads_the_folder(scored: Path) -> None:
    daft = pytest.importorskip("daft", reason="pip install daft, which holds pyarrow below 26")
    read: Any = daft.read_parquet(str(scored / "*.parquet"))
    frame = read.sort("id").to_pydict()
    check(*(frame[name] for name in ("id", "big", "total", "_error")))
    assert len(frame["vector"][0]) == 3


def test_arrow_datasets_read_the_folder_without_the_bookkeeping(scored: Path) -> None:
    table = ds.dataset(scored).to_table()
    check(*(table.column(name).to_pylist() for name in ("id", "big", "total", "_error")))
