"""`parity batch HANDLER - -`: rows in, answers out, through real pipes."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.batch.jobs import ORDERS, command, expected_total, orders

GOOD = '{"id": "007", "price": 1.5, "quantity": 3}\n'


def pipe(data: bytes, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(ORDERS, "-", "-", *arguments), input=data, capture_output=True, check=False)


def test_answers_alone_are_on_standard_output_and_errors_beside_it() -> None:
    lines = [
        GOOD,
        '{"id": "8", "price": "abc", "quantity": 4}\n',
        '{"id": "9", "price": 1, "quantity": -4}\n',
    ]
    done = pipe("".join(lines).encode(), "--columns", "id")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["id"] for row in rows] == ["007", "8", "9"]
    assert rows[0] == {
        "id": "007", "total": 11.25, "size": "small", "vector": [11.25, -11.25, 5.625], "_error": None,
    }  # fmt: skip
    assert rows[1]["total"] is None
    assert "'abc'" in rows[1]["_error"]
    assert b"row 1: invalid" in done.stderr
    assert b"2 of 3 rows failed" in done.stderr


def test_arrow_goes_in_and_out_with_its_types() -> None:
    table = orders(3000)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arguments = ("--columns", "id", "--input-format", "arrow", "--output-format", "arrow")
    done = pipe(sink.getvalue(), *arguments, "--where", "quantity == 7")
    assert done.returncode == 0, done.stderr
    found = pa.ipc.open_stream(done.stdout).read_all()
    kept = table.filter(pa.array(table.column("quantity").to_numpy() == 7))
    assert found.column("id").equals(kept.column("id"))
    assert np.array_equal(found.column("total").to_numpy(), expected_total(kept))


def test_csv_goes_in_and_out() -> None:
    data = b'id,price,quantity\n007,1.5,3\n"a\nb",2.5,2\n'
    done = pipe(data, "--columns", "id", "--input-format", "csv", "--output-format", "csv")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    assert [(row["id"], row["total"]) for row in rows] == [("007", "11.25"), ("a\nb", "12.5")]
    assert json.loads(rows[0]["vector"]) == [11.25, -11.25, 5.625]


def test_what_is_passed_through_does_not_depend_on_other_rows() -> None:
    data = "id,price,quantity,z\n1,nan,3,inf\n2,inf,3,nan\n3,1.5,3,-inf\n"
    arguments = ("--columns", "id,price,z", "--types", "z=float64", "--input-format", "csv")
    alone = pipe(data.encode(), *arguments)
    beside = pipe((data + "4,bad,3,1\n5,,3,\n").encode(), *arguments)
    assert alone.returncode == beside.returncode == 0, beside.stderr
    lines = beside.stdout.splitlines()
    assert alone.stdout.splitlines() == lines[:3]
    rows = [json.loads(line) for line in lines]
    assert [row["price"] for row in rows] == ["NaN", "Infinity", 1.5, None, None]
    assert [row["z"] for row in rows] == ["Infinity", "NaN", "-Infinity", 1.0, None]


def test_column_names_may_be_of_several_lines() -> None:
    data = b'"a\nb",price,quantity\nx,1,1\n'
    done = pipe(data, "--columns", "a\nb", "--input-format", "csv")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["a\nb"] == "x"


def test_a_number_whose_digits_would_be_lost_is_refused_as_text() -> None:
    ids = ("123456789012345678901234", "18446744073709551615", "9007199254740993", "1.5", "1e3")
    done = pipe(
        "".join(f'{{"id": {i}, "price": 1, "quantity": 1}}\n' for i in ids).encode(), "--columns", "id"
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["id"] for row in rows] == [None, *ids[1:4], "1000.0"]
    assert "write it as a string" in rows[0]["_error"]


@pytest.mark.parametrize("end", ["", "\n"])
def test_column_names_without_rows_are_no_rows(end: str) -> None:
    done = pipe(f"id,price,quantity{end}".encode(), "--columns", "id", "--input-format", "csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""


def test_an_output_that_cannot_be_written_is_told_apart_from_the_input() -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            command(ORDERS, "-", "-"), input=GOOD.encode(), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert b"standard output" in done.stderr
    assert b"cannot be read" not in done.stderr


def test_a_reader_that_has_enough_ends_it_quietly(tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text(GOOD * 60_000, encoding="utf-8")
    with data.open("rb") as rows:
        process = subprocess.Popen(
            command(ORDERS, "-", "-"), stdin=rows, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["total"] == 11.25
        process.stdout.close()
        said = process.stderr.read()
        process.stderr.close()
    assert process.wait() == 0
    assert said == b""


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (b"{}\n" * 3, (), b"every row failed (3)"),
        (GOOD.encode() + b"{}\n{}\n", ("--max-errors", "1"), b"2 rows failed and --max-errors allows 1"),
        (b"prize,quantity\n1,2\n", ("--input-format", "csv"), b"'price' (Float32) is missing"),
        (GOOD.encode() * 3, ("--columns", "idd"), b"did you mean 'id'"),
        (b"\x1f\x8b\x08\x00" * 9, (), b"none of the first lines is a row of JSON"),
        (b"", ("--input-format", "csv"), b"begins with its column names"),
        (b"PAR1", ("--input-format", "parquet"), b"which a pipe has not"),
        (b"no arrow", ("--input-format", "arrow"), b"standard input: cannot be read as arrow"),
        (b"", ("--output-format", "xml"), b"'xml' is none that can be piped"),
        (b"", ("--restart",), b"leave the options of folders out"),
    ],
)
def test_what_is_wrong_is_told_with_exit_code_2(
    data: bytes, arguments: tuple[str, ...], message: bytes
) -> None:
    done = pipe(data, *arguments)
    assert done.returncode == 2
    assert message in b" ".join(done.stderr.split())
