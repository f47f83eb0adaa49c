"""CSV, JSON lines and Arrow files are scored as Parquet is: same rows, errors, resume; nothing inferred."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from parity import Int64, String
from parity.errors import ConfigError, DatasetError, ResumeError
from parity_batch import Settings, preview, score
from parity_batch.containers import TextColumns, text_rows
from tests.batch.jobs import (
    ORDERS,
    contents,
    expected_total,
    orders,
    read_parts,
    run,
    run_and_kill,
    write_orders,
)
from tests.batch.test_engines import Processes

ROWS = 5000


def as_csv(table: pa.Table, path: Path, delimiter: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(table.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))


def as_jsonl(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), encoding="utf-8")


def as_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=700)


def as_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=700)


def packed(
    write: Callable[[pa.Table, Path], None], pack: Callable[[bytes], Any]
) -> Callable[[pa.Table, Path], None]:
    def written(table: pa.Table, path: Path) -> None:
        write(table, path)
        path.write_bytes(pack(path.read_bytes()))

    return written


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "rows.csv": as_csv,
    "rows.tsv": lambda table, path: as_csv(table, path, "\t"),
    "rows.csv.gz": packed(as_csv, gzip.compress),
    "rows.jsonl": as_jsonl,
    "rows.ndjson": as_jsonl,
    "rows.jsonl.zst": packed(as_jsonl, zstd),
    "rows.jsonl.bz2": packed(as_jsonl, bz2.compress),
    "rows.arrow": as_arrow,
    "rows.arrows": as_stream,
    "rows.feather": lambda table, path: pyarrow.feather.write_feather(table, path, compression="lz4"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_gives_the_answers_of_the_same_rows_in_parquet(tmp_path: Path, name: str) -> None:
    table = orders(ROWS)
    pq.write_table(table, tmp_path / "rows.parquet")
    WRITERS[name](table, tmp_path / name)
    settings = Settings(types={} if "arrow" in name or "feather" in name else {"id": "int64"})
    score(tmp_path / "rows.parquet", tmp_path / "as-parquet", ORDERS, columns=["id", "note"])
    summary = score(tmp_path / name, tmp_path / "out", ORDERS, columns=["id", "note"], settings=settings)
    assert summary.rows == ROWS
    assert summary.failed_rows == 0
    assert read_parts(tmp_path / "out").equals(read_parts(tmp_path / "as-parquet"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.csv",
            'id,note,quantity,price,extra\n007,"a\nb",3,1.5,9\n008,,4,abc,9\n,"",0xF,2.5,9\n010,c,-5,2.5,9\n',
        ),
        (
            "a.jsonl",
            '{"id":"007","note":"a\\nb","quantity":3,"price":1.5}\n\n'
            '{"id":"008","quantity":4,"price":"abc","x":1}\n'
            '{"id":null,"note":"","quantity":"0xF","price":2.5}\n'
            '{"id":"010","note":"c","quantity":-5,"price":2.5}\n',
        ),
    ],
)
def test_text_stays_text_and_a_value_that_does_not_fit_is_an_error_of_its_row(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    summary = score(tmp_path / name, tmp_path / "out", ORDERS, columns=["id", "note"])
    parts = read_parts(tmp_path / "out")
    assert parts.column("id").to_pylist() == ["007", "008", None, "010"]
    assert parts.column("note").to_pylist() == ["a\nb", None, "", "c"]
    assert parts.column("total").to_pylist() == [11.25, None, None, None]
    assert summary.row_errors == {"invalid": 2, "rejected": 1}
    errors = pq.read_table(next((tmp_path / "out" / "_errors").glob("*.parquet"))).to_pylist()
    assert [(error["_file"], error["_row"], error["_field"]) for error in errors[:2]] == [
        (name, 1, "price"),
        (name, 2, "quantity"),
    ]
    assert "'abc'" in errors[0]["_message"]
    assert errors[0]["quantity"] == 4
    assert errors[0]["price"] is None


def test_a_line_that_is_no_json_is_an_error_of_its_row(tmp_path: Path) -> None:
    good = b'{"id":"1","quantity":3,"price":1.5}\n'
    (tmp_path / "a.jsonl").write_bytes(good + b"{oops\n" + b'{"id":"\xff"}\n' + b"[1]\n" + good)
    summary = score(tmp_path / "a.jsonl", tmp_path / "out", ORDERS, columns=["id"])
    assert read_parts(tmp_path / "out").column("id").to_pylist() == ["1", None, None, None, "1"]
    assert summary.row_errors == {"invalid": 3}


def test_numbers_keep_every_digit(tmp_path: Path) -> None:
    big = 2**53 + 1
    (tmp_path / "a.csv").write_text(
        f"quantity,price,key\n{big},1.5,{big}\n1,1e39,x\n2,nan,\n", encoding="utf-8"
    )
    settings = Settings(types={"key": "int64"})
    summary = score(
        tmp_path / "a.csv", tmp_path / "out", ORDERS, columns=["quantity", "key"], settings=settings
    )
    parts = read_parts(tmp_path / "out")
    assert parts.column("quantity").to_pylist() == [big, 1, 2]
    assert parts.column("key").to_pylist() == [big, None, None]
    assert parts.column("_error").is_valid().to_pylist() == [False, True, False]
    assert np.isnan(parts.column("total")[2].as_py())
    assert summary.row_errors == {"invalid": 1}


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.arrow"])
def test_where_leaves_rows_out_but_none_that_could_not_be_read(tmp_path: Path, name: str) -> None:
    table = orders(ROWS)
    WRITERS[f"rows{Path(name).suffix}"](table, tmp_path / name)
    if name != "a.arrow":
        with (tmp_path / name).open("a", encoding="utf-8") as file:
            file.write(
                "1,2.0,many,x\n" if name == "a.csv" else '{"id": 1, "price": 2.0, "quantity": "many"}\n'
            )
    score(
        tmp_path / name, tmp_path / "out", ORDERS, columns=["note"], settings=Settings(where="quantity == 7")
    )
    found = read_parts(tmp_path / "out")
    kept = table.filter(pa.array(table.column("quantity").to_numpy() == 7))
    assert np.array_equal(found.column("total").to_numpy()[: kept.num_rows], expected_total(kept))
    assert found.num_rows == kept.num_rows + (name != "a.arrow")


def test_a_map_reads_a_field_from_another_column_and_a_preview_writes_nothing(tmp_path: Path) -> None:
    as_csv(orders(300).rename_columns(["id", "unit price", "quantity", "note"]), tmp_path / "a.csv")
    settings = Settings(renames={"price": "unit price"})
    planned = preview(tmp_path / "a.csv", ORDERS, columns=["id"], settings=settings)
    assert (planned.rows, planned.mapping["price"]) == (300, ("unit price", "float"))
    assert planned.schema["id"] == "string"
    summary = score(tmp_path / "a.csv", tmp_path / "out", ORDERS, columns=["id"], settings=settings)
    assert (summary.rows, summary.failed_rows) == (300, 0)


def test_processes_of_another_engine_write_what_the_local_one_writes(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        as_jsonl(orders(400, 400 * number), tmp_path / "in" / f"{number}.jsonl")
    given: dict[str, Any] = {"columns": ["id"]}
    score(tmp_path / "in", tmp_path / "here", ORDERS, **given)
    score(tmp_path / "in", tmp_path / "there", ORDERS, settings=Settings(engine=Processes()), **given)
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["{}.csv.gz", "{}.jsonl"])
def test_killed_and_started_again_it_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    for number in range(6):
        WRITERS[name.format("rows")](orders(3000, 3000 * number), tmp_path / "in" / name.format(number))
    whole, out = tmp_path / "whole", tmp_path / "out"
    arguments = ("--columns", "id", "--batch-rows", 16, "--workers", 1)
    assert run(ORDERS, tmp_path / "in", whole, *arguments).returncode == 0
    done = out / "_units" / "part-00001-u00000.json"
    assert run_and_kill((ORDERS, tmp_path / "in", out, *arguments), done.exists)
    again = run(ORDERS, tmp_path / "in", out, "--resume", *arguments)
    assert again.returncode == 0, again.stderr
    assert contents(out) == contents(whole)
    assert len(list((out / "_units").glob("*.json"))) == 6


def test_a_changed_file_is_not_continued(tmp_path: Path) -> None:
    as_csv(orders(10), tmp_path / "a.csv")
    assert run(ORDERS, tmp_path / "a.csv", tmp_path / "out").returncode == 0
    as_csv(orders(11), tmp_path / "a.csv")
    refused = run(ORDERS, tmp_path / "a.csv", tmp_path / "out", "--resume")
    assert refused.returncode == 2
    assert "a.csv: changed" in refused.stderr


def test_folders_of_several_formats_are_refused_until_one_is_said(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    as_csv(orders(10), tmp_path / "in" / "a.csv")
    as_jsonl(orders(20), tmp_path / "in" / "b.jsonl")
    with pytest.raises(DatasetError, match=r"several formats: 1 csv \(a.csv\), 1 jsonl \(b.jsonl\)"):
        score(tmp_path / "in", tmp_path / "out", ORDERS)
    settings = Settings(input_format="jsonl")
    assert score(tmp_path / "in", tmp_path / "out", ORDERS, settings=settings).rows == 20


def test_a_format_is_said_where_the_name_does_not_tell(tmp_path: Path) -> None:
    as_csv(orders(10), tmp_path / "rows.txt")
    settings = Settings(input_format="csv")
    assert score(tmp_path / "rows.txt", tmp_path / "out", ORDERS, settings=settings).rows == 10
    with pytest.raises(ConfigError, match="'cvs' is none of parquet, arrow, csv"):
        Settings(input_format="cvs")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def scribble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 64] = b"\xee" * 64
    path.write_bytes(bytes(data))


def ragged(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "1,2\n", encoding="utf-8")


def blank(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("rows.csv.gz", cut),
        ("rows.csv.gz", scribble),
        ("rows.jsonl.zst", cut),
        ("rows.arrow", cut),
        ("rows.arrows", cut),
        ("rows.feather", scribble),
        ("rows.csv", ragged),
        ("rows.csv", blank),
        ("rows.arrow", blank),
    ],
)
def test_a_damaged_file_is_named_before_anything_is_scored_or_left_out(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    (tmp_path / "in").mkdir()
    table = orders(ROWS)
    WRITERS[name](table, tmp_path / "in" / f"good-{name}")
    shutil.copy(tmp_path / "in" / f"good-{name}", tmp_path / "in" / f"bad-{name}")
    damage(tmp_path / "in" / f"bad-{name}")
    with pytest.raises(DatasetError, match=f"bad-{name}"):
        score(tmp_path / "in", tmp_path / "out", ORDERS)
    assert not (tmp_path / "out").exists()
    summary = score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(on_file_error="skip"))
    assert list(summary.skipped_files) == [f"bad-{name}"]
    assert np.array_equal(read_parts(tmp_path / "out").column("total").to_numpy(), expected_total(table))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_missing_columns_and_wrong_types_are_told_before_anything_is_scored(
    tmp_path: Path, name: str
) -> None:
    WRITERS[f"rows{Path(name).suffix}"](
        orders(10).rename_columns(["id", "prize", "quantity", "note"]), tmp_path / name
    )
    with pytest.raises(
        DatasetError, match=r"'price' \(Float32\) is missing.*--map price=prize|'price'.*missing"
    ):
        score(tmp_path / name, tmp_path / "out", ORDERS)
    renames = {"price": "prize"}
    with pytest.raises(DatasetError, match="pass-through column 'shop' is not there"):
        score(tmp_path / name, tmp_path / "out", ORDERS, columns=["shop"], settings=Settings(renames=renames))
    for types, message in [
        ({"id": "int65"}, "no such type"),
        ({"quantity": "int32"}, "has the type of its field"),
        ({"other": "int64"}, "is not read"),
    ]:
        with pytest.raises(ConfigError, match=message):
            score(
                tmp_path / name, tmp_path / "out", ORDERS,
                columns=["id"], settings=Settings(types=types, renames=renames),
            )  # fmt: skip
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Both files fill a row group of the output, so that what is left to grow is what is read ahead."""
    peaks: dict[int, int] = {}
    text = "".join(f"{row % 100},{row % 7},{'x' * 200}\n" for row in range(30_000))
    for copies in (16, 48):
        (tmp_path / "a.csv").write_text("quantity,price,note\n" + text * copies, encoding="utf-8")
        done = run(ORDERS, tmp_path / "a.csv", tmp_path / f"out{copies}", "--columns", "note", "--json")
        peaks[copies] = json.loads(done.stdout)["peak_rss_bytes"]
    assert peaks[48] < 1.1 * peaks[16], peaks


