"""The documents' own check finds what it is for."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def check_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_docs", ROOT / "tools" / "check_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def findings(check_docs: ModuleType, text: str) -> list[str]:
    pages = {Path("docs/a.md"): check_docs.read_page(Path("docs/a.md"), text)}
    pages[Path("docs/b.md")] = check_docs.read_page(
        Path("docs/b.md"), "# Tune `max_delay`, then\n\n## Again\n## Again"
    )
    tracked = {*pages, Path("src/parity/engine.py")}
    tree: dict[str, object] = {"run": {}, "golden": {"record": {}, "check": {}}}
    found = [*check_docs.check_links(pages, tracked), *check_docs.check_commands(pages, tree)]
    return [str(finding) for finding in found]


@pytest.mark.parametrize(
    "text",
    [
        "[b](b.md) [c](b.md#tune-max_delay-then) [d](b.md#again-1) [e](../src/parity/engine.py) [f](../src)",
        '# Here\n[up](#here) [out](https://example.org/x) <a id="spot"></a> [spot](#spot)',
        "```\n[not a link](nowhere.md)\nparity run handlers/fashion rows.json\n```",
        "`parity golden record HANDLER ROWS --case x` and `parity --version` and `parity.Batch`",
        "[b][ref]\n\n[ref]: b.md",
    ],
)
def test_good_documents_pass(check_docs: ModuleType, text: str) -> None:
    assert findings(check_docs, text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[b](c.md)", "docs/a.md:1: link to c.md: no such file"),
        ("\n![p](../img/x.png)", "docs/a.md:2: link to ../img/x.png: no such file"),
        ("[b](../../a.md)", "no such file"),
        ("[b](b.md#nowhere)", "docs/b.md has no heading with that anchor"),
        ("`parity fly`", "`parity fly`: no such command (there are golden, run)"),
        (
            "```sh\n$ parity golden burn x\n```",
            "docs/a.md:2: `parity golden burn`: no such command (there are check, record)",
        ),
    ],
)
def test_bad_documents_are_found(check_docs: ModuleType, text: str, expected: str) -> None:
    (found,) = findings(check_docs, text)
    assert expected in found


def test_paths_and_hosts_of_one_machine_are_found(check_docs: ModuleType) -> None:
    text = (
        "ok: docs/work/x\nbad: "
        + "/"
        + "work/main\nbad: https://"
        + "pypi"
        + ".org/simple\nok: framework/root/x"
    )
    assert [finding.line for finding in check_docs.check_words(Path("x"), text)] == [2, 3]
