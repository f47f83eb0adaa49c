"""How a part is cut into row groups, and what is in memory until one is written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity_batch.parts import ROW_GROUP_ROWS, PartWriter
from parity_batch.storage import StoredFile, store_at

SCHEMA = pa.schema([("x", pa.int64())])


def write(folder: Path, *rows: int) -> list[int]:
    """Write micro-batches of so many rows; the rows of each row group."""
    with PartWriter(StoredFile(store_at(folder), "part"), SCHEMA) as part:
        for count in rows:
            part.write(pa.table({"x": pa.array(range(count), pa.int64())}))
        part.commit()
    metadata = pq.ParquetFile(folder / "part").metadata
    return [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]


@pytest.mark.slow
@pytest.mark.parametrize("batch_rows", [1024, 10_000, 65_536])
def test_a_row_group_ends_with_the_micro_batch_that_fills_it(tmp_path: Path, batch_rows: int) -> None:
    """And no few rows are left over for one of their own."""
    whole = -(-ROW_GROUP_ROWS // batch_rows) * batch_rows
    batches = 2 * whole // batch_rows + 3
    assert write(tmp_path, *[batch_rows] * batches) == [whole, whole, 3 * batch_rows]


def test_a_part_without_rows_is_a_whole_file(tmp_path: Path) -> None:
    assert write(tmp_path) == []
    assert sum(write(tmp_path, 0)) == 0


@pytest.mark.slow
def test_rows_leave_memory_with_their_row_group(tmp_path: Path) -> None:
    before = pa.total_allocated_bytes()
    table = pa.table({"x": pa.array(range(1024), pa.int64())})
    most = 0
    with PartWriter(StoredFile(store_at(tmp_path), "part"), SCHEMA) as part:
        for _ in range(4 * ROW_GROUP_ROWS // 1024):
            part.write(table)
            most = max(most, pa.total_allocated_bytes() - before)
        part.commit()
    assert most < 2 * ROW_GROUP_ROWS * 8
