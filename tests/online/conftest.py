"""Servers that a module's tests share."""

from collections.abc import Iterator

import pytest

from parity_online.process import ServerProcess
from tests.online.serving import LINEAR, PROBE, Probe


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probe]:
    """A server with small limits: batches of 8 rows, a queue of 16, bodies of 1 MiB."""
    folder = tmp_path_factory.mktemp("probe")
    arguments = [PROBE, LINEAR, "--max-batch", "8", "--queue-rows", "16", "--body-limit-mb", "1"]
    arguments += ["--slot", "thread", "--log-level", "debug"]
    with ServerProcess(arguments, environment={"PROBE_RAN": str(folder / "ran")}) as server:
        yield Probe(server, folder)
