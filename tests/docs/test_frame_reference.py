"""The frame's reference is what the code and the libraries say."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

from tools.frame_reference import PATH, differences, page, version

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
        if len(cells := [cell.strip() for cell in line.strip("| ").split(" | ")]) == 4
    }
    for what, mine, *_ in differences():
        assert told[what] == mine
