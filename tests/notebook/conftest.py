"""The handler that the notebook runner's tests call, and rows for it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from parity_notebook import Session, load

HANDLERS = Path(__file__).parent / "handlers"
PRICES = HANDLERS / "prices"

ROWS: list[dict[str, Any]] = [
    {
        "price": 2.0,
        "units": 3,
        "name": "Ada",
        "at": datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
        "tags": ["a"],
    },
    {"price": 0.1, "units": None, "name": "Zoë \N{PILE OF POO}", "at": None, "tags": []},
    {
        "price": -0.0,
        "units": 2**53 + 1,
        "name": "",
        "at": datetime(2030, 1, 1, tzinfo=UTC),
        "tags": ["b", "c"],
    },
]


@pytest.fixture(scope="package")
def prices() -> Iterator[Session]:
    """A session of the prices handler; tests must not close or reload it."""
    with load(PRICES) as session:
        yield session


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    """Three good rows."""
    return [dict(row) for row in ROWS]


@pytest.fixture
def copied_prices(tmp_path: Path) -> Path:
    """A copy of the handler's folder, to be edited."""
    return Path(shutil.copytree(PRICES, tmp_path / "prices", ignore=shutil.ignore_patterns("__pycache__")))
