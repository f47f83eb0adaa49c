"""A replica: a process of its own with one engine, which a server starts and feeds batches.

`python -m parity_online.replica FD` reads from the inherited socket what to load, says whether it could, and
then answers batches until the socket closes: one at a time, or, with workers that preprocess, several whose
stages overlap. It never outlives the server.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import orjson

from parity.codec.frames_ipc import decode_batch, encode_result
from parity.engine import Engine
from parity.errors import ParityError
from parity.pipeline import Overlapped, Step
from parity.registry import load_handler
from parity_online import logs
from parity_online.frames import receive_frame, send_frame

CONFIGURE, BATCH = b"C", b"B"
READY, RESULT, FAILED = b"R", b"A", b"F"
PREPARED, INFERRING = b"P", b"I"
STEPS: dict[bytes, Step] = {PREPARED: "prepared", INFERRING: "inferring"}

_FRAMES: dict[Step, bytes] = {step: kind for kind, step in STEPS.items()}

logger = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1


def main(descriptor: int) -> None:
    """Serve batches on the socket with this descriptor until it closes."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    # The server decides when a replica ends: a Ctrl-C or a SIGTERM to the group must not cut a drain short.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as connection:
        try:
            _, _, body = receive_frame(connection)
            config = orjson.loads(body)
            engine = _open(config)
        except EOFError:
            return
        except Exception as exc:
            logger.error("event=replica_failed pid=%d", os.getpid(), exc_info=exc)
            reason = str(exc) if isinstance(exc, ParityError) else f"{type(exc).__name__}: {exc}"
            send_frame(connection, FAILED, orjson.dumps({"error": reason, "type": type(exc).__name__}))
            return
        send_frame(connection, READY, orjson.dumps(engine.fingerprint()))
        answers = _Answers(connection, engine)
        workers = int(config["preprocess_workers"])
        lanes = ThreadPoolExecutor(workers + 1, "parity-lane") if workers else None
        try:
            while True:
                _, number, body = receive_frame(connection)
                if lanes is None:
                    answers.give(number, body)
                else:
                    lanes.submit(answers.give, number, body)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            if lanes is not None:
                lanes.shutdown(wait=False, cancel_futures=True)


def _open(config: dict[str, object]) -> Engine | Overlapped:
    form = "json" if config["log_format"] == "json" else "text"
    logs.set_up(str(config["log_level"]), form, tells_failures=bool(config["log_failures"]))
    app_dir = config["app_dir"]
    found = load_handler(str(config["ref"]), app_dir=None if app_dir is None else str(app_dir))
    # In a model repository the place gives name and version.
    manifest = replace(found.manifest, name=str(config["name"]), version=str(config["version"]))
    loaded = replace(found, manifest=manifest)
    settings: list[str] = config["profile_settings"]  # pyright: ignore[reportAssignmentType] - ours
    profile = loaded.profile(str(config["profile"])).with_settings(settings)
    engine = Engine(loaded, profile, preprocess_processes=int(str(config["preprocess_processes"])))
    workers = int(str(config["preprocess_workers"]))
    return (Overlapped(engine, preprocess_workers=workers) if workers else engine).__enter__()


class _Answers:
    """Runs batches and sends what comes of them; for several threads."""

    def __init__(self, connection: socket.socket, engine: Engine | Overlapped) -> None:
        self._connection = connection
        self._engine = engine
        self._sending = threading.Lock()

    def give(self, number: int, body: memoryview) -> None:
        """Answer a batch."""
        engine = self._engine
        try:
            batch, meta = decode_batch(engine.loaded.inputs, body)
            with logs.batch(meta["number"]):
                if isinstance(engine, Overlapped):
                    result = engine.run(batch, lambda step: self._send(_FRAMES[step], number))
                else:
                    result = engine.run(batch)
                answer = encode_result(result)
        except BaseException as exc:  # KeyboardInterrupt and the like, too: somebody waits for an answer
            logger.error("event=batch_failed pid=%d", os.getpid(), exc_info=exc)
            text = str(exc).encode("utf-8", "backslashreplace").decode()
            told = orjson.dumps({"error": text, "type": type(exc).__name__})
            self._send(FAILED, number, told)
        else:
            self._send(RESULT, number, answer)

    def _send(self, kind: bytes, number: int, body: bytes = b"") -> None:
        with self._sending:
            send_frame(self._connection, kind, body, number)


if __name__ == "__main__":
    main(int(sys.argv[1]))
