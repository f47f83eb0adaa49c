"""The process: bind, listen, load, become ready, serve, drain, stop.

Live at once, ready only when earned: the port is open while the handlers load, and /v2/health/ready says 503
until every one has been warmed up and has reproduced its goldens. SIGTERM, SIGINT and SIGHUP start the drain:
requests that still arrive get 503 and `Connection: close`, accepted ones are finished, then the process ends
with 0. A second signal ends it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

import uvicorn
import uvloop
from prometheus_client import disable_created_metrics

from parity.errors import ConfigError, FingerprintError, ParityError, RunnerError
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity_online import logs
from parity_online.app import build_app
from parity_online.capturing import prepare_capture
from parity_online.fastpath import FastPath
from parity_online.gate import open_model
from parity_online.heads import HeadProtocol
from parity_online.keys import Keys, is_loopback, read_keys
from parity_online.metrics import Metrics
from parity_online.models import Canary, Models, require_canaries
from parity_online.protocol import FastProtocol, is_supported
from parity_online.repository import Repository, home, require_compatible
from parity_online.served import ServedModel
from parity_online.settings import ModelSettings, ServerSettings
from parity_online.shadow import ShadowName, mirror, require_shadows
from parity_online.signals import Watchdog, heard
from parity_online.spans import Spans

if TYPE_CHECKING:
    from parity_online.grpc_service import Service

logger = logging.getLogger(__name__)

Announce = Callable[[Mapping[str, Any]], None]
"""Told of {"event": "listening", "url"}, {"event": "ready"} and {"event": "not_ready", "reason"}."""

LAME_DUCK_S = 0.1
"""How long after SIGTERM the port still answers (503), so that nobody who has just connected is reset."""

_TAKE_S = 1.0
"""How long the connections that wait when the port closes may take to be taken: a TLS handshake."""

_YOUNG_OBJECTS = 20_000
"""So many new objects make the collector look for cycles: some hundred requests are in flight at a time."""

_STUCK_S, _STUCK_DRAIN_S = 2.0, 30.0
"""How long the event loop may take after a second signal, and after the first one and `drain_s`."""

_KEEP_ALIVE_S = 75
_SLOW_READERS_S = 5


@dataclass(frozen=True)
class Offer:
    """What is served.

    Attributes:
        handlers: the handlers that are there at start.
        configure: the profile and settings of a handler.
        folder: the model repository, None for none.
        canaries: versions that take a share of the requests.
        shadows: versions that answer what the others of their name are asked, to be compared.
    """

    handlers: Sequence[LoadedHandler]
    configure: Callable[[LoadedHandler], tuple[Profile, ModelSettings]]
    folder: Path | None = None
    canaries: Sequence[Canary] = ()
    shadows: Sequence[ShadowName] = ()


def serve(offer: Offer, settings: ServerSettings, announce: Announce) -> None:
    """Serve the handlers until a signal comes; returns after a clean drain.

    Raises:
        ConfigError: two handlers have one name and version, or need different numerics in one process, a
            canary is not there, or the folder of a capture cannot be made.
        FingerprintError: a profile is exact, and its certificate does not hold here.
        RunnerError: the port cannot be bound, or a handler cannot be loaded.
    """
    disable_created_metrics()
    families = Metrics(settings.metric_aliases)
    listed = {loaded.name for loaded in offer.handlers if not _is_in(loaded, offer.folder)}
    models = Models(
        canaries=offer.canaries,
        shadows=[(shadow.name, shadow.version) for shadow in offer.shadows],
        newest_is_default=lambda name: name not in listed,
    )

    def make(loaded: LoadedHandler) -> ServedModel:
        profile, chosen = offer.configure(loaded)
        others = [model for model in models if (model.name, model.version) != (loaded.name, loaded.version)]
        require_compatible(loaded, profile, others)
        prepare_capture(chosen.capture)
        return ServedModel(loaded, profile, chosen, families)

    repository = Repository(models, make, offer.folder, drain_s=settings.drain_s)
    for loaded in offer.handlers:
        if models.get(loaded.name, loaded.version) is not None:
            raise ConfigError(
                f"two handlers are called {loaded.name!r} with version {loaded.version!r}; rename one in its "
                "handler.toml"
            )
        repository.adopt(make(loaded))
    known = [(model.name, model.version) for model in models]
    require_canaries(offer.canaries, known)
    require_shadows(offer.shadows, offer.canaries, known)
    listener = _bind(settings)
    keys = None if settings.api_keys is None else read_keys(settings.api_keys)
    if not is_loopback(settings.host):
        _warn_if_open(settings)
    rare = build_app(models, families, repository if settings.management else None)
    spans = None if settings.otel_endpoint is None else Spans(settings.otel_endpoint)
    app = FastPath(rare, models, settings, keys, spans)
    managed = repository if settings.management else None
    service = None if settings.grpc_port is None else _grpc_service(models, app, managed, settings, keys)
    server = _Server(models, repository, app, settings, announce, families, service)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(server.serve(sockets=[listener]))
    if spans is not None:
        spans.close()
    if isinstance(server.failure, FingerprintError) or (
        server.failure is not None and not server.failed_name
    ):
        raise server.failure
    if server.failure is not None:
        raise RunnerError(
            f"handler {server.failed_name} cannot be served: {server.failure}"
        ) from server.failure


def _warn_if_open(settings: ServerSettings) -> None:
    """Say what everybody who reaches this address can do."""
    missing = [
        text
        for text, is_missing in (
            ("no API keys (--api-keys), so everybody who reaches it may ask", settings.api_keys is None),
            (
                "no TLS (--tls-cert), so what is asked and answered can be read on the way",
                settings.tls_cert is None,
            ),
            (
                "management is on, so everybody may unload models",
                settings.management and settings.api_keys is None,
            ),
        )
        if is_missing
    ]
    logger.warning(
        "event=not_loopback host=%s hint=%s", settings.host, logs.text("; ".join(missing) or "none")
    )


def _grpc_service(
    models: Models,
    app: FastPath,
    repository: Repository | None,
    settings: ServerSettings,
    keys: Keys | None,
) -> Service:
    """The gRPC service; its library is imported only where it is asked for.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        from parity_online.grpc_service import Service
    except ImportError as exc:
        raise ConfigError(
            f"--grpc-port needs a library that is not installed ({exc.name}): pip install 'parity[grpc]'"
        ) from exc
    return Service(models, app, repository, settings, keys)


