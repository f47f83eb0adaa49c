"""Five changes that snapshot plugins are known to pass in silence, through the command and Parquet files."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from parity.cli import app

ANSWERS: dict[str, Any] = {
    "id": pa.array([1, 2, 3]),
    "text": pa.array(["", "b", "c"]),
    "score": pa.array([0.0, 1e-9, 2.0]),
}


def compared(folder: Path, **changed: Any) -> tuple[int, dict[str, Any]]:
    obtained = {name: values for name, values in {**ANSWERS, **changed}.items() if values is not None}
    pq.write_table(pa.table(ANSWERS), folder / "a.parquet")
    pq.write_table(pa.table(obtained), folder / "b.parquet")
    done = CliRunner().invoke(
        app, ["compare", str(folder / "a.parquet"), str(folder / "b.parquet"), "--json"]
    )
    return done.exit_code, json.loads(done.stdout)


def column(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in found["columns"] if one["name"] == name)


@pytest.mark.slow  # the first call imports the command line
def test_a_column_missing_from_the_new_result(tmp_path: Path):
    code, found = compared(tmp_path, text=None)
    assert code == 1
    assert [(finding["kind"], finding["column"]) for finding in found["findings"]] == [
        ("missing_column", "text")
    ]


def test_integers_that_became_floats(tmp_path: Path):
    code, found = compared(tmp_path, id=pa.array([1, 2, 3], pa.float32()))
    assert code == 1
    (finding,) = found["findings"]
    assert (finding["kind"], finding["expected"], finding["obtained"]) == ("dtype", "int64", "float32")


def test_an_empty_text_that_became_null(tmp_path: Path):
    code, found = compared(tmp_path, text=pa.array([None, "b", "c"]))
    assert code == 1
    assert (column(found, "text")["null_mismatches"], found["failing_rows"]) == (1, [0])


def test_a_zero_that_became_negative_is_noted(tmp_path: Path):
    code, found = compared(tmp_path, score=pa.array([-0.0, 1e-9, 2.0]))
    assert (code, found["verdict"], found["identical_rows"]) == (0, "within", 2)
    assert column(found, "score")["negative_zeros"] == 1


def test_small_values_that_differ_fivefold(tmp_path: Path):
    code, found = compared(tmp_path, score=pa.array([0.0, 5e-9, 2.0]))
    assert code == 1
    assert found["failing_rows"] == [1]
    assert column(found, "score")["worst"][0]["ulp"] > 1e6
