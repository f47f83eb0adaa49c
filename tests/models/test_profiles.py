"""A handler under profiles of other model backends, by its real paths: goldens, laws, batch, a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from parity.check import run_check
from parity.laws import laws_named

ROOT = Path(__file__).parents[2]
FASHION = str(ROOT / "handlers" / "fashion")
LAWS = {"onnxruntime": ("neighbours", "concurrency", "declared-access"), "openvino": ("declared-access",)}


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_goldens_and_laws_hold_under_another_backend(backend: str) -> None:
    report = run_check(
        FASHION,
        settings=[f"backend={backend}"],
        runners=["batch"],
        laws=LAWS[backend],
    )
    assert report.exit_code == 0, [(item.law, item.detail) for item in report.laws]
    assert {item.law for item in report.laws} == {law.name for law in laws_named(LAWS[backend])}
    assert all(item.pairs for item in report.laws)
    assert {entry.verdict for entry in report.entries} == {"within"}  # another library has other last bits


def test_a_profile_is_compared_with_that_of_another_backend(tmp_path: Path) -> None:
    folder = tmp_path / "fashion"
    folder.mkdir()
    for file in (ROOT / "handlers" / "fashion").rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            target = folder / file.relative_to(ROOT / "handlers" / "fashion")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    with (folder / "handler.toml").open("a", encoding="utf-8") as toml:
        toml.write('\n[profiles.fast]\nbackend = "onnxruntime"\n')
    report = run_check(
        str(folder),
        golden=ROOT / "golden" / "fashion",
        runners=["batch"],
        laws=["device"],
        profiles=["fast"],
    )
    (law,) = report.laws
    assert law.verdict == "noise"
    assert law.pairs > 0
