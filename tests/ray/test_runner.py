"""The Ray runner's replay: rows through Parquet files and a real local cluster."""

from __future__ import annotations

import pytest

from tests.distributed.replaying import ReplayContract

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


class TestReplay(ReplayContract):
    name, wire_form = "ray", "dataset"
