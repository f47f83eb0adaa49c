"""Compressed bodies: read and written, and stopped at the body limit."""

import asyncio
import gzip
import json
import random
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from parity import Profile, load_handler
from parity_online import fastpath
from parity_online.compression import accepted, decompress
from parity_online.fastpath import FastPath
from parity_online.gate import open_model
from parity_online.metrics import Metrics
from parity_online.models import Models
from parity_online.problems import ProblemError
from parity_online.protocol import FastProtocol
from parity_online.served import ServedModel
from parity_online.settings import ModelSettings, ServerSettings
from tests.online.serving import JSON, LINEAR, Probe, ask
from tests.online.wires import listening

BODY = b'{"id": 1, "x": 2.0}'


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (gzip.compress(BODY), "gzip"),
        (gzip.compress(BODY[:5]) + gzip.compress(BODY[5:]), "gzip"),
        (zlib.compress(BODY), "deflate"),
        (gzip.compress(b"") * 99 + gzip.compress(BODY), "gzip"),
        (zlib.compressobj(wbits=-15).compress(b"") + zlib.compress(BODY)[2:-4], "deflate"),
    ],
)
def test_what_was_compressed_comes_back(data: bytes, encoding: str):
    assert decompress(data, encoding, len(BODY)) == BODY


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_what_is_longer_than_a_piece_comes_back(encoding: str):
    data = random.Random(1).randbytes(3_000_000)
    packed = gzip.compress(data, 1) * 2 if encoding == "gzip" else zlib.compress(data, 1)
    assert decompress(packed, encoding, 6_000_000) == data * (2 if encoding == "gzip" else 1)


@pytest.mark.parametrize(
    ("data", "encoding", "limit", "status", "said"),
    [
        (BODY, "gzip", 99, 400, "not gzip data"),
        (BODY, "deflate", 99, 400, "not deflate data"),
        (gzip.compress(BODY)[:-3], "gzip", 99, 400, "cut short"),
        (b"", "gzip", 99, 400, "cut short"),
        (zlib.compress(BODY) + b"x", "deflate", 99, 400, "1 bytes follow"),
        (gzip.compress(BODY), "gzip", len(BODY) - 1, 413, "once decompressed"),
        (gzip.compress(bytes(10**8)), "gzip", 1000, 413, "more than 1000 bytes"),
        (gzip.compress(b"") * 99 + gzip.compress(BODY), "gzip", 5, 413, "once decompressed"),
        (gzip.compress(b"") * 100 + gzip.compress(BODY), "gzip", 99, 400, "more than 100 members"),
        (gzip.compress(b"") * 3_000_000, "gzip", 99, 400, "more than 100 members"),
        (BODY, "br", 99, 415, "'br'"),
        (BODY, "gzip, gzip", 99, 415, "gzip, deflate and identity"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, encoding: str, limit: int, status: int, said: str):
    with pytest.raises(ProblemError) as caught:
        decompress(data, encoding, limit)
    assert caught.value.status == status
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        (b"gzip", "gzip"),
        (b"GZIP ; q=0.5, deflate", "gzip"),
        (b"gzip;q=0, deflate", "deflate"),
        (b"br, identity", None),
        (b"gzip;q=soon", None),
        (b"", None),
    ],
)
def test_the_answer_takes_an_encoding_that_is_accepted(header: bytes, encoding: str | None):
    assert accepted(header) == encoding


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_server_reads_and_writes_compressed_bodies(probe: Probe, encoding: str):
    rows = json.dumps([{"id": row, "x": 1.0} for row in range(16)]).encode()
    packed = gzip.compress(rows) if encoding == "gzip" else zlib.compress(rows)
    headers = {**JSON, "Content-Encoding": encoding, "Accept-Encoding": encoding}
    answers = probe.ask("/predictions/probe", rows)[2]
    status, found, body = ask(probe.server.url, "POST", "/predictions/probe", packed, headers)
    assert (status, found.get("content-encoding")) == (200, None)  # too small to be worth it
    assert body == answers
    row = {"features": [0.0] * 8, "name": "x" * 3000, "account": None, "at": None}
    status, found, body = ask(probe.server.url, "POST", "/predictions/linear", row, headers)
    assert status == 400  # not compressed as it says
    headers = {**JSON, "Accept-Encoding": f"br, {encoding}"}
    status, found, body = ask(probe.server.url, "POST", "/predictions/linear", row, headers)
    assert (status, found["content-encoding"]) == (200, encoding)
    plain = gzip.decompress(body) if encoding == "gzip" else zlib.decompress(body)
    assert json.loads(plain) == probe.ask("/predictions/linear", row)[2]


