"""What operations compute once for a size or a setting, and keep for each device, and there for each stream.

What one CUDA stream made may not be there yet for another one, and memory that it gave back may be written
while another one reads it. So each stream has its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import torch

P = ParamSpec("P")
T = TypeVar("T")

MOST: Final = 256
"""Results that are kept, by latest use."""


def kept(make: Callable[P, T]) -> Callable[P, T]:
    """`make` with its latest results kept; its last argument is the device that the result is on."""

    @functools.lru_cache(maxsize=MOST)
    def made(_stream: int, *args: P.args, **kwargs: P.kwargs) -> T:
        return make(*args, **kwargs)

    @functools.wraps(make)
    def found(*args: P.args, **kwargs: P.kwargs) -> T:
        device = args[-1]
        assert isinstance(device, torch.device)
        stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
        return made(stream, *args, **kwargs)

    return found
