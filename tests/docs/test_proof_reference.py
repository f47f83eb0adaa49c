"""The pages of laws and causes say what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.proof_reference import PAGES


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_page_is_fresh(path: Path):
    assert path.read_text(encoding="utf-8") == PAGES[path](), "run python tools/proof_reference.py"
