"""The Spark runner's replay: rows through Parquet files and a real local Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from parity_spark.java import java_problem
from tests.distributed.replaying import ReplayContract

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.mark.usefixtures("java")
class TestReplay(ReplayContract):
    name, wire_form = "spark", "dataframe"


def test_a_machine_without_java_is_told_what_to_install(tmp_path: Path) -> None:
    assert "there is no java on PATH" in java_problem(None, str(tmp_path))
    assert "has no bin/java" in java_problem(str(tmp_path), "")
    assert "openjdk-17-jre-headless" in java_problem(None, str(tmp_path))
    old = tmp_path / "old" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    old.chmod(0o755)
    assert 'says: openjdk version "1.8.0_392"' in java_problem(None, str(old.parent))
