"""A CUDA device in the host's memory: tensors that say they are on it, and a count of what crosses over.

In `fake_device()`, torch's calls for device "cuda" give tensors whose values lie on the host, but that take
part only in what a device's tensors may: they have no numpy form, do not mix with the host's, and are read by
another stream than made them only after it has waited. Each copy between the two is kept, and so is what the
host waited for. It counts for the thread that entered it and those that called `Crossed.join`; the current
stream is each thread's own, as torch has it.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from parity import staging

CUDA = torch.device("cuda", 0)
_numbers = itertools.count(1)


class OnDevice(torch.Tensor):
    """A tensor that says it is on the device; its values are in `held`."""

    __module__ = "torch"  # as a tensor of torch's own
    held: torch.Tensor
    stream: str
    at: int

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> OnDevice:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=torch.device("meta"),
        )
        made.held, made.stream, made.at = held, "", 0
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return CUDA

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")

    def record_stream(self, stream: Any) -> None:  # type: ignore[override]
        assert stream.name, "a stream"

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __repr__(self) -> str:  # type: ignore[override]
        return f"OnDevice({self.held!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func} of the fake device's tensor outside of fake_device")


@dataclass
class Crossed:
    """What went over.

    Attributes:
        to_device: the bytes of each copy to the device, and whether it was from pinned memory and unawaited.
        to_host: the bytes of each copy to the host, single numbers included.
        waits: what the host waited for: an event, a stream or the whole device.
        streams: the stream that each operation on the device ran on, without repeats in a row.
    """

    to_device: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    to_host: list[int] = field(default_factory=list[int])
    waits: list[str] = field(default_factory=list[str])
    streams: list[str] = field(default_factory=list[str])
    join: Callable[[], object] = lambda: None
    """Counts for the calling thread, too, until it ends."""

    def forget(self) -> None:
        """Count from here on."""
        for found in (self.to_device, self.to_host, self.waits, self.streams):
            found.clear()


class _Counting(TorchDispatchMode):
    def __init__(self, crossed: Crossed, place: _Place) -> None:
        super().__init__()
        self.crossed, self.place = crossed, place

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = func._schema.name.removeprefix("aten::")
        if name == "_has_compatible_shallow_copy_type":
            return False
        given = [value for value in pytree.tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        there = [isinstance(value, OnDevice) for value in given]
        asked = kwargs.get("device") or next(
            (value for value in args if isinstance(value, torch.device)), None
        )
        unawaited = bool(kwargs.get("non_blocking"))
        kwargs.pop("pin_memory", None)
        result_there = any(there) if asked is None else torch.device(asked).type == "cuda"

        if asked is not None and len(given) == 1:
            if there[0] != result_there:
                self._crosses(given[0], result_there, unawaited)
        elif name == "copy_" and len(given) == 2:
            result_there = there[0]
            if there[0] != there[1]:
                self._crosses(given[1], there[0], unawaited or bool(len(args) > 2 and args[2]))
        elif name in ("item", "is_nonzero", "_local_scalar_dense"):
            if there[0]:
                self._crosses(given[0], False, False)
            result_there = False
        elif any(there):
            mixed = [value for value, at in zip(given, there, strict=True) if not at and value.ndim]
            if mixed and "index" not in name:
                raise RuntimeError(f"{name}: expected all tensors on one device, found cuda:0 and cpu")
            for value in mixed:  # what indexes a device's tensor may lie on the host, and is sent there
                self._crosses(value, True, False)
        if any(there) or result_there:
            self.place.used(self.crossed, [value for value in given if isinstance(value, OnDevice)])

        def plain(value: Any) -> Any:
            if isinstance(value, torch.device):
                return torch.device("cpu")
            return value.held if isinstance(value, OnDevice) else value

        found = func(*pytree.tree_map(plain, args), **pytree.tree_map(plain, kwargs))
        first = func._schema.arguments[0].alias_info if func._schema.arguments else None
        if first is not None and first.is_write and isinstance(args[0], OnDevice):
            return self.place.made_now(args[0])
        if not result_there:
            return found
        return pytree.tree_map(
            lambda value: self.place.made_now(OnDevice(value)) if isinstance(value, torch.Tensor) else value,
            found,
        )

    def _crosses(self, tensor: torch.Tensor, to_device: bool, unawaited: bool) -> None:
        size = tensor.numel() * tensor.element_size()
        if to_device:
            self.crossed.to_device.append((size, unawaited and self.place.is_pinned(tensor)))
        else:
            self.crossed.to_host.append(size)


class _Place:
    """Streams and pinned memory, as torch.cuda knows them."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._lock = threading.Lock()
        self.clock = 0
        self.waited: dict[tuple[str, str], int] = {}
        self.pinned: list[tuple[int, int]] = []

    @property
    def current(self) -> str:
        """The name of the thread's current stream."""
        return getattr(self._own, "current", "default")

    @current.setter
    def current(self, name: str) -> None:
        self._own.current = name

    def used(self, crossed: Crossed, tensors: list[OnDevice]) -> None:
        """The current stream works with tensors; those that another stream made must have been waited for."""
        if not crossed.streams or crossed.streams[-1] != self.current:
            crossed.streams.append(self.current)
        for tensor in tensors:
            if tensor.stream != self.current:
                seen = self.waited.get((self.current, tensor.stream), 0)
                assert seen >= tensor.at, f"{self.current} reads what {tensor.stream} may not have made yet"

    def made_now(self, tensor: OnDevice) -> OnDevice:
        with self._lock:
            self.clock += 1
            tensor.stream, tensor.at = self.current, self.clock
        return tensor

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        return any(start <= tensor.data_ptr() < start + size for start, size in self.pinned)


