"""The fast path by ASGI alone, under a server that is not the uvicorn we know."""

import asyncio
import threading
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import pytest

from parity import Profile, load_handler
from parity.codec.rows import RowDecoder
from parity_online import predictions, served
from parity_online.fastpath import FastPath
from parity_online.gate import open_model
from parity_online.metrics import Metrics
from parity_online.models import Models
from parity_online.served import ServedModel
from parity_online.settings import ModelSettings, ServerSettings
from parity_online.slot import SlotChoice
from tests.online.serving import LINEAR

Message = MutableMapping[str, Any]

BODY = b'{"features": [0, 0, 0, 0, 0, 0, 0, 0], "name": "Ada", "account": null, "at": null}'


class Exchange:
    """One request as a server would pass it on, its body in parts, and what was sent back."""

    def __init__(self, *parts: bytes, path: str = "/predictions/linear", **headers: str) -> None:
        pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        self.scope = {"type": "http", "method": "POST", "path": path, "headers": pairs}
        self.parts: Iterator[Message] = iter(
            [
                {"type": "http.request", "body": part, "more_body": place < len(parts) - 1}
                for place, part in enumerate(parts)
            ]
        )
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        return next(self.parts, {"type": "http.disconnect"})

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def body(self) -> bytes:
        return self.sent[1]["body"]


def serve(
    *exchanges: Exchange, ready: bool = True, slot: SlotChoice = "loop", body_limit: int = 200
) -> list[Exchange]:
    async def other(scope: object, receive: object, send: object) -> None:
        raise LookupError("the app was asked")

    async def main() -> None:
        settings = ModelSettings(gate="off", slot=slot)
        model = ServedModel(load_handler(LINEAR), Profile(), settings, Metrics())
        if ready:
            await open_model(model)
        app = FastPath(other, Models([model]), ServerSettings(body_limit_bytes=body_limit))
        for exchange in exchanges:
            await app(exchange.scope, exchange.receive, exchange.send)
        kinds.append(model.slot_kind)
        await model.drain(1.0)

    asyncio.run(main())
    return list(exchanges)


kinds: list[str] = []
"""The slot that each model had in the end."""


def test_an_answer_is_sent_in_two_messages():
    (found,) = serve(Exchange(BODY, x_request_id="q1"))
    assert found.status == 200
    assert b'"greeting":"hello Ada"' in found.body
    assert dict(found.sent[0]["headers"])[b"x-request-id"] == b"q1"
    assert [message["type"] for message in found.sent] == ["http.response.start", "http.response.body"]


def test_a_body_in_parts_is_put_together():
    (found,) = serve(Exchange(BODY[:10], BODY[10:11], BODY[11:], b""))
    assert found.status == 200


def test_a_body_in_parts_over_the_limit_is_413_and_read_to_its_end():
    exchange = Exchange(*[b" " * 90] * 6)
    serve(exchange)
    assert exchange.status == 413
    assert next(exchange.parts, None) is None


def test_a_client_that_leaves_while_it_sends_is_not_an_error():
    exchange = Exchange(BODY[:10], BODY[10:])
    exchange.parts = iter([next(exchange.parts), {"type": "http.disconnect"}])
    serve(exchange)
    assert exchange.status == 499


def test_a_request_id_that_cannot_be_a_header_is_not_echoed():
    exchange = Exchange(BODY)
    exchange.scope["headers"] = [(b"x-request-id", b"a\rb")]
    serve(exchange)
    assert b"x-request-id" not in dict(exchange.sent[0]["headers"])


def test_before_it_is_loaded_a_model_is_503():
    (found,) = serve(Exchange(BODY), ready=False)
    assert found.status == 503
    assert b"it is being loaded" in found.body


def test_other_paths_and_verbs_go_to_the_app():
    for change in ({"path": "/docs"}, {"method": "GET"}, {"type": "lifespan"}):
        exchange = Exchange(BODY)
        exchange.scope.update(change)
        with pytest.raises(LookupError, match="the app was asked"):
            serve(exchange)


def test_a_model_that_turns_out_slow_leaves_the_loop(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(served, "LOOP_BATCH_LIMIT_S", float("inf"))
    serve(Exchange(BODY), slot="auto")
    assert kinds[-1] == "loop"
    monkeypatch.setattr(served, "LOOP_BATCH_TOLERATED_S", 0.0)
    exchanges = serve(*(Exchange(BODY) for _ in range(5)), slot="auto")
    assert kinds[-1] == "thread"
    assert [exchange.status for exchange in exchanges] == [200] * 5


@pytest.mark.parametrize("size", [10, 200_000])
@pytest.mark.parametrize("kind", ["object", "list", "form"])
def test_only_small_bodies_are_decoded_on_the_loop(kind: str, size: int, monkeypatch: pytest.MonkeyPatch):
    threads: list[bool] = []

    def spied(decode: Callable[..., Any]) -> Callable[..., Any]:
        def spy(*args: Any) -> Any:
            threads.append(threading.current_thread() is threading.main_thread())
            return decode(*args)

        return spy

    monkeypatch.setattr(RowDecoder, "decode_one", spied(RowDecoder.decode_one))
    monkeypatch.setattr(predictions, "form_row", spied(predictions.form_row))
    body = BODY.replace(b"Ada", b"A" * size)
    media = "application/json"
    if kind == "list":
        body = b"[" + body + b"]"
    elif kind == "form":
        media = "multipart/form-data; boundary=b"
        parts = [(b"features", b"[0, 0, 0, 0, 0, 0, 0, 0]"), (b"name", b"A" * size)]
        head = b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
        body = b"".join(head % part for part in parts) + b"--b--\r\n"
    (found,) = serve(Exchange(body, content_type=media), body_limit=1_000_000)
    assert found.status in (200, 400)
    assert threads
    assert set(threads) == {size == 10}
