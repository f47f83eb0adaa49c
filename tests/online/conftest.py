"""Servers that a module's tests share."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key in the same file."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    files = ["-keyout", str(path), "-out", f"{path}.crt", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made, *files], check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path
