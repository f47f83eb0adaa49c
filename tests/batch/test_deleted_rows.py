"""Rows that a table deleted beside its files are neither scored nor counted; the others keep their places."""

from __future__ import annotations

import contextlib
import gc
import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFileContent, FileFormat

from parity.errors import ConfigError, DatasetError, ResumeError
from parity_batch import Settings, plan, preview, score, status
from parity_batch.deleted_rows import DeletedRows
from parity_batch.iceberg_deletes import deleted_rows
from tests.batch.deletes import (
    actions_of,
    commit,
    delete_of_delta,
    delete_of_iceberg,
    file_content,
    puffin_content,
    rows_of_delta,
    vector_file,
    with_blobs,
)
from tests.batch.jobs import ORDERS, contents, expected_total, orders, part_files, read_parts, run
from tests.batch.test_engines import Processes

slow = pytest.mark.slow


@given(st.lists(st.integers(0, 200), max_size=40), st.integers(0, 220), st.integers(0, 60))
def test_deleted_positions_are_found_in_any_run_of_rows(
    positions: list[int], start: int, length: int
) -> None:
    deleted = DeletedRows.at(np.array(positions, np.int64))
    if deleted is None:
        assert not positions
        return
    assert (deleted.count, deleted.end) == (len(set(positions)), max(positions) + 1)
    expected = [row in set(positions) for row in range(start, start + length)]
    flags = deleted.unpacked()
    assert flags.between(start, start + length).tolist() == expected
    assert flags.count(start, start + length) == sum(expected)


def test_the_same_deleted_positions_have_one_digest() -> None:
    flags = np.zeros(50, np.bool_)
    flags[[3, 17]] = True
    one, other = DeletedRows.flagged(flags), DeletedRows.at(np.array([17, 3, 17]))
    assert one == other
    assert DeletedRows.flagged(flags[:18]) == one
    assert DeletedRows.flagged(flags[:17]) != one
    assert DeletedRows.flagged(np.zeros(5, np.bool_)) is None
    with pytest.raises(ValueError, match="-1 is no position"):
        DeletedRows.at(np.array([2, -1]))


def delta_of(folder: Path, sizes: tuple[int, ...] = (60, 40)) -> Path:
    """A table, each of whose versions adds a file."""
    first = 0
    for size in sizes:
        deltalake.write_deltalake(folder, orders(size, first), mode="append")
        first += size
    return folder


@slow
@pytest.mark.parametrize("inline", [True, False])
def test_rows_deleted_by_vectors_are_left_out(tmp_path: Path, inline: bool) -> None:
    folder = delta_of(tmp_path / "t")
    delete_of_delta(folder, 0, [[3, 4, 7, 11, 18, 29, 59]], inline=inline)
    expected = rows_of_delta(folder)
    assert expected.num_rows == 93
    summary = score(folder, tmp_path / "out", ORDERS, columns=["id"])
    found = read_parts(tmp_path / "out").sort_by("id")
    assert found.column("id").equals(expected.column("id"))
    assert found.column("total").to_numpy().tolist() == expected_total(expected).tolist()
    assert (summary.rows, summary.files) == (93, 2)
    assert "7 of the 100 rows of the table's files are deleted and left out" in summary.notes
    assert (status(tmp_path / "out").rows, status(tmp_path / "out").done_rows) == (93, 93)
    told = preview(folder, ORDERS, columns=["id"])
    assert (told.rows, told.kept_rows) == (93, 93)
    assert "93 rows of 2 files" in told.describe()
    assert "--where" not in told.describe()
    before = score(folder, tmp_path / "before", ORDERS, settings=Settings(input_version="1"))
    assert before.rows == 100


@slow
def test_the_command_tells_the_kept_rows(tmp_path: Path) -> None:
    folder = delta_of(tmp_path / "t")
    delete_of_delta(folder, 0, [[0, 1]])
    planned = run(ORDERS, folder, tmp_path / "out", "--dry-run")
    assert "98 rows of 2 files" in planned.stdout + planned.stderr
    done = run(ORDERS, folder, tmp_path / "out")
    assert done.returncode == 0
    assert "98 rows of 2 files" in done.stdout + done.stderr


