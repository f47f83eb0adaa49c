"""Which columns of a part have a dictionary, and that this follows from its rows alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.errors import ResumeError
from parity_batch import Settings, score
from parity_batch.encodings import dictionary_columns
from parity_batch.parts import PartWriter
from parity_batch.storage import StoredFile, store_at
from tests.batch.jobs import ORDERS, part_files, write_orders

ROWS = 70_000


def some(rows: int) -> pa.Table:
    """A column of each layout, of values that repeat and of values that do not."""
    random = np.random.default_rng(7)
    ids, scores = np.arange(rows), random.standard_normal(rows)
    vectors = pa.array(random.standard_normal(4 * rows).astype(np.float32))
    wide = pa.FixedSizeListArray.from_arrays(vectors, 4)
    structs = [{"same": "x", "own": f"row {row}", "list": [row, -row]} for row in range(rows)]
    columns: dict[str, Any] = {
        "id": ids,
        "score": scores,
        "label": random.integers(0, 9, rows),
        "city": pa.array([f"city {row % 300}" for row in range(rows)], pa.large_string()),
        "rare": random.integers(0, rows * 4, rows),
        "nothing": pa.nulls(rows, pa.string()),
        "dotted.name": ids * 3,
        "vector": wide,
        "maybe": pa.array(
            [[1.5, 2.5] if row % 2 else None for row in range(rows)], pa.list_(pa.float32(), 2)
        ),
        "tensor": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2, 2]), wide),
        "struct": pa.array(structs),
        "map": pa.array([[(f"key {row}", row)] for row in range(rows)], pa.map_(pa.string(), pa.int64())),
        "coded": pa.array(["a", "b"] * (rows // 2)).dictionary_encode(),
        "amount": pa.array(list(range(rows)), pa.decimal128(12, 2)),
        "day": pa.array(ids % 365, pa.int32()).cast(pa.date32()),
        "flag": ids % 2 == 0,
    }
    return pa.table(columns)


def written(folder: Path, tables: Sequence[pa.Table], name: str = "part") -> pq.FileMetaData:
    with PartWriter(StoredFile(store_at(folder), name), tables[0].schema) as part:
        for table in tables:
            part.write(table)
        part.commit()
    return pq.read_metadata(folder / name)


def with_dictionary(metadata: pq.FileMetaData, group: int = 0) -> set[str]:
    columns = [metadata.row_group(group).column(place) for place in range(metadata.num_columns)]
    return {column.path_in_schema for column in columns if column.has_dictionary_page}


def test_a_dictionary_is_where_values_repeat(tmp_path: Path) -> None:
    table = some(ROWS)
    metadata = written(tmp_path, [table])
    assert with_dictionary(metadata) == {
        "label",
        "city",
        "nothing",
        "maybe.list.element",
        "struct.same",
        "map.key_value.key",
        "map.key_value.value",
        "coded",
        "day",
    }
    assert pq.read_table(tmp_path / "part").equals(table)


def test_no_file_is_larger_than_with_a_dictionary_for_every_column(tmp_path: Path) -> None:
    table = some(ROWS)
    written(tmp_path, [table])
    pq.write_table(table, tmp_path / "all", compression="zstd", compression_level=1)
    assert (tmp_path / "part").stat().st_size < 0.95 * (tmp_path / "all").stat().st_size


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
def test_few_rows(tmp_path: Path, rows: int) -> None:
    table = some(6).slice(0, rows)
    written(tmp_path, [table])
    assert pq.read_table(tmp_path / "part").equals(table)


def test_bytes_do_not_depend_on_how_many_rows_come_at_once(tmp_path: Path) -> None:
    """In memory, as a slice of others, as several chunks, with other values before and behind."""
    table = some(4096)
    pieces = [table.slice(start, 256) for start in range(0, 4096, 256)]
    around = pa.concat_tables([some(512), table, some(512)]).combine_chunks().slice(512, 4096)
    lengths = [256] * 16
    found: list[bytes] = []
    for name, whole in (("whole", table), ("chunks", pa.concat_tables(pieces)), ("slice", around)):
        with PartWriter(StoredFile(store_at(tmp_path), name), table.schema) as part:
            part.write(whole, lengths)
            part.commit()
        found.append((tmp_path / name).read_bytes())
    written(tmp_path, pieces, "pieces")
    assert found == [(tmp_path / "pieces").read_bytes()] * 3


def test_later_row_groups_are_written_as_the_first(tmp_path: Path) -> None:
    same = pa.table({"x": pa.array(np.zeros(262_144, np.int64))})
    other = pa.table({"x": pa.array(np.arange(262_144, dtype=np.int64))})
    for name, tables in (("repeated", [same, other]), ("distinct", [other, same])):
        metadata = written(tmp_path, tables, name)
        assert [with_dictionary(metadata, group) for group in (0, 1)] == [
            {"x"} if name == "repeated" else set()
        ] * 2


def test_a_job_writes_keys_without_and_answers_that_repeat_with_a_dictionary(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (3000,))
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id", "note"])
    (part,) = part_files(tmp_path / "out")
    assert {"id", "note", "total", "_error"} <= set(pq.read_schema(part).names)
    found = with_dictionary(pq.read_metadata(part))
    assert not found & {"id", "note"}
    assert {"total", "_error"} <= found, "answers of a thousand prices repeat"


def test_a_sample_of_long_texts_takes_little_memory(tmp_path: Path) -> None:
    """pyarrow counts by copying each value that is another."""
    base = "x" * 2000
    for name, texts in (
        ("other", [f"{row:08d}{base}" for row in range(20_000)]),
        ("same", [f"{row % 50:08d}{base}" for row in range(20_000)]),
    ):
        table = pa.table({"text": texts})
        pool = pa.proxy_memory_pool(pa.system_memory_pool())
        before = pa.default_memory_pool()
        pa.set_memory_pool(pool)
        try:
            found = dictionary_columns(table)
            most = pool.max_memory()
        finally:
            pa.set_memory_pool(before)
        assert found == ([] if name == "other" else ["text"])
        assert most is not None
        assert most < 8_000_000, most


def test_nested_long_texts_are_sampled_by_their_bytes(tmp_path: Path) -> None:
    lists = pa.array([[f"{row:08d}" + "x" * 500, f"{-row:08d}" + "y" * 500] for row in range(5000)])
    assert dictionary_columns(pa.table({"lists": lists, "same": pa.array([["a", "b"]] * 5000)})) == [
        "same.list.element"
    ]


def test_types_whose_values_are_not_counted_have_a_dictionary_and_are_read_back(tmp_path: Path) -> None:
    table = pa.table(
        {
            "view": pa.array([f"text {row}" for row in range(100)], pa.string_view()),
            "bytes": pa.array([b"%d" % row for row in range(100)], pa.binary_view()),
            "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0] * 50, pa.int8())),
            "dotted.same": pa.array(["a", "b"] * 50),
        }
    )
    metadata = written(tmp_path, [table])
    assert {"dotted.same", "bool8"} <= with_dictionary(metadata)
    again = pq.read_table(tmp_path / "part")
    assert again.column("bool8").to_pylist() == [True, False] * 50
    assert again.column("view").to_pylist() == table.column("view").to_pylist()


def test_a_part_that_nothing_was_written_to(tmp_path: Path) -> None:
    with PartWriter(StoredFile(store_at(tmp_path), "part"), some(2).schema) as part:
        part.commit()
    assert pq.read_table(tmp_path / "part").num_rows == 0


@pytest.mark.parametrize("before", [None, "a dictionary for every column"])
def test_parts_that_were_encoded_by_another_rule_are_not_continued(
    tmp_path: Path, before: str | None
) -> None:
    write_orders(tmp_path / "in", (300, 300))
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id"])
    manifest = tmp_path / "out" / "_manifest.json"
    found = json.loads(manifest.read_text())
    assert found.pop("encodings")
    manifest.write_text(json.dumps(found if before is None else {**found, "encodings": before}))
    with pytest.raises(ResumeError, match="encodes the columns of parts by another rule"):
        score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id"])
    again = Settings(restart=True)
    assert score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id"], settings=again).rows == 600
