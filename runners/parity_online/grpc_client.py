"""A client of gRPC's ModelInfer that answers as the HTTP client does, so that a replay reads both alike."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio
import orjson

from parity.codec.oip_messages import SERVICE
from parity.errors import RunnerError
from parity_online.client import Reply
from parity_online.grpc_protocol import ROWS_KEY
from parity_online.grpc_service import CODES

_STATUSES = {code: status for status, code in reversed(CODES.items())}


class GrpcClient:
    """Asks one server.

    Args:
        target: the server, as in 127.0.0.1:8001.
    """

    def __init__(self, target: str) -> None:
        limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self._channel = grpc.aio.insecure_channel(target, options=limits)
        self._infer = self._channel.unary_unary(f"/{SERVICE}/ModelInfer")

    async def __aenter__(self) -> Self:
        """Nothing is opened before it is needed."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self._channel.close()

    async def infer(self, body: bytes) -> Reply:
        """The answer to a serialized ModelInferRequest; an error has the body that HTTP's would have.

        Raises:
            RunnerError: the server cannot be reached.
        """
        try:
            return Reply(200, {}, await self._infer(body))
        except grpc.aio.AioRpcError as exc:
            metadata: dict[str, Any] = dict(exc.trailing_metadata() or ())
            if exc.code() is grpc.StatusCode.UNAVAILABLE and "x-request-id" not in metadata:
                raise RunnerError(f"the server cannot be reached by gRPC: {exc.details()}") from exc
            rows = metadata.get(ROWS_KEY.decode())
            content = {"error": exc.details(), "rows": orjson.loads(rows) if rows else []}
            return Reply(_STATUSES.get(exc.code(), 500), {}, orjson.dumps(content))
