"""How much memory a process has taken at most, and how much there is left, as Linux tells it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

_KIB = 1024
_CGROUP = Path("/sys/fs/cgroup")
_ROOM_SHARE = 0.5
"""How much of the memory that is left a larger batch may take while its size is looked for."""


def peak_bytes(pid: int | None = None, *, proc: Path = Path("/proc")) -> int | None:
    """The most memory that a process, this one when None, has had at once; None where nothing tells."""
    return _field(proc / ("self" if pid is None else str(pid)) / "status", "VmHWM")


def room_bytes(*, proc: Path = Path("/proc"), cgroup: Path = _CGROUP) -> int | None:
    """The memory that is left in the machine and in the container; None where nothing tells."""
    found = [_field(proc / "meminfo", "MemAvailable"), _left_in_container(cgroup)]
    told = [room for room in found if room is not None]
    return min(told) if told else None


def total_bytes(*, proc: Path = Path("/proc"), cgroup: Path = _CGROUP) -> int | None:
    """The memory that the machine has and the container may take; None where nothing tells."""
    found = [_field(proc / "meminfo", "MemTotal"), _limit_of_container(cgroup)]
    told = [total for total in found if total is not None]
    return min(told) if told else None


def larger_batch_fits(
    pid: int | None = None, slots: int = 1, *, proc: Path = Path("/proc"), cgroup: Path = _CGROUP
) -> Callable[[int, int], bool]:
    """Whether, after a batch of so many rows in a process, one of so many more fits into memory, too.

    It does when it takes memory as the batch before did, and so do as many slots at once. Where the system
    tells nothing, everything fits.
    """
    at_first = peak_bytes(pid, proc=proc)

    def fits(measured: int, rows: int) -> bool:
        peak, room = peak_bytes(pid, proc=proc), room_bytes(proc=proc, cgroup=cgroup)
        if at_first is None or peak is None or room is None:
            return True
        more = (peak - at_first) * (rows / measured - 1)
        return more * slots <= room * _ROOM_SHARE

    return fits


def _left_in_container(cgroup: Path) -> int | None:
    """What may still be taken; the idle part of the page cache counts as taken, and is let go first."""
    limit = _limit_of_container(cgroup)
    try:
        taken = int((cgroup / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    if limit is None:
        return None
    idle = _counts(cgroup / "memory.stat").get("inactive_file", 0)
    return max(0, limit - max(0, taken - idle))


def _counts(path: Path) -> dict[str, int]:
    """A file of lines such as `anon 4096`; empty where it is not there."""
    try:
        words = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdecimal()}


def _limit_of_container(cgroup: Path) -> int | None:
    try:
        limit = (cgroup / "memory.max").read_text().strip()
    except OSError:
        return None
    return int(limit) if limit.isdecimal() else None


def _field(path: Path, name: str) -> int | None:
    """A field of a file of lines such as `VmHWM:   5120 kB`, in bytes."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(":")
        words = value.split()
        if key == name and words and words[0].isdecimal():
            return int(words[0]) * _KIB
    return None
