"""Real clients, a method for each wire form: tritonclient for V2 over HTTP and gRPC, aiohttp for the rest."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiohttp
import grpc.aio
import numpy as np
import pyarrow as pa
import tritonclient.grpc as triton_grpc
import tritonclient.grpc.aio as triton_grpc_aio
import tritonclient.http as triton_http
import tritonclient.http.aio as triton_http_aio
from tritonclient.utils import InferenceServerException

from benchmarks.serving.questions import MIXED, THUMB

ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}
TIMEOUT_S = 120.0
"""An answer that has not come by then is lost."""

GRPC_STATUSES = {
    "StatusCode.INVALID_ARGUMENT": 400,
    "StatusCode.NOT_FOUND": 404,
    "StatusCode.RESOURCE_EXHAUSTED": 413,
    "StatusCode.INTERNAL": 500,
    "StatusCode.UNAVAILABLE": 503,
    "StatusCode.DEADLINE_EXCEEDED": 504,
    "StatusCode.CANCELLED": 499,
}
Row = dict[str, Any]


@dataclass(frozen=True)
class Told:
    """What an answer says.

    Attributes:
        status: as HTTP has it.
        scores: in the order of the rows, those with an error left out; None where the request failed.
        ids: likewise; None where there are none.
        bad: the kind of error of each row that has one, by its place; None where the form does not tell.
        said: the message, for people.
    """

    status: int
    scores: Sequence[float] | None = None
    ids: Sequence[int] | None = None
    bad: Mapping[int, str] | None = None
    said: str = ""


class Asker:
    """Asks one server in every form; its methods take rows and are named after the form."""

    def __init__(self, url: str, grpc_target: str) -> None:
        self.url = url
        self.grpc_target = grpc_target

    async def __aenter__(self) -> Self:
        """Open the clients."""
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        self.http = aiohttp.ClientSession(self.url, timeout=timeout, connector=aiohttp.TCPConnector(limit=0))
        self.v2 = triton_http_aio.InferenceServerClient(
            self.url.removeprefix("http://"), conn_timeout=TIMEOUT_S
        )
        self.grpc = triton_grpc_aio.InferenceServerClient(self.grpc_target)
        self.channel = grpc.aio.insecure_channel(
            self.grpc_target, options=[("grpc.max_send_message_length", -1)]
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close them."""
        await self.http.close()
        await self.v2.close()
        await self.grpc.close()
        await self.channel.close()

    async def post(
        self, path: str, data: Any, headers: Mapping[str, str] | None = None, *, verb: str = "POST"
    ) -> tuple[int, bytes]:
        """Status and body of any request; of JSON where no header says otherwise."""
        sent = {"Content-Type": "application/json"} if headers is None else headers
        async with self.http.request(verb, path, data=data, headers=sent) as answer:
            return answer.status, await answer.read()

    async def raw_grpc(self, message: bytes, deadline_s: float = TIMEOUT_S) -> tuple[int, str]:
        """Status and details of a ModelInfer with any bytes."""
        call = self.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        try:
            await call(message, timeout=deadline_s)
        except grpc.aio.AioRpcError as exc:
            return GRPC_STATUSES.get(str(exc.code()), 500), str(exc.details())
        return 200, ""

    async def row(self, rows: Sequence[Row], headers: Mapping[str, str] | None = None) -> Told:
        """One JSON object."""
        (row,) = rows
        sent = {"Content-Type": "application/json", **(headers or {})}
        status, body = await self.post(f"/predictions/{MIXED}", json.dumps(row).encode(), sent)
        if status != 200:
            return _refused(status, body)
        told = json.loads(body)
        return Told(200, [told["score"]], [told["id"]], {})

    async def row_list(self, rows: Sequence[Row]) -> Told:
        """A JSON list of objects."""
        body = json.dumps(rows).encode()
        status, body = await self.post(f"/predictions/{MIXED}/1.0.0", body)
        if status != 200:
            return _refused(status, body)
        told = json.loads(body)
        if len(told) != len(rows):
            return Told(200, said=f"{len(told)} answers for {len(rows)} rows")
        bad = {place: row["error"]["kind"] for place, row in enumerate(told) if "error" in row}
        good = [row for row in told if "error" not in row]
        return Told(200, [row["score"] for row in good], [row["id"] for row in good], bad)

    async def arrow(self, rows: Sequence[Row]) -> Told:
        """An Arrow IPC stream."""
        kinds = [("id", pa.int64()), ("x", pa.list_(pa.float32(), 32)), ("act", pa.string())]
        table = pa.Table.from_pylist(list(rows), pa.schema(kinds))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        status, body = await self.post(f"/predictions/{MIXED}", sink.getvalue().to_pybytes(), ARROW)
        if status != 200:
            return _refused(status, body)
        told = pa.ipc.open_stream(body).read_all().to_pylist()
        bad = {place: row["_error"]["kind"] for place, row in enumerate(told) if row["_error"] is not None}
        good = [row for row in told if row["_error"] is None]
        return Told(200, [row["score"] for row in good], [row["id"] for row in good], bad)

    async def v1_rows(self, rows: Sequence[Row]) -> Told:
        """`instances`, as TF Serving and KServe have them."""
        status, body = await self.post(
            f"/v1/models/{MIXED}:predict", json.dumps({"instances": rows}).encode()
        )
        if status != 200:
            return _refused(status, body)
        told = json.loads(body)["predictions"]
        return Told(200, [row["score"] for row in told], [row["id"] for row in told], {})

    async def v1_columns(self, rows: Sequence[Row]) -> Told:
        """`inputs`, as TF Serving has them."""
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        body = json.dumps({"inputs": columns}).encode()
        status, body = await self.post(f"/v1/models/{MIXED}/versions/1.0.0:predict", body)
        if status != 200:
            return _refused(status, body)
        told = json.loads(body)["outputs"]
        return Told(200, told["score"], told["id"], {})

    async def v2_json(self, rows: Sequence[Row]) -> Told:
        """V2 with tensors in JSON."""
        return await self._v2(_tensors(triton_http, rows, binary_data=False), binary=False)

    async def v2_binary(self, rows: Sequence[Row]) -> Told:
        """V2 with tensors as bytes."""
        return await self._v2(_tensors(triton_http, rows, binary_data=True), binary=True)

    async def grpc_tensors(self, rows: Sequence[Row]) -> Told:
        """V2 over gRPC, with raw contents."""
        return await self.grpc_infer(MIXED, _tensors(triton_grpc, rows))

    async def raw_picture(self, rows: Sequence[Row]) -> Told:
        """A picture as the body."""
        headers = {"Content-Type": "image/jpeg"}
        return _picture(*await self.post(f"/predictions/{THUMB}", rows[0]["image"], headers))

    async def form_picture(self, rows: Sequence[Row]) -> Told:
        """A picture as a part of a form, as TorchServe's clients send it."""
        form = aiohttp.FormData()
        form.add_field("data", rows[0]["image"], filename="picture.jpg", content_type="image/jpeg")
        return _picture(*await self.post(f"/predictions/{THUMB}", form, {}))

    async def v1_pictures(self, rows: Sequence[Row]) -> Told:
        """Pictures as base64 in V1."""
        instances = [{"image": {"b64": base64.b64encode(row["image"]).decode()}} for row in rows]
        body = json.dumps({"instances": instances}).encode()
        status, body = await self.post(f"/v1/models/{THUMB}:predict", body)
        if status != 200:
            return _refused(status, body)
        told = json.loads(body)["predictions"]
        return Told(200, [row["score"] if isinstance(row, dict) else row for row in told], None, {})

    async def grpc_pictures(self, rows: Sequence[Row]) -> Told:
        """Pictures as BYTES over gRPC."""
        images = triton_grpc.InferInput("image", [len(rows)], "BYTES")
        images.set_data_from_numpy(np.array([row["image"] for row in rows], object))
        return await self.grpc_infer(THUMB, [images])

    async def grpc_infer(self, model: str, inputs: Sequence[Any]) -> Told:
        """What tritonclient.grpc tells."""
        try:
            result = await self.grpc.infer(model, inputs, client_timeout=TIMEOUT_S)
        except InferenceServerException as exc:
            return Told(GRPC_STATUSES.get(str(exc.status()), 500), said=str(exc))
        return _arrays(result)

    async def v2_infer(self, inputs: Sequence[Any], **more: Any) -> Told:
        """What tritonclient.http tells."""
        try:
            result = await self.v2.infer(MIXED, inputs, **more)
        except InferenceServerException as exc:
            return Told(int(exc.status() or 0), said=str(exc))
        return _arrays(result)

    async def _v2(self, inputs: Sequence[Any], *, binary: bool) -> Told:
        outputs = [triton_http.InferRequestedOutput(name, binary_data=binary) for name in ("id", "score")]
        return await self.v2_infer(inputs, outputs=outputs)


