"""What a stage runs in: inference mode, the engine's stream, and a note of the thread that is in it."""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn, Self, cast

from parity.profile import Profile


@dataclass(frozen=True)
class UnderWay:
    """A stage that a thread is in: whose, which, of how many rows, and since when by time.monotonic()."""

    handler: str
    stage: str
    rows: int
    since: float


_notes: dict[int, tuple[str, str, int, float]] = {}


def under_way() -> list[UnderWay]:
    """The stages that this process's threads are in, the one that takes longest first."""
    return sorted((UnderWay(*note) for note in _notes.copy().values()), key=lambda item: item.since)


class Inside:
    """The context of one call of a stage; made anew for each, at the cost of a few microseconds.

    Args:
        handler: its name.
        stage: "initialize", "preprocess", "inference" or "postprocess".
        rows: how many it is called with.
        stream: the engine's CUDA stream; None on the host.
    """

    __slots__ = ("_mode", "_note", "_on", "_outer", "_thread")

    def __init__(self, handler: str, stage: str, rows: int, stream: Any) -> None:
        torch = cast("Any", sys.modules.get("torch"))
        moded = hasattr(torch, "inference_mode")
        self._note = (handler, stage, rows, time.monotonic())
        self._mode = torch.inference_mode() if moded else None
        self._on = None if stream is None else torch.cuda.stream(stream)

    def __enter__(self) -> Self:
        self._thread = threading.get_ident()
        self._outer = _notes.get(self._thread)
        _notes[self._thread] = self._note
        if self._mode is not None:
            self._mode.__enter__()
        try:
            if self._on is not None:
                self._on.__enter__()
        except BaseException as exc:
            self._leave(exc)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._on is not None:
                self._on.__exit__(kind, exc, trace)
        finally:
            self._leave(exc)

    def _leave(self, exc: BaseException | None) -> None:
        if self._mode is not None:
            self._mode.__exit__(None if exc is None else type(exc), exc, None)
        if self._outer is None:
            del _notes[self._thread]
        else:
            _notes[self._thread] = self._outer


_NATIVE = ("pyo3_runtime", "asyncio.exceptions")
"""The modules of exceptions that libraries raise for one call, though they are none of `Exception`."""


def is_of_stage(exc: BaseException) -> bool:
    """Whether a stage failed by this, and not from outside, as by Ctrl-C or a time limit.

    A stage that exits failed: it must not end a check with its own code. So did one whose library, written in
    Rust, panicked.
    """
    return isinstance(exc, Exception | SystemExit) or type(exc).__module__ in _NATIVE


def new_stream(profile: Profile) -> Any:
    """The CUDA stream of an engine; None on the host.

    All stages work on it, on whatever threads they are, so that what one made is there for the next without
    anybody waiting, and other engines' work on the device is not waited for.
    """
    torch = cast("Any", sys.modules.get("torch"))
    return None if profile.device == "cpu" or torch is None else torch.cuda.Stream(profile.device)


_guarded: set[int] = set()
"""The process in which `os._exit` is guarded; a forked child has its parent's, too."""


def guard_exit() -> None:
    """Let a stage that calls os._exit fail as one that calls sys.exit: it must not end a check with its code.

    Elsewhere, as in a child that a stage forked, os._exit does what it always did.
    """
    process = os.getpid()
    if process in _guarded:
        return
    _guarded.add(process)
    end = os._exit

    def guarded(status: int) -> NoReturn:
        if os.getpid() == process and threading.get_ident() in _notes:
            raise SystemExit(f"os._exit({status})")
        end(status)

    os._exit = guarded
