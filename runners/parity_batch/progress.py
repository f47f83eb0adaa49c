"""One line that tells how far a job is: footers read, then rows, rows/s, time left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TextIO


class ProgressLine:
    """Rewrites one line of a terminal.

    Args:
        total: the rows of the job.
        stream: a terminal.
        clock: seconds, monotonic.
    """

    def __init__(
        self, total: int, stream: TextIO, clock: Callable[[], float] = time.perf_counter, done: int = 0
    ) -> None:
        self._total = total
        self._stream = stream
        self._clock = clock
        self._started = clock()
        self._first = done
        self._shown = False

    def show(self, rows: int, errors: int) -> None:
        """Say that `rows` of the job's rows are done, `errors` of which failed."""
        self._stream.write(f"\r{self.text(rows, errors)}\x1b[K")
        self._stream.flush()
        self._shown = True

    def text(self, rows: int, errors: int) -> str:
        """The line."""
        seconds = self._clock() - self._started
        rate = (rows - self._first) / seconds if seconds > 0 else 0.0
        share = rows / self._total if self._total else 1.0
        parts = [f"{share:4.0%}", f"{rows:,} of {self._total:,} rows", f"{rate:,.0f} rows/s"]
        if rate > 0 and rows < self._total:
            parts.append(f"{duration((self._total - rows) / rate)} left")
        if errors:
            parts.append(f"{errors:,} failed")
        return "  ".join(parts)

    def close(self) -> None:
        """Leave the line."""
        if self._shown:
            self._stream.write("\n")
            self._stream.flush()


class PlanningLine:
    """Rewrites one line of a terminal while footers are read, and takes it away.

    Args:
        stream: a terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = False

    def show(self, read: int, files: int) -> None:
        """Say that so many footers of all files are read."""
        self._stream.write(f"\rplanning: {read:,} of {files:,} footers read\x1b[K")
        self._stream.flush()
        self._shown = True

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def duration(seconds: float) -> str:
    """Seconds as people say them: "8 s", "3 min 05 s", "2 h 07 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def size(size_bytes: float) -> str:
    """Bytes as people say them: "412 bytes", "3.2 kB", "160 MB"; 0 only where there are none."""
    whole = math.ceil(size_bytes)
    if whole < 1000:
        return f"{whole} {'byte' if whole == 1 else 'bytes'}"
    for unit, power in (("kB", 1e3), ("MB", 1e6)):
        if whole < 999.5 * power:
            number = whole / power
            return f"{number:.0f} {unit}" if number >= 99.95 else f"{number:.1f} {unit}"
    return f"{whole / 1e9:,.1f} GB"