VECTOR_FORMS = ("row", "row_list", "arrow", "v1_rows", "v1_columns", "v2_json", "v2_binary", "grpc_tensors")
PICTURE_FORMS = ("raw_picture", "form_picture", "v1_pictures", "grpc_pictures")
ROW_BY_ROW = ("row_list", "arrow")
"""Forms in which a bad row leaves the others their answers."""
ONE_ROW = ("row", "raw_picture", "form_picture")


def _tensors(client: Any, rows: Sequence[Row], **more: bool) -> list[Any]:
    columns = {
        "id": ("INT64", np.array([row["id"] for row in rows], np.int64)),
        "x": ("FP32", np.array([row["x"] for row in rows], np.float32)),
        "act": ("BYTES", np.array([row["act"] for row in rows], object)),
    }
    found: list[Any] = []
    for name, (kind, values) in columns.items():
        tensor = client.InferInput(name, list(values.shape), kind)
        tensor.set_data_from_numpy(values, **more)
        found.append(tensor)
    return found


def _arrays(result: Any) -> Told:
    ids = result.as_numpy("id")
    return Told(200, result.as_numpy("score").tolist(), None if ids is None else ids.tolist(), {})


def _picture(status: int, body: bytes) -> Told:
    return Told(200, [json.loads(body)["score"]], None, {}) if status == 200 else _refused(status, body)


def _refused(status: int, body: bytes) -> Told:
    told = json.loads(body)
    bad = {row["row"]: row["kind"] for row in told["rows"]} if "rows" in told else None
    return Told(status, bad=bad, said=told["error"])
