"""Bodies of some MiB go below ASGI where there is room; either way the same bytes come back."""

import asyncio
import gc
import json
import random
import tracemalloc
from typing import Any

import pytest

from parity import Profile, load_handler
from parity_online.fastpath import FastPath
from parity_online.gate import open_model
from parity_online.gathering import Room
from parity_online.heads import HeadProtocol
from parity_online.keys import new_key, read_keys
from parity_online.metrics import Metrics
from parity_online.models import Models
from parity_online.protocol import ANY_BODY_BYTES, FAST_BODY_BYTES, FastProtocol
from parity_online.served import ServedModel
from parity_online.settings import ModelSettings, ServerSettings
from tests.online.serving import LINEAR
from tests.online.test_known_heads import other, settle, without_ids
from tests.online.wires import Wire, connect

ROW = {"features": [1.0] * 8, "account": None, "at": None}
BAD = {"features": [1.0] * 7, "account": None, "at": None}
PARTS = 65536


def request(size: int, row: object = ROW, *headers: str, path: str = "/predictions/linear") -> bytes:
    """A request whose JSON is filled with spaces up to a size."""
    body = json.dumps(row).encode().ljust(size)
    assert len(body) == size
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {size}"]).encode() + b"\r\n\r\n" + body


async def fast_path(**settings: Any) -> tuple[FastPath, ServedModel, Metrics]:
    metrics = Metrics()
    keys = settings.pop("keys", None)
    timeout_s = settings.pop("timeout_s", 30.0)
    model_settings = ModelSettings(gate="off", slot="loop", timeout_s=timeout_s)
    model = ServedModel(load_handler(LINEAR), Profile(), model_settings, metrics)
    await open_model(model)
    return FastPath(other, Models([model]), ServerSettings(**settings), keys), model, metrics


async def answer(fast: FastPath, data: bytes, kind: type[Any] = FastProtocol, seed: int = 0) -> bytes:
    """What comes back on a connection of its own, the data cut at random."""
    protocol, wire = await asked(fast, data, kind, seed)
    goes_below = type(protocol.cycle).__name__ == "_Exchange"
    protocol.connection_lost(None)
    await asyncio.sleep(0)
    return (b"below " if goes_below else b"asgi ") + without_ids(wire.sent)


async def asked(fast: FastPath, data: bytes, kind: type[Any], seed: int = 0) -> tuple[Any, Wire]:
    """A connection on which this has been asked, cut at random, and answered."""
    protocol, wire = connect(fast, kind)
    chance = random.Random(seed)
    at = 0
    while at < len(data):
        step = chance.randrange(1, 4 * PARTS)
        protocol.data_received(data[at : at + step])
        at += step
        if chance.random() < 0.5:
            await asyncio.sleep(0)
    await settle(wire, protocol)
    return protocol, wire


def answers(metrics: Metrics, status: str) -> float:
    labels = {"model": "linear", "version": "1", "protocol": "predictions", "status": status}
    return metrics.registry.get_sample_value("parity_answers_total", labels) or 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "size", [ANY_BODY_BYTES, ANY_BODY_BYTES + 1, 300_000, FAST_BODY_BYTES, FAST_BODY_BYTES + 1]
)
def test_a_body_is_answered_alike_whichever_way_it_takes(size: int):
    cases = {
        "good": request(size),
        "bad row": request(size, BAD),
        "list": request(size, [ROW, BAD, ROW]),
        "no JSON": request(size).replace(b'{"f', b"{{f"),
        "unknown type": request(size, ROW).replace(b"application/json", b"text/plain"),
        "wrong version": request(size, ROW, "X-Model-Version: 9"),
        "tensors": request(size, {"inputs": []}, path="/v2/models/linear/infer"),
        "instances": request(size, {"instances": [ROW, ROW]}, path="/v1/models/linear:predict"),
        "compressed": request(size, ROW, "Content-Encoding: gzip"),
        "last": request(size, ROW, "Connection: close"),
    }

    async def main() -> None:
        fast, model, _ = await fast_path()
        for seed, (name, data) in enumerate(cases.items()):
            below, found = (await answer(fast, data, FastProtocol, seed)).split(b" ", 1)
            way, expected = (await answer(fast, data, HeadProtocol, seed)).split(b" ", 1)
            assert (below == b"below") == (size <= FAST_BODY_BYTES), name
            assert way == b"asgi"
            assert found == expected, name
            assert found.startswith(b"HTTP/1.1 "), name
            assert fast.room.taken_bytes == 0
        await model.drain(1.0)

    asyncio.run(main())


def test_a_body_over_the_servers_limit_is_refused_before_it_has_come():
    async def main() -> None:
        fast, model, _ = await fast_path(body_limit_bytes=100_000)
        assert (await answer(fast, request(100_000))).startswith(b"below HTTP/1.1 200")
        assert (await answer(fast, request(100_001))).startswith(b"asgi HTTP/1.1 413")
        assert fast.room.taken_bytes == 0
        await model.drain(1.0)

    asyncio.run(main())