@slow
def test_rows_keep_their_places_beside_deleted_ones(tmp_path: Path) -> None:
    rows = orders(300)
    quantity = [666 if row in (5, 150, 299) else row % 40 for row in range(300)]
    rows = rows.set_column(2, "quantity", pa.array(quantity))
    deltalake.write_deltalake(tmp_path / "t", rows)
    delete_of_delta(tmp_path / "t", 0, [[0, 4, *range(100, 150), 298]])
    for name, settings in (("all", Settings()), ("some", Settings(where="id >= 100"))):
        score(tmp_path / "t", tmp_path / name, ORDERS, columns=["id"], settings=settings)
        errors = pq.ParquetFile(next((tmp_path / name / "_errors").rglob("*.parquet"))).read()
        places = errors.column("_row").to_pylist()
        assert places == errors.column("id").to_pylist() == ([5, 150, 299] if name == "all" else [150, 299])
    ids = read_parts(tmp_path / "some").column("id").to_pylist()
    assert ids == [row for row in range(150, 300) if row != 298]


@slow
def test_micro_batches_are_cut_from_the_kept_rows(tmp_path: Path) -> None:
    """The bytes of the parts tell: row groups and batches follow from the rows that are scored."""
    rows = orders(1000)
    deleted = [row for row in range(1000) if row % 3 == 0]
    deltalake.write_deltalake(tmp_path / "t", rows)
    delete_of_delta(tmp_path / "t", 0, [deleted])
    (tmp_path / "plain").mkdir()
    kept = rows.take([row for row in range(1000) if row % 3])
    pq.write_table(kept, tmp_path / "plain" / "a.parquet")
    settings = Settings(batch_rows=100)
    for inputs, name in (("t", "table"), ("plain", "files")):
        score(tmp_path / inputs, tmp_path / name, ORDERS, columns=["id"], settings=settings)
    of_table, of_files = (pq.ParquetFile(part_files(tmp_path / name)[0]) for name in ("table", "files"))
    assert of_table.read().equals(of_files.read())
    assert of_table.num_row_groups == of_files.num_row_groups
    groups = range(of_table.num_row_groups)
    assert [of_table.metadata.row_group(at).num_rows for at in groups] == [
        of_files.metadata.row_group(at).num_rows for at in groups
    ]


@slow
def test_units_know_how_many_of_their_rows_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "UNIT_BYTES", 3000)
    folder = tmp_path / "t"
    deltalake.write_deltalake(folder, orders(10))
    added = actions_of(folder, 0, "add")[0]
    pq.write_table(orders(1000), folder / added["path"], row_group_size=100)
    size = (folder / added["path"]).stat().st_size
    whole = {**added, "size": size, "stats": json.dumps({"numRecords": 1000})}
    commit(folder, {"remove": {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}})
    commit(folder, {"add": {**whole, "dataChange": True}})
    delete_of_delta(folder, 2, [[*range(100, 400), 450, 999]])  # whole row groups, and a whole unit
    here = score(folder, tmp_path / "here", ORDERS, columns=["id"])
    assert here.parts > 3
    assert read_parts(tmp_path / "here").column("id").to_pylist() == [
        *range(100), *range(400, 450), *range(451, 999)
    ]  # fmt: skip
    units = json.loads((tmp_path / "here" / "_manifest.json").read_text())["units"]
    assert sum(unit["rows"] for unit in units) == 698
    assert [unit["rows"] for unit in units] == [
        pq.ParquetFile(path).metadata.num_rows for path in part_files(tmp_path / "here")
    ]
    there = Settings(engine=Processes(), workers=2)
    score(folder, tmp_path / "there", ORDERS, columns=["id"], settings=there)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    part_files(tmp_path / "here")[0].unlink()
    assert score(folder, tmp_path / "here", ORDERS, columns=["id"]).resumed_parts == here.parts - 1
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@slow
@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (0, 0, 2, 0, 3, 0), (0, 4, 0, 0, 1)])
@pytest.mark.parametrize("where", ["", "id != 2"])
def test_row_groups_of_no_rows_lie_beside_deleted_rows(
    tmp_path: Path, sizes: tuple[int, ...], where: str
) -> None:
    folder = tmp_path / "t"
    rows = orders(sum(sizes))
    deltalake.write_deltalake(folder, rows)
    added = actions_of(folder, 0, "add")[0]
    path, first = folder / added["path"], 0
    with pq.ParquetWriter(path, rows.schema) as writer:
        for size in sizes:
            writer.write_table(rows.slice(first, size), row_group_size=max(1, size))
            first += size
    groups = pq.ParquetFile(path).metadata
    assert tuple(groups.row_group(at).num_rows for at in range(groups.num_row_groups)) == sizes
    whole = {**added, "size": path.stat().st_size}
    commit(folder, {"remove": {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}})
    commit(folder, {"add": {**whole, "dataChange": True}})
    delete_of_delta(folder, 2, [[1]])
    score(folder, tmp_path / "out", ORDERS, columns=["id"], settings=Settings(where=where))
    expected = [row for row in range(sum(sizes)) if row != 1 and not (where and row == 2)]
    assert read_parts(tmp_path / "out").column("id").to_pylist() == expected


