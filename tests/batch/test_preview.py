"""A dry run tells what a job would do and writes nothing; a status tells how far one is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.durable import locked
from parity.errors import DatasetError
from parity_batch import Settings, preview, score, status
from tests.batch.jobs import ORDERS, contents, orders, run, write_orders


def test_a_dry_run_tells_the_plan_the_mapping_and_an_estimate(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (900, 0, 600), row_group_rows=200)
    bad = orders(50).set_column(2, "quantity", pa.array([-1] * 50))
    pq.write_table(bad.rename_columns(["id", "price", "quantity", "remark"]), tmp_path / "in" / "z.parquet")
    found = preview(tmp_path / "in", ORDERS, columns=["id", "note"], settings=Settings(batch_rows=100))
    assert (found.files, found.rows, found.units) == (4, 1550, 4)
    assert found.mapping == {"price": ("price", "float"), "quantity": ("quantity", "int64")}
    assert list(found.schema) == ["id", "note", "total", "size", "vector", "_error"]
    assert found.notes == ["column 'note' is not in z.parquet: null there"]
    assert found.sample_rows > 500
    assert found.estimated_seconds is not None
    assert found.estimated_bytes > 1000
    text = found.describe()
    assert "1,550 rows of 4 files would be scored by orders@1.2.0 into 4 parts" in text
    assert "price from column price (float)" in text
    assert re.search(r"^reads about \d+(\.\d)? kB:$", text, re.MULTILINE)
    assert re.search(r" \d+(\.\d)? kB on disk, by a sample", text)
    assert text.endswith("nothing was written")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.slow
def test_a_dry_run_tells_no_text_of_a_failure_where_none_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    bad = orders(30).set_column(2, "quantity", pa.array([666] * 30))
    pq.write_table(bad, tmp_path / "in" / "a.parquet")
    for more, wanted in ((["--log-failures"], True), (["--no-log-failures"], False), (["--json"], False)):
        dry = run(ORDERS, tmp_path / "in", tmp_path / "out", "--dry-run", *more)
        assert dry.returncode == 0, dry.stderr
        assert ("666 is poison" in dry.stdout, "666 is poison" in dry.stderr) == (wanted, wanted)
        assert "ValueError" in dry.stderr
        assert wanted or "a.parquet: failed in stage preprocess, ValueError" in dry.stdout


def test_a_dry_run_finds_what_a_job_would_stop_for(tmp_path: Path) -> None:
    pq.write_table(orders(3).drop_columns(["price"]), tmp_path / "a.parquet")
    with pytest.raises(DatasetError, match="'price'"):
        preview(tmp_path, ORDERS)


def test_a_dry_run_of_no_rows_has_no_estimate(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (0,))
    found = preview(tmp_path / "in", ORDERS)
    assert (found.rows, found.sample_rows, found.estimated_seconds) == (0, 0, None)


@pytest.mark.parametrize(("where", "kept"), [("id >= 100000", 0), ("id < 600", 600), ("quantity < 10", 300)])
def test_a_dry_run_with_a_condition_counts_the_rows_that_are_left(
    tmp_path: Path, where: str, kept: int
) -> None:
    write_orders(tmp_path / "in", (600, 600), row_group_rows=200)
    found = preview(tmp_path / "in", ORDERS, settings=Settings(where=where, batch_rows=200))
    assert (found.rows, found.kept_rows) == (1200, kept)
    assert (found.sample_rows > 0) == (kept > 0)
    assert (found.estimated_bytes > 0) == (kept > 0)
    assert found.estimated_seconds is not None
    assert f"--where leaves about {kept:,} of the rows" in found.describe()


def test_a_status_follows_a_job(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (300, 200, 100))
    score(tmp_path / "in", tmp_path / "out", ORDERS)
    before = contents(tmp_path / "out")
    whole = status(tmp_path / "out")
    assert (whole.state, whole.done_units, whole.done_rows, whole.rows) == ("complete", 3, 600, 600)
    (tmp_path / "out" / "_SUCCESS").unlink()
    (tmp_path / "out" / "_units" / "part-00001-u00000.json").unlink()
    stopped = status(tmp_path / "out")
    assert (stopped.state, stopped.done_units, stopped.done_rows) == ("stopped", 2, 400)
    assert stopped.next_units == ["part-00001-u00000"]
    assert "2 of 3 parts, 400 of 600 rows (67%)" in stopped.describe()
    with locked(tmp_path / "out" / ".parity.lock"):
        assert status(tmp_path / "out").state == "running"
    score(tmp_path / "in", tmp_path / "out", ORDERS)
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("name", ["nothing", "in"])
def test_a_folder_without_a_job_has_no_status(tmp_path: Path, name: str) -> None:
    write_orders(tmp_path / "in", (3,))
    with pytest.raises(DatasetError, match="name the OUTPUT of a `parity batch` command"):
        status(tmp_path / name)


@pytest.mark.slow
def test_both_are_commands(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (30,))
    dry = run(ORDERS, tmp_path / "in", tmp_path / "out", "--dry-run", "--json", "--map", "price=price")
    assert json.loads(dry.stdout)["rows"] == 30
    assert not (tmp_path / "out").exists()
    assert run("status", tmp_path / "out").returncode == 2
    assert run(ORDERS, tmp_path / "in", tmp_path / "out").returncode == 0
    done = run("status", tmp_path / "out", "--json")
    assert json.loads(done.stdout)["state"] == "complete"
    assert "give HANDLER, at least one INPUT and OUTPUT" in run(ORDERS, tmp_path / "out").stderr
