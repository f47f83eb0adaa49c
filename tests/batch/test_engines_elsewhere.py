"""Whole commands over Ray and Spark with text inputs, and with inputs and outputs in an object store."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from parity_batch import status
from tests.batch.buckets import Bucket
from tests.batch.jobs import ORDERS, TRAYS, contents, orders, read_parts, run, write_numbers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(params=["ray", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    """An engine that can run here."""
    name: str = request.param
    if importlib.util.find_spec({"ray": "ray", "spark": "pyspark"}[name]) is None:
        pytest.skip(f"pip install 'parity[{name}]'")
    if name == "spark" and os.environ.get("PARITY_REQUIRE_SPARK") != "1":
        from parity_spark.java import java_problem

        if problem := java_problem(os.environ.get("JAVA_HOME"), os.environ.get("PATH", "")):
            pytest.skip(problem)
    return name


def write_text(folder: Path) -> None:
    """The orders as CSV, in two files and one of them compressed; one row has a price that is none."""
    folder.mkdir()
    for position in range(2):
        pacsv.write_csv(
            orders(60, 60 * position).select(["id", "price", "quantity"]), folder / f"{position}.csv"
        )
    lines = (folder / "1.csv").read_text().splitlines()
    cells = lines[8].split(",")
    lines[8] = ",".join([cells[0], "much", *cells[2:]])
    (folder / "1.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    (folder / "1.csv").unlink()


def test_text_goes_through_an_engine_into_an_object_store(
    engine: str, bucket: Bucket, tmp_path: Path
) -> None:
    write_text(tmp_path / "in")
    here = run(ORDERS, tmp_path / "in", tmp_path / "here", "--columns", "id")
    assert here.returncode == 0, here.stderr
    there = run(ORDERS, tmp_path / "in", bucket.url("there"), "--columns", "id", "--engine", engine, "--json")
    assert there.returncode == 0, there.stderr
    told = json.loads(there.stdout)
    assert (told["engine"], told["rows"], told["row_errors"]) == (engine, 120, {"invalid": 1})
    assert bucket.contents("there") == contents(tmp_path / "here")


def test_an_object_store_is_read_and_written_by_an_engine_and_a_job_there_is_continued(
    engine: str, bucket: Bucket, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for position in range(3):
        lines = [
            json.dumps(row)
            for row in orders(40, 40 * position).select(["id", "price", "quantity"]).to_pylist()
        ]
        (tmp_path / "in" / f"{position}.jsonl").write_text("\n".join(lines) + "\n")
        bucket.write(f"in/{position}.jsonl", (tmp_path / "in" / f"{position}.jsonl").read_bytes())
    options = ("--columns", "id", "--types", "id=int64")
    there = (ORDERS, bucket.url("in"), bucket.url("there"), *options, "--engine", engine, "--json")
    first = run(*there)
    assert first.returncode == 0, first.stderr
    local = run(ORDERS, tmp_path / "in", tmp_path / "here", *options)
    assert local.returncode == 0, local.stderr
    for name in ("part-00000-u00000.parquet", "part-00002-u00000.parquet"):
        obtained, expected = bucket.read(f"there/{name}"), (tmp_path / "here" / name).read_bytes()
        assert obtained == expected
    bucket.files.delete_file(f"{bucket.name}/there/part-00001-u00000.parquet")
    again = run(*there)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["resumed_parts"] == 2
    assert status(bucket.url("there")).state == "complete"
    assert pq.read_table(tmp_path / "here").num_rows == 120


def test_workers_of_an_engine_use_the_size_that_was_measured_once(engine: str, tmp_path: Path) -> None:
    write_numbers(tmp_path / "in", range(3000), range(3000))
    arguments = (TRAYS, tmp_path / "in", tmp_path / "out", "--batch-rows", "auto", "--engine", engine)
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    rows = told["batch_rows"]
    assert told["sizing"]["measured"][0]["rows"] == 64
    assert json.loads((tmp_path / "out" / "_manifest.json").read_text())["batch_rows"] == rows
    assert set(read_parts(tmp_path / "out").column("rows").to_pylist()) == {rows, 3000 % rows} - {0}
