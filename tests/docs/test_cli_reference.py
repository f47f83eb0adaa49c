"""The command line's reference says what the command line says."""

from __future__ import annotations

import pytest

from tools.cli_reference import PATH, reference


@pytest.mark.slow
def test_the_reference_is_fresh():
    assert PATH.read_text(encoding="utf-8") == reference(), "run python tools/cli_reference.py"
