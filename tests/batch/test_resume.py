"""Killed at any point and started again, a job ends with the bytes of an uninterrupted one."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from parity.durable import locked
from parity.errors import DatasetError, ResumeError
from parity.profile import Profile
from parity_batch import Settings, score
from tests.batch.jobs import ORDERS, command, contents, orders, part_files, run, run_and_kill, write_orders

FILES = 24


def job(folder: Path, output: str) -> tuple[object, ...]:
    return (ORDERS, folder / "in", folder / output, "--columns", "id,note", "--batch-rows", "50")


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """A folder `in` of three files, scored into `out`."""
    write_orders(tmp_path / "in", (300, 200, 100))
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id"])
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_job_killed_at_random_points_ends_with_the_same_bytes(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (2000,) * FILES, row_group_rows=300)
    table = orders(2000, FILES * 2000)
    bad = table.set_column(2, "quantity", [[666 if row % 97 == 0 else row for row in range(2000)]])
    pq.write_table(bad, tmp_path / "in" / "orders-99.parquet")
    whole = run(*job(tmp_path, "whole"))
    assert whole.returncode == 0, whole.stderr
    expected = contents(tmp_path / "whole")
    assert len([name for name in expected if name.startswith("part-")]) == FILES + 1

    seen = random.Random(5)
    output = tmp_path / "out"
    kills = 0
    for _ in range(10):
        if (output / "_SUCCESS").exists():
            shutil.rmtree(output)
        names = seen.choice(["part-*", "_units/*", "_*", ".*", ".part-*", "_units/.*"])
        more = len(list(output.glob(names))) + seen.randint(0, 3)
        kills += run_and_kill(job(tmp_path, "out"), lambda: len(list(output.glob(names))) > more)  # noqa: B023
    resumed = run(*job(tmp_path, "out"))
    assert resumed.returncode == 0, resumed.stderr
    assert kills >= 3
    assert contents(output) == expected


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_job_continued(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (200, 30_000, 100))
    assert run(*job(tmp_path, "whole")).returncode == 0
    arguments = " ".join(shlex.quote(text) for text in command(*job(tmp_path, "out")))
    limited = ["bash", "-c", f"ulimit -f 64; exec {arguments}"]  # no file may be larger: part 1 is
    full = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert full.returncode == 2
    assert "cannot be written" in full.stderr
    assert "the same command continues" in " ".join(full.stderr.split())
    assert "Traceback" not in full.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert "part-00001-u00000.parquet" not in names
    assert not any(name.endswith(".tmp") for name in names)
    assert "_SUCCESS" not in names
    assert run(*job(tmp_path, "out")).returncode == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_only_what_is_missing_is_scored_again(done: Path) -> None:
    expected = contents(done / "out")
    kept = done / "out" / "part-00001-u00000.parquet"
    before = kept.stat()
    (done / "out" / "part-00000-u00000.parquet").unlink()
    (done / "out" / "_units" / "part-00002-u00000.json").unlink()
    summary = score(done / "in", done / "out", ORDERS, columns=["id"])
    assert (summary.resumed_parts, summary.scored_rows, summary.rows) == (1, 400, 600)
    assert kept.stat() == before
    assert contents(done / "out") == expected


@pytest.mark.parametrize("damage", ["cut", "garbage", "other"])
def test_a_damaged_part_or_record_is_made_anew(done: Path, damage: str) -> None:
    expected = contents(done / "out")
    part = done / "out" / "part-00001-u00000.parquet"
    if damage == "cut":
        part.write_bytes(part.read_bytes()[:-30])
    elif damage == "garbage":
        (done / "out" / "_units" / "part-00001-u00000.json").write_text("{")
    else:
        shutil.copy(done / "out" / "part-00002-u00000.parquet", part)
    assert score(done / "in", done / "out", ORDERS, columns=["id"]).resumed_parts == 2
    assert contents(done / "out") == expected


def test_whatever_is_lost_or_cut_short_is_made_anew(done: Path) -> None:
    """The manifest comes first, so a folder without it holds no more than the lock and temporary files."""
    expected = contents(done / "out")
    output, seen = done / "out", random.Random(3)
    for _ in range(25):
        for path in sorted(output.rglob("*")):
            fate = seen.random()
            if path.name == "_manifest.json" or path.is_dir():
                continue
            if fate < 0.3:
                path.unlink()
            elif fate < 0.5:
                path.with_name(f".{path.name}.tmp").write_bytes(path.read_bytes()[: seen.randint(0, 99)])
            elif fate < 0.6 and path.suffix == ".parquet":
                path.write_bytes(path.read_bytes()[: seen.randint(0, 99)])
        score(done / "in", output, ORDERS, columns=["id"])
        assert contents(output) == expected


@pytest.mark.parametrize("left", [(), (".parity.lock",), ("._manifest.json.tmp",), ("_units/",)])
def test_a_folder_that_a_job_had_barely_begun_is_taken_over(tmp_path: Path, left: tuple[str, ...]) -> None:
    write_orders(tmp_path / "in", (10,))
    for name in left:
        path = tmp_path / "out" / name
        path.parent.mkdir(exist_ok=True)
        path.mkdir() if name.endswith("/") else path.write_bytes(b"{")
    assert score(tmp_path / "in", tmp_path / "out", ORDERS).rows == 10


def test_a_finished_job_is_left_as_it_is(done: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (done / "out").rglob("*.*")}
    summary = score(done / "in", done / "out", ORDERS, columns=["id"])
    assert (summary.resumed_parts, summary.scored_rows, summary.rows) == (3, 0, 600)
    assert {path: path.stat().st_mtime_ns for path in (done / "out").rglob("*.*")} == before


def test_temporary_files_of_a_killed_job_are_removed(done: Path) -> None:
    stray = [".part-00000-u00000.parquet.tmp", "_units/.part-00000-u00000.json.tmp", "._SUCCESS.tmp"]
    for name in stray:
        (done / "out" / name).write_bytes(b"half")
    score(done / "in", done / "out", ORDERS, columns=["id"])
    assert not any((done / "out" / name).exists() for name in stray)


def test_changed_inputs_are_refused_and_named(done: Path) -> None:
    pq.write_table(orders(300, 5), done / "in" / "orders-00.parquet")
    (done / "in" / "orders-01.parquet").unlink()
    pq.write_table(orders(3), done / "in" / "orders-07.parquet")
    with pytest.raises(ResumeError) as caught:
        score(done / "in", done / "out", ORDERS, columns=["id"])
    text = str(caught.value)
    assert "input orders-00.parquet: changed (" in text
    assert "footer_sha256" in text
    assert "input orders-01.parquet: is gone" in text
    assert "input orders-07.parquet: is new" in text
    assert "--restart" in text


def test_a_changed_time_alone_is_a_change(done: Path) -> None:
    os.utime(done / "in" / "orders-00.parquet", (1, 1))
    with pytest.raises(ResumeError, match=r"orders-00\.parquet: changed \(mtime_ns\)"):
        score(done / "in", done / "out", ORDERS, columns=["id"])


def test_a_job_that_writes_beside_its_handler_is_the_same_job_when_it_is_started_again(
    tmp_path: Path, handler: Path
) -> None:
    write_orders(tmp_path / "in", (300, 200))
    score(tmp_path / "in", handler / "scored" / "first", handler)
    (handler / "scored" / "first" / "_SUCCESS").unlink()
    score(tmp_path / "in", handler / "scored" / "second", handler)
    assert score(tmp_path / "in", handler / "scored" / "first", handler).resumed_parts == 2
    assert (handler / "scored" / "first" / "_SUCCESS").exists()


def test_a_changed_handler_is_refused(tmp_path: Path, handler: Path) -> None:
    write_orders(tmp_path / "in", (10,))
    score(tmp_path / "in", tmp_path / "out", handler)
    (handler / "artifacts" / "factor.json").write_text("3.5")
    with pytest.raises(ResumeError, match="handler digests artifacts: was"):
        score(tmp_path / "in", tmp_path / "out", handler)
    toml = (handler / "handler.toml").read_text().replace("1.2.0", "1.3.0")
    (handler / "handler.toml").write_text(toml)
    with pytest.raises(ResumeError, match=r"handler version: was 1\.2\.0, is 1\.3\.0"):
        score(tmp_path / "in", tmp_path / "out", handler)


@pytest.mark.parametrize(
    ("columns", "settings", "expected"),
    [
        (["id", "note"], Settings(), r"columns: was \['id'\], is \['id', 'note'\]"),
        (
            ["id"],
            Settings(batch_rows=99),
            "batch_rows: was 1024, is 99; --batch-rows 1024 continues the job$",
        ),
        (["id"], Settings(profile=Profile(buckets=(32,))), r"profile buckets: was \[\], is \[32\]"),
        (["id"], Settings(profile=Profile(name="other")), "profile name: was default, is other"),
    ],
)
def test_another_profile_batch_size_or_columns_are_refused(
    done: Path, columns: list[str], settings: Settings, expected: str
) -> None:
    with pytest.raises(ResumeError, match=expected):
        score(done / "in", done / "out", ORDERS, columns=columns, settings=settings)


def test_a_size_that_would_not_continue_the_job_is_not_advised(done: Path) -> None:
    """Where the profile's buckets differ, too, the size follows from them: the profile is to be mended."""
    settings = Settings(profile=Profile(buckets=(48,)))
    with pytest.raises(ResumeError, match=r"(?s)profile buckets: was \[\].*batch_rows: was 1024, is 1008$"):
        score(done / "in", done / "out", ORDERS, columns=["id"], settings=settings)


