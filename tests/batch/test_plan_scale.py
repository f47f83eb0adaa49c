"""Planning costs the same for each file, however many there are: counted in calls, not in seconds."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from parity.registry import load_handler
from parity_batch import files, score, status
from parity_batch import plan as planning
from parity_batch.folder import open_folder
from parity_batch.plan import make_plan
from parity_batch.prepared import prepare
from tests.batch.jobs import ORDERS, orders, read_parts

FEW, MANY = 40, 320
GROWTH = 1.25
"""The most that calls may grow by more than files do; reading one folder for each file grows by 8."""


def linked(folder: Path, name: Callable[[int], str], count: int, kinds: int = 1) -> list[Path]:
    """Names of a few real files, written once."""
    folder.mkdir(parents=True)
    for kind in range(kinds):
        rows = orders(3).replace_schema_metadata({"written": str(kind)})
        if kind % 2:
            rows = rows.set_column(2, "quantity", rows["quantity"].cast("int32"))
        pq.write_table(rows, folder / f"_source-{kind}.parquet")
    found = [folder / name(place) for place in range(count)]
    for place, path in enumerate(found):
        path.parent.mkdir(parents=True, exist_ok=True)
        os.link(folder / f"_source-{place % kinds}.parquet", path)
    return found


def calls(work: Callable[[], Any]) -> int:
    """How many functions of Python and of C were called, in all threads."""
    counts: dict[int, int] = {}

    def count(_frame: Any, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            thread = threading.get_ident()
            counts[thread] = counts.get(thread, 0) + 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sum(counts.values())


SHAPES: dict[str, tuple[Callable[[int], str], int, bool]] = {
    "one folder": (lambda at: f"{at:05d}.parquet", 1, False),
    "a hive folder each": (lambda at: f"day={at}/a.parquet", 1, False),
    "files of many schemas": (lambda at: f"{at:05d}.parquet", 40, False),
    "files named one by one": (lambda at: f"{at:05d}.parquet", 1, True),
    "files named one by one, a folder each": (lambda at: f"{at:05d}/a.parquet", 1, True),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_each_file_costs_the_same(tmp_path: Path, shape: str) -> None:
    name, kinds, one_by_one = SHAPES[shape]

    def job(count: int, label: str) -> tuple[int, int]:
        paths = linked(tmp_path / label, name, count, kinds)
        inputs = paths if one_by_one else [tmp_path / label]

        def listing() -> None:
            assert len(files.find_files(inputs)[1]) == count

        def whole() -> None:
            ready = prepare(inputs, ORDERS, ["id"], None, None)
            assert len(ready.plan.units) == count
            for _ in range(2):  # a new folder, and one to be continued
                with open_folder(
                    tmp_path / f"{label}-out", ready.plan, lambda _: ready.manifest(ready.default_rows)
                ) as folder:
                    assert len(list(folder.all_finished(unit.part for unit in ready.plan.units))) == count
            assert status(tmp_path / f"{label}-out").units == count

        return calls(listing), calls(whole)

    job(2, "first")
    for base, few, many in zip(*(job(count, f"n{count}") for count in (2, FEW, MANY)), strict=True):
        assert (many - base) / (MANY - 2) < GROWTH * (few - base) / (FEW - 2)


def test_each_folder_is_asked_once_whether_it_is_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = linked(tmp_path / "in", lambda at: f"{at}/a.parquet", 30)
    asked: list[Path] = []
    kind_of = files.table_kind

    def table_kind(place: Any) -> str | None:
        asked.append(place)
        return kind_of(place)

    monkeypatch.setattr(files, "table_kind", table_kind)
    files.find_files(paths)
    assert len(asked) == len(set(asked)) == 30 + len(paths[0].parent.parents)


def test_what_writers_say_of_a_whole_file_is_kept_for_no_file(tmp_path: Path) -> None:
    linked(tmp_path / "in", lambda at: f"{at}.parquet", 12, kinds=6)
    sources = make_plan([tmp_path / "in"], load_handler(ORDERS)).sources
    assert len({id(source.schema) for source in sources}) == 2


@pytest.mark.slow
def test_the_names_of_parts_are_in_order_of_any_number_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_LEAST_DIGITS", 1)  # as if 12 files were more than 100,000
    for place in range(12):
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(orders(2, place * 2), tmp_path / "in" / f"{place:02d}.parquet")
    assert score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id"]).parts == 12
    assert read_parts(tmp_path / "out")["id"].to_pylist() == list(range(24))
    (tmp_path / "out" / "part-03-u00000.parquet").unlink()
    assert score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["id"]).resumed_parts == 11
