"""What the online runner can be told, in handler.toml's `[online]` and on the command line."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

from parity.capture import CaptureSettings
from parity.errors import ConfigError, did_you_mean, shown
from parity.profile import Profile
from parity_online.aliases import AliasSet
from parity_online.batcher import BatchingPolicy
from parity_online.slot import SlotChoice

Gate = Literal["strict", "warn", "off"]
MaxBatch = int | Literal["auto"]
HttpChoice = Literal["fast", "asgi"]
LogFormat = Literal["text", "json"]

AUTO_MOST_ROWS = 1024
"""The largest batch that `max_batch = "auto"` tries."""

_REPLICAS_MOST = 256
_WORKERS_MOST = 256


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """How one handler is served; the `[online]` table of its handler.toml.

    Attributes:
        max_batch: most rows in a batch; "auto" measures it while the handler warms up, see
            `parity.sizing`.
        record_max_batch: keep what "auto" measured beside the handler, so that the next start takes it; see
            `parity_online.size_records`. A record that is there and holds is taken in any case.
        slo_ms: how long a request should take at most, for "auto": a batch may take half of it, since a
            request may have to wait for another batch first. None: half of the time a batch may take at all.
        max_delay_ms: how long a row may wait for others while the slot is free; 0 sends it at once.
        queue_rows: most rows that may wait; more are answered 503.
        timeout_s: how long a request may take before it is answered 504; a request may ask for less.
        slot: where batches run: "thread"; "loop", the event loop itself, where a handler that hangs stops the
            whole server; or "auto": the loop when a warm-up batch takes less than 0.25 ms.
        mix_shapes: whether rows whose tensors have other shapes may share a batch, for a handler that pads.
        preferred: batch sizes, in rows, that are better than those between them; a batch is cut to the
            largest of them that has queued, and goes as soon as one has.
        client_limit: most requests that one client may have in flight, by its API key, or by its address
            where there are no keys; more are answered 429. None: no limit.
        batch_limit_s: how long a batch may take before its slot is given up and replaced; `timeout_s`
            when None.
        preprocess_workers: threads that preprocess for each slot, its stages overlapped, so that a batch is
            preprocessed while another one is inferred; 0 runs the stages one after the other on one thread.
        preprocess_processes: processes that preprocess for each slot, each with the handler loaded, for
            preprocessing that keeps the GIL; there are at least as many `preprocess_workers`. 0: none.
        replicas: how many processes of its own a handler runs in; 0 runs it in the server's process.
        devices: where replicas run, one after the other and round again; as many replicas as devices where
            `replicas` is 0. Without any, all run on the profile's.
        start_timeout_s: how long a replica may take to load the handler before it is ended and started anew.
        gate: what a golden case that diverges at start does: "strict" keeps the handler from becoming ready,
            "warn" logs and counts it, "off" runs no goldens.
        capture: whether and how its traffic is recorded.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """

    max_batch: MaxBatch = 32
    record_max_batch: bool = False
    slo_ms: float | None = None
    max_delay_ms: float = 0.0
    queue_rows: int = 1024
    timeout_s: float = 30.0
    slot: SlotChoice = "thread"
    mix_shapes: bool = False
    preferred: tuple[int, ...] = ()
    client_limit: int | None = None
    batch_limit_s: float | None = None
    preprocess_workers: int = 0
    preprocess_processes: int = 0
    replicas: int = 0
    devices: tuple[str, ...] = ()
    start_timeout_s: float = 600.0
    gate: Gate = "strict"
    capture: CaptureSettings = field(default_factory=CaptureSettings)

    def __post_init__(self) -> None:
        if not _is_rows(self.queue_rows):
            raise _wrong("queue_rows", self.queue_rows, "a number of rows, at least 1")
        if self.max_batch != "auto" and not _is_rows(self.max_batch):
            raise _wrong("max_batch", self.max_batch, "a number of rows, at least 1, or 'auto'")
        if self.slo_ms is not None:
            _require_seconds("slo_ms", self.slo_ms, least=0.001)
        _require_seconds("max_delay_ms", self.max_delay_ms, least=0.0)
        for flag in ("mix_shapes", "record_max_batch"):
            if type(getattr(self, flag)) is not bool:
                raise _wrong(flag, getattr(self, flag), "true or false")
        if self.record_max_batch and self.max_batch != "auto":
            raise ConfigError(
                f"online settings max_batch = {self.max_batch} and record_max_batch: nothing is measured "
                'that could be recorded; set max_batch = "auto", or leave record_max_batch out'
            )
        sizes = cast("Any", self.preferred)
        if not isinstance(sizes, list | tuple) or not all(type(size) is int for size in cast("Any", sizes)):
            raise _wrong("preferred", sizes, "a list of batch sizes, such as [8, 16]")
        object.__setattr__(self, "preferred", tuple(sizes))
        limit = cast("Any", self.client_limit)
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise _wrong("client_limit", limit, "a number of requests, at least 1")
        _require_seconds("timeout_s", self.timeout_s, least=0.001)
        if self.batch_limit_s is not None:
            _require_seconds("batch_limit_s", self.batch_limit_s, least=0.001)
        for key, what, most in (
            ("replicas", "processes", _REPLICAS_MOST),
            ("preprocess_workers", "threads", _WORKERS_MOST),
            ("preprocess_processes", "processes", _WORKERS_MOST),
        ):
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
                raise _wrong(key, value, f"a number of {what}, 0 to {most}")
        _require_seconds("start_timeout_s", self.start_timeout_s, least=0.001)
        devices = cast("Any", self.devices)
        if not isinstance(devices, list | tuple) or not all(map(_is_device, cast("Any", devices))):
            raise _wrong("devices", devices, "a list of devices, such as ['cuda:0', 'cuda:1'] or ['cpu']")
        object.__setattr__(self, "devices", tuple(devices))
        if self.devices and not self.replicas:
            object.__setattr__(self, "replicas", len(self.devices))
        if self.replicas < len(self.devices):
            raise ConfigError(
                f"online settings replicas = {self.replicas} and devices = {list(self.devices)}: some "
                "devices would idle; give each a replica, or leave replicas out"
            )
        object.__setattr__(
            self, "preprocess_workers", max(self.preprocess_workers, self.preprocess_processes)
        )
        if self.preprocess_workers and self.slot == "loop":
            raise ConfigError(
                "online settings slot = 'loop' and preprocess_workers or preprocess_processes exclude each "
                "other: on the event loop stages cannot overlap; choose slot = 'thread', or 0 of both"
            )
        for key, choices in (("slot", get_args(SlotChoice)), ("gate", get_args(Gate))):
            if getattr(self, key) not in choices:
                raise _wrong(key, getattr(self, key), f"one of {', '.join(choices)}")
        self.policy()

    @classmethod
    def of(
        cls,
        table: Mapping[str, Any],
        options: Mapping[str, Any],
        *,
        capture: Mapping[str, Any] | None = None,
        capture_key: bytes = b"",
    ) -> ModelSettings:
        """The settings of an `[online]` table; options that are not None take precedence.

        Args:
            table: the table.
            options: the options.
            capture: options that belong to its table `capture`.
            capture_key: the key of hashes in a capture.

        Raises:
            ConfigError: a key is unknown (near names are given) or a value is wrong.
        """
        known = {item.name for item in fields(cls)}
        for key in table:
            if key not in known:
                raise ConfigError(f"[online] has no setting {key!r}; {did_you_mean(key, known)}")
        given = {key: value for key, value in options.items() if value is not None}
        if given.get("max_batch", "auto") != "auto" and not given.get("record_max_batch"):
            given["record_max_batch"] = False  # the table's is of its own `max_batch`
        captured = CaptureSettings.of(table.get("capture", {}), capture, key=capture_key)
        return cls(**cast("Any", {**table, **given, "capture": captured}))

    @property
    def most_rows(self) -> int:
        """`max_batch` in rows; the largest that may be chosen while "auto" has not been measured."""
        return min(AUTO_MOST_ROWS, self.queue_rows) if self.max_batch == "auto" else self.max_batch

    @property
    def batch_allowed_s(self) -> float:
        """How long a batch of the size that "auto" chooses may take."""
        if self.slo_ms is not None:
            return self.slo_ms / 2000.0
        return (self.batch_limit_s or self.timeout_s) / 2.0

    def fitting(self, profile: Profile) -> ModelSettings:
        """The settings with `max_batch` cut to the largest bucket; a larger batch would be split again.

        An exact profile has its certificate's buckets: "auto" measures nothing there and takes the largest.
        """
        if profile.max_rows is None:
            return self
        if self.max_batch == "auto":
            return self.sized(min(profile.max_rows, self.queue_rows)) if profile.exact else self
        return self if self.max_batch <= profile.max_rows else self.sized(profile.max_rows)

    def sized(self, rows: int) -> ModelSettings:
        """The settings with this `max_batch`, without the preferred sizes that are above it."""
        preferred = tuple(size for size in self.preferred if size <= rows)
        return replace(self, max_batch=rows, record_max_batch=False, preferred=preferred)

    def policy(self) -> BatchingPolicy:
        """The batcher's part."""
        return BatchingPolicy(
            self.most_rows, self.max_delay_ms / 1000.0, self.queue_rows, tuple(self.preferred)
        )


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """What holds for the whole server.

    Attributes:
        host: address to bind; loopback unless told otherwise.
        port: port to bind; 0 takes a free one.
        grpc_port: port to bind for gRPC; 0 takes a free one, None serves none.
        drain_s: how long accepted requests may take to finish after SIGTERM.
        body_limit_bytes: largest request body; more is answered 413.
        http: "fast" takes inference requests of up to 4 MiB before ASGI, "asgi" none.
        poll_s: how often the model repository is looked at for versions that came, changed or went; None:
            never.
        management: whether models may be loaded and unloaded over HTTP.
        api_keys: the file of API keys, see `parity_online.keys`; None asks for none.
        tls_cert: the server's certificate chain; with it HTTPS is spoken, and HTTP is not.
        tls_key: its private key; in the same file when None.
        tls_client_ca: clients must show a certificate that these authorities have signed.
        show_failures: put the exceptions of handlers into answers, for development; otherwise a failed row's
            answer names only the stage and the id under which the log tells more.
        access_log: log each request, not only those that fail.
        otel_endpoint: the OpenTelemetry collector that spans are sent to; None sends none.
        metric_aliases: whose names of metrics are given beside ours; see `parity_online.aliases`.

    Raises:
        ConfigError: a value is out of range.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    grpc_port: int | None = None
    drain_s: float = 30.0
    body_limit_bytes: int = 64 * 1024 * 1024
    http: HttpChoice = "fast"
    poll_s: float | None = None
    management: bool = False
    api_keys: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    show_failures: bool = False
    access_log: bool = False
    metric_aliases: tuple[AliasSet, ...] = ()
    otel_endpoint: str | None = None

    def __post_init__(self) -> None:
        for name in self.metric_aliases:
            if name not in get_args(AliasSet):
                raise _wrong("metric_aliases", name, f"one of {', '.join(get_args(AliasSet))}")
        if not 0 <= self.port <= 65535:
            raise _wrong("port", self.port, "0 to 65535; 0 takes a free one")
        if self.grpc_port is not None and not 0 <= self.grpc_port <= 65535:
            raise _wrong("grpc_port", self.grpc_port, "0 to 65535; 0 takes a free one")
        if self.http not in get_args(HttpChoice):
            raise _wrong("http", self.http, f"one of {', '.join(get_args(HttpChoice))}")
        _require_seconds("drain_s", self.drain_s, least=0.0)
        if self.poll_s is not None:
            _require_seconds("poll_s", self.poll_s, least=0.01)
        if self.tls_cert is None and (self.tls_key is not None or self.tls_client_ca is not None):
            raise ConfigError("--tls-key and --tls-client-ca need --tls-cert, the server's own certificate")
        for path in (self.tls_cert, self.tls_key, self.tls_client_ca):
            if path is not None and not path.is_file():
                raise ConfigError(f"TLS: no such file {path}")
        if self.body_limit_bytes < 1:
            raise _wrong("body_limit_bytes", self.body_limit_bytes, "at least 1 byte")


def _is_rows(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_device(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"cpu|cuda(:\d+)?", value) is not None


def _require_seconds(key: str, value: object, least: float) -> None:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value < least
    ):
        raise _wrong(key, value, f"a finite number of at least {least:g}")


def _wrong(key: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"online setting {key} = {shown(value)} is not {expected}")
