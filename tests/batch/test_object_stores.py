"""Outputs go to object stores as they go to disks: a real S3 server, real processes, the same bytes."""

from __future__ import annotations

import io
import json
import pickle  # noqa: TID251 - what engines send work with
import random
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity import Handler, Int64, Schema
from parity.errors import ConfigError, DatasetError, ResumeError
from parity_batch import Settings, score, status
from parity_batch.folder import OutputFolder, path_below
from parity_batch.places import without_secrets
from parity_batch.storage import ObjectStore, StoredFile, store_at
from tests.batch.buckets import Bucket
from tests.batch.deletes import delete_of_delta
from tests.batch.jobs import ORDERS, contents, orders, run, run_and_kill, write_orders

pytestmark = pytest.mark.slow


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Files in hive folders, one of whose names means something in URLs, with rows that fail."""
    for number, day in enumerate(["1", "a b", "50%"]):
        table = orders(300, number * 300)
        quantity = [666 if row % 90 == 5 and number else row for row in range(300)]
        table = table.set_column(2, "quantity", pa.array(quantity, pa.int64()))
        folder = tmp_path / "in" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(table, folder / "a.parquet", row_group_size=70)
    return tmp_path / "in"


def test_an_object_store_gets_the_bytes_that_a_disk_gets(
    inputs: Path, tmp_path: Path, bucket: Bucket
) -> None:
    there = score(inputs, bucket.url("out"), ORDERS, columns=["id"])
    here = score(inputs, tmp_path / "out", ORDERS, columns=["id"])
    assert there.output == f"s3://{bucket.name}/out"
    assert (there.rows, there.row_errors, there.parts) == (here.rows, here.row_errors, here.parts)
    assert here.failed_rows > 0
    assert bucket.contents("out") == contents(tmp_path / "out")
    assert "_SUCCESS" in bucket.names("out")
    assert json.loads(bucket.read("out/_summary.json"))["rows"] == 900
    puts = [line for line in bucket.requests() if line.startswith(("PUT", "POST")) and "/out/" in line]
    assert puts[-1].endswith("/_SUCCESS")
    read = pq.read_table(f"{bucket.name}/out/day=1/part-00000-u00000.parquet", filesystem=bucket.files)
    assert read.num_rows == 300
    found = status(bucket.url("out"))
    assert (found.state, found.done_units, found.done_rows) == ("complete", 3, 900)
    again = score(inputs, bucket.url("out"), ORDERS, columns=["id"])
    assert (again.resumed_parts, again.scored_rows) == (3, 0)


def test_only_what_is_missing_or_damaged_is_scored_again(inputs: Path, bucket: Bucket) -> None:
    score(inputs, bucket.url("out"), ORDERS, columns=["id"])
    expected = bucket.contents("out")
    names = [name for name in expected if name.endswith(".parquet") and name.startswith("day=")]
    bucket.files.delete_file(f"{bucket.name}/out/{names[0]}")
    bucket.write(f"out/{names[1]}", expected[names[1]][:-9])
    bucket.files.delete_file(f"{bucket.name}/out/_SUCCESS")
    found = status(bucket.url("out"))
    assert found.state == "unfinished"
    assert score(inputs, bucket.url("out"), ORDERS, columns=["id"]).resumed_parts == 1
    assert bucket.contents("out") == expected


def test_a_put_that_fails_ends_the_job_and_the_same_command_continues(inputs: Path, bucket: Bucket) -> None:
    bucket.rules.write_text("PUT,POST part-00002-u00000.parquet 403\n")
    with pytest.raises(DatasetError) as caught:
        score(inputs, bucket.url("out"), ORDERS, columns=["id"], settings=Settings(workers=1))
    text = str(caught.value)
    assert f"s3://{bucket.name}/out/" in text
    assert "part-00002-u00000.parquet: cannot be written" in text
    assert "the same command continues" in text
    assert "secret" not in text
    assert "_SUCCESS" not in bucket.names("out")
    assert not any("part-00002" in name for name in bucket.names("out"))
    bucket.rules.write_text("")
    assert score(inputs, bucket.url("out"), ORDERS, columns=["id"]).resumed_parts == 2
    assert "_SUCCESS" in bucket.names("out")


@pytest.mark.parametrize("name", ["_units/part-00001", "_manifest.json", "_summary.json", ".parity.lock"])
def test_bookkeeping_that_cannot_be_written_is_told(inputs: Path, bucket: Bucket, name: str) -> None:
    bucket.rules.write_text(f"PUT,POST {name} 403\n")
    with pytest.raises(
        DatasetError, match=r"output folder s3://.*/out cannot be written to: .*ACCESS_DENIED"
    ):
        score(inputs, bucket.url("out"), ORDERS)
    bucket.rules.write_text("")
    score(inputs, bucket.url("out"), ORDERS)
    assert "_SUCCESS" in bucket.names("out")


def test_what_holds_something_else_is_refused(inputs: Path, tmp_path: Path, bucket: Bucket) -> None:
    bucket.write("mine/notes.txt", b"mine")
    bucket.write("deep/a/b/c.txt", b"mine")
    for path, what in (("mine", "notes.txt"), ("deep", "a")):
        with pytest.raises(DatasetError, match=f"is not empty and not parity's: it holds {what};"):
            score(inputs, bucket.url(path), ORDERS)
    with pytest.raises(
        DatasetError, match=r"^output folder s3://.*/mine/notes\.txt[^ ]* is a file; name a folder$"
    ):
        score(inputs, bucket.url("mine/notes.txt"), ORDERS)
    assert bucket.names("mine") == ["notes.txt"]
    with pytest.raises(DatasetError, match=r"s3://no-such-bucket/out cannot be written to: .*NO_SUCH_BUCKET"):
        score(inputs, bucket.url("out").replace(bucket.name, "no-such-bucket"), ORDERS)
    with pytest.raises(DatasetError, match="holds no batch job"):
        status(bucket.url("mine"))
    with pytest.raises(DatasetError, match="is not there, or is empty"):
        status(bucket.url("nothing"))
    with pytest.raises(ConfigError, match="was a URL before it became a Path"):
        score(inputs, Path("s3://bucket/out"), ORDERS)


def test_another_job_is_refused_until_restart_removes_it(inputs: Path, bucket: Bucket) -> None:
    score(inputs, bucket.url("out"), ORDERS, columns=["id"])
    with pytest.raises(ResumeError, match=r"columns: was \['id'\], is \['note'\]"):
        score(inputs, bucket.url("out"), ORDERS, columns=["note"])
    bucket.write("out/kept.txt", b"mine")
    settings = Settings(restart=True, where="id < 300")
    assert score(inputs, bucket.url("out"), ORDERS, columns=["note"], settings=settings).rows == 300
    assert "kept.txt" in bucket.names("out")
    assert not any("part-00001" in name for name in bucket.names("out/_errors"))


def test_outputs_among_the_inputs_are_refused(inputs: Path, bucket: Bucket) -> None:
    table = orders(20)
    with bucket.files.open_output_stream(f"{bucket.name}/in/a.parquet") as stream:
        pq.write_table(table, stream)
    with pytest.raises(DatasetError, match="lies in the input folder s3://"):
        score(bucket.url("in"), bucket.url("in/scored"), ORDERS)
    with pytest.raises(DatasetError, match="lies in the output folder"):
        score(bucket.url("in"), bucket.url("").replace("/?", "?"), ORDERS)
    assert score(bucket.url("in"), bucket.url("in/_scored"), ORDERS).rows == 20
    assert score(bucket.url("in"), bucket.url("inner"), ORDERS).rows == 20


@pytest.mark.parametrize(
    ("place", "folder", "expected"),
    [
        ("gs://bucket/in/out", "gcs://bucket/in", ("out",)),
        ("gcs://bucket/in/out?a=b", "gs://bucket/in", ("out",)),
        ("s3a://bucket/in/out", "s3://key:secret@bucket/in?region=x", ("out",)),
        ("s3://bucket/in/out", "gs://bucket/in", None),
        ("s3://bucket/inner", "s3a://bucket/in", None),
    ],
)
def test_schemes_of_one_store_name_the_same_place(
    place: str, folder: str, expected: tuple[str, ...] | None
) -> None:
    assert path_below(place, folder) == expected


def test_outputs_among_inputs_named_by_a_file_url_are_refused(inputs: Path) -> None:
    with pytest.raises(DatasetError, match="lies in the input folder"):
        score(f"file://{inputs}", inputs / "scored", ORDERS)
    with pytest.raises(DatasetError, match="lies in the output folder"):
        score(f"file://{inputs}/day=1", inputs.parent, ORDERS)


@pytest.mark.parametrize("what", ["DELETE _SUCCESS", "DELETE _errors"])
def test_what_cannot_be_removed_is_told(inputs: Path, bucket: Bucket, what: str) -> None:
    score(inputs, bucket.url("out"), ORDERS)
    bucket.files.delete_file(f"{bucket.name}/out/day=1/part-00000-u00000.parquet")
    bucket.write("out/_errors/part-00000-u00000.parquet", b"of an earlier run")
    bucket.rules.write_text(f"{what} 403\n")
    with pytest.raises(DatasetError, match="the parts that are finished stay, and the same command cont"):
        score(inputs, bucket.url("out"), ORDERS)
    bucket.rules.write_text("")
    assert score(inputs, bucket.url("out"), ORDERS).scored_rows == 300


def test_the_newest_process_takes_a_job_over(inputs: Path, bucket: Bucket) -> None:
    score(inputs, bucket.url("out"), ORDERS)
    store = store_at(bucket.url("out"))
    with store.held(lambda: None) as older:
        folder = pickle.loads(pickle.dumps(OutputFolder(store.place, "job", older)))
        record = folder.finished("day=1/part-00000-u00000")
        assert record is None  # it is another job's
        score(inputs, bucket.url("out"), ORDERS)
        with pytest.raises(DatasetError, match="another process has taken this job over"):
            folder.complete({})


def test_an_older_process_puts_no_part_after_another_job_took_over(inputs: Path, bucket: Bucket) -> None:
    began, goes_on = threading.Event(), threading.Event()
    ended: list[DatasetError] = []

    class Waits(Handler):
        inputs = Schema(quantity=Int64())
        outputs = Schema(answer=Int64())

        def preprocess(self, batch: Any) -> Any:
            return batch["quantity"].numpy()

        def inference(self, inputs: Any) -> Any:
            began.set()
            assert goes_on.wait(120)
            return inputs

        def postprocess(self, outputs: Any, batch: Any) -> Any:
            return {"answer": outputs}

    def older() -> None:
        try:
            score(inputs, bucket.url("out"), Waits, settings=Settings(workers=1))
        except DatasetError as exc:
            ended.append(exc)

    thread = threading.Thread(target=older)
    thread.start()
    try:
        assert began.wait(120)
        score(inputs, bucket.url("out"), ORDERS, settings=Settings(restart=True))
        before = bucket.contents("out")
    finally:
        goes_on.set()
        thread.join(120)
    assert "another process has taken this job over" in str(ended[0])
    assert bucket.contents("out") == before
    assert score(inputs, bucket.url("out"), ORDERS).scored_rows == 0


@pytest.mark.parametrize("name", ["day=1/part-00000-u00000", "_errors/part-00000-u00000"])
def test_a_file_that_another_process_put_is_noticed_before_the_end(
    inputs: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    complete = OutputFolder.complete

    def late(folder: OutputFolder, *args: Any, **options: Any) -> None:
        buffer = io.BytesIO()
        pq.write_table(orders(300), buffer)
        bucket.write(f"out/{name}.parquet", buffer.getvalue())
        complete(folder, *args, **options)

    monkeypatch.setattr(OutputFolder, "complete", late)
    with pytest.raises(DatasetError, match="1 parts are no longer what this job wrote, day=1/part-00000"):
        score(inputs, bucket.url("out"), ORDERS)
    assert "_SUCCESS" not in bucket.names("out")
    monkeypatch.setattr(OutputFolder, "complete", complete)
    assert score(inputs, bucket.url("out"), ORDERS).scored_rows == 300
    assert "_SUCCESS" in bucket.names("out")


@pytest.mark.timeout(300)
def test_a_job_killed_at_random_points_ends_with_the_same_bytes(tmp_path: Path, bucket: Bucket) -> None:
    write_orders(tmp_path / "in", (1500,) * 6, row_group_rows=300)
    options = (ORDERS, tmp_path / "in", "OUT", "--columns", "id,note", "--batch-rows", "50")
    whole = run(*(tmp_path / "whole" if item == "OUT" else item for item in options))
    assert whole.returncode == 0, whole.stderr
    command = tuple(bucket.url("out") if item == "OUT" else item for item in options)
    seen = random.Random(7)
    kills = 0
    for _ in range(3):
        before = len(bucket.names("out"))
        more = before + seen.choice([1, 2, 3, 5])
        kills += run_and_kill(command, lambda: len(bucket.names("out")) >= more)  # noqa: B023
        if "_SUCCESS" in bucket.names("out"):
            break
    resumed = run(*command)
    assert resumed.returncode == 0, resumed.stderr
    assert kills >= 1
    assert bucket.contents("out") == contents(tmp_path / "whole")
    told = run("status", bucket.url("out"), "--json")
    assert json.loads(told.stdout)["state"] == "complete"
    assert json.loads(told.stdout)["output"] == f"s3://{bucket.name}/out"


def test_large_content_arrives_whole_and_small_content_in_one_request(bucket: Bucket) -> None:
    data = random.Random(1).randbytes(19_000_000)
    file = StoredFile(store_at(bucket.url("out")), "big")
    draft = file.draft()
    draft.path.write_bytes(data)
    draft.publish()
    draft.discard()
    assert bucket.read("out/big") == data
    before = len(bucket.requests())
    file.store.write("small", b"{}")
    assert [line.split()[0] for line in bucket.requests()[before:]] == ["PUT", "HEAD"]


def test_nothing_is_left_of_a_draft_that_is_thrown_away(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    draft = StoredFile(store_at(bucket.url("out")), "part").draft()
    draft.path.write_bytes(b"half")
    draft.discard()
    assert bucket.names("out") == []
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def memory() -> Iterator[Any]:
    files = fsspec.filesystem("memory")
    yield files
    if files.exists("/scored"):
        files.rm("/scored", recursive=True)


def test_file_systems_of_fsspec_are_written_to(inputs: Path, tmp_path: Path, memory: Any) -> None:
    score(inputs, tmp_path / "out", ORDERS, columns=["id"])
    expected = contents(tmp_path / "out")
    score(inputs, "memory://scored/out", ORDERS, columns=["id"])
    found = {name.removeprefix("/scored/out/"): memory.cat(name) for name in memory.find("/scored/out")}
    assert {name for name in found if name not in expected} == {"_summary.json", ".parity.lock"}
    assert all(found[name] == data for name, data in expected.items())
    assert score(inputs, "memory://scored/out", ORDERS, columns=["id"]).scored_rows == 0


def test_where_a_put_is_not_atomic_files_get_a_temporary_name_first(inputs: Path, tmp_path: Path) -> None:
    score(inputs, tmp_path / "out", ORDERS, columns=["id"])
    url = f"local://{tmp_path}/there"  # fsspec's name for a disk, which is no object store
    score(inputs, url, ORDERS, columns=["id"])
    assert contents(tmp_path / "there") == contents(tmp_path / "out")
    (tmp_path / "there" / "_units" / ".part-00000-u00000.json.0123456789ab.tmp").write_text("{")
    (tmp_path / "there" / "day=1" / "part-00000-u00000.parquet").unlink()
    assert score(inputs, url, ORDERS, columns=["id"]).resumed_parts == 2
    assert contents(tmp_path / "there") == contents(tmp_path / "out")


def test_a_file_url_is_a_folder_of_this_machine(inputs: Path, tmp_path: Path) -> None:
    score(inputs, f"file://{tmp_path}/o%20ut", ORDERS)
    assert status(tmp_path / "o ut").state == "complete"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://key:secret@bucket/a?endpoint_override=x", "s3://bucket/a"),
        ("s3://bucket/a@b:c", "s3://bucket/a@b:c"),
        ("s3://bucket/at=12:30/a@b", "s3://bucket/at=12:30/a@b"),
        ("s3://key:se/cr@t/@bucket/a", "s3://bucket/a"),
        ("gs://key:/secret@bucket", "gs://bucket"),
        (
            "abfs://container@account.dfs.core.windows.net/a",
            "abfs://container@account.dfs.core.windows.net/a",
        ),
    ],
)
def test_secrets_of_urls_are_not_shown(url: str, expected: str) -> None:
    assert without_secrets(url) == expected


def test_a_secret_that_makes_a_url_unreadable_is_not_in_the_error() -> None:
    key, options = "AKIAEXAMPLE", "region=private-1"
    with pytest.raises(DatasetError) as caught:
        store_at(f"s3://{key}:se/cret@bucket/x?{options}")
    text = "".join(traceback.format_exception(caught.value))
    assert "'s3://bucket/x'" in str(caught.value)
    assert "is written with %2F" in str(caught.value)
    assert not any(secret in text for secret in (key, options))


def test_errors_of_other_libraries_are_told_as_those_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore("memory://scored/out")

    def refused(*_: object) -> None:
        raise RuntimeError("the token\nhas expired")

    monkeypatch.setattr(fsspec.filesystem("memory"), "rm_file", refused)
    monkeypatch.setattr(fsspec.filesystem("memory"), "info", refused)
    with pytest.raises(OSError, match="the token has expired"):
        store.make()


def test_tables_in_an_object_store_are_read(tmp_path: Path, bucket: Bucket) -> None:
    deltalake.write_deltalake(tmp_path / "t", orders(60))
    deltalake.DeltaTable(tmp_path / "t").delete("id < 10")
    delete_of_delta(tmp_path / "t", 1, [[0, 7, 49]])
    for path in (tmp_path / "t").rglob("*.*"):
        bucket.write(f"lake/t/{path.relative_to(tmp_path / 't').as_posix()}", path.read_bytes())
    there = score(bucket.url("lake/t"), bucket.url("out"), ORDERS, columns=["id"])
    here = score(tmp_path / "t", tmp_path / "out", ORDERS, columns=["id"])
    assert (there.rows, there.notes) == (here.rows, here.notes)
    assert (here.rows, here.notes[0]) == (47, "Delta Lake table at version 2")
    parts = {name: data for name, data in contents(tmp_path / "out").items() if name.endswith(".parquet")}
    assert {name: data for name, data in bucket.contents("out").items() if name in parts} == parts
    with pytest.raises(DatasetError, match=f"s3://{bucket.name}/lake holds a table"):
        score(bucket.url("lake"), tmp_path / "new", ORDERS)


def test_inputs_in_an_object_store_are_told_apart_by_etag(tmp_path: Path, bucket: Bucket) -> None:
    rows = "".join(f"{row},1.0,2\n" for row in range(30_000))
    text = f"id,price,quantity\n{rows}".encode()
    bucket.write("in/a.csv", text)
    score(bucket.url("in"), tmp_path / "out", ORDERS)
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    (item,) = manifest["inputs"]
    assert item["etag"]
    assert "mtime_ns" not in item
    assert "endpoint" not in json.dumps(manifest)
    bucket.write("in/a.csv", text)  # the same content at another time
    assert score(bucket.url("in"), tmp_path / "out", ORDERS).resumed_parts == 1
    middle = len(text) // 2
    at = text.index(b"1.0", middle)
    bucket.write("in/a.csv", text[:at] + b"3.0" + text[at + 3 :])
    with pytest.raises(ResumeError, match=r"input a\.csv: changed \(etag\)"):
        score(bucket.url("in"), tmp_path / "out", ORDERS)