@contextlib.contextmanager
def fake_device() -> Generator[Crossed]:
    """A device is there, and what crosses over is counted."""
    crossed, place = Crossed(), _Place()
    crossed.join = lambda: _Counting(crossed, place).__enter__()
    staging._here.__dict__.clear()

    class Stream:
        def __init__(self, device: Any = None, name: str = "") -> None:
            self.name = name or f"stream {next(_numbers)}"
            self.cuda_stream = hash(self.name)

        def synchronize(self) -> None:
            crossed.waits.append(self.name)

        def wait_event(self, event: Event) -> None:
            place.waited[self.name, event.stream] = event.at

        def wait_stream(self, other: Stream) -> None:
            place.waited[self.name, other.name] = place.clock

    class Event:
        stream, at = "", 0

        def record(self, stream: Stream) -> None:
            self.stream, self.at = stream.name, place.clock

        def synchronize(self) -> None:
            assert self.stream, "an event that was recorded"
            crossed.waits.append("event")

    @contextlib.contextmanager
    def on_stream(stream: Any) -> Generator[None]:
        before, place.current = place.current, stream.name
        try:
            yield
        finally:
            place.current = before

    empty, tensor = torch.empty, torch.tensor

    def sent(data: Any, *, device: Any = None, **kwargs: Any) -> torch.Tensor:
        made = tensor(data, **kwargs)
        return made if device is None else made.to(device)

    def pinning(*args: Any, **kwargs: Any) -> torch.Tensor:
        pin = kwargs.pop("pin_memory", False)
        made = empty(*args, **kwargs)
        if pin:
            place.pinned.append((made.data_ptr(), made.numel() * made.element_size()))
        return made

    with pytest.MonkeyPatch.context() as patch:
        cuda = torch.cuda
        patch.setattr(cuda, "_lazy_init", lambda: None)
        patch.setattr(cuda, "is_available", lambda: True)
        patch.setattr(cuda, "device_count", lambda: 1)
        patch.setattr(cuda, "current_device", lambda: 0)
        patch.setattr(cuda, "Stream", Stream)
        patch.setattr(cuda, "Event", Event)
        patch.setattr(cuda, "stream", on_stream)
        patch.setattr(cuda, "current_stream", lambda device=None: Stream(name=place.current))
        patch.setattr(cuda, "synchronize", lambda device=None: crossed.waits.append("device"))
        patch.setattr(cuda, "empty_cache", lambda: None)
        patch.setattr(torch, "empty", pinning)
        patch.setattr(torch, "tensor", sent)
        try:
            with _Counting(crossed, place):
                yield crossed
        finally:
            staging._here.__dict__.clear()
