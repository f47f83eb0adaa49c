"""What may fail before a job stops: rows, files, and cells of any size."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from parity.errors import ConfigError, DatasetError, RowsError, counted
from parity_batch import Settings, job, plan, preview, score, status
from parity_batch.page import page
from tests.batch.jobs import (
    HANDLERS,
    ORDERS,
    command,
    contents,
    orders,
    part_files,
    read_parts,
    run,
    write_orders,
)


def write_bad(folder: Path, rows: int, bad: int) -> None:
    """A file of `rows` rows, of which the first `bad` are refused."""
    folder.mkdir(exist_ok=True)
    quantity = pa.array([-1 if row < bad else 1 for row in range(rows)], pa.int64())
    pq.write_table(orders(rows).set_column(2, "quantity", quantity), folder / "a.parquet", row_group_size=7)


@pytest.mark.parametrize(
    ("limit", "holds"), [("10%", True), ("9.9%", False), ("10", True), ("9", False), (9, False)]
)
def test_a_limit_is_a_number_of_rows_or_a_share_of_all(tmp_path: Path, limit: str | int, holds: bool) -> None:
    write_bad(tmp_path / "in", 100, 10)
    settings = Settings(max_errors=limit, batch_rows=5)
    if holds:
        assert score(tmp_path / "in", tmp_path / "out", ORDERS, settings=settings).failed_rows == 10
        return
    with pytest.raises(RowsError, match=f"10 rows failed and --max-errors allows {limit}"):
        score(tmp_path / "in", tmp_path / "out", ORDERS, settings=settings)
    assert not (tmp_path / "out" / "_SUCCESS").exists()


@pytest.mark.parametrize("limit", ["many", "-1", "101%", "%", "1.5", "nan%"])
def test_a_limit_that_is_none_is_refused(limit: str) -> None:
    with pytest.raises(ConfigError, match="no number of rows and no share such as '1%'"):
        Settings(max_errors=limit)


def test_a_job_whose_every_row_failed_is_no_success_unless_that_is_allowed(tmp_path: Path) -> None:
    write_bad(tmp_path / "in", 20, 20)
    with pytest.raises(RowsError, match=r"every row failed \(20\); .*/_errors says why"):
        score(tmp_path / "in", tmp_path / "out", ORDERS)
    assert len(part_files(tmp_path / "out")) == 1
    assert (tmp_path / "out" / "_summary.json").exists()
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    with pytest.raises(RowsError, match="every row failed"):
        score(tmp_path / "in", tmp_path / "out", ORDERS)
    summary = score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(max_errors="100%"))
    assert (summary.failed_rows, summary.resumed_parts) == (20, 1)
    assert (tmp_path / "out" / "_SUCCESS").exists()


def run_poisoned(
    folder: Path, inputs: str, *options: str, good: int = 10
) -> subprocess.CompletedProcess[str]:
    """Score 3,000 rows, all but the last few of which fail, from a folder or a pipe."""
    table = orders(3000).set_column(2, "quantity", pa.array([666] * (3000 - good) + [1] * good))
    (folder / "in").mkdir()
    pq.write_table(table, folder / "in" / "a.parquet")
    cast("Any", pacsv).write_csv(table, folder / "rows.csv")
    if inputs == "in":
        return run(ORDERS, folder / "in", folder / "out", *options)
    with (folder / "rows.csv").open("rb") as stream:
        return subprocess.run(
            command(ORDERS, "-", "-", "--input-format", "csv", *options),
            stdin=stream, capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.mark.parametrize("inputs", ["in", "rows.csv"])
def test_failures_of_one_kind_are_logged_a_few_times(tmp_path: Path, inputs: str) -> None:
    done = run_poisoned(tmp_path, inputs, "--log-failures")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("event=row_failed") == 3
    assert done.stderr.count("quantity 666 is poison") >= 3
    assert done.stderr.count("more like this one are not logged") == 1


@pytest.mark.parametrize("inputs", ["in", "rows.csv"])
def test_where_no_terminal_listens_kinds_and_places_are_told_and_no_texts(
    tmp_path: Path, inputs: str
) -> None:
    done = run_poisoned(tmp_path, inputs)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("event=row_failed") == done.stderr.count("\nValueError\n") == 3
    assert "handler.py" in done.stderr
    assert "666 is poison" not in done.stderr
    if inputs == "in":
        errors = pq.read_table(tmp_path / "out" / "_errors").column("_message").to_pylist()
        assert "quantity 666 is poison" in str(errors[0])
    else:
        assert done.stderr.count(": failed in stage preprocess\n") == 5
        assert done.stdout.count("quantity 666 is poison") == 2990


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "\n  failed in preprocess: ValueError\n"),
        (["--log-failures"], "handler orders: preprocess raised ValueError: quantity 666 is poison\n"),
        (["--max-errors", "0"], "row 1023: failed in stage preprocess\n"),
        (["--max-errors", "0", "--log-failures"], "ValueError: quantity 666 is poison\n"),
    ],
)
def test_what_a_job_says_at_its_end_tells_texts_only_where_its_log_does(
    tmp_path: Path, options: list[str], told: str
) -> None:
    done = run_poisoned(tmp_path, "in", *options, good=0)
    assert done.returncode == 2
    assert told in done.stderr
    assert ("666 is poison" in done.stderr) == ("--log-failures" in options)


@pytest.mark.parametrize("options", [[], ["--no-log-failures"]])
def test_on_a_terminal_texts_are_told_unless_told_not_to(tmp_path: Path, options: list[str]) -> None:
    write_bad(tmp_path / "in", 10, 10)
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command(ORDERS, tmp_path / "in", tmp_path / "out", "--no-progress", *options),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    told = b""
    with contextlib.suppress(OSError):  # the terminal's other end is gone
        while piece := os.read(ours, 65536):
            told += piece
    os.close(ours)
    assert process.wait() == 2
    assert b"every row failed (10)" in told
    assert (b"quantity -1" in told) == (not options)


def damaged(path: Path) -> None:
    """Overwrite the pages and keep the footer."""
    data = bytearray(path.read_bytes())
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:end] = b"\xff" * (end - 4)
    path.write_bytes(data)


def test_a_file_with_damaged_pages_stops_the_job_or_is_left_out(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (300, 400, 500))
    damaged(tmp_path / "in" / "orders-01.parquet")
    with pytest.raises(
        DatasetError, match=r"orders-01\.parquet: row groups .* --on-file-error skip leaves it"
    ):
        score(tmp_path / "in", tmp_path / "out", ORDERS)
    settings = Settings(on_file_error="skip", max_errors=0)
    summary = score(tmp_path / "in", tmp_path / "out", ORDERS, columns=(), settings=settings)
    assert (summary.rows, summary.failed_rows) == (800, 0)
    assert list(summary.skipped_files) == ["orders-01.parquet"]
    assert "cannot be read" in summary.describe()
    assert [path.name for path in part_files(tmp_path / "out")] == [
        "part-00000-u00000.parquet",
        "part-00002-u00000.parquet",
    ]
    before = contents(tmp_path / "out")
    again = score(tmp_path / "in", tmp_path / "out", ORDERS, settings=settings)
    assert (again.resumed_parts, list(again.skipped_files)) == (2, ["orders-01.parquet"])
    assert contents(tmp_path / "out") == before


def test_a_file_with_a_broken_footer_keeps_its_number_when_it_is_left_out(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (3, 4, 5))
    (tmp_path / "in" / "orders-00.parquet").write_bytes(b"")
    summary = score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(on_file_error="skip"))
    assert summary.skipped_files["orders-00.parquet"].startswith("orders-00.parquet: the file has 0 bytes")
    assert [path.name[:10] for path in part_files(tmp_path / "out")] == ["part-00001", "part-00002"]


@pytest.mark.parametrize("footer", [True, False])
@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_a_headline_does_not_call_a_job_done_that_left_files_out(
    tmp_path: Path, footer: bool, left_out: int
) -> None:
    """Whether planning finds them damaged or scoring does."""
    write_orders(tmp_path / "in", (300, 400, 500))
    for name in ("orders-00", "orders-02")[:left_out]:
        path = tmp_path / "in" / f"{name}.parquet"
        path.write_bytes(b"") if footer else damaged(path)
    settings = Settings(on_file_error="skip")
    found = score(tmp_path / "in", tmp_path / "out", ORDERS, settings=settings)
    files = "3 files" + f" ({left_out} of them left out, whole or in part, see below)" * bool(left_out)
    told = found.describe()
    assert told.startswith(f"{found.rows:,} rows of {files} scored by orders@1.2.0 into ")
    assert told.count("\nskipped: orders-0") == left_out
    assert (f"{counted(left_out, 'file')} left out</span>" in page(found)) == bool(left_out)
    where = status(tmp_path / "out")
    assert where.describe().startswith(f"{tmp_path / 'out'}: complete, {files}; orders@1.2.0, profile ")
    assert [item.files for item in (found, where)] == [3, 3]
    if footer:
        planned = preview(tmp_path / "in", ORDERS, settings=settings)
        assert planned.describe().startswith(
            f"{found.rows:,} rows of {files} would be scored by orders@1.2.0"
        )
    resumed = score(tmp_path / "in", tmp_path / "out", ORDERS, settings=settings)
    assert f" rows of {files} scored by " in resumed.describe()


def test_a_file_that_is_left_out_in_part_is_told_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "UNIT_BYTES", 1)
    write_orders(tmp_path / "in", (300, 400), row_group_rows=100)
    path = tmp_path / "in" / "orders-01.parquet"
    data = bytearray(path.read_bytes())
    group = pq.ParquetFile(path).metadata.row_group(3)
    chunks = [group.column(place) for place in range(group.num_columns)]
    first = min(chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks)
    size = sum(chunk.total_compressed_size for chunk in chunks)
    data[first : first + size] = b"\xff" * size
    path.write_bytes(data)
    found = score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(on_file_error="skip"))
    assert found.rows == 600
    assert " rows of 2 files (1 of them left out, whole or in part, see below) scored by" in found.describe()
    assert ": complete, 2 files (1 of them left out, whole or in part" in status(tmp_path / "out").describe()


@pytest.mark.parametrize("footer", [False, True])
def test_a_job_of_which_no_file_can_be_read_is_an_error(tmp_path: Path, footer: bool) -> None:
    write_orders(tmp_path / "in", (300,))
    if footer:
        (tmp_path / "in" / "orders-00.parquet").write_bytes(b"PAR1")
    else:
        damaged(tmp_path / "in" / "orders-00.parquet")
    with pytest.raises(DatasetError, match=r"orders-00\.parquet"):
        score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(on_file_error="skip"))
    assert not (tmp_path / "out" / "_SUCCESS").exists()


def texts(sizes: list[int]) -> pa.Table:
    return pa.table({"id": range(len(sizes)), "text": ["x" * size for size in sizes]})


def test_a_cell_that_is_too_large_is_one_row_error(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(texts([3, 5, 2_000_000, 7]), tmp_path / "in" / "a.parquet")
    settings = Settings(max_row_bytes=1_000_000)
    score(tmp_path / "in", tmp_path / "out", HANDLERS / "lengths", columns=["id"], settings=settings)
    scored = read_parts(tmp_path / "out")
    assert scored.column("length").to_pylist() == [3, 5, None, 7]
    error = str(scored.column("_error").to_pylist()[2])
    assert "field 'text' has 2,000" in error
    assert "--max-row-mb allows more" in error
    failed = pq.ParquetFile(tmp_path / "out" / "_errors" / "part-00000-u00000.parquet").read()
    assert failed.column("_row").to_pylist() == [2]
    assert len(failed.column("text")[0].as_py()) == 2_000_000


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.string_view()], ids=str)
@pytest.mark.parametrize("where", ["", "id >= 0"])
def test_a_row_has_the_size_of_its_own_values_and_not_of_all_that_its_column_shares(
    tmp_path: Path, kind: Any, where: str
) -> None:
    sizes = [900_000, *(1_000 + row for row in range(300)), 2_000_000]
    table = texts(sizes)
    table = table.set_column(1, "text", table.column("text").cast(kind))
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    settings = Settings(max_row_bytes=1_000_000, batch_rows=64, where=where)
    summary = score(
        tmp_path / "in", tmp_path / "out", HANDLERS / "lengths", columns=["id"], settings=settings
    )
    assert read_parts(tmp_path / "out").column("length").to_pylist() == [*sizes[:-1], None]
    assert summary.failed_rows == 1


def test_the_status_of_a_job_whose_every_row_failed_says_why(tmp_path: Path) -> None:
    write_bad(tmp_path / "in", 20, 20)
    with pytest.raises(RowsError, match=r"(?s)every row failed.*\n  rejected: handler orders: quantity -1"):
        score(tmp_path / "in", tmp_path / "out", ORDERS)
    found = status(tmp_path / "out")
    assert found.state == "failed"
    assert found.reasons == ("rejected: handler orders: quantity -1 is negative",)
    told = found.describe()
    assert "every row so far, 20 rows failed (20 rejected)" in told
    assert found.reasons[0] in told
    assert "--max-errors 100%" in told
    score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(max_errors="100%"))
    assert status(tmp_path / "out").state == "complete"


def test_the_status_tells_the_most_common_reasons_first_and_numbers_do_not_tell_them_apart(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    rows = orders(10)
    quantity = pa.array([666, -1, -2, -3, -4, None, None, 1, 1, 1], pa.int64())
    pq.write_table(rows.set_column(2, "quantity", quantity), tmp_path / "in" / "a.parquet")
    score(tmp_path / "in", tmp_path / "out", ORDERS)
    found = status(tmp_path / "out")
    assert found.state == "complete"
    kinds = ("rejected: handler orders: quantity -1 is negative", "invalid of field 'quantity'", "failed in")
    assert len(found.reasons) == len(kinds)
    for reason, kind in zip(found.reasons, kinds, strict=True):
        assert reason.startswith(kind)
    assert "ValueError: quantity 666 is poison" in found.reasons[2]
    assert "every row" not in found.describe()


def test_a_job_whose_first_rows_all_fail_says_so_while_it_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_FIRST_ROWS", 40)
    write_bad(tmp_path / "all", 100, 100)
    (tmp_path / "most").mkdir()
    quantity = pa.array([1] + [-1] * 99, pa.int64())
    pq.write_table(orders(100).set_column(2, "quantity", quantity), tmp_path / "most" / "a.parquet")
    settings = Settings(max_errors="100%", batch_rows=10)
    score(tmp_path / "all", tmp_path / "out-all", ORDERS, settings=settings)
    told = [record.getMessage() for record in caplog.records if "rows failed" in record.getMessage()]
    assert len(told) == 1
    assert "each of the first" in told[0]
    caplog.clear()
    score(tmp_path / "most", tmp_path / "out-most", ORDERS, settings=settings)
    assert not [record for record in caplog.records if "rows failed" in record.getMessage()]


@pytest.mark.parametrize(
    ("quantity", "said"),
    [
        (-471, "; the last one: rejected; "),
        (666, "; the last one: failed in stage preprocess; "),
        (-4711, "; the last one: invalid, field 'quantity'; "),
    ],
    ids=["rejected", "failed", "invalid"],
)
def test_the_warning_of_rows_that_all_fail_tells_the_kind_and_none_of_their_values(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    quantity: int,
    said: str,
) -> None:
    monkeypatch.setattr(job, "_FIRST_ROWS", 40)
    table = orders(100).set_column(2, "quantity", pa.array([quantity] * 100))
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    settings = Settings(max_errors="100%", batch_rows=10)
    score(tmp_path / "in", tmp_path / "out", ORDERS, settings=settings)
    (told,) = (record.getMessage() for record in caplog.records if "rows failed" in record.getMessage())
    assert said in told
    assert str(abs(quantity)) not in told


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_cell_of_200_megabytes_is_one_row_error_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(texts([3, 200_000_000, 5]), tmp_path / "in" / "a.parquet", compression="zstd")
    done = run(HANDLERS / "lengths", tmp_path / "in", tmp_path / "out", "--columns", "id")
    assert done.returncode == 0, done.stderr
    assert read_parts(tmp_path / "out").column("length").to_pylist() == [3, None, 5]


@pytest.mark.slow
def test_the_command_says_so_with_its_exit_code(tmp_path: Path) -> None:
    write_bad(tmp_path / "in", 10, 10)
    done = run(ORDERS, tmp_path / "in", tmp_path / "out")
    assert (done.returncode, "every row failed (10)" in done.stderr) == (2, True)
    assert run(ORDERS, tmp_path / "in", tmp_path / "out", "--max-errors", "100%").returncode == 0