@pytest.mark.parametrize("before", [None, {"rows": 1000, "bytes": 67108864}, {"rows": 262144, "bytes": 5}])
def test_parts_that_were_cut_in_another_way_are_not_continued(
    done: Path, before: dict[str, int] | None
) -> None:
    """Of two jobs on the same inputs, which differ in nothing else; at first manifests did not say it."""
    manifest = done / "out" / "_manifest.json"
    found = json.loads(manifest.read_text())
    assert found.pop("row_group") == {"rows": 262144, "bytes": 67108864}
    manifest.write_text(json.dumps(found if before is None else {**found, "row_group": before}))
    was = before or {"rows": 1048576, "bytes": 67108864}
    left = contents(done / "out")
    with pytest.raises(ResumeError) as caught:
        score(done / "in", done / "out", ORDERS, columns=["id"])
    assert str(caught.value).splitlines()[1:] == [
        "  row groups: this version of parity cuts parts in another way: they had "
        f"{was['rows']} rows or {was['bytes']} bytes, and have 262144 rows or 67108864 bytes"
    ]
    assert "--restart" in str(caught.value)
    assert contents(done / "out") == left


def test_workers_and_error_limits_may_change_on_resume(done: Path) -> None:
    (done / "out" / "part-00000-u00000.parquet").unlink()
    settings = Settings(workers=2, preprocess_workers=2, max_errors=0)
    assert score(done / "in", done / "out", ORDERS, columns=["id"], settings=settings).resumed_parts == 2


