"""A mount or a connection that is lost in the middle of a job: it ends, says where, and is continued."""

from __future__ import annotations

import errno
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from parity.errors import DatasetError
from parity_batch import Settings, parts, plan, score
from parity_batch.footers import SourceFile
from parity_batch.lost import LostError, UnreadableError, check_there
from parity_batch.places import stamp_of
from parity_batch.storage import StoredFile, store_at
from tests.batch.jobs import ORDERS, TRAYS, command, contents, run, write_numbers, write_orders

FILES, ROWS = 6, 12_000


class Mount:
    """A folder that is mounted somewhere else, too: its files stay when that is undone."""

    def __init__(self, folder: Path) -> None:
        self.real, self.seen = folder / "real", folder / "seen"
        self.real.mkdir(parents=True)
        self.seen.mkdir()
        self.done = False

    def mount(self) -> None:
        subprocess.run(["mount", "--bind", self.real, self.seen], check=True, capture_output=True, text=True)
        self.done = True

    def lose(self) -> None:
        subprocess.run(["umount", "-l", self.seen], check=True)
        self.done = False


class Disk:
    """A small disk in a file, which can be made to fail as ext4 does after an error of the device."""

    def __init__(self, folder: Path) -> None:
        self.file, self.seen = folder / "disk", folder / "seen"
        self.seen.mkdir(parents=True)
        with self.file.open("wb") as file:
            file.truncate(64 * 1024 * 1024)
        self._run("mkfs.ext4", "-q", self.file)
        self.mount()

    def mount(self) -> None:
        self._run("mount", "-o", "loop", self.file, self.seen)

    def fail(self) -> None:
        self._run("mount", "-o", "remount,abort", self.seen)

    def leave(self) -> None:
        self._run("umount", self.seen)

    def _run(self, *arguments: object) -> None:
        subprocess.run([str(item) for item in arguments], check=True, capture_output=True, text=True)


def not_here(exc: Exception) -> str:
    told = getattr(exc, "stderr", None) or exc
    return f"NO MOUNT MAY BE MADE HERE, so losing one is tried by errors alone: {told}"


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    found = Mount(tmp_path / "mount")
    try:
        found.mount()
    except (subprocess.CalledProcessError, OSError) as exc:
        pytest.skip(not_here(exc))
    yield found
    if found.done:
        found.lose()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    try:
        found = Disk(tmp_path / "disk")
    except (subprocess.CalledProcessError, OSError) as exc:
        pytest.skip(not_here(exc))
    yield found
    found.leave()


def lost_in_the_middle(
    arguments: tuple[object, ...], records: Path, lose: Callable[[], object]
) -> tuple[int, str]:
    """Run `parity batch` and lose something when two units are done; its exit code and what it said."""
    with subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            while len(list(records.glob("*.json"))) < 2:
                assert process.poll() is None, process.communicate()[1]
                time.sleep(0.002)
            lose()
            said = process.communicate(timeout=120)[1]
        finally:
            process.kill()
    return process.returncode, " ".join(said.split())


