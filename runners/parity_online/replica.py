"""A replica: a process of its own with one engine, which a server starts and feeds batches.

`python -m parity_online.replica FD` reads from the inherited socket what to load, says whether it could, and
then answers batches one at a time until the socket closes. It never outlives the server.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import sys
from dataclasses import replace

import orjson

from parity.codec.frames_ipc import decode_batch, encode_result
from parity.engine import Engine
from parity.errors import ParityError
from parity.registry import load_handler
from parity_online import logs
from parity_online.frames import receive_frame, send_frame

CONFIGURE, BATCH = b"C", b"B"
READY, RESULT, FAILED = b"R", b"A", b"F"

logger = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1


def main(descriptor: int) -> None:
    """Serve batches on the socket with this descriptor until it closes."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    # The server decides when a replica ends: a Ctrl-C or a SIGTERM to the group must not cut a drain short.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as connection:
        try:
            _, body = receive_frame(connection)
            engine = _open(orjson.loads(body))
        except EOFError:
            return
        except Exception as exc:
            logger.error("event=replica_failed pid=%d", os.getpid(), exc_info=exc)
            reason = str(exc) if isinstance(exc, ParityError) else f"{type(exc).__name__}: {exc}"
            send_frame(connection, FAILED, orjson.dumps({"error": reason, "type": type(exc).__name__}))
            return
        send_frame(connection, READY, orjson.dumps(engine.fingerprint()))
        try:
            while True:
                _, body = receive_frame(connection)
                _answer(connection, engine, body)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _open(config: dict[str, object]) -> Engine:
    logs.set_up(str(config["log_level"]))
    app_dir = config["app_dir"]
    found = load_handler(str(config["ref"]), app_dir=None if app_dir is None else str(app_dir))
    # In a model repository the place gives name and version.
    manifest = replace(found.manifest, name=str(config["name"]), version=str(config["version"]))
    loaded = replace(found, manifest=manifest)
    settings: list[str] = config["profile_settings"]  # pyright: ignore[reportAssignmentType] - ours
    profile = loaded.profile(str(config["profile"])).with_settings(settings)
    return Engine(loaded, profile).__enter__()


def _answer(connection: socket.socket, engine: Engine, body: memoryview) -> None:
    try:
        batch, meta = decode_batch(engine.loaded.inputs, body)
        with logs.batch(meta["number"]):
            result = encode_result(engine.run(batch))
    except Exception as exc:
        logger.error("event=batch_failed pid=%d", os.getpid(), exc_info=exc)
        send_frame(connection, FAILED, orjson.dumps({"error": str(exc), "type": type(exc).__name__}))
    else:
        send_frame(connection, RESULT, result)


if __name__ == "__main__":
    main(int(sys.argv[1]))