LARGE = {"features": [0.0] * 8, "name": "x" * 3000, "account": None, "at": None}
ONE_OR_TWO_ROWS = pytest.mark.parametrize("rows", [LARGE, [LARGE, LARGE]], ids=["one row", "two rows"])


class Talk:
    """A connection to a server of one model, and the server's counts."""

    def __init__(self, metrics: Metrics, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._metrics = metrics
        self.reader = reader
        self._writer = writer

    def send(self, rows: Any) -> None:
        """Ask for an answer that is worth compressing."""
        body = json.dumps(rows).encode()
        head = "POST /predictions/linear HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def answer(self) -> tuple[int, bytes]:
        """The status and the body of the next answer."""
        async with asyncio.timeout(5.0):
            head = await self.reader.readuntil(b"\r\n\r\n")
            fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:-2])
            return int(head[9:12]), await self.reader.readexactly(int(fields[b"content-length"]))

    def answers(self, status: int) -> float | None:
        """How many answers of this status have been counted."""
        labels = {"model": "linear", "version": "1", "protocol": "predictions", "status": str(status)}
        return self._metrics.registry.get_sample_value("parity_answers_total", labels)


def talk(conversation: Callable[[Talk, FastPath], Awaitable[None]]) -> None:
    """Run a conversation with a server in this process, through a socket."""

    async def main() -> None:
        metrics = Metrics()
        model = ServedModel(load_handler(LINEAR), Profile(), ModelSettings(gate="off", slot="loop"), metrics)
        await open_model(model)
        fast = FastPath(nobody, Models([model]), ServerSettings())
        async with listening(fast, FastProtocol) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await conversation(Talk(metrics, reader, writer), fast)
            writer.close()
            await writer.wait_closed()
        assert model.in_flight == 0
        await model.drain(1.0)

    asyncio.run(main())


async def nobody(scope: object, receive: object, send: object) -> None:
    raise LookupError("the app was asked")


@ONE_OR_TWO_ROWS
def test_an_answer_that_cannot_be_compressed_is_a_counted_500(rows: Any, monkeypatch: pytest.MonkeyPatch):
    async def fails(request: object, answer: object) -> None:
        raise MemoryError("no room to compress")

    async def conversation(talk: Talk, fast: FastPath) -> None:
        for count in (1, 2):  # the connection stays of use, and the head is known the second time
            talk.send(rows)
            status, body = await talk.answer()
            assert status == 500
            assert "no room" not in json.loads(body)["error"]
            assert talk.answers(500) == count
        monkeypatch.undo()
        talk.send(rows)
        status, body = await talk.answer()
        assert status == 200
        assert b"hello x" in gzip.decompress(body)
        assert (talk.answers(200), talk.answers(500)) == (1, 2)

    monkeypatch.setattr(fastpath, "write_encoded", fails)
    talk(conversation)


def test_an_answer_whose_compression_is_cancelled_ends_the_connection(monkeypatch: pytest.MonkeyPatch):
    compresses = asyncio.Event()

    async def hangs(request: object, answer: object) -> None:
        compresses.set()
        await asyncio.Event().wait()

    async def conversation(talk: Talk, fast: FastPath) -> None:
        talk.send(LARGE)
        async with asyncio.timeout(5.0):
            await compresses.wait()
            (task,) = fast._encoding
            task.cancel()
            assert await talk.reader.read() == b""
        assert not fast._encoding

    monkeypatch.setattr(fastpath, "write_encoded", hangs)
    talk(conversation)


@pytest.mark.slow
def test_a_bomb_is_413_and_harms_nobody(probe: Probe):
    bomb = gzip.compress(b"[" + b" " * 200_000_000 + b"]")
    headers = {**JSON, "Content-Encoding": "gzip"}
    status, _, answer = ask(probe.server.url, "POST", "/predictions/probe", bomb, headers)
    assert status == 413
    assert "once decompressed" in answer["error"]
    assert probe.ask("/predictions/probe", {"id": 1})[0] == 200
