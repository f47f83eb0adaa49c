"""One local Spark for all tests here; without a Java they are skipped, or fail where CI demands them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.batch.jobs import ORDERS

pytest.importorskip("pyspark", reason="pip install 'parity[spark]'")


@pytest.fixture(scope="session")
def java() -> None:
    """A Java that Spark runs on, or a skip that says what is missing."""
    from parity_spark.java import java_problem

    problem = java_problem(os.environ.get("JAVA_HOME"), os.environ.get("PATH", ""))
    if problem and os.environ.get("PARITY_REQUIRE_SPARK") == "1":
        pytest.fail(f"PARITY_REQUIRE_SPARK is set: {problem}")
    if problem:
        pytest.skip(problem)


@pytest.fixture(scope="session")
def session(java: None) -> Generator[Any]:
    """A Spark of two tasks at a time."""
    from parity_spark.local import local_session

    with local_session({"spark.sql.execution.arrow.maxRecordsPerBatch": "33"}) as found:
        yield found


@pytest.fixture
def handler(tmp_path: Path) -> Path:
    """A copy of the `orders` handler, to be changed."""
    return Path(shutil.copytree(ORDERS, tmp_path / "orders"))
