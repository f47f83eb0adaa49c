"""What to do where a device's memory does not hold a batch: torch says so, and fewer rows are tried at once.

Python's own MemoryError is not meant: one row may be at fault for it, and isolation finds that row.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any, cast

from parity.profile import Profile


def is_out_of_memory(exc: BaseException) -> bool:
    """Whether torch says that a device's memory ran out; torch is not imported."""
    kind = getattr(cast("Any", sys.modules.get("torch")), "OutOfMemoryError", None)
    return kind is not None and isinstance(exc, kind)


def let_go(exc: BaseException) -> None:
    """Give back what the stage held whose memory ran out: the frames of its exception have the tensors."""
    traceback.clear_frames(exc.__traceback__)
    exc.with_traceback(None)
    torch = cast("Any", sys.modules["torch"])
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def fewer_rows(profile: Profile, rows: int) -> int | None:
    """How many rows to try at once where so many were too many; None where nothing smaller can be tried.

    Half of them, or as many as the next smaller bucket holds: a shape that the profile does not name is none
    that its answers may come from.
    """
    bucket = profile.bucket_for(rows)
    if bucket is None:
        return -(-rows // 2) if rows > 1 else None
    return max((size for size in profile.buckets if size < bucket), default=None)


def told(profile: Profile, stage: str, tried: str, why: str) -> str:
    """What ran out, when, and what to do about it."""
    remedy = "give the profile a smaller bucket" if profile.buckets else "give the profile buckets = [N]"
    where = f"{stage} ran out of memory on {profile.device} {tried}"
    return f"{where}; {remedy}, or free memory on the device: {why}"
