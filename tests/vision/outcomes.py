"""What each operation gives on fixed pictures, short enough to be kept beside the version of its meaning.

Whole numbers are kept as a digest of their bytes; floats as weighted means, which other processors and fast
paths move by far less than the tolerance, and another meaning by more.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from parity import vision
from parity.vision import Images
from parity.vision.fastpaths import definitions_only
from tests.vision.calls import every_call, function, on_pictures
from tests.vision.pictures import images, photo

RECORDED: Final = Path(__file__).with_name("outcomes.json")
TOLERANCE: Final = 2e-5
"""How far a weighted mean may be off, as a share of the largest value."""

_MEANS, _SHIFT = 6, 7919


def outcome(name: str) -> list[Any]:
    """What the definition of an operation gives, for each of its calls and pictures, as JSON-ready data."""
    with definitions_only():
        return [
            _told(function(name)(**picture, **arguments))
            for arguments in every_call(name)
            for picture in _pictures(name, arguments)
        ]


def agrees(found: Any, recorded: Any) -> bool:
    """Whether an outcome is what was recorded."""
    if isinstance(recorded, Mapping) and isinstance(found, Mapping):
        if "means" not in recorded or "means" not in found:
            return dict(found) == dict(recorded)
        allowed = TOLERANCE * max(1e-30, *(abs(value) for value in recorded["range"]))
        means = np.subtract(found["means"] + found["range"], recorded["means"] + recorded["range"])
        return found["shape"] == recorded["shape"] and bool((np.abs(means) <= allowed).all())
    if isinstance(recorded, list) and isinstance(found, list):
        return len(found) == len(recorded) and all(map(agrees, found, recorded))
    return found == recorded


def _pictures(name: str, arguments: Mapping[str, Any]) -> list[dict[str, Images]]:
    if name not in on_pictures():
        return [{}]
    if name == "nv12_to_rgb":
        return [{"images": images(pattern(21, 30, 1))}, {"images": images(pattern(60, 22, 1))}]
    batches = [images(pattern(20, 31, 3)), images(photo(33, 24))]
    if name == "drop_alpha":
        return [{"images": images(pattern(20, 31, 4))}]
    if name == "hsv_to_rgb" and arguments["contract"] == "float":
        batches = [vision.to_float(batch) for batch in batches]
    return [{"images": batch} for batch in batches]


def pattern(height: int, width: int, channels: int) -> np.ndarray:
    """Levels without order, by whole numbers alone, so that they are the same for ever."""
    place = np.arange(height * width * channels, dtype=np.uint64)
    mixed = (place * np.uint64(2654435761) + np.uint64(12345)) & np.uint64(0xFFFFFFFF)
    mixed = ((mixed ^ (mixed >> np.uint64(15))) * np.uint64(2246822519)) & np.uint64(0xFFFFFFFF)
    return (
        ((mixed ^ (mixed >> np.uint64(13))) & np.uint64(255))
        .astype(np.uint8)
        .reshape(height, width, channels)
    )


def _told(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _of_floats(value) if value.is_floating_point() else _of_whole_numbers(value)
    if isinstance(value, bytes):
        return _of_whole_numbers(vision.decode([value])[0])
    if dataclasses.is_dataclass(value):
        return [_told(getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, Images):
        return [_told(image) for image in value]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_told(item) for item in value]
    return value


def _of_whole_numbers(values: torch.Tensor) -> dict[str, Any]:
    array = np.ascontiguousarray(values.numpy())
    return {"shape": list(array.shape), "sha256": hashlib.sha256(array.tobytes()).hexdigest()[:32]}


def _of_floats(values: torch.Tensor) -> dict[str, Any]:
    flat = values.to(torch.float64).numpy().ravel()
    levels = pattern(1, flat.size + _MEANS * _SHIFT, 1).ravel() / 127.5 - 1
    weights = [levels[which * _SHIFT :][: flat.size] for which in range(_MEANS)]
    return {
        "shape": list(values.shape),
        "range": [float(f"{bound:.7g}") for bound in (flat.min(), flat.max())] if flat.size else [0.0, 0.0],
        "means": [float(f"{(flat * weight).mean():.7g}") for weight in weights] if flat.size else [],
    }
