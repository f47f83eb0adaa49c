"""`GRPCInferenceService` on a port of its own: Open Inference Protocol V2 and Triton's extensions by gRPC.

Inference goes through `FastPath.respond` as HTTP requests do: the same queue, deadlines, versions, metrics
and log. HTTP's statuses become gRPC's codes by `CODES`.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import inspect
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import grpc
import grpc.aio

from parity.codec.oip_grpc import read_message
from parity.codec.oip_messages import SERVICE, message_type, methods
from parity.errors import ParityError, RunnerError
from parity_online import logs
from parity_online.app import EXTENSIONS, SERVER_NAME, model_config
from parity_online.columns import read_body
from parity_online.fastpath import FastPath
from parity_online.grpc_protocol import PROTOCOL, ROWS_KEY, details, render
from parity_online.keys import Keys
from parity_online.models import Models
from parity_online.problems import Answer, ProblemError, as_problem, new_id
from parity_online.repository import Repository
from parity_online.request import Request, read_headers
from parity_online.route import Route
from parity_online.settings import ServerSettings
from parity_online.triton import repository_index, statistics

logger = logging.getLogger(__name__)

CODES: Final = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    415: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    499: grpc.StatusCode.CANCELLED,
    500: grpc.StatusCode.INTERNAL,
    501: grpc.StatusCode.UNIMPLEMENTED,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
"""HTTP's statuses as gRPC's codes; any other is INTERNAL."""

_OPEN = ("ServerLive", "ServerReady", "ModelReady")
_HEADERS = (
    "authorization",
    "x-api-key",
    "x-request-id",
    "x-request-timeout",
    "x-request-priority",
    "x-model-version",
    "traceparent",
)
_UNTELLABLE = re.compile(r"[^ -~]")
"""What metadata that is text cannot hold."""
_STREAM_AHEAD = 64
"""So many requests of a stream are worked on at once, and at most as many bytes as one message may have."""

Unary = Callable[[Any], Awaitable[Any] | Any]


class Service:
    """The service's methods.

    Args:
        models: what is served.
        fast: answers inference requests.
        repository: loads and unloads models; None where that is off.
        settings: the largest message, and TLS.
        keys: the API keys that are asked for; None for none.
    """

    def __init__(
        self,
        models: Models,
        fast: FastPath,
        repository: Repository | None,
        settings: ServerSettings,
        keys: Keys | None = None,
    ) -> None:
        self._models = models
        self._fast = fast
        self._repository = repository
        self._limit = settings.body_limit_bytes
        self._settings = settings
        self._keys = keys
        self._version = importlib.metadata.version("parity")
        self._server: grpc.aio.Server | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises:
            RunnerError: the port cannot be bound.
        """
        options = [
            ("grpc.max_receive_message_length", self._limit),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
            # gRPC holds a compressed message to the limit before it decompresses it, and to none after.
            ("grpc.compression_enabled_algorithms_bitset", 1),
        ]
        self._server = grpc.aio.server(options=options)
        self._server.add_generic_rpc_handlers((self._handlers(),))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            credentials = self._credentials()
            self.port = (
                self._server.add_insecure_port(address)
                if credentials is None
                else self._server.add_secure_port(address, credentials)
            )
        except RuntimeError:
            self.port = 0
        if not self.port:
            raise RunnerError(f"cannot listen on {address} for gRPC; choose another --grpc-port, or 0")
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """Take no more calls, and end those that run within the grace."""
        if self._server is not None:
            await self._server.stop(grace_s)

    def _credentials(self) -> grpc.ServerCredentials | None:
        """The server's certificate and whose clients' it asks for, as for HTTPS; None without TLS."""
        settings = self._settings
        if settings.tls_cert is None:
            return None
        chain = settings.tls_cert.read_bytes()
        key = chain if settings.tls_key is None else settings.tls_key.read_bytes()
        roots = None if settings.tls_client_ca is None else settings.tls_client_ca.read_bytes()
        return grpc.ssl_server_credentials(
            [(key, chain)], root_certificates=roots, require_client_auth=roots is not None
        )

    def _admit(self, name: str, context: Any) -> None:
        """Ask for the key that the method of HTTP would ask for; readiness is open to all."""
        if self._keys is not None and name not in _OPEN:
            scope = "manage" if name.startswith("Repository") else "infer"
            self._keys.require(_headers_of(context), scope)

    def _handlers(self) -> grpc.GenericRpcHandler:
        unary: dict[str, Unary] = {
            "ServerLive": lambda _: {"live": True},
            "ServerReady": lambda _: {"ready": not self._models.waiting()},
            "ModelReady": lambda asked: {"ready": self._find(asked).state == "ready"},
            "ServerMetadata": lambda _: {
                "name": SERVER_NAME,
                "version": self._version,
                "extensions": EXTENSIONS,
            },
            "ModelMetadata": self._metadata,
            "ModelConfig": lambda asked: {"config": _config(model_config(self._find(asked)))},
            "ModelStatistics": self._statistics,
            "RepositoryIndex": self._index,
            "RepositoryModelLoad": self._load,
            "RepositoryModelUnload": self._unload,
        }
        handlers: dict[str, Any] = {
            name: grpc.unary_unary_rpc_method_handler(_answering(name, method, self._admit))
            for name, method in unary.items()
        }
        handlers["ModelInfer"] = grpc.unary_unary_rpc_method_handler(self._infer)
        handlers["ModelStreamInfer"] = grpc.stream_stream_rpc_method_handler(self._stream)
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    async def _infer(self, body: bytes, context: Any) -> bytes:
        answer = await self._respond(_request(body, context), body, context)
        if answer.status != 200:
            await _abort(context, answer)
        await context.send_initial_metadata(_metadata_of(answer))
        return answer.body

    async def _stream(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        """Answers in the order of the requests, which wait together; one that fails ends nothing."""
        ahead: asyncio.Queue[tuple[asyncio.Task[bytes], int] | None] = asyncio.Queue()
        tasks: set[asyncio.Task[bytes]] = set()
        freed = asyncio.Event()
        held = 0  # bytes of the requests that are not answered yet

        async def read() -> None:
            nonlocal held
            try:
                async for body in requests:
                    task = asyncio.create_task(self._stream_one(body, context))
                    tasks.add(task)
                    held += len(body)
                    ahead.put_nowait((task, len(body)))
                    while len(tasks) >= _STREAM_AHEAD or held > self._limit:
                        freed.clear()
                        await freed.wait()
            finally:
                ahead.put_nowait(None)

        reading = asyncio.create_task(read())
        try:
            while (next_ := await ahead.get()) is not None:
                task, size = next_
                answer = await task
                tasks.discard(task)
                held -= size
                freed.set()
                yield answer
            await reading
        finally:
            for task in (reading, *tasks):
                task.cancel()

    async def _stream_one(self, body: bytes, context: Any) -> bytes:
        request = _request(body, context)
        answer = await self._respond(request, body, context)
        response = message_type("ModelStreamInferResponse")()
        if answer.status == 200:
            response.infer_response.ParseFromString(answer.body)
        else:
            response.error_message = answer.body.decode()
            response.infer_response.id = self._id_of(request, body)
        return response.SerializeToString()

    def _id_of(self, request: Request, body: bytes) -> str:
        """The id of a message; of one that was refused before it was read, only where its sender is known."""
        try:
            if request.message is None and (self._keys is None or request.is_known):
                request.message = read_message("ModelInferRequest", body)
        except ParityError:
            return ""
        return "" if request.message is None else request.message.id

    async def _respond(self, request: Request, body: bytes, context: Any) -> Answer:
        started = time.perf_counter()
        try:
            read_headers(request, _headers_of(context))
            self._fast.admission.identify(request)
            left = context.time_remaining()
            if left is not None and left > 0:
                request.timeout_s = left if request.timeout_s is None else min(left, request.timeout_s)
            if len(body) > self._limit:
                raise ProblemError(
                    413, "too_large", f"the message has {len(body)} bytes; at most {self._limit}"
                )
            request.message = await read_body(len(body), lambda: read_message("ModelInferRequest", body))
            versions = self._models.versions(request.message.model_name)
            version = request.message.model_version or None
            if version is not None:
                versions.version(version)
        except Exception as exc:  # noqa: BLE001 - every call gets an answer
            return render(as_problem(exc), request.id or new_id())
        answer = await self._fast.respond(Route(PROTOCOL, versions, version), request, body, started)
        if answer is None:
            return render(ProblemError(499, "client_left", "the client left"), request.id or new_id())
        return answer

    def _find(self, asked: Any) -> Any:
        return self._models.find(asked.name, asked.version or None)

    def _metadata(self, asked: Any) -> dict[str, Any]:
        model = self._find(asked)
        return {
            "name": model.name,
            "versions": [other.version for other in self._models.versions(model.name).models],
            "platform": "parity_python",
            "inputs": model.input_tensors,
            "outputs": model.output_tensors,
        }

    def _statistics(self, asked: Any) -> dict[str, Any]:
        if asked.name:
            found = [self._find(asked)]
        else:
            found = [model for name in self._models.names for model in self._models.versions(name).models]
        return {"model_stats": [statistics(model) for model in found]}

    def _index(self, asked: Any) -> dict[str, Any]:
        entries = repository_index(self._models) if self._repository is None else self._repository.index()
        return {"models": [entry for entry in entries if not asked.ready or entry["state"] == "READY"]}

    async def _load(self, asked: Any) -> dict[str, Any]:
        if asked.parameters:
            raise ProblemError(
                400, "malformed", "parameters of a load are not supported; change the files in the repository"
            )
        await self._managed().load(asked.model_name)
        return {}

    async def _unload(self, asked: Any) -> dict[str, Any]:
        await self._managed().unload(asked.model_name)
        return {}

    def _managed(self) -> Repository:
        if self._repository is None:
            raise ProblemError(
                403,
                "management_off",
                "loading and unloading is off; start the server with --management",
            )
        return self._repository


def _answering(
    name: str, method: Unary, admit: Callable[[str, Any], None]
) -> Callable[[bytes, Any], Awaitable[bytes]]:
    """A method from bytes to bytes, which parses its request: a malformed one is the caller's fault."""
    asked_name, answer_name = methods()[name]

    async def answering(body: bytes, context: Any) -> bytes:
        try:
            admit(name, context)
            told = method(read_message(asked_name, body))
            found: dict[str, Any] = await told if inspect.isawaitable(told) else told
            return message_type(answer_name)(**found).SerializeToString()
        except Exception as exc:
            problem = as_problem(exc)
            request_id = new_id()
            if problem.kind == "internal":
                logger.error(
                    "event=request_failed id=%s method=%s", logs.text(request_id), name, exc_info=exc
                )
            await _abort(context, render(problem, request_id))
            raise

    return answering


def _request(body: bytes, context: Any) -> Request:
    request = Request(None, length=len(body), is_read=True)
    request.client = context.peer().rpartition(":")[0]
    return request


def _headers_of(context: Any) -> list[tuple[bytes, bytes]]:
    """The metadata that HTTP has as headers of the same names."""
    return [
        (key.encode(), value.encode())
        for key, value in context.invocation_metadata() or ()
        if key in _HEADERS and isinstance(value, str)
    ]


async def _abort(context: Any, answer: Answer) -> None:
    code = CODES.get(answer.status, grpc.StatusCode.INTERNAL)
    await context.abort(code, details(answer.body.decode()), _metadata_of(answer))


def _metadata_of(answer: Answer) -> tuple[tuple[str, str | bytes], ...]:
    return tuple(
        (name.decode(), value if name == ROWS_KEY else _UNTELLABLE.sub("?", value.decode("latin-1")))
        for name, value in answer.headers
        if name != b"connection"
    )


def _config(told: dict[str, Any]) -> dict[str, Any]:
    """Triton's configuration as protobuf has it: versions are int64s, and so some cannot be told."""
    versions = told["version_policy"]["specific"]["versions"]
    digits = [
        version for version in versions if version.isascii() and version.isdigit() and len(version) < 20
    ]
    numbers = [number for number in map(int, digits) if number < 2**63]
    return {**told, "version_policy": {"specific": {"versions": numbers}}}