def job(inputs: object, output: object, *more: object) -> tuple[object, ...]:
    return (TRAYS, inputs, output, "--batch-rows", 256, "--workers", 1, *more)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A dataset in `in`, scored without an interruption: the output."""
    write_numbers(tmp_path / "in", *(range(ROWS) for _ in range(FILES)))
    done = run(TRAYS, tmp_path / "in", tmp_path / "whole", "--batch-rows", 256)
    assert done.returncode == 0, done.stderr
    return tmp_path / "whole"


def is_whole(real: Path, expected: Path) -> bool:
    """Whether a job that was cut short left whole parts alone, fewer than all, and no mark of success."""
    there, wanted = contents(real), contents(expected)
    found = [name for name in there if name.startswith("part-")]
    assert 2 <= len(found) < FILES
    assert "_SUCCESS" not in there
    return all(there[name] == wanted[name] for name in found)


@pytest.mark.slow
@pytest.mark.parametrize("below", ["", "out"])
def test_a_lost_mount_of_the_output_ends_the_job_which_is_continued(
    mount: Mount, whole: Path, tmp_path: Path, below: str
) -> None:
    """Where the mount was is a folder that may be written to: nothing must be left there."""
    arguments = job(tmp_path / "in", mount.seen / below)
    code, said = lost_in_the_middle(arguments, mount.real / below / "_units", mount.lose)
    assert code == 2
    assert f"{mount.seen / below}" in said
    assert "the same command continues" in said
    assert "Traceback" not in said
    assert list(mount.seen.rglob("*")) == []
    assert is_whole(mount.real / below, whole)
    mount.mount()
    resumed = run(*arguments)
    assert resumed.returncode == 0, resumed.stderr
    assert "of them from an earlier run" in resumed.stdout
    assert contents(mount.real / below) == contents(whole)


@pytest.mark.slow
def test_a_disk_that_fails_under_the_output_ends_the_job_which_is_continued(
    disk: Disk, whole: Path, tmp_path: Path
) -> None:
    output = disk.seen / "out"
    code, said = lost_in_the_middle(job(tmp_path / "in", output), output / "_units", disk.fail)
    assert (code, "Traceback" in said) == (2, False)
    assert str(output) in said
    assert "Read-only file system" in said
    assert "the same command continues" in said
    disk.leave()
    disk.mount()
    assert is_whole(output, whole)
    resumed = run(*job(tmp_path / "in", output))
    assert resumed.returncode == 0, resumed.stderr
    assert contents(output) == contents(whole)


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--on-file-error", "skip")])
@pytest.mark.parametrize("below", ["", "in"])
def test_a_lost_mount_of_the_input_ends_the_job_which_is_continued(
    mount: Mount, whole: Path, tmp_path: Path, below: str, more: tuple[str, ...]
) -> None:
    """Also where files that cannot be read are skipped: a job without most of its rows would be a success."""
    shutil.copytree(tmp_path / "in", mount.real / below, dirs_exist_ok=True)
    arguments = job(mount.seen / below, tmp_path / "out", *more)
    code, said = lost_in_the_middle(arguments, tmp_path / "out" / "_units", mount.lose)
    assert (code, "Traceback" in said) == (2, False)
    assert f"the file cannot be reached any more at {mount.seen / below}" in said
    assert "when it is back the same command continues" in said
    assert is_whole(tmp_path / "out", whole)
    assert run(*arguments).returncode == 2  # it is not back
    mount.mount()
    resumed = run(*arguments)
    assert resumed.returncode == 0, resumed.stderr
    found = {name: data for name, data in contents(tmp_path / "out").items() if name.startswith("part-")}
    assert found == {name: data for name, data in contents(whole).items() if name.startswith("part-")}


STOPPING = """
import builtins, os
import fsspec
from fsspec.implementations.local import LocalFileSystem


class Stopping(LocalFileSystem):
    "Answers nothing but an error while a file is there that the environment names: of a number or of a type."

    protocol = "stopping"

    def _check(self):
        try:
            with open(os.environ["STOPPED"]) as file:
                what = file.read()
        except FileNotFoundError:
            return
        if what.isdecimal():
            raise OSError(int(what), os.strerror(int(what)))
        if what:
            raise getattr(builtins, what)("AWS Error NETWORK_CONNECTION during HeadObject operation")

    def info(self, *given, **named):
        self._check()
        return super().info(*given, **named)

    def ls(self, *given, **named):
        self._check()
        return super().ls(*given, **named)

    def _open(self, *given, **named):
        self._check()
        return super()._open(*given, **named)

    def mv(self, *given, **named):
        self._check()
        return super().mv(*given, **named)


