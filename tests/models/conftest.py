from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of compiled models for these tests alone, also for the processes that they start."""
    folder = tmp_path_factory.mktemp("cache")
    known = os.environ.get("PARITY_CACHE")
    os.environ["PARITY_CACHE"] = str(folder)
    yield folder
    if known is None:
        del os.environ["PARITY_CACHE"]
    else:
        os.environ["PARITY_CACHE"] = known
