"""What is checked before the first row is scored, and how the work is cut."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.errors import DatasetError
from parity.registry import load_handler
from parity_batch import plan as planning
from parity_batch.plan import make_plan
from tests.batch.jobs import ORDERS, orders, write_orders


def plan_of(folder: Path, *columns: str) -> planning.Plan:
    return make_plan([folder], load_handler(ORDERS), columns)


def test_each_file_is_cut_into_units_of_whole_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_orders(tmp_path, (1000, 0, 300), row_group_rows=100)
    group_bytes = plan_of(tmp_path).sources[0].row_groups[0].size_bytes
    monkeypatch.setattr(planning, "UNIT_BYTES", group_bytes * 4)
    units = plan_of(tmp_path).units
    places = [(u.part, u.first_group, u.end_group, u.first_row, u.num_rows) for u in units]
    assert places == [
        ("part-00000-u00000", 0, 4, 0, 400),
        ("part-00000-u00001", 4, 8, 400, 400),
        ("part-00000-u00002", 8, 10, 800, 200),
        ("part-00001-u00000", 0, 1, 0, 0),
        ("part-00002-u00000", 0, 3, 0, 300),
    ]


def test_an_oversized_row_group_is_a_unit_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_orders(tmp_path, (1000,), row_group_rows=400)
    monkeypatch.setattr(planning, "UNIT_BYTES", 10)
    assert [unit.num_rows for unit in plan_of(tmp_path).units] == [400, 400, 200]


def test_only_the_columns_that_are_read_count_for_the_size(tmp_path: Path) -> None:
    write_orders(tmp_path, (1000,))
    assert plan_of(tmp_path).units[0].size_bytes < plan_of(tmp_path, "note").units[0].size_bytes


def test_every_problem_of_every_file_is_named_at_once(tmp_path: Path) -> None:
    write_orders(tmp_path, (10,))
    (tmp_path / "empty.parquet").touch()
    good = (tmp_path / "orders-00.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(good[:-7])
    footer = int.from_bytes(good[-8:-4], "little") + 8
    (tmp_path / "footer.parquet").write_bytes(good[:-footer] + b"\xff" * 64 + good[64 - footer :])
    pq.write_table(orders(10).drop_columns(["price"]), tmp_path / "missing.parquet")
    texts = orders(10).set_column(2, "quantity", pa.array(["many"] * 10))
    pq.write_table(texts, tmp_path / "wrong.parquet")
    strict = orders(10).schema.field("id").with_nullable(False)
    required = orders(10).set_column(0, strict, orders(10).column("id"))
    pq.write_table(required, tmp_path / "required.parquet")
    pq.write_table(orders(10).drop_columns(["id"]), tmp_path / "no_id.parquet")
    with pytest.raises(DatasetError) as caught:
        plan_of(tmp_path, "id")
    lines = {line.strip().partition(":")[0]: line for line in str(caught.value).splitlines()[1:]}
    assert "0 bytes" in lines["empty.parquet"]
    assert "does not end in a footer" in lines["cut.parquet"]
    assert "footer cannot be read" in lines["footer.parquet"]
    assert "'price'" in lines["missing.parquet"]
    assert "missing" in lines["missing.parquet"]
    assert "'quantity'" in lines["wrong.parquet"]
    assert "'id' is not there, and may not be null in required.parquet" in lines["no_id.parquet"]
    assert len(lines) == 6


def test_a_problem_that_files_share_is_told_once(tmp_path: Path) -> None:
    for name in "abc":
        pq.write_table(orders(5).drop_columns(["price"]), tmp_path / f"{name}.parquet")
    with pytest.raises(DatasetError, match=r"a\.parquet and 2 more files: .*'price'"):
        plan_of(tmp_path)


@pytest.mark.parametrize("column", ["total", "_error"])
def test_a_pass_through_column_must_not_take_an_outputs_place(tmp_path: Path, column: str) -> None:
    write_orders(tmp_path, (10,))
    with pytest.raises(DatasetError, match=f"pass-through column '{column}'"):
        plan_of(tmp_path, column)


def test_a_pass_through_column_is_named_once(tmp_path: Path) -> None:
    write_orders(tmp_path, (10,))
    with pytest.raises(DatasetError, match="named 2 times"):
        plan_of(tmp_path, "id", "id")


def test_a_misspelt_pass_through_column_names_near_ones(tmp_path: Path) -> None:
    write_orders(tmp_path, (10,))
    with pytest.raises(DatasetError, match="did you mean 'note'"):
        plan_of(tmp_path, "notes")