@slow
def test_a_changed_vector_is_a_changed_input(tmp_path: Path) -> None:
    folder = delta_of(tmp_path / "t")
    vector = delete_of_delta(folder, 0, [[3, 4]])[0]
    score(folder, tmp_path / "out", ORDERS, columns=["id"])
    assert score(folder, tmp_path / "out", ORDERS, columns=["id"]).scored_rows == 0
    vector_file(folder, vector).write_bytes(file_content([3, 5]))
    with pytest.raises(ResumeError, match=r"input .*: changed \(deleted\)"):
        score(folder, tmp_path / "out", ORDERS, columns=["id"])
    delete_of_delta(folder, 1, [[39]])
    with pytest.raises(ResumeError, match="version of the table: was 2, is 3"):
        score(folder, tmp_path / "out", ORDERS, columns=["id"])


@slow
def test_vectors_are_found_for_files_in_folders_of_any_name(tmp_path: Path) -> None:
    shops = ["1", "a b/c=d%20é", None]
    rows = orders(30).append_column("shop", pa.array([shops[row % 3] for row in range(30)], pa.string()))
    deltalake.write_deltalake(tmp_path / "a b" / "t", rows, partition_by=["shop"])
    folder = tmp_path / "a b" / "t"
    delete_of_delta(folder, 0, [[0, 9]] * 3)
    summary = score(folder, tmp_path / "out", ORDERS, columns=["id"])
    assert summary.rows == 24
    parts = (tmp_path / "out").rglob("part-*.parquet")
    found = pa.concat_tables([pq.ParquetFile(path).read(["id"]) for path in parts]).sort_by("id")
    assert found["id"].to_pylist() == rows_of_delta(folder)["id"].to_pylist() == list(range(3, 27))


@slow
def test_a_vector_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    short = delta_of(tmp_path / "short", (60,))
    added = actions_of(short, 0, "add")[0]
    delete_of_delta(short, 0, [[3, 59]])
    pq.write_table(orders(50), short / added["path"])
    with pytest.raises(DatasetError, match="its row 59 is deleted, and it has 50 rows"):
        score(short, tmp_path / "out", ORDERS)
    damaged = delta_of(tmp_path / "damaged", (60,))
    vector = delete_of_delta(damaged, 0, [[3, 59]])[0]
    content = vector_file(damaged, vector).read_bytes()
    for bytes_of in (content[:20], content[:-1] + b"x", b""):
        vector_file(damaged, vector).write_bytes(bytes_of)
        with pytest.raises(DatasetError, match="the Delta Lake table cannot be read"):
            score(damaged, tmp_path / "out", ORDERS)
    vector_file(damaged, vector).unlink()
    with pytest.raises(DatasetError, match="the Delta Lake table cannot be read"):
        score(damaged, tmp_path / "out", ORDERS)
    assert not (tmp_path / "out").exists()