def _is_in(loaded: LoadedHandler, folder: Path | None) -> bool:
    place = home(loaded)
    return folder is not None and place is not None and folder.resolve() in place.resolve().parents


class _Server(uvicorn.Server):
    """Uvicorn's server with our start, signals and drain."""

    def __init__(
        self,
        models: Models,
        repository: Repository,
        app: FastPath,
        settings: ServerSettings,
        announce: Announce,
        families: Metrics,
        service: Service | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="none",
                http=_protocol(settings),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_SLOW_READERS_S,
                ssl_certfile=settings.tls_cert,
                ssl_keyfile=settings.tls_key,
                ssl_ca_certs=None if settings.tls_client_ca is None else str(settings.tls_client_ca),
                ssl_cert_reqs=ssl.CERT_NONE if settings.tls_client_ca is None else ssl.CERT_REQUIRED,
            )
        )
        self.failure: BaseException | None = None
        self._watchdog = Watchdog()
        self.failed_name = ""
        self._models = models
        self._repository = repository
        self._app = app
        self._settings = settings
        self._announce = announce
        self._families = families
        self._service = service
        self._loading: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, say where, and start loading."""
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        self._families.watch(lambda: len(asyncio.all_tasks(loop)), lambda: len(self.server_state.connections))
        host, port = (sockets or [])[0].getsockname()[:2]
        scheme = "http" if self._settings.tls_cert is None else "https"
        url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
        logger.info("event=listening url=%s models=%s", url, ",".join(model.name for model in self._models))
        listening = {"event": "listening", "url": url}
        if self._service is not None:
            try:
                await self._service.start(host, self._settings.grpc_port or 0)
            except RunnerError as exc:
                self.failure, self.should_exit = exc, True
                return
            listening["grpc"] = (
                f"[{host}]:{self._service.port}" if ":" in host else f"{host}:{self._service.port}"
            )
            logger.info("event=listening grpc=%s", listening["grpc"])
        self._announce(listening)
        if self._models.shadows:
            self._models.subscribe(lambda: mirror(self._models, loop))
        self._loading = asyncio.create_task(self._load())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what was accepted, then close."""
        self._start_draining()
        if self._loading is not None and not self._loading.done():
            self._loading.cancel()
        await asyncio.sleep(LAME_DUCK_S)
        await self._stop_listening(sockets or [])
        given_up = await asyncio.gather(*(model.drain(self._settings.drain_s) for model in self._models))
        await self._repository.close()
        if self._service is not None:
            await self._service.stop(_SLOW_READERS_S)
        if any(given_up):
            logger.error("event=drain_gave_up requests=%d drain_s=%g", sum(given_up), self._settings.drain_s)
        await super().shutdown(sockets)
        logger.info("event=stopped requests=%d", self.server_state.total_requests)

    async def _stop_listening(self, sockets: Sequence[socket.socket]) -> None:
        """Take no more connections; those that wait to be taken would be reset, and so are taken first."""
        copies = [listener.dup() for listener in sockets]
        for server in self.servers:
            server.close()
        waiting: list[socket.socket] = []
        for listener in copies:
            listener.setblocking(False)
            with listener, contextlib.suppress(OSError):
                while True:
                    waiting.append(listener.accept()[0])
        loop = asyncio.get_running_loop()
        taken = (
            loop.connect_accepted_socket(self._connection, connection, ssl=self.config.ssl)
            for connection in waiting
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TAKE_S):
                await asyncio.gather(*taken, return_exceptions=True)

    def _connection(self) -> asyncio.Protocol:
        """The protocol of a connection, as uvicorn makes it."""
        kind: Any = self.config.http_protocol_class
        return kind(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle signals while serving; unlike uvicorn's, never raise them again afterwards."""
        try:
            with heard(self.handle_exit):
                yield
        finally:
            self._watchdog.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signal API's
        """Not ready from this moment; the main loop sees `should_exit` within a tenth of a second."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        self._start_draining()
        logger.info("event=draining signal=%s", signal.Signals(sig).name)
        self._watchdog.start(sig, _STUCK_S if self.force_exit else self._settings.drain_s + _STUCK_DRAIN_S)

    def _start_draining(self) -> None:
        self._app.admission.is_draining = True
        for model in self._models:
            model.set_state("draining", "the server is shutting down; send the request elsewhere")

    async def _load(self) -> None:
        for model in self._models:
            try:
                await open_model(model)
            except Exception as exc:
                reason = str(exc) if isinstance(exc, ParityError) else f"{type(exc).__name__}: {exc}"
                logger.error(
                    "event=load_failed model=%s error=%s",
                    logs.text(model.name),
                    logs.text(reason),
                    exc_info=exc,
                )
                model.set_state("failed", reason)
                self.failure, self.failed_name = exc, model.name
                self.should_exit = True
                return
        # What has been loaded stays for good: keep the collector from walking it again and again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
        waiting = [f"{name}: {reason}" for name, reason in self._models.waiting().items()]
        if waiting:
            self._announce({"event": "not_ready", "reason": "; ".join(waiting)})
        else:
            logger.info("event=ready models=%s", ",".join(model.name for model in self._models))
            self._announce({"event": "ready"})
        if self._settings.poll_s is not None:
            await self._repository.poll(self._settings.poll_s)


def _protocol(settings: ServerSettings) -> type[asyncio.Protocol] | Literal["httptools"]:
    if not is_supported():
        return "httptools"
    return FastProtocol if settings.http == "fast" else HeadProtocol


def _bind(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as exc:
        listener.close()
        raise RunnerError(
            f"cannot listen on {settings.host}:{settings.port}: {exc.strerror or exc}; "
            "choose another --port, or --port 0 for a free one"
        ) from exc
    listener.setblocking(False)
    return listener