def test_the_reader_of_csv_does_not_run_far_ahead(tmp_path: Path) -> None:
    row = b"1," + b"x" * 1000 + b"\n"
    (tmp_path / "a.csv").write_bytes(b"quantity,note\n" + row * (100 * 2**20 // len(row)))
    columns = TextColumns({"quantity": Int64(), "note": String()}, frozenset())
    with pa.OSFile(str(tmp_path / "a.csv"), "rb") as stream:
        batches = text_rows(stream, "csv", ["quantity", "note"], columns, 2, lambda: None)
        next(batches)
        time.sleep(2)  # however long the rows take
        assert stream.tell() <= 40 * 2**20
        batches.close()


def test_a_row_that_is_larger_than_a_small_block_is_read_and_no_row_twice(tmp_path: Path) -> None:
    large = "y" * (3 * 2**20)
    texts = ["a", "b" * 700_000, "c" * 700_000, large, "d", large, "e"]
    lines = [f'{row},"{text}"\n' for row, text in enumerate(texts)]
    (tmp_path / "a.csv").write_text("quantity,note\n" + "".join(lines))
    columns = TextColumns({"quantity": Int64(), "note": String()}, frozenset())

    def opened() -> Any:
        return pa.OSFile(str(tmp_path / "a.csv"), "rb")

    with opened() as stream:
        batches = list(text_rows(stream, "csv", ["quantity", "note"], columns, 2, opened))
    assert [value for batch in batches for value in batch.column("quantity").to_pylist()] == list(range(7))
    assert [value for batch in batches for value in batch.column("note").to_pylist()] == texts


def test_a_blank_line_of_a_single_column_is_a_row() -> None:
    columns = TextColumns({"i": String(nullable=True)}, frozenset())
    found = list(text_rows(io.BytesIO(b"i\n1\n\n3\n"), "csv", ["i"], columns, 1))
    assert [value for rows in found for value in rows.column("i").to_pylist()] == ["1", None, "3"]


def test_a_first_line_with_another_delimiter_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;price;quantity\n1;2.5;3\n")
    with pytest.raises(
        DatasetError, match="the first line is one column, 'id;price;quantity'; --delimiter ';'"
    ):
        score(tmp_path / "a.csv", tmp_path / "out", ORDERS)
    with pytest.raises(DatasetError, match=r"'price'.* is missing"):  # it is one, as the user says
        score(tmp_path / "a.csv", tmp_path / "out", ORDERS, settings=Settings(delimiter=","))
    assert score(tmp_path / "a.csv", tmp_path / "out", ORDERS, settings=Settings(delimiter=";")).rows == 1


def test_csv_may_have_another_delimiter(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text('id;price;quantity;note\n1;2,5;3;x\n2;1.5;3;"a;b, c"\n')
    summary = score(
        tmp_path / "in", tmp_path / "out", ORDERS, columns=["note"], settings=Settings(delimiter=";")
    )
    assert summary.row_errors == {"invalid": 1}  # 2,5 is no number
    assert read_parts(tmp_path / "out")["note"].to_pylist() == ["x", "a;b, c"]
    (tmp_path / "in" / "a.csv").write_text("id,price,quantity,note\n1,2.5,3,x\n")
    with pytest.raises(ResumeError, match="delimiter: was ;, is None"):
        score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["note"])
    with pytest.raises(ConfigError, match="is not one character"):
        Settings(delimiter=";;")
    write_orders(tmp_path / "parquet", (5,))
    with pytest.raises(ConfigError, match="--delimiter is for CSV, and the inputs are none"):
        score(tmp_path / "parquet", tmp_path / "new", ORDERS, settings=Settings(delimiter=";"))
