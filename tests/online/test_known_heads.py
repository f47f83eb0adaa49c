"""Heads that are known: whatever comes, in whatever pieces, is answered as by a server that knows none."""

import asyncio
import gc
import json
import random
import weakref
from collections.abc import Sequence
from typing import Any, cast

import pytest

from parity import Profile, load_handler
from parity_online.fastpath import FastPath
from parity_online.gate import open_model
from parity_online.known_heads import LONGEST_BYTES, MOST, KnownHeads
from parity_online.metrics import Metrics
from parity_online.models import Models
from parity_online.protocol import FastProtocol
from parity_online.request import Request
from parity_online.route import Route
from parity_online.served import ServedModel
from parity_online.settings import ModelSettings, ServerSettings
from tests.online.serving import LINEAR
from tests.online.wires import Wire, connect

TALKS = 150


def request(
    row: dict[str, Any] | bytes, *headers: str, url: str = "/predictions/linear", **ask: str
) -> bytes:
    body = row if isinstance(row, bytes) else json.dumps(row).encode()
    lines = [f"{ask.get('verb', 'POST')} {url} HTTP/{ask.get('version', '1.1')}", "Host: x", *headers]
    if ask.get("length") != "none":
        lines.append(f"Content-Length: {ask.get('length', len(body))}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"features": [number] * 8, "account": None, "at": None} | more


JSON = "Content-Type: application/json"
REQUESTS = [
    *(request(row(number), JSON) for number in range(6)),
    *(request(row(number)) for number in range(3)),
    request(row(7), JSON, "X-Request-Id: mine"),
    request(row(7), JSON, "X-Request-Id: other"),
    request(row(7), JSON, "X-Request-Timeout: 5"),
    request(row(7), JSON, "X-Request-Timeout: never"),
    request(row(7), JSON, "X-Model-Version: 9"),
    request(row(7), JSON, "Accept-Encoding: gzip"),
    request(row(7, tags=["a" * 50] * 40, name="Ada" * 900), JSON, "Accept-Encoding: gzip"),
    request(row(7, name="reject me"), JSON),
    request(row(7, name="raise"), JSON),
    request(row(7, nmae="Ada"), JSON),
    request(b"[1, 2]", JSON),
    request(b'{"features": 1', JSON),
    request(b'{"features": 1, "features": 2}', JSON),
    request(b"", JSON),
    request(json.dumps(row(8)).encode().ljust(100_000), JSON),
    request(json.dumps(row(9)).encode().ljust(150_000), JSON),
    request(json.dumps([row(1), row(2)]).encode().ljust(70_000), JSON),
    request(b"{".ljust(90_000), JSON),
    request(json.dumps([row(1), row(2)]).encode(), JSON),
    request(b" " + json.dumps(row(3)).encode(), JSON),
    request(row(7), "Content-Type: text/plain"),
    request(row(7), JSON, "Content-Encoding: gzip"),
    request(row(7), JSON, "Transfer-Encoding: chunked", length="none").replace(
        b"\r\n\r\n", b"\r\n\r\n%x\r\n" % len(json.dumps(row(7)))
    )
    + b"\r\n0\r\n\r\n",
    request(row(7), JSON, verb="PUT"),
    request(b"", verb="GET", length="none"),
    request(row(1), JSON, url="/predictions/nobody"),
    request(row(1), JSON, url="/predictions/linear?x=1"),
    request(row(1), JSON, url="/predictions/linear/1.0.0"),
]
LAST = [
    request(row(7), JSON, "Connection: close"),
    request(row(7), JSON, version="1.0"),
    request(row(7), JSON, "Expect: 100-continue"),
    b"POST /predictions/linear HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n{}12",
    b"\x16\x03\x01 this is TLS\r\n\r\n",
]


class Nothing(KnownHeads):
    """Knows nothing, whatever it learns."""

    def find(self, data: bytes) -> None:
        return None


async def other(scope: Any, receive: Any, send: Any) -> None:
    body = f"the app: {scope['method']} {scope['path']}".encode()
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def talk(fast: FastPath, chunks: Sequence[bytes]) -> bytes:
    """What the server writes on one connection, each chunk being sent when it is quiet."""
    protocol, wire = connect(fast, FastProtocol)
    for chunk in chunks:
        if wire.is_closed:
            break
        protocol.data_received(chunk)
        await settle(wire, protocol)
    protocol.connection_lost(None)
    return without_ids(wire.sent)


async def settle(wire: Wire, protocol: Any) -> None:
    quiet = 0
    while quiet < 12:
        before = len(wire.sent)
        await asyncio.sleep(0)
        cycle: Any = protocol.cycle
        waits = cycle is not None and not cycle.response_complete and not cycle.more_body
        waits = waits and not wire.is_closed
        quiet = 0 if len(wire.sent) != before or waits else quiet + 1


def without_ids(sent: bytes) -> bytes:
    """The bytes without the ids that the server makes."""
    parts = sent.split(b'"id":"')
    lines = b'"id":"'.join([parts[0], *(part.partition(b'"')[2] for part in parts[1:])])
    kept = [
        line
        for line in lines.split(b"\r\n")
        if not (line.startswith(b"x-request-id") and b"mine" not in line and b"other" not in line)
    ]
    return b"\r\n".join(line for line in kept if not line.startswith(b"content-length"))


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 0, 1, 3))))
    return [
        data[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True) if stop > start
    ]


