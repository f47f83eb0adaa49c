from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Parity


@pytest.fixture
def tables(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3], "y": [1.0, 2.0, 3.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [3, 2, 1], "y": [3.0, 2.0, 1.0]}), tmp_path / "shuffled.parquet")
    pq.write_table(pa.table({"id": [1, 2, 3], "y": [1.0, 2.0, 3.01]}), tmp_path / "near.parquet")
    pq.write_table(
        pa.table({"id": pa.array([], pa.int64()), "y": pa.array([], pa.float64())}),
        tmp_path / "empty.parquet",
    )
    (tmp_path / "loose.toml").write_text('[tolerance.y]\nkind = "close"\nrtol = 0.01\n', encoding="utf-8")
    (tmp_path / "odd.toml").write_text("[tolerances.y]\nkind = 'close'\n", encoding="utf-8")
    (tmp_path / "text.parquet").write_text("no parquet", encoding="utf-8")


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["a.parquet", "a.parquet"], 0),
        (["a.parquet", "shuffled.parquet"], 1),
        (["a.parquet", "shuffled.parquet", "--key", "id"], 0),
        (["a.parquet", "near.parquet"], 1),
        (["a.parquet", "near.parquet", "--tolerance", "loose.toml"], 0),
        (["empty.parquet", "empty.parquet"], 5),
        (["a.parquet", "none.parquet"], 2),
        (["a.parquet", "text.parquet"], 2),
        (["a.parquet", "a.parquet", "--key", "idd"], 2),
        (["a.parquet", "a.parquet", "--tolerance", "odd.toml"], 2),
        (["a.parquet", "a.parquet", "--tolerance", "none.toml"], 2),
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
    assert (found["verdict"], found["failing_rows"]) == ("divergent", [2])
