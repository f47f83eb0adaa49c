"""Errors of libraries behind URLs that say that a connection was lost end a job, and leave out no file."""

from __future__ import annotations

import copy
import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from parity.errors import DatasetError
from parity_batch import Settings, score
from parity_batch.connections import Told, is_of_connection
from parity_batch.footers import SourceFile
from parity_batch.lost import LostError, UnreadableError, check_there
from parity_batch.places import open_file, stamp_of
from tests.batch.jobs import ORDERS, write_orders


def error_of(module: str, *names: str, base: type[Exception] = Exception) -> Exception:
    """Make an error of the last of these classes, each of which is the next one's base."""
    kind = base
    for name in names:
        kind = type(name, (kind,), {"__module__": module})
    return kind("Could not connect to the endpoint")


LOST = [
    error_of("botocore.exceptions", "BotoCoreError", "ConnectionError", "EndpointConnectionError"),
    error_of("botocore.exceptions", "BotoCoreError", "HTTPClientError", "ReadTimeoutError"),
    error_of("botocore.exceptions", "BotoCoreError", "HTTPClientError", "ResponseStreamingError"),
    error_of("aiobotocore.response", "HTTPClientError", base=ConnectionError),
    error_of("aiohttp.client_exceptions", "ClientError", "ClientPayloadError"),
    error_of("aiohttp.client_exceptions", "ClientError", "ClientConnectionError", "ServerDisconnectedError"),
    error_of("aiohttp.client_exceptions", "ClientConnectionError", "ClientOSError", base=OSError),
    error_of("google.auth.exceptions", "GoogleAuthError", "TransportError"),
    error_of("google.api_core.exceptions", "GoogleAPICallError", "ServiceUnavailable"),
    error_of("google.api_core.exceptions", "GatewayTimeout", "DeadlineExceeded"),
    error_of("azure.core.exceptions", "AzureError", "ServiceRequestError"),
    error_of("azure.core.exceptions", "AzureError", "ServiceResponseError", "ServiceResponseTimeoutError"),
    error_of("requests.exceptions", "RequestException", "ConnectionError", base=OSError),
    error_of("urllib3.exceptions", "HTTPError", "PoolError", "MaxRetryError"),
    error_of("httpx", "HTTPError", "TransportError", "ConnectError"),
    error_of("httpcore", "NetworkError", "ReadError"),
    error_of("http.client", "HTTPException", "IncompleteRead"),
    TimeoutError("no answer"),
]
ANSWERS = [
    error_of("botocore.exceptions", "BotoCoreError", "ClientError"),
    error_of("botocore.exceptions", "BotoCoreError", "NoCredentialsError"),
    error_of("aiohttp.client_exceptions", "ClientError", "ClientResponseError"),
    error_of("google.auth.exceptions", "GoogleAuthError", "RefreshError"),
    error_of("azure.core.exceptions", "AzureError", "HttpResponseError", "ResourceNotFoundError"),
    error_of("requests.exceptions", "RequestException", "HTTPError", base=OSError),
    error_of("mine.exceptions", "ClientConnectionError"),  # no library that is known
    FileNotFoundError("no such file"),
    PermissionError("not for you"),
    ValueError("no number"),
]


def name_of(error: Exception) -> str:
    return f"{type(error).__module__}.{type(error).__name__}"


def led_to(error: Exception, other: Exception, *, named: bool) -> Exception:
    """Give the other error as it is raised where the first one was met, or was given as the cause."""
    if named:
        other.__cause__ = error
        other.__suppress_context__ = True
    other.__context__ = error
    return other


@pytest.mark.parametrize("error", LOST, ids=name_of)
def test_what_says_that_a_connection_was_lost_is_known_by_its_name(error: Exception) -> None:
    assert is_of_connection(error)
    assert is_of_connection(led_to(error, RuntimeError("Failed to read the blob"), named=True))
    assert is_of_connection(led_to(error, RuntimeError("Failed to read the blob"), named=False))
    assert is_of_connection(led_to(error, FileNotFoundError("https://x"), named=True))
    assert not is_of_connection(led_to(error, FileNotFoundError("https://x"), named=False))
    hidden = led_to(error, RuntimeError("about something else"), named=False)
    hidden.__suppress_context__ = True
    assert not is_of_connection(hidden)


@pytest.mark.parametrize("error", ANSWERS, ids=name_of)
def test_an_answer_is_none_of_them(error: Exception) -> None:
    assert not is_of_connection(error)
    assert not is_of_connection(led_to(error, RuntimeError("Failed to read the blob"), named=True))


def test_errors_that_led_to_each_other_are_read_to_the_end() -> None:
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    assert not is_of_connection(one)


