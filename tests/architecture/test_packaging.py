"""What is in the wheel, and what is promised in its metadata."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import parity

ROOT = Path(__file__).resolve().parents[2]
RUNNERS = sorted(path.parent.name for path in (ROOT / "runners").glob("*/__init__.py"))


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_wheel_packages_are_the_library_and_every_runner_folder(project: dict[str, Any]) -> None:
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert packages == ["src/parity", *(f"runners/{name}" for name in RUNNERS)]


def test_every_runner_folder_is_registered_as_a_runner(project: dict[str, Any]) -> None:
    registered = project["project"]["entry-points"]["parity.runners"]
    assert sorted(reference.partition(":")[0] for reference in registered.values()) == RUNNERS
    assert {name: reference.partition(":")[0] for name, reference in registered.items()} == {
        module.removeprefix("parity_"): module for module in RUNNERS
    }


def test_the_import_contracts_name_every_runner_folder(project: dict[str, Any]) -> None:
    settings = project["tool"]["importlinter"]
    assert settings["root_packages"] == ["parity", *RUNNERS]
    contracts = {contract["id"]: contract for contract in settings["contracts"]}
    assert contracts["runners-independent"]["modules"] == RUNNERS
    assert set(RUNNERS) <= set(contracts["library-below-runners"]["forbidden_modules"])


@pytest.mark.parametrize("package", ["src/parity", *(f"runners/{name}" for name in RUNNERS)])
def test_every_package_says_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


def test_every_extra_that_the_makefile_asks_for_exists(project: dict[str, Any]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (line,) = (line for line in makefile.splitlines() if line.startswith("EXTRAS :="))
    extras = line.partition(":=")[2].strip().split(",")
    assert set(extras) <= set(project["project"]["optional-dependencies"])


def test_the_installed_metadata_is_this_projects(project: dict[str, Any]) -> None:
    assert importlib.metadata.version("parity") == project["project"]["version"] == parity.__version__
    installed = {
        entry.name: entry.value
        for entry in importlib.metadata.entry_points(group="parity.runners")
        if entry.dist is not None and entry.dist.name == "parity"
    }
    assert installed == project["project"]["entry-points"]["parity.runners"]


@pytest.mark.slow
def test_the_wheel_holds_the_library_and_the_runners_and_no_handler(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    run = subprocess.run(
        [*command, "--disable-pip-version-check", "--wheel-dir", tmp_path, ROOT],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    (wheel,) = tmp_path.glob("parity-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"parity", *RUNNERS}
    assert {f"{top}/py.typed" for top in tops} <= set(names)
    assert {f"{top}/__init__.py" for top in tops} <= set(names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    sources = {
        path.relative_to(root).as_posix()
        for root in (ROOT / "src", ROOT / "runners")
        for path in root.rglob("*.py")
    }
    assert {name for name in names if name.endswith(".py")} == sources