fsspec.register_implementation("stopping", Stopping, clobber=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "what", "more"),
    [
        *((side, what, ()) for side in ("input", "output") for what in ("EIO", "ESTALE", "ENOTCONN")),
        ("output", "OSError", ()),
        ("input", "OSError", ("--on-file-error", "skip")),  # as pyarrow's own file systems do
        ("input", "ConnectionError", ("--on-file-error", "skip")),
    ],
)
def test_a_file_system_that_answers_errors_ends_the_job_which_is_continued(
    tmp_path: Path, side: str, what: str, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_numbers(tmp_path / "in", *(range(ROWS) for _ in range(FILES)))
    handler = Path(shutil.copytree(TRAYS, tmp_path / "trays"))
    code = handler / "handler.py"
    code.write_text(code.read_text().replace("TRAY_ROWS =", f"{STOPPING}\n\nTRAY_ROWS =", 1))
    stopped = tmp_path / "stopped"
    monkeypatch.setenv("STOPPED", str(stopped))
    inputs, output = (
        f"stopping://{tmp_path / name}" if side == which else str(tmp_path / name)
        for name, which in (("in", "input"), ("out", "output"))
    )
    arguments = (handler, *job(inputs, output, *more)[1:])
    told = str(getattr(errno, what, what))
    ended, said = lost_in_the_middle(arguments, tmp_path / "out" / "_units", lambda: stopped.write_text(told))
    assert (ended, "Traceback" in said) == (2, False)
    where = tmp_path / ("in" if side == "input" else "out")
    assert f"stopping://{where}" in said
    assert "the same command continues" in said
    stopped.unlink()
    uninterrupted = run(handler, *job(inputs, tmp_path / "expected")[1:])
    assert uninterrupted.returncode == 0, uninterrupted.stderr
    assert is_whole(tmp_path / "out", tmp_path / "expected")
    resumed = run(*arguments)
    assert resumed.returncode == 0, resumed.stderr
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")


class Away(LocalFileSystem):
    """A file system whose files below names that are in `lost` raise `error`, for good."""

    protocol = "away"
    lost: ClassVar[set[str]] = set()
    error: ClassVar[Exception] = OSError("AWS Error NETWORK_CONNECTION during HeadObject operation")

    def _open(self, path: str, *given: Any, **named: Any) -> Any:
        if Path(path).name in self.lost:
            raise self.error
        return super()._open(path, *given, **named)


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> type[Away]:
    fsspec.register_implementation("away", Away, clobber=True)
    monkeypatch.setattr(Away, "lost", set())
    return Away


ERRORS = [
    OSError("AWS Error NETWORK_CONNECTION during HeadObject operation"),
    ConnectionError("reset"),
    TimeoutError("no answer"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda exc: type(exc).__name__)
def test_files_out_of_reach_from_the_start_are_not_left_out(
    tmp_path: Path, away: type[Away], error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_orders(tmp_path / "in", (5, 5, 5))
    monkeypatch.setattr(away, "error", error)
    away.lost.add("orders-01.parquet")
    given = f"away://{tmp_path / 'in'}"
    with pytest.raises(
        DatasetError, match=r"orders-01\.parquet: the file cannot be reached any more at away"
    ):
        score(given, tmp_path / "out", ORDERS, settings=Settings(on_file_error="skip"))
    assert not (tmp_path / "out").exists()


def test_a_damaged_file_behind_a_url_is_left_out(tmp_path: Path, away: type[Away]) -> None:
    """Arrow raises of one that was cut short what it raises of a connection that is gone."""
    write_orders(tmp_path / "in", (500, 500, 500))
    whole = (tmp_path / "in" / "orders-00.parquet").read_bytes()
    (tmp_path / "in" / "orders-00.parquet").write_bytes(whole[:-100])
    other = tmp_path / "in" / "orders-01.parquet"
    pages = len(other.read_bytes()) - int.from_bytes(other.read_bytes()[-8:-4], "little") - 12
    other.write_bytes(b"PAR1" + bytes(pages) + other.read_bytes()[4 + pages :])
    given = f"{away.protocol}://{tmp_path / 'in'}"
    found = score(given, tmp_path / "out", ORDERS, settings=Settings(on_file_error="skip"))
    assert sorted(found.skipped_files) == ["orders-00.parquet", "orders-01.parquet"]
    assert found.rows == 500


def test_what_was_read_in_vain_is_asked_for_again(tmp_path: Path, away: type[Away]) -> None:
    (tmp_path / "a").write_text("x")
    url = f"away://{tmp_path / 'a'}"
    found = SourceFile(url, "a", stamp_of(url))
    check_there(found, OSError("Tried reading 10 bytes"))
    check_there(source(tmp_path / "a"), OSError("Tried reading 10 bytes"))
    for error in (ConnectionError("reset"), TimeoutError("no answer")):
        with pytest.raises(
            LostError, match=r"a: the file cannot be reached any more at away://.*(reset|no an)"
        ):
            check_there(found, error)
    away.lost.add("a")
    with pytest.raises(LostError, match=r"at away://.*: Tried reading 10 bytes; was a mount"):
        check_there(found, OSError("Tried reading 10 bytes"))
    (tmp_path / "a").unlink()
    with pytest.raises(UnreadableError, match="was removed"):
        check_there(found, OSError("Tried reading 10 bytes"))


def source(path: Path) -> SourceFile:
    return SourceFile(path, path.name, stamp_of(path))


def test_a_file_that_was_removed_beside_others_is_no_lost_mount(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("x")
    found = source(tmp_path / "a")
    check_there(found)
    (tmp_path / "a").unlink()
    with pytest.raises(UnreadableError, match="a: the file was removed while it was scored"):
        check_there(found)
    (tmp_path / "b").unlink()
    with pytest.raises(LostError, match=f"a: the file cannot be reached any more at {tmp_path}/a: No such"):
        check_there(found)
    tmp_path.rmdir()
    with pytest.raises(LostError, match="cannot be reached any more"):
        check_there(found)


def test_what_the_system_says_of_a_mount_is_not_said_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    found = source(tmp_path / "a")
    check_there(found, OSError(errno.EIO, "Input/output error"))
    with pytest.raises(LostError, match="Stale file handle; was a mount or a connection lost"):
        check_there(found, OSError(errno.ESTALE, "Stale file handle"))
    (tmp_path / "a").write_text("longer")
    with pytest.raises(UnreadableError, match="was changed while"):
        check_there(found, OSError(errno.ESTALE, "Stale file handle"))


def test_an_input_that_is_lost_while_footers_are_read_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_orders(tmp_path / "in", (5, 5, 5))
    read = plan.read_source

    def losing(file: plan.InputFile, wanted: set[str]) -> object:
        if file.name == "orders-01.parquet":
            shutil.rmtree(tmp_path / "in")
        return read(file, wanted)

    monkeypatch.setattr(plan, "read_source", losing)
    monkeypatch.setattr(plan, "_READERS", 1)
    with pytest.raises(DatasetError, match=r"orders-01\.parquet: the file cannot be reached any more"):
        score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(on_file_error="skip"))
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_is_moved_away_is_not_made_again(tmp_path: Path, handler: Path) -> None:
    """The handler's own code moves it, as an operator at work would."""
    write_orders(tmp_path / "in", (10,))
    code = (handler / "handler.py").read_text()
    move = f"import os; os.rename({str(tmp_path / 'out')!r}, {str(tmp_path / 'moved')!r})"
    (handler / "handler.py").write_text(
        code.replace("return inputs[:, 0]", f"{move}\n        return inputs[:, 0]")
    )
    with pytest.raises(DatasetError) as caught:
        score(tmp_path / "in", tmp_path / "out", handler)
    assert f"{tmp_path / 'out'}" in str(caught.value)
    assert "the same command continues" in str(caught.value)
    assert not (tmp_path / "out").exists()
    assert [path.name for path in (tmp_path / "moved").glob("part-*")] == []


@pytest.mark.parametrize("moved_at", [1, 3])
@pytest.mark.parametrize("stays", [False, True])
def test_a_unit_writes_nothing_into_the_folder_below_a_lost_mount(
    tmp_path: Path, handler: Path, monkeypatch: pytest.MonkeyPatch, moved_at: int, stays: bool
) -> None:
    """Nor makes a folder for its part there, and ends with its next row group, whether its first or not."""
    monkeypatch.setattr(parts, "ROW_GROUP_ROWS", 5)
    write_orders(tmp_path / "in" / "day=1", (100,))
    out, calls = tmp_path / "out", tmp_path / "calls"
    code = (handler / "handler.py").read_text()
    move = f"""import os
        with open({str(calls)!r}, "a") as file:
            file.write("x")
        if os.path.getsize({str(calls)!r}) == {moved_at}:
            os.rename({str(out)!r}, {str(tmp_path / "moved")!r})
            os.makedirs({str(out / "day=1" if stays else out)!r})"""
    (handler / "handler.py").write_text(
        code.replace("return inputs[:, 0]", f"{move}\n        return inputs[:, 0]")
    )
    settings = Settings(workers=1, batch_rows=5)
    with pytest.raises(DatasetError, match="is not the one any more that this job began in"):
        score(tmp_path / "in", out, handler, settings=settings)
    assert [path.name for path in out.rglob("*") if path.is_file()] == []
    assert stays or list(out.iterdir()) == []
    assert len(calls.read_text()) < 10  # of 20


def test_a_file_that_is_given_up_takes_the_folder_with_it_where_the_mount_was_lost(tmp_path: Path) -> None:
    """As where it is lost right after it was looked for; elsewhere another file may come into it."""
    store = store_at(tmp_path)
    with store.held(lambda: None) as mark:
        for holder, left in ((mark, ["day=1"]), ("another", []), ("", ["day=1"])):
            file = StoredFile(store, "day=1/part", holder)
            draft = store.draft(file.name)
            draft.path.touch()
            file.discard(draft)
            assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == left