@slow
def test_a_file_all_of_whose_rows_are_deleted_gives_an_empty_part(tmp_path: Path) -> None:
    folder = delta_of(tmp_path / "t")
    delete_of_delta(folder, 0, [list(range(60))])
    assert score(folder, tmp_path / "out", ORDERS, columns=["id"]).rows == 40
    assert sorted(pq.ParquetFile(path).metadata.num_rows for path in part_files(tmp_path / "out")) == [0, 40]
    delete_of_delta(folder, 1, [list(range(40))])
    assert score(folder, tmp_path / "none", ORDERS, columns=["id"]).rows == 0
    assert preview(folder, ORDERS).rows == 0


def iceberg_of(tmp_path: Path) -> Any:
    """A table of two files, of 60 and 40 rows."""
    catalog = InMemoryCatalog("test", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", schema=orders(1).schema)
    table.append(orders(60))
    table.append(orders(40, 60))
    return table


def files_of(table: Any) -> list[str]:
    """The data files of 60 and of 40 rows."""
    tasks = sorted(table.scan().plan_files(), key=lambda task: -task.file.record_count)
    return [task.file.file_path for task in tasks]


def folder_of(table: Any) -> Path:
    return Path(table.location().removeprefix("file://"))


@slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg")
@pytest.mark.parametrize("vectors", [False, True])
def test_rows_deleted_by_position_are_left_out_of_iceberg_tables(tmp_path: Path, vectors: bool) -> None:
    table = iceberg_of(tmp_path)
    first, second = files_of(table)
    delete_of_iceberg(table, [(first, 0), (second, 5), (first, 59)], vectors=vectors)
    delete_of_iceberg(table, [(first, 7)])
    expected = table.scan().to_arrow().sort_by("id")
    assert expected.num_rows == 96
    summary = score(folder_of(table), tmp_path / "out", ORDERS, columns=["id"])
    found = read_parts(tmp_path / "out").sort_by("id")
    assert found.column("id").equals(expected.column("id"))
    assert summary.rows == status(tmp_path / "out").rows == preview(folder_of(table), ORDERS).rows == 96
    assert "4 of the 100 rows of the table's files are deleted and left out" in summary.notes


@slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg")
def test_position_deletes_hold_for_older_files_only(tmp_path: Path) -> None:
    table = iceberg_of(tmp_path)
    first, _ = files_of(table)
    delete_of_iceberg(table, [(first, row) for row in range(50)])
    table.append(orders(20, 100))
    score(folder_of(table), tmp_path / "out", ORDERS, columns=["id"])
    found = read_parts(tmp_path / "out").sort_by("id")
    assert found.column("id").to_pylist() == list(range(50, 120))


@slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg")
def test_delete_files_that_are_not_read_are_refused_by_name(tmp_path: Path) -> None:
    equality = iceberg_of(tmp_path / "equality")
    first, _ = files_of(equality)
    file = delete_of_iceberg(equality, [(first, 0)], content=DataFileContent.EQUALITY_DELETES)
    with pytest.raises(DatasetError, match=rf"{file.name} .*\(equality deletes\).*rewrite_data_files"):
        score(folder_of(equality), tmp_path / "out", ORDERS)
    avro = iceberg_of(tmp_path / "avro")
    file = delete_of_iceberg(avro, [(files_of(avro)[0], 0)], form=FileFormat.AVRO)
    with pytest.raises(DatasetError, match=rf"{file.name} of the Iceberg table is AVRO.*rewrite_"):
        score(folder_of(avro), tmp_path / "out", ORDERS)
    for name, content in (("gone", None), ("cut", b"PAR1")):
        table = iceberg_of(tmp_path / name)
        file = delete_of_iceberg(table, [(files_of(table)[0], 0)])
        file.unlink() if content is None else file.write_bytes(content)
        with pytest.raises(DatasetError, match=rf"{file.name} of the Iceberg table cannot be read"):
            score(folder_of(table), tmp_path / "out", ORDERS)
    assert not (tmp_path / "out").exists()


@slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg")
@pytest.mark.parametrize(
    ("position", "vectors"),
    [(-1, False), *((row, vectors) for row in (60, 61, 2**31, 2**45) for vectors in (False, True))],
)
def test_a_deleted_row_that_a_data_file_lacks_is_refused(
    tmp_path: Path, position: int, vectors: bool
) -> None:
    table = iceberg_of(tmp_path)
    first, _ = files_of(table)
    file = delete_of_iceberg(table, [(first, 3), (first, position)], vectors=vectors)
    expected = rf"{file.name} of the Iceberg table deletes row {position} of .*, which has rows 0 to 59; "
    with pytest.raises(DatasetError, match=expected):
        score(folder_of(table), tmp_path / "out", ORDERS)
    assert not (tmp_path / "out").exists()


def of_positions(positions: Any, path: str) -> bytes:
    """A Parquet file that deletes rows of a data file."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"file_path": [path] * len(positions), "pos": positions}), sink)
    return sink.getvalue().to_pybytes()


DAMAGED: dict[str, tuple[Callable[[bytes, str], bytes], str]] = {
    "vector: empty": (lambda _, __: b"", "magic"),
    "vector: cut to its magic number": (lambda _, __: b"PFA1", "IndexError"),
    "vector: cut": (lambda content, _: content[:-20], "magic"),
    "vector: no footer": (lambda _, __: b"PFA1PFA1" + bytes(8) + b"PFA1", "Footer"),
    "vector: compressed footer": (lambda content, _: content[:-8] + b"\1\0\0\0PFA1", "compressed"),
    "vector: no zstd": (
        lambda content, _: with_blobs(content, **{"compression-codec": "zstd"}),
        "ZstdError",
    ),
    "vector: unknown codec": (
        lambda content, _: with_blobs(content, **{"compression-codec": "lz4"}),
        "lz4",
    ),
    "vector: of no file": (lambda content, _: with_blobs(content, properties={}), "referenced-data-file"),
    "vector: beyond the end": (lambda content, _: with_blobs(content, offset=9999), "vector is damaged"),
    "vector: a flipped bit": (
        lambda content, _: content[:30] + bytes([content[30] ^ 4]) + content[31:],
        "vector is damaged",
    ),
    "vector: another count in the footer": (
        lambda content, path: with_blobs(
            content, properties={"referenced-data-file": path, "cardinality": "7"}
        ),
        "has 2 positions, and 7 by the footer",
    ),
    "vector: another's": (
        lambda _, path: puffin_content([(path, 1), (path, 2), (path, 3)]),
        "have 3 positions, and 2 by the manifest",
    ),
    "vector: none": (lambda _, __: puffin_content([]), "have no positions, and 2 by the manifest"),
    "positions: cut": (lambda content, _: content[:-20], ""),
    "positions: another's": (lambda _, path: of_positions([1], path), "has 1 positions, and 2 by"),
    "positions: of floats": (lambda _, path: of_positions([1.0, 2.5], path), "are of type double"),
    "positions: of texts": (lambda _, path: of_positions(["1", "2"], path), "are of type string"),
    "positions: a null": (lambda _, path: of_positions([1, None], path), "a position is null"),
    "positions: no column": (lambda _, __: _of_other_columns(), ""),
}  # fmt: skip


def _of_other_columns() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"path": ["a", "b"], "row": [1, 2]}), sink)
    return sink.getvalue().to_pybytes()


@slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg")
@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_delete_file_of_any_kind_is_refused_by_name(tmp_path: Path, case: str) -> None:
    damage, expected = DAMAGED[case]
    table = iceberg_of(tmp_path)
    first, _ = files_of(table)
    file = delete_of_iceberg(table, [(first, 3), (first, 17)], vectors=case.startswith("vector"))
    content = damage(file.read_bytes(), first)
    file.write_bytes(content)
    with pytest.raises(DatasetError, match=rf"{file.name} of the Iceberg table cannot be read: .*{expected}"):
        score(folder_of(table), tmp_path / "out", ORDERS)
    assert not (tmp_path / "out").exists()


@slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg")
def test_a_flipped_bit_of_a_deletion_vector_deletes_no_other_row(tmp_path: Path) -> None:
    table = iceberg_of(tmp_path)
    first, second = files_of(table)
    file = delete_of_iceberg(table, [(first, 3), (first, 17), (second, 0), (second, 39)], vectors=True)
    tasks = list(table.scan().plan_files())
    whole = deleted_rows("orders", tasks, table.io)
    assert sorted(whole) == sorted((first, second))
    content = file.read_bytes()
    footer = content.rindex(b"PFA1", 0, -4)
    names = [range(content.index(path.encode()), content.index(path.encode()) + len(path)) for path in whole]
    for place, byte in enumerate(content):
        if any(place in name for name in names):  # the footer has no checksum
            continue
        file.write_bytes(content[:place] + bytes([byte ^ 1 << place % 8]) + content[place + 1 :])
        if place < footer:
            with pytest.raises(DatasetError, match=file.name):
                deleted_rows("orders", tasks, table.io)
            continue
        with contextlib.suppress(DatasetError):
            assert deleted_rows("orders", tasks, table.io) == whole


@slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg")
def test_libraries_too_old_for_deletion_vectors_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta = delta_of(tmp_path / "delta")
    delete_of_delta(delta, 0, [[1]])
    iceberg = iceberg_of(tmp_path)
    delete_of_iceberg(iceberg, [(files_of(iceberg)[0], 0)], vectors=True)
    monkeypatch.delattr(deltalake.DeltaTable, "deletion_vectors")
    with pytest.raises(ConfigError, match="pip install --upgrade deltalake"):
        score(delta, tmp_path / "out", ORDERS)
    monkeypatch.setitem(sys.modules, "pyiceberg.table.deletion_vector", None)
    with pytest.raises(ConfigError, match="pip install --upgrade pyiceberg"):
        score(folder_of(iceberg), tmp_path / "out", ORDERS)


@slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg")
def test_a_delete_file_may_name_any_number_of_files_and_none(tmp_path: Path) -> None:
    table = iceberg_of(tmp_path)
    first, second = files_of(table)
    delete_of_iceberg(table, [])
    delete_of_iceberg(
        table, [(path, row) for row in range(0, 40, 2) for path in (second, first, "s3://no/file")]
    )
    score(folder_of(table), tmp_path / "out", ORDERS, columns=["id"])
    found = read_parts(tmp_path / "out").sort_by("id")
    assert found["id"].to_pylist() == table.scan().to_arrow().sort_by("id")["id"].to_pylist()
    assert found.num_rows == 60


class Opened:
    """A FileIO that notes what is opened, and how much memory is in use by then."""

    def __init__(self) -> None:
        self.files = PyArrowFileIO()
        self.names: list[str] = []
        self.bytes: list[int] = []

    def new_input(self, location: str) -> Any:
        gc.collect()
        self.names.append(Path(location).name)
        self.bytes.append(tracemalloc.get_traced_memory()[0])
        return self.files.new_input(location)


@slow
def test_positions_of_a_delete_file_are_kept_while_a_data_file_needs_them(tmp_path: Path) -> None:
    rows, count = 100_000, 6
    paths = [f"data-{number}.parquet" for number in range(count)]

    def delete_file(name: str, positions: pa.Table) -> Any:
        pq.write_table(positions, tmp_path / name)
        return SimpleNamespace(
            file_path=str(tmp_path / name), file_format=FileFormat.PARQUET, record_count=positions.num_rows
        )

    of_all = delete_file("all.parquet", pa.table({"file_path": paths, "pos": [7] * count}))
    tasks = [
        SimpleNamespace(
            file=SimpleNamespace(file_path=path, record_count=rows),
            delete_files=[
                of_all,
                delete_file(f"of-{path}", pa.table({"file_path": [path] * rows, "pos": range(rows)})),
            ],
        )
        for path in paths
    ]
    opened = Opened()
    tracemalloc.start()
    try:
        found = deleted_rows("orders", tasks, opened)
    finally:
        tracemalloc.stop()
    assert {path: deleted.count for path, deleted in found.items()} == dict.fromkeys(paths, rows)
    assert sorted(opened.names) == ["all.parquet", *(f"of-{path}" for path in paths)]
    assert opened.bytes[-1] - opened.bytes[2] < rows * 8
