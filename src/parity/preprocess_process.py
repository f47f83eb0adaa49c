"""A process that preprocesses for an engine in another one; see `parity.preprocessing`.

`python -m parity.preprocess_process PARENT SOCKET INCOMING OUTGOING` is given the parent's process id and the
descriptors of what it inherits. It ends when the parent does, or closes the socket.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from parity.codec.frames_ipc import decode_batch
from parity.engine import Engine
from parity.errors import FingerprintError, ParityError
from parity.registry import load_handler
from parity.shared_values import Channel, Region, UnsendableError, copied
from parity.under_way import is_of_stage

_WATCH_S = 1.0


def main(parent: int, descriptor: int, incoming: int, outgoing: int) -> None:
    """Preprocess until the socket closes."""
    # Who started us decides when we end: a Ctrl-C or SIGTERM to the group must not cut its work short.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    channel = Channel(socket.socket(fileno=descriptor), Region(outgoing), Region(incoming))
    try:
        try:
            engine = _open(channel.receive())
        except Exception as exc:  # noqa: BLE001 - told to who waits for it
            text = str(exc) if isinstance(exc, ParityError) else f"{type(exc).__name__}: {exc}"
            channel.send((type(exc).__name__, text))
            return
        channel.send(None)
        while True:
            _answer(channel, engine, channel.receive())
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _open(job: Mapping[str, Any]) -> Engine:
    logging.basicConfig(level=job["log_level"], stream=sys.stderr)
    found = load_handler(job["ref"], app_dir=job["app_dir"])
    # In a model repository the place gives name and version.
    manifest = replace(found.manifest, name=job["name"], version=job["version"])
    loaded = replace(found, manifest=manifest)
    changed = [kind for kind, digest in job["digests"].items() if loaded.digests[kind] != digest]
    if changed:
        raise FingerprintError(
            f"the {' and '.join(changed)} of {loaded.name} changed since it was loaded, so that processes "
            "would preprocess for another handler; load it anew, or bring the files back"
        )
    return Engine(loaded, loaded.profile(job["profile"]).with_settings(job["settings"])).__enter__()


def _answer(channel: Channel, engine: Engine, frame: Any) -> None:
    batch, _ = decode_batch(engine.loaded.inputs, memoryview(frame))
    value: Any = None
    error: BaseException | None = None
    try:
        value = engine.preprocess_here(batch)
    except BaseException as exc:
        if not is_of_stage(exc):
            raise
        error = _carried(exc)
    try:
        channel.send((batch.rejections, value, error))
    except UnsendableError as exc:
        channel.send((batch.rejections, None, TypeError(f"what preprocess returned: {exc}")))


def _carried(exc: BaseException) -> BaseException:
    """The exception with its traceback as a note; one that cannot be pickled, by name and text."""
    told = "".join(traceback.format_exception(exc)).rstrip()
    try:
        again = copied(exc)
        same = type(again) is type(exc) and str(again) == str(exc)
    except Exception:  # noqa: BLE001 - a user's exception may do anything
        same = False
    if not same:
        exc = _NamedError(type(exc).__name__, str(exc), getattr(exc, "failing_rows", None))
    exc.add_note(f"In a process that preprocesses:\n{told}")
    return exc


class _NamedError(Exception):
    """Pickles as an exception of the same name and text, of a class made where it is read."""

    def __init__(self, name: str, text: str, failing_rows: object) -> None:
        super().__init__(text)
        self.name = name
        self.text = text
        self.failing_rows = failing_rows

    def __reduce__(self) -> Any:
        return _named, (self.name, self.text, self.failing_rows, self.__notes__)


def _named(name: str, text: str, failing_rows: object, notes: list[str]) -> Exception:
    error: Any = type(name, (Exception,), {})(text)
    if failing_rows is not None:
        error.failing_rows = failing_rows
    for note in notes:
        error.add_note(note)
    return error


def _end_with(parent: int) -> None:
    """End when the parent has: a stage that takes long must not outlive it."""
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os._exit(1)


if __name__ == "__main__":
    # What is pickled here is read elsewhere: by the module's own name, not as __main__.
    from parity import preprocess_process

    preprocess_process.main(*map(int, sys.argv[1:5]))
