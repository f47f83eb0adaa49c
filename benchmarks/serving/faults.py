"""Requests that must be refused, each with the right statuses, and requests that nobody waits for."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import grpc.aio
import numpy as np
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.grpc import service_pb2

from benchmarks.serving.asking import ARROW, Asker, Row, Told
from benchmarks.serving.questions import MIXED, THUMB

JSON = {"Content-Type": "application/json"}
BODY_LIMIT_MB = 1
QUEUE_ROWS = 512
_PREDICTIONS, _INFER, _PREDICT = (
    f"/predictions/{MIXED}",
    f"/v2/models/{MIXED}/infer",
    f"/v1/models/{MIXED}:predict",
)
_TOO_MUCH = b" " * (BODY_LIMIT_MB * 2**20 + 1)


class Faults:
    """Each method sends one faulty request, and gives what was wrong with its answer, or None.

    Args:
        asker: the clients.
        rows: good rows.
        chance: what chooses.
    """

    def __init__(self, asker: Asker, rows: Sequence[Row], chance: random.Random) -> None:
        self._asker = asker
        self._rows = rows
        self._chance = chance

    async def malformed(self) -> str | None:
        """A body that is not what its protocol says."""
        text = self._chance.choice(
            [b"", b"{", b"[1,", b"\xff\xfe", b'{"x": NaN}', b"nul", b"3", b'{"inputs": 3}']
        )
        inference = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": "4096"}
        form = {"Content-Type": "multipart/form-data; boundary=edge"}
        what = self._chance.randrange(9)
        if what == 0:
            status, _ = await self._asker.raw_grpc(b"\xff\xfe\xfd")
            return _unless(status, {400}, "gRPC garbage")
        path, body, headers = [
            (_PREDICTIONS, text, JSON),
            (_INFER, text, JSON),
            (_PREDICT, text, JSON),
            (_PREDICTIONS, b"\xff\xff\xff\xff\x10\x00\x00\x00", ARROW),
            (f"/predictions/{THUMB}", b"no picture", {"Content-Type": "image/jpeg"}),
            (f"/predictions/{THUMB}", b"--edge\r\nno end", form),
            (_INFER, b'{"inputs": []}', inference),
            (_PREDICTIONS, text, JSON | {"Content-Encoding": "gzip"}),
        ][what - 1]
        return await self._refused(path, body, headers, {400})

    async def wrong_dtype(self) -> str | None:
        """Values of another type than the schema's."""
        row = {**self._row(), "x": self._chance.choice([["a"] * 32, [1.0] * 31, None, 3, [True] * 32])}
        what = self._chance.randrange(6)
        if what == 0:
            return await self._refused(_PREDICTIONS, json.dumps(row).encode(), JSON, {400})
        if what == 1:
            return await self._refused(_PREDICT, json.dumps({"instances": [row]}).encode(), JSON, {400})
        if what == 2:
            status, body = await self._asker.post(_PREDICTIONS, json.dumps([row, self._row()]).encode())
            told = json.loads(body)
            if status == 200 and [list(item) for item in told] == [["error"], ["id", "score"]]:
                return None
            return f"a row of a wrong type in a list: {status} {body[:300]!r}"
        client = triton_http if what < 5 else triton_grpc
        kind, values = self._chance.choice([("INT64", np.arange(32)[None]), ("FP64", np.ones((1, 32)))])
        x, number = client.InferInput("x", [1, 32], kind), client.InferInput("id", [1], "INT64")
        x.set_data_from_numpy(values)
        number.set_data_from_numpy(np.array([1]))
        if what < 5:
            return _judged(await self._asker.v2_infer([x, number]), {400})
        return _judged(await self._asker.grpc_infer(MIXED, [x, number]), {400})

    async def left(self) -> str | None:
        """A client that hangs up while it sends, or while it waits."""
        row = json.dumps(self._row()).encode()
        if self._chance.random() < 0.2:
            await self._leave_grpc()
            return None
        parts = urlsplit(self._asker.url)
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        head = f"POST {_PREDICTIONS} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(row)}\r\n\r\n".encode()
        whole = head + row
        with contextlib.suppress(OSError):
            writer.write(whole[: self._chance.choice([len(whole), len(head) + 9, len(head) // 2])])
            if self._chance.random() < 0.5:
                await writer.drain()
                await asyncio.sleep(0)
        writer.transport.abort()
        return None

    async def late(self) -> str | None:
        """A deadline that has passed, or may pass, before the answer is there."""
        if self._chance.random() < 0.3:
            status, _ = await self._asker.raw_grpc(
                _request(self._row()).SerializeToString(), deadline_s=0.002
            )
            return _unless(status, {200, 504}, "gRPC with a deadline of 2 ms")
        seconds, right = self._chance.choice([("0.000001", {504}), ("0.002", {200, 504})])
        headers = JSON | {"X-Request-Timeout": seconds}
        return await self._refused(_PREDICTIONS, json.dumps(self._row()).encode(), headers, right)

    async def too_large(self) -> str | None:
        """A body over the limit, or more rows than the queue holds."""
        what = self._chance.randrange(4)
        if what == 0:
            status, said = await self._asker.raw_grpc(_TOO_MUCH)
            return _unless(status, {413}, said)
        if what == 1:
            many = {"instances": [{"id": 1, "x": []}] * (QUEUE_ROWS + 1)}
            return await self._refused(_PREDICT, json.dumps(many).encode(), JSON, {413})
        path = self._chance.choice([_PREDICTIONS, _INFER, _PREDICT, f"/predictions/{THUMB}"])
        return await self._refused(path, _TOO_MUCH, JSON, {413})

    async def astray(self) -> str | None:
        """A path, a verb, a model or a content type that is not there."""
        row = json.dumps(self._row()).encode()
        what = self._chance.randrange(6)
        if what == 0:
            message = _request(self._row())
            message.model_name = "mixd"
            status, said = await self._asker.raw_grpc(message.SerializeToString())
            return _unless(status, {404}, said)
        path, verb, headers, status = [
            ("/predictions/mixd", "POST", JSON, 404),
            ("/v2/models/mixed/versions/7/infer", "POST", JSON, 404),
            (_INFER, "DELETE", JSON, 405),
            (_PREDICTIONS, "POST", {"Content-Type": "text/csv"}, 415),
            ("/v1/models/mixed:classify", "POST", JSON, 405),
        ][what - 1]
        return await self._refused(path, row, headers, {status}, verb=verb)

    def _row(self) -> Row:
        return self._chance.choice(self._rows)

    async def _refused(
        self, path: str, body: bytes, headers: dict[str, str], right: set[int], *, verb: str = "POST"
    ) -> str | None:
        status, told = await self._asker.post(path, body, headers, verb=verb)
        if status in right and (status == 200 or json.loads(told)["error"]):
            return None
        return f"{verb} {path} {body[:60]!r} {headers}: {status} {told[:300]!r}, expected {right}"

    async def _leave_grpc(self) -> None:
        method: Any = self._asker.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        call = method(_request(self._row()).SerializeToString())
        await asyncio.sleep(self._chance.choice([0, 0.001]))
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError, grpc.aio.AioRpcError):
            await call


def _request(row: Row) -> Any:
    messages: Any = service_pb2
    message = messages.ModelInferRequest(model_name=MIXED)
    for name, kind, shape in (("id", "INT64", [1]), ("x", "FP32", [1, 32])):
        message.inputs.add(name=name, datatype=kind, shape=shape)
    message.raw_input_contents.append(np.array([row["id"]], np.int64).tobytes())
    message.raw_input_contents.append(np.array([row["x"]], np.float32).tobytes())
    return message


def _judged(told: Told, right: set[int]) -> str | None:
    return _unless(told.status, right, told.said)


def _unless(status: int, right: set[int], said: str) -> str | None:
    return None if status in right else f"status {status}, expected {right}: {said[:300]}"