def test_restart_begins_anew_and_leaves_foreign_files(done: Path) -> None:
    (done / "out" / "notes.md").write_text("mine")
    summary = score(done / "in", done / "out", ORDERS, columns=["note"], settings=Settings(restart=True))
    assert summary.resumed_parts == 0
    assert pq.ParquetFile(part_files(done / "out")[0]).schema_arrow.names[0] == "note"
    assert (done / "out" / "notes.md").read_text() == "mine"


@pytest.mark.parametrize("name", ["day=1/../../part-1-u1", "/part-1-u1", "{}/part-1-u1", "docs/kept"])
def test_restart_removes_nothing_that_no_job_calls_a_part(done: Path, name: str) -> None:
    manifest = done / "out" / "_manifest.json"
    found = json.loads(manifest.read_text())
    found["units"][1]["part"] = name.format(done)
    manifest.write_text(json.dumps(found))
    for folder in (done / "out" / "day=1", done / "out" / "docs"):
        folder.mkdir()
    kept = [done / "part-1-u1.parquet", done / "out" / "docs" / "kept.parquet"]
    for path in kept:
        path.write_bytes(b"mine")
    before = contents(done / "out")
    with pytest.raises(DatasetError, match="which no job calls a part, so that nothing was removed"):
        score(done / "in", done / "out", ORDERS, columns=["id"], settings=Settings(restart=True))
    assert contents(done / "out") == before
    assert all(path.read_bytes() == b"mine" for path in kept)


