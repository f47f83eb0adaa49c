"""A dataset, and a copy of a handler that a test may change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.batch.jobs import ORDERS


@pytest.fixture
def handler(tmp_path: Path) -> Path:
    """A copy of the `orders` handler, to be changed."""
    return Path(shutil.copytree(ORDERS, tmp_path / "orders"))
