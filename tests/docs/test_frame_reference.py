"""The frame's reference is what the code and the libraries say."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pytest
import torch

from parity.frame.cudf_engine import CudfEngine, questions
from tests.frame import fake_cudf
from tools.frame_reference import ASKED, PATH, differences, page, version

WRITTEN = PATH.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_is_fresh() -> None:
    if f"pandas {version(pd)} " not in WRITTEN or f"Polars {version(pl)}." not in WRITTEN:
        pytest.skip("the page tells of other releases of pandas or Polars")
    assert page() == WRITTEN, "run python tools/frame_reference.py"


def test_what_we_answer_is_what_the_page_says_whatever_the_others_release() -> None:
    told = {
        cells[0]: cells[1]
        for line in WRITTEN.splitlines()
        if len(cells := [cell.strip() for cell in line.strip("| ").split(" | ")]) == 5
    }
    for what, mine, *_ in differences():
        assert told[what] == mine


class Noting(dict[str, Any]):
    """Recorded signatures that note which of them were asked for."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        super().__init__(recorded)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.used.add(name)
        return super().__getitem__(name)


@pytest.mark.parametrize("name", questions())
def test_every_call_of_cudf_that_the_page_names_is_made(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noting = Noting(fake_cudf.RECORDED)
    monkeypatch.setattr(fake_cudf, "RECORDED", noting)
    questions()[name](CudfEngine(torch.device("cpu"), fake_cudf))
    assert set(ASKED[name].calls) <= noting.used


def test_the_page_names_no_question_that_cudf_is_not_asked() -> None:
    assert set(ASKED) == set(questions())
