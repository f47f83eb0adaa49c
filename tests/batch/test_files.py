"""Which files an input names."""

from __future__ import annotations

from pathlib import Path

import pytest

from parity.errors import DatasetError
from parity_batch.files import find_files


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def names(*inputs: str | Path) -> list[str]:
    return [file.name for file in find_files(inputs)[1]]


def test_a_folder_is_searched_recursively_and_sorted_by_name(tmp_path: Path) -> None:
    touch(tmp_path, "b.parquet", "a/z.parquet", "a/y.PARQUET", "c.pq")
    assert names(tmp_path) == ["a/y.PARQUET", "a/z.parquet", "b.parquet", "c.pq"]


def test_hidden_names_and_other_formats_are_skipped(tmp_path: Path) -> None:
    touch(tmp_path, "a.parquet", "_errors/b.parquet", ".tmp/c.parquet", ".d.parquet", "_SUCCESS", "notes.md")
    assert names(tmp_path) == ["a.parquet"]


def test_a_hidden_folder_is_searched_when_it_is_named(tmp_path: Path) -> None:
    touch(tmp_path, "_errors/b.parquet")
    assert names(tmp_path / "_errors") == ["b.parquet"]


def test_a_parquet_file_without_suffix_is_found_by_its_content(tmp_path: Path) -> None:
    touch(tmp_path, "a.parquet", "other")
    (tmp_path / "part-00000").write_bytes(b"PAR1....PAR1")
    assert names(tmp_path) == ["a.parquet", "part-00000"]


def test_a_glob_names_files_and_skips_hidden_ones(tmp_path: Path) -> None:
    touch(tmp_path, "2024/a.parquet", "2025/b.parquet", "_2026/c.parquet", "2025/_d.parquet")
    assert names(f"{tmp_path}/*/*.parquet") == ["2024/a.parquet", "2025/b.parquet"]
    assert names(f"{tmp_path}/**/*.parquet") == ["2024/a.parquet", "2025/b.parquet"]
    assert names(f"{tmp_path}/20*") == ["2024/a.parquet", "2025/b.parquet"]


def test_several_inputs_keep_their_order_and_are_named_from_what_they_share(tmp_path: Path) -> None:
    touch(tmp_path, "x/a.parquet", "y/a.parquet")
    assert names(tmp_path / "y", tmp_path / "x" / "a.parquet") == ["y/a.parquet", "x/a.parquet"]


def test_a_single_file_is_named_by_its_file_name(tmp_path: Path) -> None:
    touch(tmp_path, "x/a.parquet")
    assert names(tmp_path / "x" / "a.parquet") == ["a.parquet"]


def test_relative_and_absolute_inputs_name_files_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path, "x/a.parquet", "y/b.parquet")
    monkeypatch.chdir(tmp_path)
    assert names("x", "y") == names(tmp_path / "x", tmp_path / "y") == ["x/a.parquet", "y/b.parquet"]
    assert names("x") == names("x/") == names("./x") == ["a.parquet"]


def test_a_file_named_twice_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "a.parquet")
    with pytest.raises(DatasetError, match="named twice"):
        find_files([tmp_path, tmp_path / "a.parquet"])


def test_a_link_that_leads_back_up_ends(tmp_path: Path) -> None:
    touch(tmp_path, "x/a.parquet")
    (tmp_path / "x" / "up").symlink_to(tmp_path)
    assert names(tmp_path) == ["x/a.parquet"]


def test_a_missing_input_names_near_ones(tmp_path: Path) -> None:
    touch(tmp_path, "orders.parquet")
    with pytest.raises(DatasetError, match=r"does not exist; did you mean 'orders\.parquet'"):
        find_files([tmp_path / "order.parquet"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match=r"does not exist; '[^']*empty' is empty"):
        find_files([tmp_path / "empty" / "order.parquet"])
    touch(tmp_path / "many", *(f"{number}.txt" for number in range(30)))
    with pytest.raises(DatasetError, match=r"does not exist; '[^']*many' has nothing of a similar name"):
        find_files([tmp_path / "many" / "order.parquet"])


@pytest.mark.parametrize("inputs", [[], ["{}"], ["{}/*.parquet"]])
def test_no_file_at_all_is_refused(tmp_path: Path, inputs: list[str]) -> None:
    with pytest.raises(DatasetError, match=r"no input|holds no Parquet|no file matches"):
        find_files([text.format(tmp_path) for text in inputs])
