from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from parity.triage.case import Suspect
from parity.triage.catalogue import CATALOGUE, suspect_named

HERE = Path(__file__).parent

PROMISED = """
channel-order transpose orientation row-order row-shift affine-scale recast rounding wrap resize-antialias
timezone-shift text-normalisation integer-through-float null-promotes-dtype null-nan-missing column-order
broadcast softmax-missing train-mode batch-statistics padding-without-mask non-finite-neighbour
categories-per-batch squeezed-axis ragged-last-batch stale-buffer position global-rng unseeded-rng hash-seed
locale timezone-of-process working-directory thread-count wall-clock state-kept shared-state input-mutated
row-count generator-consumed weights source environment undeclared-read undeclared-write undeclared-output
empty-batch ddof null-order precision device
""".split()


def literals(function: str) -> set[str]:
    """The names that tests claim or deny: every text in a test that calls the function."""
    found: set[str] = set()
    for path in HERE.glob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef):
                continue
            calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
            if any(isinstance(call.func, ast.Name) and call.func.id == function for call in calls):
                found |= {str(each.value) for each in ast.walk(node) if isinstance(each, ast.Constant)}
    return found


def test_every_promised_cause_is_in_the_catalogue_once() -> None:
    names = [suspect.name for suspect in CATALOGUE]
    assert len(names) == len(set(names))
    assert set(PROMISED) <= set(names)


@pytest.mark.parametrize("suspect", CATALOGUE, ids=[suspect.name for suspect in CATALOGUE])
def test_a_cause_says_what_it_is_what_is_gathered_and_what_to_do(suspect: Suspect) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", suspect.name)
    for text in (suspect.sentence, suspect.gathers, suspect.remedy):
        assert len(text) > 15
        assert not text.endswith(".")
    assert suspect.groups
    assert suspect_named(suspect.name) is suspect


def test_every_cause_has_a_divergence_that_it_explains_and_one_that_it_must_not_claim() -> None:
    names = {suspect.name for suspect in CATALOGUE}
    assert names - literals("claims") == set()
    images = {"alpha", "bit-depth"}
    assert names - literals("denies") - images == set()
