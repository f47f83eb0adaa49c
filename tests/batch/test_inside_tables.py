"""A file of a table is no input by itself, however it is reached: the table may have deleted its rows."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from parity.errors import DatasetError
from parity_batch import score
from parity_batch.files import find_files
from parity_batch.places import above_of
from tests.batch.buckets import Bucket
from tests.batch.jobs import ORDERS, write_orders

KINDS = {
    "Delta Lake": ("_delta_log", "00000000000000000000.json"),
    "Iceberg": ("metadata", "v1.metadata.json"),
}


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """What kind a table is, and its folder, which lies beside a folder that is none."""
    kind: str = request.param
    folder = tmp_path / "lake" / "table"
    write_orders(folder / "data", (5,))
    log, name = KINDS[kind]
    (folder / log).mkdir()
    (folder / log / name).write_text("{}")
    write_orders(tmp_path / "lake" / "plain", (5,))
    return kind, folder


@pytest.mark.parametrize(
    ("link", "target", "named"),
    [
        ("in/a.parquet", "data/orders-00.parquet", "in/a.parquet"),
        ("in/a.parquet", "data/orders-00.parquet", "in"),
        ("in/a.parquet", "data/orders-00.parquet", "in/*.parquet"),
        ("in/sub", "data", "in"),
        ("in/sub", "data", "in/sub"),
        ("in/sub", "data", "in/**/*.parquet"),
        ("in/sub", "data", "in/sub/orders-00.parquet"),
        ("in/a.parquet", "data/orders-00.parquet", "file://in/a.parquet"),
        ("in/a.parquet", "data/orders-00.parquet", "file://in"),
        ("in/sub", "data", "file://in/sub/orders-00.parquet"),
        ("in/sub", "data", "file://in"),
    ],
)
def test_a_link_into_a_table_is_refused_as_the_file_is(
    table: tuple[str, Path], tmp_path: Path, link: str, target: str, named: str
) -> None:
    kind, folder = table
    (tmp_path / "in").mkdir()
    (tmp_path / link).symlink_to(folder / target)
    given = f"file://{tmp_path}/{named[7:]}" if named.startswith("file://") else str(tmp_path / named)
    with pytest.raises(DatasetError, match=rf"(?s)lies in the {kind} table .*lake/table.*name the table"):
        find_files([given])


def test_a_link_to_a_file_of_no_table_is_followed(table: tuple[str, Path], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.parquet").symlink_to(table[1].parent / "plain" / "orders-00.parquet")
    assert score(tmp_path / "in", tmp_path / "out", ORDERS).rows == 5
    assert score(f"file://{tmp_path}/in", tmp_path / "other", ORDERS).rows == 5


def test_a_file_url_inside_a_table_is_refused(table: tuple[str, Path]) -> None:
    for name in ("data/orders-00.parquet", "data"):
        with pytest.raises(DatasetError, match=f"lies in the {table[0]} table"):
            find_files([f"file://{table[1]}/{name}"])
    assert len(find_files([f"file://{table[1].parent}/plain/orders-00.parquet"])[1]) == 1


@pytest.mark.parametrize("name", ["data/orders-00.parquet", "data"])
def test_a_url_of_fsspec_inside_a_table_is_refused(table: tuple[str, Path], name: str) -> None:
    files = fsspec.filesystem("memory")
    files.put(str(table[1].parent), "/lake", recursive=True)
    try:
        with pytest.raises(DatasetError, match=f"lies in the {table[0]} table 'memory://lake/table'"):
            find_files([f"memory://lake/table/{name}"])
        assert len(find_files(["memory://lake/plain/orders-00.parquet"])[1]) == 1
    finally:
        files.rm("/lake", recursive=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["data/orders-00.parquet", "data"])
def test_an_object_inside_a_table_is_refused(
    table: tuple[str, Path], bucket: Bucket, name: str, tmp_path: Path
) -> None:
    kind, folder = table
    for path in sorted(folder.parent.rglob("*.*")):
        bucket.write(path.relative_to(folder.parent).as_posix(), path.read_bytes())
    with pytest.raises(DatasetError) as caught:
        score(bucket.url(f"table/{name}"), tmp_path / "out", ORDERS)
    text = str(caught.value)
    assert f"lies in the {kind} table 's3://{bucket.name}/table'" in text
    assert "endpoint_override" not in text
    assert score(bucket.url("plain/orders-00.parquet"), tmp_path / "out", ORDERS).rows == 5


@pytest.mark.slow
def test_who_may_not_look_above_a_file_may_score_it(bucket: Bucket, tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (5,))
    bucket.write("mine/a.parquet", (tmp_path / "in" / "orders-00.parquet").read_bytes())
    bucket.rules.write_text("HEAD,GET _delta_log 403\nHEAD,GET metadata 403\n")
    assert score(bucket.url("mine/a.parquet"), tmp_path / "out", ORDERS).rows == 5


def test_the_folders_above_a_url_end_with_its_bucket() -> None:
    assert above_of("s3://bucket/a/b.parquet?scheme=http") == [
        "s3://bucket/a?scheme=http",
        "s3://bucket?scheme=http",
    ]
    assert above_of("memory://data") == []
    assert above_of("gs://bucket/a/") == ["gs://bucket"]
