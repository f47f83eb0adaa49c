"""Which library does an operation: torch, whose code is the definition, or a faster one that agrees.

A fast path earns its use: before an operation takes it for the first time in a process, it is held against
the definition on a dozen small pictures, in well under a second. Where the library is missing, where its
answers are out of tolerance or where it fails, torch does the operation, and `backends()` tells why.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from parity.errors import ConfigError

Place = Literal["host", "device"]
Try = Callable[[Callable[..., Any]], torch.Tensor]
"""Calls an implementation with one set of arguments."""

T0, T1 = 0.0, 1e-4
"""Tolerance classes: the same bits, and a ten-thousandth of the range."""


@dataclass(frozen=True)
class FastPath:
    """How a library does one operation.

    Attributes:
        operation: the operation, as in docs/reference/vision.md.
        library: the library's name.
        place: "host" for pixels in the host's memory, "device" for those on a GPU.
        load: gives the implementation; raises ImportError with the reason where the library cannot be used.
        definition: torch's implementation, with the same arguments.
        tries: what the self-test calls both with.
        tolerance: the largest difference, as a share of the range 0 to 255.
    """

    operation: str
    library: str
    place: Place
    load: Callable[[], Callable[..., Any]]
    definition: Callable[..., Any]
    tries: Callable[[], Sequence[Try]]
    tolerance: float


@dataclass(frozen=True)
class Backend:
    """What does an operation here.

    Attributes:
        operation: the operation's name.
        place: "host" or "device".
        library: the fast path's library.
        used: whether it is used; torch does the operation otherwise.
        reason: why not, or how far its answers were from torch's in the self-test, in levels of 255.
        tolerance: how far they may be, in levels of 255.
    """

    operation: str
    place: Place
    library: str
    used: bool
    reason: str
    tolerance: float


_paths: dict[tuple[str, Place], FastPath] = {}
_settled: dict[tuple[str, Place], tuple[Callable[..., Any] | None, Backend]] = {}
_lock = threading.RLock()
_torch_only: contextvars.ContextVar[bool] = contextvars.ContextVar("torch_only", default=False)


def register(path: FastPath) -> None:
    """Make a fast path known."""
    _paths[path.operation, path.place] = path


@contextlib.contextmanager
def definitions_only() -> Generator[None]:
    """In this context torch does every operation: for comparison."""
    token = _torch_only.set(True)
    try:
        yield
    finally:
        _torch_only.reset(token)


def fast(operation: str, pixels: torch.Tensor) -> Callable[..., Any] | None:
    """The fast implementation for pixels where they are; None where torch is to do it."""
    if _torch_only.get():
        return None
    key = (operation, _place(pixels))
    settled = _settled.get(key)
    if settled is None:
        if key not in _paths:
            return None
        settled = _settle(key)
    return settled[0]


def backends() -> list[Backend]:
    """What does each operation that has a fast path, and why; the self-tests that are due are run.

    Fast paths on a device are tried on that device, and are off where there is none.
    """
    return [_settle(key)[1] for key in sorted(_paths)]


def settled() -> list[Backend]:
    """What `backends` says of the operations that have been tried in this process."""
    with _lock:
        return [backend for _, backend in _settled.values()]


def _place(pixels: torch.Tensor) -> Place:
    return "host" if pixels.device.type == "cpu" else "device"


def _device() -> torch.device | None:
    """Where the paths of devices are tried; None where there is no device."""
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else None


def _settle(key: tuple[str, Place]) -> tuple[Callable[..., Any] | None, Backend]:
    with _lock:
        if key not in _settled:
            path = _paths[key]
            run, reason = _tested(path)
            backend = Backend(*key, path.library, run is not None, reason, path.tolerance * 255)
            _settled[key] = (run, backend)
        return _settled[key]


def _tested(path: FastPath) -> tuple[Callable[..., Any] | None, str]:
    device = torch.device("cpu") if path.place == "host" else _device()
    if device is None:
        return None, "no CUDA device"
    try:
        run = path.load()
    except ImportError as exc:
        return None, str(exc)
    try:
        worst = _worst(path, run, device)
    except Exception as exc:  # noqa: BLE001 - a library that fails in any way is not used
        return None, f"its self-test raised {type(exc).__name__}: {exc}"
    if not worst <= path.tolerance * 255:
        return (
            None,
            f"its self-test was off by {worst:.3g} of 255 levels, more than {path.tolerance * 255:.3g}",
        )
    return run, f"within {worst:.2g} of 255 levels" if worst else "the same bits"


def _worst(path: FastPath, run: Callable[..., Any], device: torch.device) -> float:
    def there(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: function(*(_moved(arg, device) for arg in args))

    worst = 0.0
    with definitions_only():
        for call in path.tries():
            expected, found = call(there(path.definition)), call(there(run))
            if found.shape != expected.shape or found.dtype != expected.dtype:
                raise ConfigError(
                    f"{tuple(found.shape)} of {found.dtype} where torch gives {tuple(expected.shape)} of "
                    f"{expected.dtype}"
                )
            if expected.numel():
                apart = (found.to(torch.float64) - expected.to(torch.float64)).abs().max().item()
                worst = max(worst, apart) if apart == apart else float("inf")
    return worst


def _moved(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def pictures(channels: Sequence[int] = (1, 3, 4)) -> Iterator[torch.Tensor]:
    """(n, H, W, C) uint8 pictures for self-tests: noise, which is the worst case, of odd and long sizes."""
    generator = torch.Generator().manual_seed(7)
    for height, width in ((23, 31), (16, 64), (1, 1), (1, 40), (40, 1), (61, 17)):
        for count in channels:
            yield torch.randint(0, 256, (2, height, width, count), dtype=torch.uint8, generator=generator)
