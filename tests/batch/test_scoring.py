"""A job from Parquet to Parquet, in this process: order, completeness, errors, output form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.errors import ConfigError, DatasetError, RowsError
from parity_batch import Settings, plan, score
from tests.batch.jobs import ORDERS, contents, expected_total, orders, part_files, read_parts, write_orders


def test_every_row_is_answered_in_order(tmp_path: Path) -> None:
    table = write_orders(tmp_path / "in", (1500, 0, 2500), row_group_rows=333)
    summary = score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id"])
    scored = read_parts(tmp_path / "out")
    assert scored.column("id").equals(table.column("id"))
    np.testing.assert_array_equal(scored.column("total").to_numpy(), expected_total(table))
    assert scored.column("_error").null_count == 4000
    assert scored.column_names == ["id", "total", "size", "vector", "_error"]
    assert (summary.rows, summary.parts, summary.files, summary.failed_rows) == (4000, 3, 3, 0)
    assert not (tmp_path / "out" / "_errors").exists()


def test_parts_are_named_by_file_and_unit(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (10, 0, 20))
    score(tmp_path / "in", tmp_path / "out", ORDERS)
    assert [path.name for path in part_files(tmp_path / "out")] == [
        "part-00000-u00000.parquet",
        "part-00001-u00000.parquet",
        "part-00002-u00000.parquet",
    ]
    rows = [pq.ParquetFile(path).metadata.num_rows for path in part_files(tmp_path / "out")]
    assert rows == [10, 0, 20]
    assert (tmp_path / "out" / "_SUCCESS").is_file()
    assert json.loads((tmp_path / "out" / "_summary.json").read_text())["rows"] == 30


@pytest.mark.parametrize("batch_rows", [1, 7, 64, 5000])
def test_the_batch_size_changes_nothing_here(tmp_path: Path, batch_rows: int) -> None:
    table = write_orders(tmp_path / "in", (200, 100), row_group_rows=33)
    score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(batch_rows=batch_rows))
    np.testing.assert_array_equal(
        read_parts(tmp_path / "out").column("total").to_numpy(), expected_total(table)
    )


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_workers_or_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "UNIT_BYTES", 20_000)
    write_orders(tmp_path / "in", (3000, 4000, 1), row_group_rows=500)
    found: list[dict[str, bytes]] = []
    ways = [(1, 0, 0), (1, 3, 0), (2, 0, 0), (4, 1, 0), (1, 0, 2)]
    for position, (workers, preprocess, processes) in enumerate(ways):
        settings = Settings(
            workers=workers, preprocess_workers=preprocess, preprocess_processes=processes, batch_rows=100
        )
        score(tmp_path / "in", tmp_path / f"out-{position}", ORDERS, columns=["note"], settings=settings)
        found.append(contents(tmp_path / f"out-{position}"))
    assert len([name for name in found[0] if name.startswith("part-")]) > 4
    assert all(other == found[0] for other in found[1:])


def bad_orders() -> pa.Table:
    """2000 rows, of which some are null, out of range, refused or poison."""
    table = orders(2000)
    quantity = table.column("quantity").to_pylist()
    for row, value in ((0, None), (7, -5), (8, 666), (1023, -2000), (1024, 666), (1999, -1)):
        quantity[row] = value
    return table.set_column(2, "quantity", pa.array(quantity, pa.int64()))


def test_a_bad_row_stays_in_place_and_harms_no_neighbour(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(bad_orders(), tmp_path / "in" / "bad.parquet", row_group_size=300)
    pq.write_table(orders(5, 2000), tmp_path / "in" / "good.parquet")
    summary = score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id"])
    assert summary.row_errors == {"failed": 2, "invalid": 2, "rejected": 2}
    scored = read_parts(tmp_path / "out")
    assert scored.column("id").to_pylist() == list(range(2005))
    bad = {0: "invalid", 7: "rejected", 8: "failed", 1023: "invalid", 1024: "failed", 1999: "rejected"}
    texts = scored.column("_error").to_pylist()
    assert {row: text.partition(":")[0] for row, text in enumerate(texts) if text} == bad
    totals = scored.column("total").to_pylist()
    vectors = scored.column("vector").to_pylist()
    assert [row for row in range(2005) if totals[row] is None] == sorted(bad)
    assert [row for row in range(2005) if vectors[row] is None] == sorted(bad)
    good = [row for row in range(2000) if row not in bad]
    expected = expected_total(orders(2000))
    assert [totals[row] for row in good] == [expected[row] for row in good]


def test_the_errors_dataset_names_place_reason_and_input(tmp_path: Path) -> None:
    (tmp_path / "in" / "day=1").mkdir(parents=True)
    pq.write_table(bad_orders(), tmp_path / "in" / "day=1" / "bad.parquet", row_group_size=300)
    pq.write_table(orders(5, 2000), tmp_path / "in" / "good.parquet")
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id"])
    files = sorted((tmp_path / "out" / "_errors").iterdir())
    assert [path.name for path in files] == ["part-00000-u00000.parquet"]
    rows = pq.ParquetFile(files[0]).read().to_pylist()
    assert [row["_row"] for row in rows] == [0, 7, 8, 1023, 1024, 1999]
    assert {row["_file"] for row in rows} == {"day=1/bad.parquet"}
    assert [row["id"] for row in rows] == [0, 7, 8, 1023, 1024, 1999]
    assert [row["quantity"] for row in rows] == [None, -5, 666, -2000, 666, -1]
    assert [row["_stage"] for row in rows] == [None, None, "preprocess", None, "preprocess", None]
    assert [row["_field"] for row in rows] == ["quantity", None, None, "quantity", None, None]
    assert "poison" in rows[2]["_message"]
    assert rows[2]["_type"] == "ValueError"


def test_the_errors_dataset_can_be_scored_again(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(bad_orders(), tmp_path / "in" / "bad.parquet")
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id"])
    columns = ["id", "_file", "_row"]
    again = score(
        tmp_path / "out" / "_errors",
        tmp_path / "again",
        ORDERS,
        columns=columns,
        settings=Settings(max_errors="100%"),
    )
    assert (again.rows, again.failed_rows) == (6, 6)
    assert read_parts(tmp_path / "again").column("_row").to_pylist() == [0, 7, 8, 1023, 1024, 1999]


def test_too_many_errors_stop_the_job_and_a_larger_limit_continues_it(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (1000,))
    pq.write_table(bad_orders(), tmp_path / "in" / "zz.parquet")
    one = Settings(max_errors=3, workers=1)
    with pytest.raises(
        RowsError, match=r"--max-errors allows 3; the last one: zz\.parquet row 1023: invalid"
    ):
        score(tmp_path / "in", tmp_path / "out", ORDERS, settings=one)
    assert [path.name for path in part_files(tmp_path / "out")] == ["part-00000-u00000.parquet"]
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert not list((tmp_path / "out").rglob("*.tmp"))
    summary = score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(max_errors=6))
    assert (summary.resumed_parts, summary.failed_rows) == (1, 6)
    with pytest.raises(RowsError, match="allows 5"):
        score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(max_errors=5))


def test_columns_that_are_not_needed_are_not_read(tmp_path: Path) -> None:
    """The pages of `note` are overwritten: whoever reads them fails."""
    table = write_orders(tmp_path / "in", (1000,), row_group_rows=1000)
    path = tmp_path / "in" / "orders-00.parquet"
    column = pq.ParquetFile(path).metadata.row_group(0).column(3)
    assert column.path_in_schema == "note"
    start = min(column.dictionary_page_offset or column.data_page_offset, column.data_page_offset)
    data = bytearray(path.read_bytes())
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id"])
    np.testing.assert_array_equal(
        read_parts(tmp_path / "out").column("total").to_numpy(), expected_total(table)
    )
    with pytest.raises(DatasetError, match=r"orders-00\.parquet: row groups 0 to 0 cannot be read"):
        score(tmp_path / "in", tmp_path / "out-2", ORDERS, columns=["note"])
    assert part_files(tmp_path / "out-2") == []


def test_the_part_says_who_made_it(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (10,))
    score(tmp_path / "in", tmp_path / "out", ORDERS)
    metadata = pq.ParquetFile(part_files(tmp_path / "out")[0]).schema_arrow.metadata
    assert metadata[b"parity.handler"] == b"orders"
    assert metadata[b"parity.version"] == b"1.2.0"
    assert json.loads(metadata[b"parity.profile"])["name"] == "default"
    assert len(metadata[b"parity.fingerprint"]) == 64


def test_the_handlers_own_settings_are_the_defaults(tmp_path: Path, handler: Path) -> None:
    write_orders(tmp_path / "in", (10,))
    with (handler / "handler.toml").open("a") as file:
        file.write("\n[batch]\nbatch_rows = 64\nworkers = 1\n")
    score(tmp_path / "in", tmp_path / "out", handler)
    score(tmp_path / "in", tmp_path / "other", handler, settings=Settings(batch_rows=3))
    manifests = [json.loads((tmp_path / name / "_manifest.json").read_text()) for name in ("out", "other")]
    assert [manifest["batch_rows"] for manifest in manifests] == [64, 3]


@pytest.mark.parametrize(
    ("line", "expected"),
    [("batch_row = 3", "did you mean 'batch_rows'"), ("workers = true", "True is not a whole number")],
)
def test_a_wrong_setting_of_the_handler_is_named(
    tmp_path: Path, handler: Path, line: str, expected: str
) -> None:
    write_orders(tmp_path / "in", (10,))
    with (handler / "handler.toml").open("a") as file:
        file.write(f"\n[batch]\n{line}\n")
    with pytest.raises(ConfigError, match=expected):
        score(tmp_path / "in", tmp_path / "out", handler)


@pytest.mark.parametrize(
    "setting", ["batch_rows", "workers", "max_errors", "preprocess_workers", "preprocess_processes"]
)
def test_a_setting_out_of_range_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=setting):
        Settings(**{setting: -1})  # pyright: ignore[reportArgumentType] - one of the integers
