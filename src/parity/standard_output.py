"""Standard output for a command's results alone: whatever else writes there goes to standard error.

That holds below Python, too. C libraries, child processes and `os.write(1, ...)` write to descriptor 1,
whatever `sys.stdout` is; so it is pointed at standard error, and results go through a private duplicate.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Generator
from typing import TextIO

STDOUT, STDERR = 1, 2


@contextlib.contextmanager
def reserved() -> Generator[TextIO]:
    """A stream to standard output for results; everything else goes to standard error until the end.

    Where `sys.stdout` is no view of descriptor 1, as in a notebook or under a test's capture, only what
    Python prints is diverted, and the stream is what `sys.stdout` was. Not for several threads at a time:
    descriptors are the process's.
    """
    outer = sys.stdout
    if not _is_descriptor(outer, STDOUT):
        with contextlib.redirect_stdout(sys.stderr):
            yield outer
        return
    outer.flush()
    private = os.dup(STDOUT)
    _point_at_stderr(STDOUT)
    results = open(  # noqa: SIM115 - closed below, where its reader may be gone
        private,
        "w",
        encoding=outer.encoding,
        errors=outer.errors,
        buffering=1 if outer.isatty() else -1,
        closefd=False,
    )
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield results
        results.flush()
    finally:
        with contextlib.suppress(OSError, ValueError):
            outer.flush()  # what was written by `sys.__stdout__`
        flush_c()
        os.dup2(private, STDOUT)
        discard(results)
        results.close()
        os.close(private)


def discard(stream: TextIO) -> None:
    """Send what a stream still holds, and whatever is written to it later, nowhere: its reader is gone."""
    with contextlib.suppress(OSError, ValueError):
        stream.flush()
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _is_descriptor(stream: TextIO | None, number: int) -> bool:
    try:
        return stream is not None and stream.fileno() == number
    except (OSError, ValueError, AttributeError):
        return False


def _point_at_stderr(number: int) -> None:
    """Let a descriptor be standard error, or nothing where that is closed."""
    try:
        os.dup2(STDERR, number)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def flush_c() -> None:
    """Write out what C libraries have printed and C's own buffer still holds."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
