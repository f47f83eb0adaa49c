"""A handler's stages are called in engine.py and nowhere else.

Whoever calls them elsewhere skips padding, isolation and the output checks, and so computes another answer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# The engine and its work units have stages of the same names; these two only a handler has.
HANDLER_ONLY = {"initialize", "inference"}
STAGES = HANDLER_ONLY | {"preprocess", "postprocess"}
HANDLER_NAMES = {"handler", "_handler"}
CALLER = Path("src/parity/engine.py")


def stage_calls(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every place that calls a handler's stage, or takes it off a handler to pass on."""
    tree = ast.parse(source)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.attr not in STAGES:
            continue
        owner = node.value
        if isinstance(owner, ast.Call) and ast.unparse(owner.func) == "super":
            continue
        name = (
            owner.id
            if isinstance(owner, ast.Name)
            else owner.attr
            if isinstance(owner, ast.Attribute)
            else ""
        )
        if name in HANDLER_NAMES or (node.attr in HANDLER_ONLY and id(node) in called):
            yield node.lineno, ast.unparse(node)


def modules() -> list[Path]:
    return sorted(
        path.relative_to(ROOT) for folder in ("src", "runners") for path in (ROOT / folder).rglob("*.py")
    )


@pytest.mark.parametrize("path", [path for path in modules() if path != CALLER], ids=str)
def test_only_the_engine_calls_stages(path: Path) -> None:
    calls = list(stage_calls((ROOT / path).read_text(encoding="utf-8")))
    assert not calls, f"{path} calls a handler's stage; let Engine do it: {calls}"


def test_the_engine_calls_every_stage() -> None:
    called = {text.rpartition(".")[2] for _, text in stage_calls((ROOT / CALLER).read_text(encoding="utf-8"))}
    assert called == STAGES


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("self._handler.preprocess(batch)", True),
        ("handler.postprocess(y, batch)", True),
        ("anything.inference(x)", True),
        ("model.initialize(context)", True),
        ("pool.submit(loaded.handler.preprocess, batch)", True),
        ("engine.preprocess(batch)", False),
        ("self.engine.postprocess(work)", False),
        ("super().initialize(context)", False),
        ("def inference(self, x): ...", False),
        ("stages.inference", False),
    ],
)
def test_the_search_knows_a_stage_call(source: str, found: bool) -> None:
    assert bool(list(stage_calls(source))) is found
