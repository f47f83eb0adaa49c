"""Real servers for tests, and what tests ask them."""

import http.client
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from parity_online.process import ServerProcess

HANDLERS = Path(__file__).parent / "handlers"
PROBE = str(HANDLERS / "probe")
LINEAR = str(HANDLERS / "linear")

JSON = {"Content-Type": "application/json"}


class Probe:
    """A server of the probe handler, and a folder for the files that its rows wait for."""

    def __init__(self, server: ServerProcess, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.ran_file = folder / "ran"
        self._gates = 0

    def gate(self) -> Path:
        """A new file that does not exist: rows with `wait` set to it keep the slot busy until it does."""
        self._gates += 1
        return self.folder / f"gate-{self._gates}"

    def ran(self) -> set[int]:
        """The ids of the rows that have been run."""
        return {int(line) for line in self.ran_file.read_text().split()} if self.ran_file.exists() else set()

    def ask(
        self, path: str, body: object, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], Any]:
        return ask(self.server.url, "POST", path, body, {**JSON, **(headers or {})})

    def metric(self, name: str, **labels: str) -> float:
        return metric(self.server.url, name, **labels)


def ask(
    url: str, verb: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], Any]:
    """Status, headers in lower case, and the body: JSON when it is, else bytes."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request(verb, path, data, headers or {})
        response = connection.getresponse()
        text = response.read()
    finally:
        connection.close()
    found = {name.lower(): value for name, value in response.getheaders()}
    is_json = found.get("content-type", "").startswith("application/json") and "content-encoding" not in found
    return response.status, found, json.loads(text) if is_json else text


def metric(url: str, name: str, **labels: str) -> float:
    """The sum of a metric's samples that have these labels."""
    total = 0.0
    for line in ask(url, "GET", "/metrics")[2].decode().splitlines():
        series, _, value = line.rpartition(" ")
        if series.partition("{")[0] == name and all(
            f'{key}="{text}"' in series for key, text in labels.items()
        ):
            total += float(value)
    return total


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Return once the condition, which asks the server, holds; fail when it does not in time."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "the condition did not come true in time"


def address(url: str) -> tuple[str, int]:
    """Where a server listens, for a socket."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 0


def all_of(client: socket.socket) -> bytes:
    """What comes until the server closes, which it must."""
    found = b""
    while part := client.recv(65536):
        found += part
    return found
