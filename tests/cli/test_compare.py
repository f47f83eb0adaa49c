from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Parity


@pytest.fixture
def tables(tmp_path: Path) -> None:
    def write(name: str, ids: list[int], **columns: Any) -> None:
        table: dict[str, Any] = {"id": pa.array(ids, pa.int64()), **columns}
        pq.write_table(pa.table(table), tmp_path / name)

    write("a.parquet", [1, 2, 3], y=pa.array([1.0, 2.0, 3.0]))
    write("shuffled.parquet", [3, 2, 1], y=pa.array([3.0, 2.0, 1.0]))
    write("near.parquet", [1, 2, 3], y=pa.array([1.0, 2.0, 3.01]))
    write("empty.parquet", [], y=pa.array([], pa.float64()))
    write("twice.parquet", [1, 1, 2], y=pa.array([1.0, 1.0, 2.0]))
    write("noise.parquet", [1, 2, 3], y=pa.array([1.0, 2.0, np.nextafter(3.0, 4.0)]))
    (tmp_path / "parts").mkdir()
    for part, row in enumerate((1, 2, 3)):
        write(f"parts/part-{part}.parquet", [row], y=pa.array([float(row)]))
    (tmp_path / "loose.toml").write_text('[tolerance.y]\nkind = "close"\nrtol = 0.01\n', encoding="utf-8")
    pair = '[pair."cpu:*|cuda:*".tolerance.y]\nkind = "close"\nrtol = 0.01\n'
    (tmp_path / "pair.toml").write_text(pair, encoding="utf-8")
    (tmp_path / "odd.toml").write_text("[tolerances.y]\nkind = 'close'\n", encoding="utf-8")
    (tmp_path / "unused.toml").write_text("[dtype.float16]\nkind = 'exact'\n", encoding="utf-8")
    (tmp_path / "text.parquet").write_text("no parquet", encoding="utf-8")


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["a.parquet", "a.parquet"], 0),
        (["a.parquet", "parts"], 0),
        (["parts/part-*.parquet", "a.parquet", "--key", "id", "--key", "y"], 2),
        (["parts/part-*.parquet", "a.parquet", "--key", "id"], 0),
        (["a.parquet", "shuffled.parquet"], 1),
        (["a.parquet", "shuffled.parquet", "--key", "id"], 0),
        (["a.parquet", "twice.parquet", "--key", "id"], 1),
        (["a.parquet", "near.parquet"], 1),
        (["a.parquet", "near.parquet", "--tolerance", "loose.toml"], 0),
        (["a.parquet", "near.parquet", "--tolerance", "pair.toml"], 1),
        (["a.parquet", "near.parquet", "--tolerance", "pair.toml", "--pair", "cuda:float16|cpu:float32"], 0),
        (["a.parquet", "near.parquet", "--columns", "id"], 0),
        (["a.parquet", "near.parquet", "--ignore", "y"], 0),
        (["a.parquet", "near.parquet", "--ignore", "y", "--ignore", "id"], 5),
        (["empty.parquet", "empty.parquet"], 5),
        (["empty.parquet", "empty.parquet", "--suggest"], 5),
        (["a.parquet", "empty.parquet"], 1),
        (["a.parquet", "none.parquet"], 2),
        (["a.parquet", "text.parquet"], 2),
        (["a.parquet", "a.parquet", "--key", "idd"], 2),
        (["a.parquet", "a.parquet", "--key", "y"], 2),
        (["a.parquet", "a.parquet", "--tolerance", "odd.toml"], 2),
        (["a.parquet", "a.parquet", "--tolerance", "unused.toml"], 2),
        (["a.parquet", "a.parquet", "--tolerance", "none.toml"], 2),
        (["a.parquet", "a.parquet", "--columns", "z"], 2),
        (["a.parquet", "a.parquet", "--ignore", "z"], 2),
        (["a.parquet", "a.parquet", "--pair", "cpu"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_the_exit_code_says_whether_tables_agree(parity: Parity, arguments: list[str], code: int) -> None:
    done = parity("compare", *arguments)
    assert done.code == code
    assert done.err.startswith("error: ") is (code == 2)


@pytest.mark.usefixtures("tables")
def test_json_holds_the_comparison(parity: Parity) -> None:
    found = json.loads(parity("compare", "a.parquet", "near.parquet", "--json").out)
    assert (found["verdict"], found["failing_rows"], found["failing"]) == ("divergent", [2], 1)


@pytest.mark.usefixtures("tables")
def test_repeated_keys_are_named_on_the_terminal(parity: Parity) -> None:
    done = parity("compare", "a.parquet", "twice.parquet", "--key", "id")
    assert "1 row repeated in obtained: id 1 (2 times)" in done.out
    assert "1 row missing from obtained: id 3" in done.out


@pytest.mark.usefixtures("tables")
def test_the_suggested_tolerance_is_a_file_under_which_the_two_agree(parity: Parity, tmp_path: Path) -> None:
    done = parity("compare", "a.parquet", "noise.parquet", "--suggest")
    assert done.code == 0
    assert "noise.parquet: within" in done.err
    assert tomllib.loads(done.out)["tolerance"]["y"]["ulp"] == 2
    (tmp_path / "suggested.toml").write_text(done.out, encoding="utf-8")
    again = parity(
        "compare", "a.parquet", "noise.parquet", "--tolerance", "suggested.toml", "--json", "--suggest"
    )
    assert again.code == 0
    assert json.loads(again.out)["suggestion"]["y"]["worst_ulp"] == 1


@pytest.mark.usefixtures("tables")
def test_what_no_tolerance_covers_is_suggested_as_a_remark(parity: Parity) -> None:
    done = parity("compare", "a.parquet", "shuffled.parquet", "--suggest")
    assert done.code == 1
    assert tomllib.loads(done.out) == {}
    assert "# id: 2 of 3 rows differ in more than rounding; look for a cause" in done.out