async def fast_path(*, knows: bool) -> tuple[FastPath, ServedModel]:
    model = ServedModel(load_handler(LINEAR), Profile(), ModelSettings(gate="off", slot="loop"), Metrics())
    await open_model(model)
    fast = FastPath(other, Models([model]), ServerSettings())
    if not knows:
        fast.known_heads = Nothing()
    return fast, model


@pytest.mark.slow
def test_any_talk_is_answered_as_by_a_server_that_knows_no_heads():
    async def main() -> None:
        knowing, model = await fast_path(knows=True)
        plain, second = await fast_path(knows=False)
        shortcuts = 0
        find = knowing.known_heads.find

        def counted(data: bytes) -> Any:
            nonlocal shortcuts
            found = find(data)
            shortcuts += found is not None
            return found

        knowing.known_heads.find = counted  # pyright: ignore[reportAttributeAccessIssue]
        for seed in range(TALKS):
            chance = random.Random(seed)
            asked = [chance.choice(REQUESTS) for _ in range(chance.randrange(1, 9))]
            if chance.random() < 0.3:
                asked.append(chance.choice(LAST))
            chunks: list[bytes] = []
            while asked:
                together = chance.choice((1, 1, 1, 2, 3))
                chunks += pieces(b"".join(asked[:together]), chance)
                del asked[:together]
            found, expected = await talk(knowing, chunks), await talk(plain, chunks)
            assert found == expected, f"seed {seed}: {chunks}"
        assert shortcuts > TALKS // 4
        await model.drain(1.0)
        await second.drain(1.0)

    asyncio.run(main())


def test_only_whole_requests_of_one_head_are_learned_and_few():
    heads, told = KnownHeads(), Request(None)
    nowhere = cast("Route", object())
    head = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n"
    heads.learn(head + b"{}", b"[]", nowhere, told)
    heads.learn(b"GET / HTTP/1.1\n\n" + head + b"{}", b"", nowhere, told)
    heads.learn(b"x" * LONGEST_BYTES + head + b"{}", b"{}", nowhere, told)
    assert len(heads) == 0
    heads.learn(head + b"{}", b"{}", nowhere, told)
    assert heads.find(head + b"[]") is not None
    assert heads.find(head + b"[]x") is None
    assert heads.find(head) is None
    for number in range(2 * MOST):
        heads.learn(b"%d %s{}" % (number, head), b"{}", nowhere, told)
        assert len(heads) <= MOST
    heads.clear()
    assert heads.find(head + b"{}") is None


def test_a_known_head_keeps_nothing_of_the_connection_that_sent_it():
    async def main() -> None:
        fast, model = await fast_path(knows=True)
        protocol, wire = connect(fast, FastProtocol)
        for _ in range(3):  # parsed, then known
            protocol.data_received(REQUESTS[0])
            await settle(wire, protocol)
        assert wire.sent.count(b"HTTP/1.1 200") == 3
        protocol.connection_lost(None)
        ended = [weakref.ref(wire), weakref.ref(protocol)]
        del protocol, wire
        await asyncio.sleep(0)
        gc.collect()
        assert len(fast.known_heads) == 1
        assert [found() for found in ended] == [None, None]
        await model.drain(1.0)

    asyncio.run(main())


def test_other_routes_forget_the_heads():
    async def main() -> None:
        fast, model = await fast_path(knows=True)
        await talk(fast, [REQUESTS[0]])
        assert len(fast.known_heads) == 1
        fast._make_routes()
        assert len(fast.known_heads) == 0
        await model.drain(1.0)

    asyncio.run(main())