class Remote(LocalFileSystem):
    """A file system that raises `error` of files whose names are in `lost`, in the step that `at` names."""

    protocol = "remote"
    lost: ClassVar[set[str]] = set()
    error: ClassVar[Exception] = OSError()
    at: ClassVar[str] = ""

    def _check(self, path: str, step: str) -> None:
        if self.at == step and Path(path).name in self.lost:
            raise self.error

    def info(self, path: str, **named: Any) -> Any:
        self._check(path, "info")
        return super().info(path, **named)

    def isfile(self, path: str) -> bool:  # as fsspec's own: whatever is raised is no file
        try:
            return self.info(path)["type"] == "file"
        except Exception:  # noqa: BLE001
            return False

    def _open(self, path: str, *given: Any, **named: Any) -> Any:
        self._check(path, "open")
        file = super()._open(path, *given, **named)
        if self.at == "read" and Path(path).name in self.lost:
            file.read = self._raise
        return file

    def _raise(self, *_: object) -> bytes:
        raise self.error


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> type[Remote]:
    fsspec.register_implementation("remote", Remote, clobber=True)
    monkeypatch.setattr(Remote, "lost", set())
    return Remote


@pytest.mark.parametrize("at", ["info", "open", "read"])
@pytest.mark.parametrize("error", [LOST[0], LOST[4], LOST[7], LOST[10], LOST[13]], ids=name_of)
@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_a_job_ends_and_leaves_no_file_out(
    tmp_path: Path,
    remote: type[Remote],
    monkeypatch: pytest.MonkeyPatch,
    at: str,
    error: Exception,
    format_: str,
) -> None:
    write_orders(tmp_path / "in", (5, 5, 5))
    if format_ == "csv":
        for path in (tmp_path / "in").iterdir():
            path.unlink()
        for number in range(3):
            (tmp_path / "in" / f"orders-{number:02d}.csv").write_text("id,price,quantity,note\n1,2.5,3,a\n")
    monkeypatch.setattr(remote, "error", error)
    monkeypatch.setattr(remote, "at", at)
    remote.lost.add(f"orders-01.{format_}")
    with pytest.raises(DatasetError, match=r"Could not connect|cannot be reached any more at remote"):
        score(
            f"remote://{tmp_path / 'in'}", tmp_path / "out", ORDERS, settings=Settings(on_file_error="skip")
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("at", ["info", "open", "read"])
def test_a_file_that_was_there_when_the_job_was_planned_is_lost(
    tmp_path: Path, remote: type[Remote], monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    (tmp_path / "a").write_text("x")
    url = f"remote://{tmp_path / 'a'}"
    found = SourceFile(url, "a", stamp_of(url))
    monkeypatch.setattr(remote, "error", LOST[0])
    monkeypatch.setattr(remote, "at", at)
    remote.lost.add("a")
    for met in (OSError("Tried reading 10 bytes"), FileNotFoundError(2, "no such file", url)):
        with pytest.raises(LostError, match=r"a: the file cannot be reached any more at remote://"):
            check_there(found, met)
    remote.lost.clear()
    check_there(found, FileNotFoundError(2, "no such file", url))
    (tmp_path / "a").unlink()
    with pytest.raises(UnreadableError, match="was removed"):
        check_there(found)


def test_what_stands_for_a_file_system_is_it(tmp_path: Path, remote: type[Remote]) -> None:
    (tmp_path / "a").write_text("text")
    told = Told(fsspec.filesystem("remote"))
    assert told == copy.copy(told)
    assert told != Told(fsspec.filesystem("file"))
    assert hash(told) == hash(Told(fsspec.filesystem("remote")))
    assert told.protocol == "remote"
    with open_file(f"remote://{tmp_path / 'a'}") as file:
        assert file.read() == b"text"
    with pytest.raises(FileNotFoundError):
        told.info(str(tmp_path / "b"))


@pytest.fixture
def server() -> Iterator[tuple[http.server.ThreadingHTTPServer, str]]:
    """A web server that has one file of ten bytes, and its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            there = self.path == "/a.parquet"
            self.send_response(200 if there else 404)
            self.send_header("Content-Length", "10" if there else "0")
            self.end_headers()
            if there and self.command == "GET":
                self.wfile.write(b"0123456789")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield listening, f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def test_a_web_server_that_is_gone_is_no_file_that_is_not_there(
    server: tuple[http.server.ThreadingHTTPServer, str],
) -> None:
    """fsspec tells both as FileNotFoundError; here aiohttp raises what led to it."""
    pytest.importorskip("aiohttp")
    listening, url = server
    found = SourceFile(f"{url}/a.parquet", "a.parquet", stamp_of(f"{url}/a.parquet"))
    check_there(found)
    with pytest.raises(FileNotFoundError):
        stamp_of(f"{url}/b.parquet")
    listening.shutdown()
    listening.server_close()
    with pytest.raises(ConnectionError):
        stamp_of(f"{url}/b.parquet")
    with pytest.raises(LostError, match=r"a\.parquet: the file cannot be reached any more at http://127"):
        check_there(found)


def test_botocore_says_so_of_an_endpoint_that_is_gone() -> None:
    session = pytest.importorskip("botocore.session").Session()
    config = pytest.importorskip("botocore.config").Config(retries={"total_max_attempts": 1})
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    client = session.create_client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="none",
        aws_access_key_id="k",
        aws_secret_access_key="s",
        config=config,
    )
    with pytest.raises(Exception, match="Could not connect to the endpoint") as caught:
        client.list_buckets()
    assert not isinstance(caught.value, OSError)
    assert is_of_connection(caught.value)