def test_restart_with_fewer_inputs_leaves_no_old_part(done: Path) -> None:
    (done / "in" / "orders-02.parquet").unlink()
    score(done / "in", done / "out", ORDERS, settings=Settings(restart=True))
    assert len(part_files(done / "out")) == 2
    assert len(list((done / "out" / "_units").iterdir())) == 2


@pytest.mark.parametrize("restart", [False, True])
def test_a_folder_of_something_else_is_refused_and_untouched(tmp_path: Path, restart: bool) -> None:
    write_orders(tmp_path / "in", (10,))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-00000-u00000.parquet").write_bytes(b"precious")
    with pytest.raises(DatasetError, match="not empty and not parity's: it holds part-00000"):
        score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(restart=restart))
    assert (tmp_path / "out" / "part-00000-u00000.parquet").read_bytes() == b"precious"


def test_a_manifest_of_another_tool_is_refused(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (10,))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "_manifest.json").write_text('{"format": "other/1"}')
    with pytest.raises(DatasetError, match="not a manifest of format parity-batch/1"):
        score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(restart=True))


def test_a_manifest_that_is_no_json_is_refused_with_a_remedy(done: Path) -> None:
    (done / "out" / "_manifest.json").write_text("{")
    with pytest.raises(DatasetError, match=r"not a manifest: .*; name another output folder"):
        score(done / "in", done / "out", ORDERS)


def test_an_output_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (10,))
    (tmp_path / "file").write_text("mine")
    with pytest.raises(
        DatasetError, match=r"cannot be written to: Not a directory; name a folder that may be$"
    ):
        score(tmp_path / "in", tmp_path / "file" / "out", ORDERS)


@pytest.mark.parametrize("url", ["", "file://", "local://"])
@pytest.mark.parametrize("restart", [False, True])
def test_an_output_that_is_a_file_is_refused_with_one_remedy(tmp_path: Path, url: str, restart: bool) -> None:
    """On a disk, by a URL of one, and behind a URL of a store."""
    write_orders(tmp_path / "in", (10,))
    (tmp_path / "k.jpg").write_text("mine")
    with pytest.raises(DatasetError) as caught:
        score(tmp_path / "in", f"{url}{tmp_path / 'k.jpg'}", ORDERS, settings=Settings(restart=restart))
    shown = f"{url.replace('file://', '')}{tmp_path / 'k.jpg'}"
    assert str(caught.value) == f"output folder {shown} is a file; name a folder"
    assert (tmp_path / "k.jpg").read_text() == "mine"


def test_an_output_among_the_inputs_is_refused(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (10,))
    with pytest.raises(DatasetError, match="lies in the input folder"):
        score(tmp_path / "in", tmp_path / "in" / "scored", ORDERS)
    with pytest.raises(DatasetError, match="lies in the output folder"):
        score(tmp_path / "in", tmp_path, ORDERS)
    assert score(tmp_path / "in", tmp_path / "in" / "_scored", ORDERS).rows == 10
    assert score(tmp_path / "in", tmp_path / "in" / "_scored", ORDERS).rows == 10


def test_two_jobs_in_one_folder_are_refused(done: Path) -> None:
    with (
        locked(done / "out" / ".parity.lock"),
        pytest.raises(DatasetError, match="another job is writing"),
    ):
        score(done / "in", done / "out", ORDERS, columns=["id"])


def test_an_input_that_changes_while_it_is_scored_is_refused(tmp_path: Path, handler: Path) -> None:
    """The handler's own code touches the file, as a writer at work would."""
    write_orders(tmp_path / "in", (10,))
    path = tmp_path / "in" / "orders-00.parquet"
    code = (handler / "handler.py").read_text()
    touch = f"import os; os.utime({str(path)!r}, (5, 5))\n        return inputs[:, 0]"
    (handler / "handler.py").write_text(code.replace("return inputs[:, 0]", touch))
    with pytest.raises(DatasetError, match="was changed while it was scored"):
        score(tmp_path / "in", tmp_path / "out", handler)
    assert part_files(tmp_path / "out") == []
