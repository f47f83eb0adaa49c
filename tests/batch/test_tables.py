"""Delta Lake and Iceberg tables, written by their own libraries: the rows of a version, and no other."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import FileScanTask
from pyiceberg.types import StringType

from parity.errors import ConfigError, DatasetError, ResumeError
from parity_batch import Settings, preview, score
from parity_batch.files import find_files
from parity_batch.places import file_system
from parity_batch.tables import data_file, refuse_other_formats
from tests.batch.deletes import actions_of, commit
from tests.batch.jobs import ORDERS, contents, expected_total, orders, part_files, read_parts, write_orders

pytestmark = pytest.mark.slow


def rows_of(output: Path) -> dict[int, float]:
    """The totals by id, of parts that may lie in folders."""
    found: dict[int, float] = {}
    for path in sorted(output.rglob("part-*.parquet")):
        if "_errors" not in path.parts:
            table = pq.ParquetFile(path).read()
            found |= dict(zip(table["id"].to_numpy(), table["total"].to_numpy(), strict=True))
    return found


def totals(first: int, last: int) -> dict[int, float]:
    table = orders(last - first, first)
    return dict(zip(range(first, last), expected_total(table).tolist(), strict=True))


@pytest.fixture
def delta(tmp_path: Path) -> Path:
    """Two appends, then a delete that writes a file anew: rows 10 to 99 are alive, in 0.1 they all were."""
    folder = tmp_path / "delta"
    deltalake.write_deltalake(folder, orders(60))
    deltalake.write_deltalake(folder, orders(40, 60), mode="append")
    deltalake.DeltaTable(folder).delete("id < 10")
    return folder


def test_a_delta_table_is_read_at_its_current_version(delta: Path, tmp_path: Path) -> None:
    summary = score(delta, tmp_path / "out", ORDERS, columns=["id"])
    assert rows_of(tmp_path / "out") == totals(10, 100)
    assert len(list(delta.glob("*.parquet"))) == 3  # one of them is dead
    assert summary.files == 2
    assert summary.notes[0] == "Delta Lake table at version 2"
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert manifest["table"] == {"kind": "Delta Lake", "version": 2}
    score(delta, tmp_path / "again", ORDERS, columns=["id"])
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


def test_an_older_version_is_read_on_request_and_a_new_one_is_told(delta: Path, tmp_path: Path) -> None:
    before = Settings(input_version="1")
    score(delta, tmp_path / "old", ORDERS, columns=["id"], settings=before)
    assert rows_of(tmp_path / "old") == totals(0, 100)
    part_files(tmp_path / "old")[0].unlink()
    with pytest.raises(
        ResumeError, match="version of the table: was 1, is 2; --input-version 1 continues the job"
    ):
        score(delta, tmp_path / "old", ORDERS, columns=["id"])
    assert score(delta, tmp_path / "old", ORDERS, columns=["id"], settings=before).resumed_parts == 1
    for version, expected in (("9", "cannot be read at version 9"), ("x", "is no number of a version")):
        with pytest.raises((DatasetError, ConfigError), match=expected):
            score(delta, tmp_path / "new", ORDERS, settings=Settings(input_version=version))


def test_partition_values_have_the_tables_type(tmp_path: Path) -> None:
    table = orders(40)
    days = ["1", "2", None, "a b/c=d"]
    table = table.append_column("shop", pa.array([days[row % 4] for row in range(40)], pa.string()))
    deltalake.write_deltalake(tmp_path / "t", table, partition_by=["shop"])
    settings = Settings(where="shop != '2'")
    score(tmp_path / "t", tmp_path / "out", ORDERS, columns=["id"], settings=settings)
    expected = totals(0, 40)
    assert rows_of(tmp_path / "out") == {row: expected[row] for row in expected if row % 4 not in (1, 2)}
    assert "shop=a%20b%2Fc%3Dd" in {path.name for path in (tmp_path / "out").iterdir()}
    planned = preview(tmp_path / "t", ORDERS, columns=["id"])
    assert planned.rows == 40


def test_a_column_that_a_file_lacks_is_null_and_not_a_default(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", orders(5).drop_columns(["note"]))
    deltalake.write_deltalake(tmp_path / "t", orders(5, 5), mode="append", schema_mode="merge")
    score(tmp_path / "t", tmp_path / "out", ORDERS, columns=["id", "note"])
    notes = dict(
        zip(*(read_parts(tmp_path / "out")[name].to_pylist() for name in ("id", "note")), strict=True)
    )
    assert notes == {row: None if row < 5 else f"note {row}" for row in range(10)}


def test_column_mapping_is_refused(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", orders(6))
    metadata = actions_of(tmp_path / "t", 0, "metaData")[0]
    schema = json.loads(metadata["schemaString"])
    for number, field in enumerate(schema["fields"], 1):
        field["metadata"] = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": field["name"],
        }
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "4"}
    commit(
        tmp_path / "t",
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {"metaData": {**metadata, "schemaString": json.dumps(schema), "configuration": configuration}},
    )
    with pytest.raises(DatasetError, match="maps columns"):
        score(tmp_path / "t", tmp_path / "out", ORDERS)


def test_files_of_a_table_are_not_taken_for_a_folder(delta: Path, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    shutil.copytree(delta, tmp_path / "all" / "t")
    (delta / "day=1").mkdir()
    write_orders(delta / "day=1", (5,))
    for inputs, expected in (
        (tmp_path / "all", "holds a Delta Lake table"),
        (f"file://{tmp_path}/all", "holds a table, with the log"),
        (f"{delta}/*.parquet", "lies in the Delta Lake table"),
        (delta / "day=1", "lies in the Delta Lake table"),
        (next(delta.rglob("*.parquet")), "lies in the Delta Lake table"),
        ([delta, tmp_path / "all" / "t"], "a job reads one table and nothing else"),
    ):
        with pytest.raises(DatasetError, match=expected):
            score(inputs, tmp_path / "out", ORDERS)
    write_orders(tmp_path / "plain", (5,))
    with pytest.raises(ConfigError, match="is for a table, and the inputs are none"):
        score(tmp_path / "plain", tmp_path / "out", ORDERS, settings=Settings(input_version="1"))


@pytest.mark.parametrize(
    "found_by",
    [
        "*/*.parquet",
        "*/*/*.parquet",
        "**/*.parquet",
        "t?",
        "t1/*",
        "t1/day=*",
        "t*/day=1/*",
        "[t]1/**/*.parquet",
    ],
)
@pytest.mark.parametrize("kind", ["Delta Lake", "Iceberg"])
def test_a_glob_that_finds_a_file_of_a_table_is_refused(tmp_path: Path, kind: str, found_by: str) -> None:
    """Also where its fixed part lies in no table, and beside files of none."""
    table = tmp_path / "all" / "t1"
    write_orders(table / "day=1", (5,))
    shutil.copy(part := next(table.rglob("*.parquet")), table / part.name)
    write_orders(tmp_path / "all" / "t0", (5,))
    write_orders(tmp_path / "all" / "t0" / "day=1", (5,))
    log = table / ("_delta_log" if kind == "Delta Lake" else "metadata")
    log.mkdir()
    (log / "00000000000000000000.json").write_text("{}")
    (log / "v1.metadata.json").write_text("{}")
    with pytest.raises(DatasetError, match=rf"{kind} table,? '[^']*/all/t1'"):
        find_files([f"{tmp_path}/all/{found_by}"])
    assert len(find_files([f"{tmp_path}/all/t0/*.parquet"])[1]) == 1


@pytest.mark.parametrize("package", ["deltalake", "pyiceberg"])
def test_without_the_library_a_table_is_refused(tmp_path: Path, package: str) -> None:
    deltalake.write_deltalake(tmp_path / "deltalake", orders(6))
    (tmp_path / "pyiceberg" / "metadata").mkdir(parents=True)
    (tmp_path / "pyiceberg" / "metadata" / "v1.metadata.json").write_text("{}")
    write_orders(tmp_path / "pyiceberg" / "data", (5,))
    code = (
        f"import sys; sys.modules[{package!r}] = None; from parity.cli import app; "
        f"app(['batch', {str(ORDERS)!r}, {str(tmp_path / package)!r}, {str(tmp_path / 'out')!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    extra = {"deltalake": "delta", "pyiceberg": "iceberg"}[package]
    assert done.returncode != 0
    assert f"pip install 'parity[{extra}]'" in done.stderr.replace("\n", " ")
    assert not (tmp_path / "out").exists()


@pytest.fixture
def iceberg(tmp_path: Path) -> Any:
    """Rows 10 to 99, after two appends and a delete; the table, whose folder tells where it lies."""
    catalog = InMemoryCatalog("test", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", schema=orders(1).schema)
    table.append(orders(60))
    table.append(orders(40, 60))
    table.delete("id < 10")
    return table


def folder_of(table: Any) -> Path:
    return Path(table.location().removeprefix("file://"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pyiceberg")
def test_an_iceberg_table_is_read_at_its_current_snapshot(iceberg: Any, tmp_path: Path) -> None:
    folder = folder_of(iceberg)
    summary = score(folder, tmp_path / "out", ORDERS, columns=["id"])
    assert rows_of(tmp_path / "out") == totals(10, 100)
    now = iceberg.current_snapshot().snapshot_id
    assert summary.notes[0] == f"Iceberg table at snapshot {now}"
    first = iceberg.snapshots()[0].snapshot_id
    settings = Settings(input_version=str(first))
    metadata = iceberg.metadata_location.removeprefix("file://")
    score(metadata, tmp_path / "old", ORDERS, columns=["id"], settings=settings)
    assert rows_of(tmp_path / "old") == totals(0, 60)
    with pytest.raises(DatasetError, match=f"has no snapshot 5; it has {first}, "):
        score(folder, tmp_path / "none", ORDERS, settings=Settings(input_version="5"))
    with pytest.raises(ResumeError, match=f"version of the table: was {now}, is {first}"):
        score(folder, tmp_path / "out", ORDERS, columns=["id"], settings=settings)


def test_iceberg_columns_are_found_by_their_ids(iceberg: Any, tmp_path: Path) -> None:
    with iceberg.update_schema() as update:
        update.add_column("colour", StringType())
    score(folder_of(iceberg), tmp_path / "out", ORDERS, columns=["id", "colour"])
    assert set(read_parts(tmp_path / "out")["colour"].to_pylist()) == {None}
    with iceberg.update_schema() as update:
        update.rename_column("price", "cost")
        update.rename_column("note", "price")
    with pytest.raises(DatasetError) as caught:
        score(folder_of(iceberg), tmp_path / "renamed", ORDERS)
    assert "column 'price' is 'cost' in the table by now; rewrite its data files" in str(caught.value)


def test_a_change_of_an_iceberg_tables_columns_alone_is_told(iceberg: Any, tmp_path: Path) -> None:
    folder = folder_of(iceberg)
    score(folder, tmp_path / "out", ORDERS, columns=["id"])
    assert score(folder, tmp_path / "out", ORDERS, columns=["id"]).scored_rows == 0
    with iceberg.update_schema() as update:
        update.add_column("colour", StringType())
    with pytest.raises(ResumeError, match="columns of the table: its schema was changed"):
        score(folder, tmp_path / "out", ORDERS, columns=["id"])


NESTED = {
    "list": (pa.list_(pa.struct([("low", pa.int64()), ("high", pa.int64())])), ("element",), "tags[]"),
    "map value": (
        pa.map_(pa.string(), pa.list_(pa.struct([("low", pa.int64()), ("high", pa.int64())]))),
        ("value", "element"),
        "tags.value[]",
    ),
}


@pytest.mark.parametrize("case", NESTED)
def test_iceberg_fields_inside_lists_and_maps_are_found_by_their_ids(tmp_path: Path, case: str) -> None:
    kind, path, shown = NESTED[case]
    catalog = InMemoryCatalog("test", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("shop")
    rows = orders(4).append_column("tags", pa.array([None] * 4, kind))
    table = catalog.create_table("shop.orders", schema=rows.schema)
    table.append(rows)
    assert score(folder_of(table), tmp_path / "out", ORDERS).rows == 4
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.rename_column(("tags", *path, "low"), "spare")
        update.rename_column(("tags", *path, "high"), "low")
    with pytest.raises(DatasetError) as caught:
        score(folder_of(table), tmp_path / "new", ORDERS)
    expected = f"column '{shown}.low' is '{shown}.spare' in the table by now; rewrite its data files"
    assert expected in str(caught.value)


def test_an_iceberg_folder_with_two_newest_metadata_files_is_refused(iceberg: Any, tmp_path: Path) -> None:
    newest = Path(iceberg.metadata_location.removeprefix("file://"))
    shutil.copy(newest, newest.with_name(f"{newest.name[:6]}other.metadata.json"))
    with pytest.raises(DatasetError, match="2 metadata files of the Iceberg table could be its current one"):
        score(folder_of(iceberg), tmp_path / "out", ORDERS)
    assert score(newest, tmp_path / "out", ORDERS).rows == 90


@pytest.mark.parametrize("name", ["v{}.gz.metadata.json", "{:05d}-a-b.gz.metadata.json", "v{}.metadata.json"])
def test_the_newest_metadata_file_is_found_by_each_of_its_names(
    iceberg: Any, tmp_path: Path, name: str
) -> None:
    newest = Path(iceberg.metadata_location.removeprefix("file://"))
    data = newest.read_bytes()
    newest.with_name(name.format(9)).write_bytes(gzip.compress(data) if ".gz." in name else data)
    newest.unlink()  # an older one, in which no row is deleted, stays
    assert score(folder_of(iceberg), tmp_path / "out", ORDERS, columns=["id"]).rows == 90


@pytest.mark.parametrize("name", ["newest.metadata.json", "v9.metadata.json.gz"])
def test_a_metadata_file_whose_number_is_not_known_is_refused(
    iceberg: Any, tmp_path: Path, name: str
) -> None:
    newest = Path(iceberg.metadata_location.removeprefix("file://"))
    newest.with_name(name).write_bytes(b"{}")
    with pytest.raises(DatasetError, match=f"'{name}' of the Iceberg table's metadata has no number"):
        score(folder_of(iceberg), tmp_path / "out", ORDERS)
    assert score(newest, tmp_path / "out", ORDERS).rows == 90


def test_iceberg_partitions_lie_in_folders_that_are_named_literally(tmp_path: Path) -> None:
    catalog = InMemoryCatalog("test", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("shop")
    shops = ["a b", "50%", "x/y", "a%20b", "q?z#"]
    rows = orders(10).append_column("shop", pa.array(shops * 2))
    table = catalog.create_table("shop.orders", schema=rows.schema)
    with table.update_spec() as update:
        update.add_identity("shop")
    table.append(rows)
    folder = folder_of(table)
    assert any("%25" in path.name for path in (folder / "data").iterdir())
    assert score(folder, tmp_path / "out", ORDERS, columns=["id"]).files == 5
    assert rows_of(tmp_path / "out") == totals(0, 10)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("file:///t/p=50%25/a.parquet", Path("/t/p=50%25/a.parquet")),
        ("file:/t/p=50%25/a.parquet", Path("/t/p=50%25/a.parquet")),
        ("file://localhost/t/a?b#c", Path("/t/a?b#c")),
        ("/t/p=50%25/a.parquet", Path("/t/p=50%25/a.parquet")),
        ("/t/a:/b", Path("/t/a:/b")),
    ],
)
def test_a_local_path_of_iceberg_is_literal(path: str, expected: Path) -> None:
    assert data_file(Path("/t"), path) == expected


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_path_of_iceberg_in_a_bucket_is_literal(scheme: str) -> None:
    options = "?region=us-east-1&endpoint_override=127.0.0.1:1"
    for key in ("t/p=50%25/a.parquet", "t/p=x%2Fy/a+b&c", "t/p=q?z#/a b"):
        url = data_file(f"s3://bucket/t{options}", f"{scheme}://bucket/{key}")
        assert str(url).endswith(options)
        assert file_system(str(url))[1] == f"bucket/{key}"
    assert data_file("memory://t", "memory://t/p=50%25/a") == "memory://t/p=50%25/a"


def test_data_files_of_other_formats_are_refused() -> None:
    def task(form: FileFormat) -> FileScanTask:
        return FileScanTask(
            DataFile.from_args(content=DataFileContent.DATA, file_path="s3://b/x", file_format=form)
        )

    refuse_other_formats("t", [task(FileFormat.PARQUET)])
    with pytest.raises(DatasetError, match="Parquet is read only"):
        refuse_other_formats("t", [task(FileFormat.PARQUET), task(FileFormat.ORC)])
