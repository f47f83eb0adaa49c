"""How a batch's arrays go to a CUDA device: by pinned memory, in one copy that the host does not wait for.

Each thread has a ring of pinned buffers for each device. The copy runs on a stream of its own, so that it
overlaps with what the device computes, and the stream that torch works on waits for it on the device. A
buffer is written again only when its copy is done. Nothing here has run on a GPU yet.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import torch

ALIGNMENT_BYTES: Final = 256
"""Where arrays begin in a buffer: as in memory of their own."""

PINNED_MOST_BYTES: Final = 256 << 20
"""What is larger goes by ordinary memory: pinned memory is taken from the whole machine."""

_SLOTS = 2
_here = threading.local()


def send(arrays: Sequence[np.ndarray[Any, Any]], device: torch.device | str) -> list[torch.Tensor]:
    """The arrays as tensors on a CUDA device, in one copy; the tensors share one piece of its memory.

    Args:
        arrays: arrays of dtypes that torch has, in native byte order, of any shapes.
        device: "cuda" or "cuda:N"; "cuda" is torch's current device.
    """
    import torch

    named = torch.device(device)
    target = torch.device("cuda", torch.cuda.current_device()) if str(named) == "cuda" else named
    rings: dict[torch.device, _Ring] = _here.__dict__.setdefault("rings", {})
    if target not in rings:
        rings[target] = _Ring(target)
    return rings[target].send(arrays)


class _Slot:
    """A pinned buffer, and the event after the copy out of it."""

    def __init__(self) -> None:
        self.memory: Any = None
        self.copied: Any = None


class _Ring:
    def __init__(self, device: torch.device) -> None:
        import torch

        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._slots = [_Slot() for _ in range(_SLOTS)]
        self._turn = 0

    def send(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[torch.Tensor]:
        import torch

        starts: list[int] = []
        size = 0
        for array in arrays:
            starts.append(size)
            size += -(-array.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        slot = self._slots[self._turn]
        self._turn = (self._turn + 1) % _SLOTS
        memory = _free(slot, size) if size <= PINNED_MOST_BYTES else torch.empty(size, dtype=torch.uint8)
        held = memory.numpy()
        for start, array in zip(starts, arrays, strict=True):
            np.copyto(np.ndarray(array.shape, array.dtype, held, start), array)
        reader = torch.cuda.current_stream(self._device)
        with torch.cuda.stream(self._stream):
            there = torch.empty(size, dtype=torch.uint8, device=self._device)
            there.copy_(memory[:size], non_blocking=True)
            copied = torch.cuda.Event()
            copied.record(self._stream)
        reader.wait_event(copied)
        # Its memory is the copy's stream's: not to be given away while it is read.
        there.record_stream(reader)
        slot.copied = copied
        return [
            there[start : start + array.nbytes].view(getattr(torch, array.dtype.name)).reshape(array.shape)
            for start, array in zip(starts, arrays, strict=True)
        ]


def _free(slot: _Slot, size: int) -> torch.Tensor:
    """The slot's buffer, of at least so many bytes, once the copy out of it is done."""
    import torch

    if slot.copied is not None:
        slot.copied.synchronize()
        slot.copied = None
    if slot.memory is None or slot.memory.numel() < size:
        slot.memory = torch.empty(1 << max(size - 1, 1).bit_length(), dtype=torch.uint8, pin_memory=True)
    return slot.memory
