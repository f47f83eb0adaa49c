"""What operations keep on a device is each stream's own, and nothing is kept by other means."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from parity import vision
from parity.vision.kept import kept

MODULES = sorted(Path(vision.__file__).parent.glob("*.py"))
CACHES = {"lru_cache", "cache"}


def test_each_stream_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = SimpleNamespace(cuda_stream=1)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: stream)

    @kept
    def made(number: int, device: torch.device) -> list[object]:
        return [number, device]

    device = torch.device("cuda", 0)
    first = made(3, device)
    assert made(3, device) is first
    assert made(4, device) is not first
    assert made(3, torch.device("cuda", 1)) is not first
    stream.cuda_stream = 2
    assert made(3, device) is not first
    stream.cuda_stream = 1
    assert made(3, device) is first


def test_on_the_host_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: pytest.fail("the host has no stream"))

    @kept
    def made(device: torch.device) -> list[object]:
        return [device]

    assert made(torch.device("cpu")) is made(torch.device("cpu"))


@pytest.mark.parametrize("module", [path for path in MODULES if path.stem != "kept"], ids=lambda x: x.stem)
def test_no_module_keeps_results_by_a_cache_that_knows_no_streams(module: Path) -> None:
    assert caches_in(module.read_text(encoding="utf-8")) == []


def caches_in(source: str) -> list[str]:
    """The caches of functools that a module takes, however it is spelled."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "functools":
            found += [name.name for name in node.names if name.name in CACHES]
        elif isinstance(node, ast.Attribute) and node.attr in CACHES:
            found.append(node.attr)
    return found


@pytest.mark.parametrize(
    "source",
    [
        "from functools import lru_cache",
        "from functools import partial, cache as remembered",
        "import functools\n@functools.cache\ndef f(): ...",
        "import functools as f\n@f.lru_cache(maxsize=3)\ndef g(): ...",
    ],
)
def test_a_cache_is_seen_however_it_is_spelled(source: str) -> None:
    assert len(caches_in(source)) == 1
