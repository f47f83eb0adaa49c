"""The wire forms of a replay that send several rows in a request, as a client of each protocol would."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from parity.batch import Batch
from parity.codec import arrow, oip, v1
from parity.errors import RowError, RowErrorKind
from parity.handler import LoadedHandler
from parity.result import ERROR_COLUMN
from parity_online.client import Reply

JSON = (("Content-Type", "application/json"),)


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of some rows."""

    path: str
    body: bytes
    headers: Sequence[tuple[str, str]] = JSON


@dataclass(frozen=True, slots=True)
class Answered:
    """What a 200 says: the answers of the good rows, and the others' errors by place."""

    outputs: Batch | None
    errors: tuple[RowError, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupForm:
    """How rows are asked for in one form, and how its answers are read."""

    encode: Callable[[LoadedHandler, Batch], Sent]
    decode: Callable[[LoadedHandler, Reply], Answered]
    is_grpc: bool = False


def entries_of(reply: Reply) -> list[RowError]:
    """The row errors of an error answer."""
    entries = cast("dict[str, Any]", reply.json()).get("rows", [])
    return [
        RowError(
            row=entry["row"],
            kind=cast("RowErrorKind", entry["kind"]),
            message=entry["message"],
            field=entry.get("field"),
            stage=entry.get("stage"),
            type=entry.get("type"),
        )
        for entry in entries
    ]


def _oip(loaded: LoadedHandler, batch: Batch) -> Sent:
    return Sent(f"/v2/models/{loaded.name}/infer", oip.encode_request(batch))


def _oip_answer(loaded: LoadedHandler, reply: Reply) -> Answered:
    length = reply.headers.get("inference-header-content-length")
    return Answered(oip.decode_response(loaded.outputs, reply.body, None if length is None else int(length)))


def _oip_bytes(loaded: LoadedHandler, batch: Batch) -> Sent:
    body, length = oip.encode_binary_request(batch)
    headers = (
        ("Content-Type", "application/octet-stream"),
        ("Inference-Header-Content-Length", str(length)),
    )
    return Sent(f"/v2/models/{loaded.name}/infer", body, headers)


def _grpc(loaded: LoadedHandler, batch: Batch) -> Sent:
    from parity.codec import oip_grpc

    return Sent("", oip_grpc.encode_request(batch, loaded.name).SerializeToString())


def _grpc_answer(loaded: LoadedHandler, reply: Reply) -> Answered:
    from parity.codec import oip_grpc

    return Answered(
        oip_grpc.decode_response(loaded.outputs, oip_grpc.read_message("ModelInferResponse", reply.body))
    )


def _v1(form: v1.Form) -> Callable[[LoadedHandler, Batch], Sent]:
    def encode(loaded: LoadedHandler, batch: Batch) -> Sent:
        return Sent(f"/v1/models/{loaded.name}:predict", v1.encode_request(batch, form))

    return encode


def _v1_answer(loaded: LoadedHandler, reply: Reply) -> Answered:
    return Answered(v1.decode_response(loaded.outputs, reply.body))


def _arrow(loaded: LoadedHandler, batch: Batch) -> Sent:
    headers = (("Content-Type", "application/vnd.apache.arrow.stream"),)
    return Sent(f"/predictions/{loaded.name}", arrow.encode_ipc(batch.to_table()), headers)


def _arrow_answer(loaded: LoadedHandler, reply: Reply) -> Answered:
    table = arrow.decode_ipc(reply.body)
    told = table[ERROR_COLUMN]
    errors = tuple(
        RowError(
            row=row,
            kind=cast("RowErrorKind", error["kind"]),
            message=error["message"],
            field=error["field"],
            stage=error["stage"],
        )
        for row, error in enumerate(told.to_pylist())
        if error is not None
    )
    good = table.filter(told.is_null()).drop_columns([ERROR_COLUMN])
    return Answered(arrow.decode_table(loaded.outputs, good).batch, errors)


GROUP_FORMS: Final[dict[str, GroupForm]] = {
    "oip": GroupForm(_oip, _oip_answer),
    "oip-binary": GroupForm(_oip_bytes, _oip_answer),
    "arrow": GroupForm(_arrow, _arrow_answer),
    "v1": GroupForm(_v1("row"), _v1_answer),
    "v1-columns": GroupForm(_v1("column"), _v1_answer),
}
if importlib.util.find_spec("grpc") is not None and importlib.util.find_spec("google.protobuf") is not None:
    GROUP_FORMS["grpc"] = GroupForm(_grpc, _grpc_answer, is_grpc=True)
WIRE_FORMS: Final = ("rows", *GROUP_FORMS)
"""The forms of a replay, the default one first; gRPC only where its extra is installed."""
