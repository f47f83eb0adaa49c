"""One local Ray cluster for all tests here."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.batch.jobs import ORDERS

pytest.importorskip("ray", reason="pip install 'parity[ray]'")


@pytest.fixture(scope="session")
def cluster() -> Generator[None]:
    """This process connected to a cluster of three logical CPUs and one logical GPU."""
    from parity_ray.local import local_cluster

    with local_cluster(num_gpus=1):
        yield


@pytest.fixture
def handler(tmp_path: Path) -> Path:
    """A copy of the `orders` handler, to be changed."""
    return Path(shutil.copytree(ORDERS, tmp_path / "orders"))
