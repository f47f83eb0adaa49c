"""Checks of what the operations are called with: nothing is converted, and what is refused is said by name.

Each check takes the operation's name and the argument's, gives the value back in one type, and raises a
ConfigError that tells what came and what was expected. A bool is no number, and 2.0 is no whole number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, TypeVar, cast

import numpy as np
import torch

from parity.errors import ConfigError, did_you_mean, shown
from parity.vision import meanings
from parity.vision.images import Images

Name = TypeVar("Name", bound=str)

_FLOAT32 = torch.finfo(torch.float32)

MAX_PIXELS: Final = 100_000_000
"""A picture of more is not decoded, and not made: a small file may ask for a huge one."""


def pictures_of(
    operation: str,
    value: object,
    *,
    channels: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    instead: str = "",
) -> Images:
    """The pictures that an operation works on; it is noted that the operation was used.

    Args:
        operation: the operation's name.
        value: what it was given.
        channels: how many channels they may have; any number when not given.
        dtype: what they have to be of; uint8 or float32 when not given.
        instead: what to do about pictures of other channels or of another dtype.

    Raises:
        ConfigError: the value is no Images, or they have other channels or another dtype.
    """
    meanings.note_use(operation)
    if not isinstance(value, Images):
        raise ConfigError(
            f"{operation} takes Images, not {kind(value)}; vision.decode gives them, and vision.Images makes "
            "them of (height, width, channels) tensors"
        )
    hint = f"; {instead}" if instead else ""
    if len(value) and channels is not None and value.channels not in channels:
        counts = " or ".join(str(count) for count in channels)
        noun = "channel" if counts == "1" else "channels"
        raise ConfigError(f"{operation}: images of {value.channels} channels; expected {counts} {noun}{hint}")
    if len(value) and dtype is not None and value.dtype != dtype:
        raise ConfigError(f"{operation}: images of {value.dtype}; expected {dtype}{hint}")
    return value


def whole(
    operation: str, name: str, value: object, *, least: int | None = None, most: int | None = None
) -> int:
    """A whole number within bounds, which are included."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ConfigError(f"{operation}: {name} {_came(value)}; expected a whole number")
    found = int(value)
    if (least is not None and found < least) or (most is not None and found > most):
        bounds = f"from {least} to {most}" if most is not None else f"of {least} or more"
        raise ConfigError(f"{operation}: {name} {found}; expected a whole number {bounds}")
    return found


def number(operation: str, name: str, value: object) -> float:
    """A finite number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ConfigError(f"{operation}: {name} {_came(value)}; expected a number")
    found = float(cast("float", value))
    if not math.isfinite(found):
        raise ConfigError(f"{operation}: {name} {found}; expected a finite number")
    return found


def within_float32(operation: str, name: str, value: object) -> float:
    """A number within the range of float32; not rounded."""
    found = number(operation, name, value)
    if abs(found) > _FLOAT32.max:
        raise ConfigError(
            f"{operation}: {name} {found} is beyond float32; expected a number up to {_FLOAT32.max}"
        )
    return found


def positive(operation: str, name: str, value: object) -> float:
    """A number above 0 within the range of float32, subnormal ones apart; not rounded."""
    found = within_float32(operation, name, value)
    if found <= 0:
        raise ConfigError(f"{operation}: {name} {value} is not positive; expected a number above 0")
    if found < _FLOAT32.tiny:
        raise ConfigError(f"{operation}: {name} {found}; expected a number of {_FLOAT32.tiny} or more")
    return found


def numbers(operation: str, name: str, value: object) -> list[float]:
    """Finite numbers."""
    return [number(operation, name, item) for item in _items(operation, name, value, "numbers")]


def wholes(operation: str, name: str, value: object) -> list[int]:
    """Whole numbers."""
    return [whole(operation, name, item) for item in _items(operation, name, value, "whole numbers")]


def size_of(operation: str, name: str, value: object) -> tuple[int, int]:
    """Height and width in pixels, both of 1 or more."""
    expected = "(height, width) in whole pixels, each of 1 or more"
    sides: list[Any] = list(cast("Sequence[Any]", value)) if isinstance(value, tuple | list) else []
    if len(sides) != 2 or any(
        isinstance(side, bool) or not isinstance(side, int | np.integer) for side in sides
    ):
        raise ConfigError(f"{operation}: {name} {_came(value)}; expected {expected}")
    height, width = (int(side) for side in sides)
    if height < 1 or width < 1:
        raise ConfigError(f"{operation}: {name} {(height, width)} is not positive; expected {expected}")
    if height * width > MAX_PIXELS:
        raise ConfigError(f"{operation}: {name} {(height, width)} is of more than {MAX_PIXELS:,} pixels")
    return height, width


def files_of(operation: str, value: object) -> list[bytes | None]:
    """The bytes of files, None for one that is missing."""
    if isinstance(value, bytes | str) or not isinstance(value, Sequence):
        raise ConfigError(f"{operation} takes a column or a list of the bytes of files, not {kind(value)}")
    found: list[bytes | None] = []
    for file in cast("Sequence[object]", value):
        if file is not None and not isinstance(file, bytes | bytearray | memoryview):
            raise ConfigError(f"{operation} takes the bytes of files; among them is {kind(file)}")
        found.append(cast("bytes | None", file))
    return found


def boxes_of(operation: str, value: object) -> torch.Tensor:
    """(..., 4) float boxes, each as left, top, right, bottom."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.shape[-1:] != (4,):
        raise ConfigError(f"{operation} takes boxes (..., 4) as a float tensor, not {kind(value)}")
    return value


def flag(operation: str, name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ConfigError(f"{operation}: {name} {_came(value)}; expected True or False")
    return bool(value)


def choice(operation: str, name: str, value: object, choices: Sequence[Name]) -> Name:
    """One of a few names."""
    for known in choices:
        if isinstance(value, str) and value == known:
            return known
    expected = " or ".join(repr(known) for known in choices)
    hint = did_you_mean(value, choices) if isinstance(value, str) else ""
    near = f"; {hint}" if hint.startswith("did you mean") else ""
    raise ConfigError(f"{operation}: no {name} {shown(value)}; expected {expected}{near}")


def odd(operation: str, name: str, value: object) -> int:
    """A side of a window, whose middle is a pixel."""
    found = whole(operation, name, value, least=1)
    if found % 2 == 0:
        raise ConfigError(f"{operation}: {name} {found} is not an odd number of pixels")
    return found


def kind(value: object) -> str:
    """What a value is, for an error: its type, and the shape and dtype of an array."""
    if isinstance(value, torch.Tensor | np.ndarray):
        array = cast("torch.Tensor", value)
        library = "torch.Tensor" if isinstance(value, torch.Tensor) else "numpy.ndarray"
        return f"a {library} of shape {tuple(array.shape)} and dtype {array.dtype}"
    return f"{shown(value)} of type {type(value).__name__}"


def _items(operation: str, name: str, value: object, what: str) -> list[object]:
    if isinstance(value, torch.Tensor | np.ndarray) and value.ndim == 1:
        return list(cast("Any", value).tolist())
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(cast("Sequence[object]", value))
    raise ConfigError(f"{operation}: {name} {_came(value)}; expected {what}")


def _came(value: object) -> str:
    return f"is {kind(value)}"
