"""Compressed bodies: read and written, and stopped at the body limit."""

import gzip
import json
import random
import zlib

import pytest

from parity_online.compression import accepted, decompress
from parity_online.problems import ProblemError
from tests.online.serving import JSON, Probe, ask

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


@pytest.mark.slow
def test_a_bomb_is_413_and_harms_nobody(probe: Probe):
    bomb = gzip.compress(b"[" + b" " * 200_000_000 + b"]")
    headers = {**JSON, "Content-Encoding": "gzip"}
    status, _, answer = ask(probe.server.url, "POST", "/predictions/probe", bomb, headers)
    assert status == 413
    assert "once decompressed" in answer["error"]
    assert probe.ask("/predictions/probe", {"id": 1})[0] == 200
