"""Row groups of any size become micro-batches of one size."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity_batch.files import InputFile
from parity_batch.footers import read_source
from parity_batch.layout import Layout
from parity_batch.plan import Unit
from parity_batch.stream import read_unit


def unit_of(path: Path, first: int, end: int) -> Unit:
    source = read_source(InputFile(path, path.name), {"x", "d"})
    rows = sum(group.num_rows for group in source.row_groups[first:end])
    size = sum(group.size_bytes for group in source.row_groups[first:end])
    return Unit("part-00000-u00000", source.file, first, end, 0, rows, size)


@pytest.mark.parametrize("rows", [1, 7, 100, 1000])
def test_rows_are_carried_over_row_group_borders(tmp_path: Path, rows: int) -> None:
    texts = [f"w{value % 7}" for value in range(500)]
    words = pa.array(texts).dictionary_encode()
    pq.write_table(pa.table({"x": range(500), "d": words}), tmp_path / "a.parquet", row_group_size=33)
    unit = unit_of(tmp_path / "a.parquet", 2, 9)
    layout = Layout({}, ("d", "x"), pa.schema([("d", words.type), ("x", pa.int64())]))
    batches = list(read_unit(unit, layout, rows))
    assert [batch.num_rows for batch in batches[:-1]] == [rows] * (len(batches) - 1)
    assert batches[0].schema.names == ["d", "x"]
    assert batches[0].schema.field("d").type == words.type
    assert [v for batch in batches for v in batch.column("x").to_pylist()] == list(range(66, 297))
    assert [v for batch in batches for v in batch.column("d").to_pylist()] == texts[66:297]


def test_a_file_without_row_groups_has_no_batches(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([], pa.int64())}), tmp_path / "a.parquet")
    unit = unit_of(tmp_path / "a.parquet", 0, 0)
    assert list(read_unit(unit, Layout({}, ("x",), pa.schema([("x", pa.int64())])), 10)) == []
