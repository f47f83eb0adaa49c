"""`parity serve`: parses, calls, prints."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Annotated, Any, TextIO, cast, get_args

import typer

from parity import standard_output
from parity.durable import write_text
from parity.errors import ConfigError
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.registry import load_handler
from parity_online import logs
from parity_online.aliases import AliasSet
from parity_online.capturing import hash_key, require_capture_fields
from parity_online.settings import HttpChoice, LogFormat, ModelSettings, ServerSettings

_BYTES_IN_MB = 1024 * 1024
_events: list[TextIO] = []
"""Standard output, which is for events alone; innermost last."""


@contextlib.contextmanager
def _events_alone() -> Generator[None]:
    """What handlers write there goes to standard error meanwhile, as what they write in a replica does."""
    with standard_output.reserved() as events:
        _events.append(events)
        try:
            yield
        finally:
            _events.pop()


@_events_alone()
def serve(
    handlers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="HANDLER...", help="Handlers: a folder, archive, file.py:Class or module:Class."
        ),
    ] = None,
    models: Annotated[
        Path | None, typer.Option(help="A model repository: NAME/VERSION/ of handler folders or archives.")
    ] = None,
    poll_s: Annotated[
        float | None,
        typer.Option("--poll", metavar="SECONDS", help="Take over what comes, changes or goes, this often."),
    ] = None,
    canary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME@VERSION=SHARE",
            help="A version takes a share, such as 10%, of the requests that ask for none; repeatable.",
        ),
    ] = None,
    shadow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME@VERSION",
            help="A version answers what the others are asked, too, and is compared; repeatable.",
        ),
    ] = None,
    management: Annotated[
        bool, typer.Option("--management", help="Let models be loaded and unloaded over HTTP.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Address to bind; 0.0.0.0 opens it to the network.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to bind; 0 takes a free one and prints it.")] = 8000,
    grpc_port: Annotated[
        int | None, typer.Option(help="Serve gRPC on this port, too; 0 takes a free one. Needs parity[grpc].")
    ] = None,
    profile: Annotated[str, typer.Option(help="Profile of handler.toml to run with.")] = "default",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a profile setting; repeatable."),
    ] = None,
    max_batch: Annotated[
        str | None,
        typer.Option(metavar="ROWS|auto", help="Most rows in a batch; auto measures it at start (32)."),
    ] = None,
    record_max_batch: Annotated[
        bool,
        typer.Option(
            "--record-max-batch", help="Keep what auto measured beside the handler, for the next start."
        ),
    ] = False,
    slo_ms: Annotated[
        float | None,
        typer.Option(help="Time a request should take at most, for --max-batch auto (--batch-limit-s)."),
    ] = None,
    max_delay_ms: Annotated[
        float | None, typer.Option(help="How long a row may wait for others while the model is free (0).")
    ] = None,
    queue_rows: Annotated[
        int | None, typer.Option(help="Most rows that may wait; more get 503 (1024).")
    ] = None,
    timeout_s: Annotated[
        float | None, typer.Option(help="Time a request may take before it gets 504 (30).")
    ] = None,
    slot: Annotated[
        str | None, typer.Option(help="Where batches run: thread, loop or auto (thread).")
    ] = None,
    mix_shapes: Annotated[
        bool, typer.Option("--mix-shapes", help="Let rows of other tensor shapes share a batch.")
    ] = False,
    preferred: Annotated[
        list[int] | None,
        typer.Option(metavar="ROWS", help="A batch size better than those between; repeatable."),
    ] = None,
    client_limit: Annotated[
        int | None, typer.Option(help="Most requests of one client in flight; more get 429 (no limit).")
    ] = None,
    batch_limit_s: Annotated[
        float | None,
        typer.Option(help="Time a batch may take before its slot is given up and replaced (--timeout-s)."),
    ] = None,
    preprocess_workers: Annotated[
        int | None,
        typer.Option(
            help="Threads that preprocess while the model runs another batch; 0: one stage at a time (0)."
        ),
    ] = None,
    preprocess_processes: Annotated[
        int | None,
        typer.Option(help="Processes that preprocess, for preprocessing that keeps Python's GIL (0)."),
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(help="Run each handler in so many processes of its own; 0: in the server's (0)."),
    ] = None,
    devices: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE,...",
            help="Devices for the replicas in turn, such as cuda:0,cuda:1 (the profile's).",
        ),
    ] = None,
    start_timeout_s: Annotated[
        float | None,
        typer.Option(
            "--start-timeout", help="Seconds a replica may take to load before it is started anew (600)."
        ),
    ] = None,
    gate: Annotated[
        str | None,
        typer.Option(help="When goldens diverge at start: strict (not ready), warn, or off (none are run)."),
    ] = None,
    capture: Annotated[
        str | None, typer.Option(help="Record requests and answers in this folder, or at an fsspec URL.")
    ] = None,
    capture_sample: Annotated[
        float | None, typer.Option(help="Share of requests to record, by a hash of their ids (1).")
    ] = None,
    capture_keep_errors: Annotated[
        bool, typer.Option("--capture-keep-errors", help="Record failed rows beside the sample, too.")
    ] = False,
    capture_drop: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help="Do not record this field; repeatable.")
    ] = None,
    capture_hash: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Record a keyed hash of this field only; repeatable."),
    ] = None,
    capture_hash_key_file: Annotated[
        Path | None, typer.Option(help="File with the key; else the variable PARITY_CAPTURE_KEY.")
    ] = None,
    capture_rotate_mb: Annotated[
        float | None, typer.Option(help="Write a part when its rows take so much memory (32).")
    ] = None,
    capture_rotate_s: Annotated[
        float | None, typer.Option(help="Write a part when its first row is so old (60).")
    ] = None,
    capture_refused_kb: Annotated[
        float | None,
        typer.Option(
            help="Largest body, in KiB, recorded of a request whose rows do not fit; 0 records none (256)."
        ),
    ] = None,
    drain_s: Annotated[
        float, typer.Option(help="Time accepted requests may take to finish after SIGTERM.")
    ] = 30.0,
    body_limit_mb: Annotated[float, typer.Option(help="Largest request body, in MiB; more gets 413.")] = 64.0,
    api_keys: Annotated[
        Path | None,
        typer.Option(
            help="File of hashed API keys to ask for; `python -m parity_online.keys NAME` makes one."
        ),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="Speak HTTPS with this certificate chain.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The certificate's private key.")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="Ask clients for a certificate that these authorities signed.")
    ] = None,
    show_failures: Annotated[
        bool, typer.Option("--show-failures", help="Put handlers' exceptions into answers. For development.")
    ] = False,
    http: Annotated[
        str,
        typer.Option(help="fast: take requests of up to 4 MiB before ASGI; asgi: none."),
    ] = "fast",
    app_dir: Annotated[str | None, typer.Option(help="Folder to import module:Class from.")] = None,
    ready_file: Annotated[Path | None, typer.Option(help="Write the URL here once ready.")] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    log_failures: Annotated[
        bool,
        typer.Option(
            "--log-failures", help="Log the texts of handlers' exceptions, which may quote requests."
        ),
    ] = False,
    log_format: Annotated[str, typer.Option(help="text: key=value; json: one object a line.")] = "text",
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log each request, not only those that fail.")
    ] = False,
    otel_endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Send spans to the OpenTelemetry collector there, by OTLP over HTTP. Needs parity[otel].",
        ),
    ] = None,
    metric_aliases: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERVER",
            help="Give metrics also by the names of triton or torchserve, for their dashboards; repeatable.",
        ),
    ] = None,
) -> None:
    """Serve handlers over HTTP with dynamic batching.

    Prints one JSON object a line on standard output: {"event": "listening", "url": ...}, then {"event":
    "ready"} once every model is warm and has reproduced its goldens. The log goes to standard error.
    """
    # Imported late: the web framework is not needed to print the help.
    from parity_online.models import Canary
    from parity_online.repository import load_version, scan
    from parity_online.server import Offer
    from parity_online.server import serve as serve_until_signal
    from parity_online.shadow import ShadowName

    if log_format not in get_args(LogFormat):
        raise ConfigError(f"--log-format {log_format!r}: expected {' or '.join(get_args(LogFormat))}")
    logs.set_up(log_level, cast("LogFormat", log_format), tells_failures=log_failures)
    options = {
        "max_batch": int(max_batch) if max_batch and max_batch.isdecimal() else max_batch,
        "record_max_batch": record_max_batch or None,
        "slo_ms": slo_ms,
        "max_delay_ms": max_delay_ms,
        "queue_rows": queue_rows,
        "timeout_s": timeout_s,
        "slot": slot,
        "mix_shapes": mix_shapes or None,
        "preferred": preferred or None,
        "client_limit": client_limit,
        "batch_limit_s": batch_limit_s,
        "preprocess_workers": preprocess_workers,
        "preprocess_processes": preprocess_processes,
        "replicas": replicas,
        "devices": None if devices is None else [device.strip() for device in devices.split(",")],
        "start_timeout_s": start_timeout_s,
        "gate": gate,
    }
    settings = ServerSettings(
        host=host,
        port=port,
        grpc_port=grpc_port,
        drain_s=drain_s,
        body_limit_bytes=round(body_limit_mb * _BYTES_IN_MB),
        http=cast("HttpChoice", http),
        poll_s=poll_s,
        management=management,
        api_keys=api_keys,
        tls_cert=tls_cert,
        tls_key=tls_key,
        tls_client_ca=tls_client_ca,
        show_failures=show_failures,
        access_log=access_log,
        otel_endpoint=otel_endpoint,
        metric_aliases=tuple(cast("list[AliasSet]", metric_aliases or [])),
    )
    captured = {
        "folder": capture,
        "sample": capture_sample,
        "keep_errors": capture_keep_errors or None,
        "drop": capture_drop,
        "hash": capture_hash,
        "rotate_mb": capture_rotate_mb,
        "rotate_s": capture_rotate_s,
        "refused_kb": capture_refused_kb,
    }
    key = hash_key(capture_hash_key_file)
    canaries = [Canary.parse(text) for text in canary or ()]
    shadows = [ShadowName.parse(text) for text in shadow or ()]
    found = [load_handler(ref, app_dir=app_dir) for ref in handlers or ()]
    if models is not None:
        found += [load_version(path, *key) for key, path in scan(models).items()]
    if not found and not (models is not None and (poll_s is not None or management)):
        raise ConfigError(
            "nothing to serve: name a handler, as in `parity serve handlers/digits`, or with --models a "
            "repository that has one (NAME/VERSION/handler.py)"
        )
    require_capture_fields(found, capture_drop, capture_hash)

    def configure(loaded: LoadedHandler) -> tuple[Profile, ModelSettings]:
        online = ModelSettings.of(loaded.manifest.online, options, capture=captured, capture_key=key)
        return loaded.profile(profile).with_settings(set_ or []), online

    url = ""

    def announce(event: Mapping[str, Any]) -> None:
        nonlocal url
        url = event.get("url", url)
        _events[-1].write(json.dumps(event) + "\n")
        _events[-1].flush()
        if event["event"] == "ready" and ready_file is not None:
            write_text(ready_file, url + "\n")

    serve_until_signal(Offer(found, configure, models, canaries, shadows), settings, announce)