def test_bodies_that_find_no_room_go_by_asgi_and_are_answered_all_the_same():
    async def main() -> None:
        fast, model, _ = await fast_path()
        fast.room = Room(250_000)
        first, second, small = request(200_000), request(100_000), request(1000)
        protocol, wire = connect(fast, FastProtocol)
        protocol.data_received(first[:150_000])
        assert fast.room.taken_bytes == 200_000
        assert (await answer(fast, second)).startswith(b"asgi HTTP/1.1 200")
        assert (await answer(fast, small)).startswith(b"below HTTP/1.1 200"), "small ones need no room"
        protocol.data_received(first[150_000:])
        assert fast.room.taken_bytes == 200_000, "it is held until it is answered"
        await settle(wire, protocol)
        assert wire.sent.startswith(b"HTTP/1.1 200")
        assert fast.room.taken_bytes == 0
        assert (await answer(fast, second)).startswith(b"below HTTP/1.1 200"), "there is room again"
        protocol.connection_lost(None)
        await model.drain(1.0)

    asyncio.run(main())


@pytest.mark.parametrize("size", [1000, 200_000])
def test_a_client_that_leaves_while_it_sends_is_counted_and_leaves_its_room(size: int):
    async def main() -> None:
        for kind in (FastProtocol, HeadProtocol):
            fast, model, metrics = await fast_path()
            protocol, wire = connect(fast, kind)
            protocol.data_received(request(size)[:-10])
            await asyncio.sleep(0)
            protocol.connection_lost(None)
            for _ in range(5):
                await asyncio.sleep(0)
            assert not wire.sent
            assert answers(metrics, "499") == 1
            assert fast.room.taken_bytes == 0
            await model.drain(1.0)

    asyncio.run(main())


@pytest.mark.parametrize("row", [ROW, BAD, [ROW, BAD]])
def test_a_client_that_leaves_while_it_is_answered_leaves_its_room(row: object):
    async def main() -> None:
        fast, model, _ = await fast_path()
        protocol, _ = connect(fast, FastProtocol)
        protocol.data_received(request(200_000, row))
        assert fast.room.taken_bytes == 200_000
        protocol.connection_lost(None)
        async with asyncio.timeout(30):
            while fast.room.taken_bytes:  # noqa: ASYNC110 - nobody tells who has left
                await asyncio.sleep(0.005)
        await model.drain(1.0)

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("kind", [FastProtocol, HeadProtocol])
@pytest.mark.parametrize("size", [30_000, 1_000_000])
def test_connections_that_idle_after_a_body_hold_none_of_it(size: int, kind: type[Any]):
    cases = {
        "a row": request(size),
        "a row of a known head": request(size),
        "a bad row": request(size, BAD),
        "a list": request(size, [ROW, BAD]),
        "no JSON": request(size).replace(b'{"f', b"{{f"),
        "an unknown type": request(size).replace(b"application/json", b"text/plain"),
        "instances": request(size, {"instances": [ROW, ROW]}, path="/v1/models/linear:predict"),
    }
    connections = 6

    async def main() -> None:
        fast, model, _ = await fast_path()
        for name, data in cases.items():
            await answer(fast, data, kind)
            tracemalloc.start()
            try:
                idle = [await asked(fast, data, kind, seed) for seed in range(connections)]
                gc.collect()
                held_bytes, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert not any(wire.is_closed for _, wire in idle), name
            assert held_bytes < connections * size / 2, name
            for protocol, _ in idle:
                protocol.connection_lost(None)
        await model.drain(1.0)

    asyncio.run(main())


@pytest.mark.parametrize("size", [1000, 200_000])
def test_a_body_that_does_not_come_in_time_is_refused_and_leaves_its_room(size: int):
    async def main() -> None:
        fast, model, metrics = await fast_path(timeout_s=0.02)
        protocol, wire = connect(fast, FastProtocol)
        protocol.data_received(request(size)[:-10])
        while not wire.is_closed:  # noqa: ASYNC110 - the server's own timer ends it
            await asyncio.sleep(0.005)
        assert wire.sent.startswith(b"HTTP/1.1 408")
        assert b"connection: close" in wire.sent
        protocol.connection_lost(None)
        assert (answers(metrics, "408"), answers(metrics, "499")) == (1, 0)
        assert fast.room.taken_bytes == 0
        await model.drain(1.0)

    asyncio.run(main())


def test_who_has_no_key_is_refused_before_a_large_body_has_come(tmp_path: Any):
    key, line = new_key("team")
    (tmp_path / "keys").write_text(f"{line}\n")

    async def main() -> None:
        fast, model, _ = await fast_path(keys=read_keys(tmp_path / "keys"))
        protocol, wire = connect(fast, FastProtocol)
        protocol.data_received(request(200_000, ROW, "X-API-Key: no")[:1000])
        assert fast.room.taken_bytes == 0
        protocol.connection_lost(None)
        assert (await answer(fast, request(200_000, ROW, "X-API-Key: no"))).startswith(b"asgi HTTP/1.1 401")
        assert (await answer(fast, request(200_000, ROW, f"X-API-Key: {key}"))).startswith(
            b"below HTTP/1.1 200"
        )
        assert not wire.sent
        await model.drain(1.0)

    asyncio.run(main())
