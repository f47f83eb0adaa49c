from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from parity import load_handler
from parity.errors import ConfigError, GoldenError
from parity.golden import check
from parity.scaffold import create
from tests.cli.conftest import Parity, parity

__all__ = ["parity"]


@pytest.fixture(autouse=True)
def outside_ci(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_a_new_handler_has_everything_it_needs(tmp_path: Path) -> None:
    made = create("churn")
    assert made.folder == Path("handlers/churn")
    assert made.files == (
        "README.md",
        "artifacts/weights.json",
        "golden/first/case.toml",
        "golden/first/expected.parquet",
        "golden/first/inputs.parquet",
        "handler.py",
        "handler.toml",
        "tests/rows.json",
        "tests/test_churn.py",
    )
    loaded = load_handler(made.folder)
    assert (loaded.name, loaded.cls.__name__) == ("churn", "Churn")
    assert [found.comparison.verdict for found in check(loaded)] == ["identical"]
    assert check(loaded)[0].notes == ()
    assert [path.name for path in (tmp_path / "handlers").iterdir()] == ["churn"]


@pytest.mark.parametrize(
    ("name", "parent", "folder", "cls"),
    [
        ("handlers/price-model", None, "handlers/price-model", "PriceModel"),
        ("deep/down/a_b", None, "deep/down/a_b", "AB"),
        ("batch", Path("mine"), "mine/batch", "BatchModel"),
    ],
)
def test_a_handler_goes_where_it_is_told(name: str, parent: Path | None, folder: str, cls: str) -> None:
    made = create(name, parent)
    assert made.folder == Path(folder)
    assert load_handler(made.folder).cls.__name__ == cls


@pytest.mark.parametrize("name", ["Churn", "1st", "a b", "ünï", "", "a/B", "class", "a--b", "..", "a.b"])
def test_a_name_that_will_not_do_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"will not do|keyword"):
        create(name)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "handlers" / "churn").mkdir(parents=True)
    with pytest.raises(ConfigError, match="exists"):
        create("churn")
    assert list((tmp_path / "handlers" / "churn").iterdir()) == []


def test_a_path_and_a_folder_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="leave --dir out"):
        create("handlers/churn", Path("other"))


def test_in_ci_no_handler_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(GoldenError, match="in CI nothing does") as caught:
        create("churn")
    assert caught.value.exit_code == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_test_that_comes_with_a_handler_passes(tmp_path: Path) -> None:
    made = create("churn")
    run = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(made.folder)]
    run += ["-k", "not ray and not spark and not runner"]  # a cluster costs seconds to start
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 10  # the goldens, one for each law that applies, and the one that does not fit


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_new_handler_passes_the_whole_check_at_once(parity: Parity) -> None:
    done = parity("new", "handlers/churn")
    assert (done.code, done.out.splitlines()[0]) == (0, "made handlers/churn:")
    quick = [word for name in ("batch", "notebook", "online") for word in ("--runner", name)]
    done = parity("check", "handlers/churn", *quick)  # a cluster costs seconds to start
    assert done.code == 0, done.out + done.err
    assert "AGREES" in done.out
    assert "broken" not in done.out


@pytest.mark.slow
def test_what_a_new_handler_comes_with_passes_ruff(tmp_path: Path) -> None:
    made = create("churn")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F,B,UP", str(made.folder)]
    done = subprocess.run([*ruff, "--line-length", "110"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
