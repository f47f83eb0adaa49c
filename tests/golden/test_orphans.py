"""What lies among goldens and proves nothing: found by kind, deleted when asked, never in CI."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from parity import load_handler
from parity.errors import GoldenError
from parity.golden import find_leftovers, find_orphans, prune, record, require_no_orphans
from parity.handler import LoadedHandler
from tests.test_golden import SOME, write_handler


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CI", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)


@pytest.fixture
def scale(tmp_path: Path) -> LoadedHandler:
    (tmp_path / "golden").mkdir()
    return load_handler(write_handler(tmp_path / "handlers" / "scale"))


def kinds(scale: LoadedHandler) -> dict[str, str]:
    return {item.path.name: item.kind for item in find_leftovers(scale)}


def test_a_tidy_folder_has_no_leftovers(scale: LoadedHandler) -> None:
    record(scale, SOME, "first", reason="r", stages=True)
    record(scale, SOME, "second", reason="r")
    assert find_leftovers(scale) == []
    require_no_orphans(scale)


def test_a_handler_without_goldens_has_no_leftovers(scale: LoadedHandler) -> None:
    assert find_leftovers(scale) == []


def test_each_kind_of_leftover_is_found_and_damage_is_none(scale: LoadedHandler, tmp_path: Path) -> None:
    case = record(scale, SOME, "first", reason="r").path
    folder = case.parent
    (folder / "empty").mkdir()
    shutil.copytree(case, folder / "other")
    toml = (folder / "other" / "case.toml").read_text(encoding="utf-8")
    (folder / "other" / "case.toml").write_text(toml.replace('handler = "scale"', 'handler = "gone"'))
    shutil.copytree(case, folder / "damaged")
    (folder / "damaged" / "inputs.parquet").write_bytes(b"")
    (case / "stages.npz").write_bytes(b"old")
    (case / "stages.arrow").write_bytes(b"of no recording")
    shutil.copytree(case, folder / ".first-abcd1234", ignore=shutil.ignore_patterns("stages*"))
    (folder / ".second-a_c41234").mkdir()
    (folder / ".hidden").mkdir()
    (folder / ".mine-abcd1234").mkdir()
    (folder / ".mine-abcd1234" / "notes.txt").write_text("keep")
    assert kinds(scale) == {
        "empty": "orphan",
        "other": "orphan",
        "stages.npz": "stray file",
        "stages.arrow": "stray file",
        ".first-abcd1234": "temporary",
        ".second-a_c41234": "temporary",
    }


def test_a_case_of_another_schema_is_stale(scale: LoadedHandler) -> None:
    record(scale, SOME, "first", reason="r")
    root = scale.root
    assert root is not None
    source = root / "handler.py"
    source.write_text(source.read_text().replace("le=100.0", "le=2.0"), encoding="utf-8")
    changed = load_handler(root)
    (found,) = find_leftovers(changed)
    assert found.kind == "stale"
    assert "field 'x' was" in found.why
    assert find_orphans(changed) == []


def test_the_last_copy_of_a_case_is_never_pruned(scale: LoadedHandler) -> None:
    case = record(scale, SOME, "first", reason="r").path
    case.rename(case.parent / ".first-old-abcd1234")
    (found,) = find_leftovers(scale)
    assert found.kind == "rescue"
    assert f"mv {found.path} {case}" in found.why
    assert prune([found]) == []
    assert found.path.is_dir()
    with pytest.raises(GoldenError, match="last copy of case 'first'"):
        require_no_orphans(scale)
    found.path.rename(case)
    assert find_leftovers(scale) == []


def test_an_old_copy_beside_its_case_is_temporary(scale: LoadedHandler) -> None:
    case = record(scale, SOME, "first", reason="r").path
    shutil.copytree(case, case.parent / ".first-old-abcd1234")
    assert kinds(scale) == {".first-old-abcd1234": "temporary"}


def test_goldens_of_a_handler_that_is_gone_are_orphans_and_those_of_one_in_reach_are_not(
    scale: LoadedHandler, tmp_path: Path
) -> None:
    case = record(scale, SOME, "first", reason="r").path
    root = tmp_path / "golden"
    for name in ("gone", "near", "renamed", "elsewhere"):
        shutil.copytree(case, root / name / "first")
        toml = root / name / "first" / "case.toml"
        toml.write_text(toml.read_text().replace('handler = "scale"', f'handler = "{name}"'))
    write_handler(tmp_path / "handlers" / "near")
    renamed = write_handler(tmp_path / "handlers" / "another_folder")
    (renamed / "handler.toml").write_text('name = "renamed"\n', encoding="utf-8")
    write_handler(tmp_path / "models" / "elsewhere")
    (root / "notes").mkdir()
    assert kinds(scale) == {"gone": "orphan"}
    with pytest.raises(GoldenError, match=r"1 orphaned golden\n .*gone: cases of handler gone") as caught:
        require_no_orphans(scale)
    assert caught.value.exit_code == 3


def test_pruning_deletes_what_was_listed_and_nothing_in_ci(
    scale: LoadedHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = record(scale, SOME, "first", reason="r").path
    (case.parent / "empty").mkdir()
    (case / "stages.npz").write_bytes(b"old")
    found = find_leftovers(scale)
    with monkeypatch.context() as patch:
        patch.setenv("CI", "true")
        with pytest.raises(GoldenError, match="in CI"):
            prune(found)
    assert find_leftovers(scale) == found
    assert len(prune(found)) == 2
    assert find_leftovers(scale) == []
    assert sorted(path.name for path in case.iterdir()) == ["case.toml", "expected.parquet", "inputs.parquet"]
