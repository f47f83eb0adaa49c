"""How a part is cut into row groups, and what is in memory until one is written."""

from __future__ import annotations

import errno
import functools
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.errors import DatasetError
from parity_batch import Settings, parts, score
from parity_batch.parts import ROW_GROUP_ROWS, PartWriter
from parity_batch.storage import LOCK, Draft, LocalStore, StoredFile, store_at
from tests.batch.jobs import ORDERS, write_orders

SCHEMA = pa.schema([("x", pa.int64())])
ROWS = 5


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


class Stale(LocalStore):
    """A disk that answers `number` once `left` more calls of those that are named were answered."""

    def __init__(self, folder: Path, number: int, left: int, calls: tuple[str, ...]) -> None:
        super().__init__(folder)
        self.number, self.left, self.calls = number, left, calls

    def ask(self, call: str) -> None:
        if call in self.calls:
            self.left -= 1
            if self.left < 0:
                raise OSError(self.number, os.strerror(self.number))

    def check(self, holder: str) -> None:
        self.ask("check")
        super().check(holder)

    def draft(self, name: str) -> Draft:
        self.ask("draft")
        return StaleDraft(super().draft(name), self)


@dataclass
class StaleDraft:
    draft: Draft
    store: Stale

    def __post_init__(self) -> None:
        self.path = self.draft.path

    def publish(self) -> None:
        self.store.ask("publish")
        self.draft.publish()

    def discard(self) -> None:
        self.store.ask("discard")
        self.draft.discard()


def write_groups(file: StoredFile, between: Callable[[], object] = lambda: None) -> None:
    """Write two row groups, and then the name."""
    with PartWriter(file, SCHEMA) as part:
        for _ in range(2):
            part.write(pa.table({"x": pa.array(range(ROWS), pa.int64())}))
        between()
        part.commit()


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ROW_GROUP_ROWS", ROWS)


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.ENOTCONN])
@pytest.mark.parametrize(
    ("calls", "left"),
    [
        (("check",), 0),
        (("check",), 1),
        (("draft", "check", "discard"), 0),
        (("draft", "check", "discard"), 2),
        (("publish",), 0),
        (("publish", "check"), 2),
        (("publish", "discard"), 0),
    ],
)
def test_a_disk_that_cannot_be_asked_is_told_as_one_that_cannot_be_written(
    tmp_path: Path, number: int, calls: tuple[str, ...], left: int
) -> None:
    """Whichever call it answers so first: with the first row group, a later one, or the name."""
    store = Stale(tmp_path, number, left, calls)
    told = f"part: cannot be written: .*{os.strerror(number)}; the parts that are finished stay, and the same"
    with store.held(lambda: None) as mark, pytest.raises(DatasetError, match=told):
        write_groups(StoredFile(store, "part", mark))
    assert not (tmp_path / "part").exists()


@pytest.mark.usefixtures("small_groups")
def test_a_part_that_has_its_name_is_written_though_its_draft_cannot_be_asked_for(tmp_path: Path) -> None:
    write_groups(StoredFile(Stale(tmp_path, errno.ESTALE, 0, ("discard",)), "part"))
    assert pq.read_table(tmp_path / "part").num_rows == 2 * ROWS


@pytest.mark.usefixtures("small_groups")
def test_where_the_mount_was_lost_that_is_told_and_not_what_came_of_it(tmp_path: Path) -> None:
    store = Stale(tmp_path, errno.EIO, 0, ("publish",))
    lose = functools.partial((tmp_path / LOCK).write_text, "another")
    gone = "is not the one any more that this job began in"
    with store.held(lambda: None) as mark, pytest.raises(DatasetError, match=gone):
        write_groups(StoredFile(store, "part", mark), lose)


@pytest.mark.parametrize("left", range(8))
def test_a_job_whose_disk_cannot_be_asked_any_more_ends_and_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """Whichever of its questions is the first without an answer."""
    write_orders(tmp_path / "in", (10, 10))
    given = tmp_path / "in", tmp_path / "out", ORDERS
    check, asked = LocalStore.check, itertools.count()

    def fail(store: LocalStore, holder: str) -> None:
        if next(asked) >= left:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        check(store, holder)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "check", fail)
        with pytest.raises(DatasetError, match=r"Stale file handle; .* and the same command continues"):
            score(*given, settings=Settings(workers=1))
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert score(*given).rows == 20
