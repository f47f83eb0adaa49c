"""`--where` scores the rows for which a condition holds, and keeps their places."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from parity.errors import ConfigError, DatasetError, RowsError
from parity_batch import Settings, score, stream
from parity_batch.where import Where
from tests.batch.jobs import ORDERS, orders, read_parts, run

ROWS = 400


def text_of(row: int) -> str:
    return f"{row} is a text of more than twelve bytes"


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    start = datetime.datetime(2024, 7, 1, tzinfo=datetime.UTC)
    table = orders(ROWS)
    table = table.set_column(2, "quantity", pa.array([-1 if row % 50 == 7 else 1 for row in range(ROWS)]))
    more = {
        "day": pa.array([start.date() + datetime.timedelta(row // 100) for row in range(ROWS)]),
        "time": pa.array(
            [start + datetime.timedelta(hours=row) for row in range(ROWS)], pa.timestamp("us", "UTC")
        ),
        "shop": pa.array([None if row % 10 == 0 else row % 7 for row in range(ROWS)], pa.int8()),
        "city": pa.array(["Bilbao" if row % 3 else "León" for row in range(ROWS)]).dictionary_encode(),
        "flag": pa.array([row % 2 == 0 for row in range(ROWS)]),
        "cost": pa.array([decimal.Decimal(row) / 10 for row in range(ROWS)], pa.decimal128(5, 1)),
        "big": pa.array([2**63 + row for row in range(ROWS)], pa.uint64()),
        "view": pa.array(
            [f"{row} is a text of more than twelve bytes" for row in range(ROWS)], pa.string_view()
        ),
    }
    for name, column in more.items():
        table = table.append_column(name, column)
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=90)
    return tmp_path / "in"


CONDITIONS = {
    "id >= 390": lambda row: row >= 390,
    "390 <= id": lambda row: row >= 390,
    "10 <= id < 20": lambda row: 10 <= row < 20,
    "id > 397.5": lambda row: row > 397.5,
    "id in (3, 5, 250) or id == 399": lambda row: row in (3, 5, 250, 399),
    "shop is None and id < 50": lambda row: row % 10 == 0 and row < 50,
    "shop is not None and not id >= 12": lambda row: row % 10 != 0 and row < 12,
    "shop != 3 and id < 20": lambda row: row % 10 != 0 and row % 7 != 3 and row < 20,
    "city == 'León' and id < 30": lambda row: row % 3 == 0 and row < 30,
    "day == '2024-07-02' and id > 190": lambda row: 190 < row < 200,
    "time < '2024-07-01T05:00:00Z'": lambda row: row < 5,
    "flag == True and id < 9": lambda row: row % 2 == 0 and row < 9,
    "flag and id < 9": lambda row: row % 2 == 0 and row < 9,
    "cost < 1.2": lambda row: row < 12,
    "cost >= 39 and cost != '39.50'": lambda row: row >= 390 and row != 395,
    f"big < {2**63 + 4}": lambda row: row < 4,
    "id < '7'": lambda row: row < 7,
    "id < 0": lambda _row: False,
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("batch_rows", [3, 1024])
def test_the_rows_for_which_it_holds_are_scored_in_order(
    inputs: Path, tmp_path: Path, condition: str, batch_rows: int
) -> None:
    settings = Settings(where=condition, batch_rows=batch_rows, max_errors="100%")
    summary = score(inputs, tmp_path / "out", ORDERS, columns=["id", "view"], settings=settings)
    expected = [row for row in range(ROWS) if CONDITIONS[condition](row)]
    scored = read_parts(tmp_path / "out")
    assert scored.column("id").to_pylist() == expected
    assert scored.column("view").to_pylist() == [
        f"{row} is a text of more than twelve bytes" for row in expected
    ]
    assert scored.column_names == ["id", "view", "total", "size", "vector", "_error"]
    bad = [row for row in expected if row % 50 == 7]
    failed = [pq.ParquetFile(path).read() for path in (tmp_path / "out").glob("_errors/*.parquet")]
    assert [row for table in failed for row in table.column("_row").to_pylist()] == bad
    assert summary.notes == [f"--where left {len(expected)} of {ROWS} rows"]


def test_row_groups_that_cannot_hold_such_a_row_are_not_read(
    inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    kept = stream._kept

    def counting(batch: pa.RecordBatch, *others: object) -> np.ndarray:
        seen.append(batch.num_rows)
        return kept(batch, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(stream, "_kept", counting)
    score(inputs, tmp_path / "out", ORDERS, settings=Settings(where="id >= 300 and id < 305"))
    assert sum(seen) == 90


FLOAT_CONDITIONS = [
    "x != 2", "not x < 5", "not x >= 1", "not (x == 2 or x < 1)", "x not in (1, 2)", "x < 2", "x == 1",
    "not x > 1 and k < 4", "k != 1 and x != 1", "x is not None and not x <= 3", "not (x != 2)", "w != 2",
]  # fmt: skip


@pytest.mark.parametrize("condition", FLOAT_CONDITIONS)
@pytest.mark.parametrize("seed", range(3))
def test_row_groups_that_are_not_read_hold_no_such_row_not_even_of_nan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str, seed: int
) -> None:
    random = np.random.default_rng(seed)
    values = random.choice([1.0, 2.0, 2.0, 3.0, np.nan], 60)
    values[:12] = [1, np.nan, 3, 2, np.nan, 2, np.nan, np.nan, np.nan, 2, 2, 2]
    table = orders(60)
    table = table.append_column("x", pa.array(values, mask=random.random(60) < 0.1))
    table = table.append_column("w", pa.array(values, pa.float32()).dictionary_encode())
    table = table.append_column("k", pa.array(np.arange(60) // 6))
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=3)
    settings = Settings(where=condition)
    score(tmp_path / "in", tmp_path / "some", ORDERS, columns=["id", "x"], settings=settings)
    monkeypatch.setattr(stream, "_promising", lambda source, layout, schema, groups: groups)  # type: ignore[misc]
    score(tmp_path / "in", tmp_path / "all", ORDERS, columns=["id", "x"], settings=settings)
    some, every = (read_parts(tmp_path / name) for name in ("some", "all"))
    assert some.column("id").equals(every.column("id"))
    assert repr(some.column("x").to_pylist()) == repr(every.column("x").to_pylist())
    assert some.num_rows


@pytest.mark.parametrize("where", ["", "__row > 300"])
def test_a_column_of_any_name_is_the_users_own(inputs: Path, tmp_path: Path, where: str) -> None:
    table = pq.read_table(inputs / "a.parquet")
    table = table.append_column("__row", pa.array([3 * row for row in range(ROWS)]))
    pq.write_table(table, inputs / "a.parquet", row_group_size=90)
    score(inputs, tmp_path / "out", ORDERS, columns=["id", "__row"], settings=Settings(where=where))
    scored = read_parts(tmp_path / "out")
    assert scored.column("__row").to_pylist() == pc.multiply(scored.column("id"), 3).to_pylist()
    failed = pq.ParquetFile(tmp_path / "out" / "_errors" / "part-00000-u00000.parquet").read()
    assert failed.column("__row").to_pylist() == pc.multiply(failed.column("_row"), 3).to_pylist()


def test_the_last_error_is_named_by_its_place_in_the_source(inputs: Path, tmp_path: Path) -> None:
    settings = Settings(where="id >= 300", max_errors=0)
    with pytest.raises(RowsError, match=r"the last one: a\.parquet row 3[05]7: rejected: .*quantity -1"):
        score(inputs, tmp_path / "out", ORDERS, settings=settings)


def test_another_condition_is_another_job(inputs: Path, tmp_path: Path) -> None:
    score(inputs, tmp_path / "out", ORDERS, settings=Settings(where="id < 9"))
    with pytest.raises(DatasetError, match="where: was id < 9, is id < 8"):
        score(inputs, tmp_path / "out", ORDERS, settings=Settings(where="id < 8"))


@pytest.mark.parametrize(
    "text",
    ["", "id", "1 < 2", "id = 3", "id == None", "id < shop + 1", "id.real < 3", "f(id)", "id in 3",
     "id in ()", "__import__('os').system('true') == 0", "id == [1]", "lambda: id", "id <", "not", "(" * 500],
)  # fmt: skip
def test_what_is_no_condition_is_refused(text: str) -> None:
    if text == "id":
        Where(text)  # a column of booleans
        return
    with pytest.raises(ConfigError, match="--where"):
        Where(text)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("shopp == 3", "column 'shopp' is not there; did you mean 'shop'"),
        ("id == 'three'", "'three' cannot be compared with column 'id' \\(int64\\)"),
        ("shop == 300", "300 cannot be compared with column 'shop' \\(int8\\)"),
        ("day > 'tomorrow'", "'tomorrow' cannot be compared with column 'day'"),
        ("id", "--where 'id'"),
        ("city < 5", "5 cannot be compared with column 'city' .*holds text.*write '5'"),
        ("view == 5", "5 cannot be compared with column 'view' .*holds text"),
        ("time > 2024", "2024 cannot be compared with column 'time' .*write a date or time as text"),
        ("day > 19000.5", "19000.5 cannot be compared with column 'day'"),
        ("flag == 2", "2 cannot be compared with column 'flag' .*write True or False"),
        ("flag == 'yes'", "'yes' cannot be compared with column 'flag' .*write True or False"),
        ("id == True", "True cannot be compared with column 'id' .*write 1"),
        ("cost >= 1.25", "1.25 cannot be compared with column 'cost' .*1 of them after the point"),
        ("cost >= '1.25'", "'1.25' cannot be compared with column 'cost'"),
        ("cost == 123456.5", "123456.5 cannot be compared with column 'cost'"),
        ("cost == 'dear'", "'dear' cannot be compared with column 'cost'"),
        (f"id < {2**70}", "cannot be compared with column 'id'"),
    ],
)
def test_a_condition_that_does_not_fit_the_files_is_refused_before_scoring(
    inputs: Path, tmp_path: Path, condition: str, expected: str
) -> None:
    with pytest.raises(DatasetError, match=expected):
        score(inputs, tmp_path / "out", ORDERS, settings=Settings(where=condition))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_command_takes_one(inputs: Path, tmp_path: Path) -> None:
    done = run(
        ORDERS, inputs, tmp_path / "out", "--where", "city == 'León' and shop in (1, 2)", "--columns", "id"
    )
    assert done.returncode == 0, done.stderr
    ids = read_parts(tmp_path / "out").column("id").to_pylist()
    assert ids == [row for row in range(ROWS) if row % 3 == 0 and row % 10 and row % 7 in (1, 2)]
    bad = run(ORDERS, inputs, tmp_path / "other", "--where", "city = 'León'")
    assert (bad.returncode, "compare with ==" in bad.stderr) == (2, True)
