"""Plans: operations one after another, said once, so that what belongs together is computed together.

A plan gives what its operations give one by one; `unfused` runs them so, for comparison. What is fused today:
an antialiased resize of which a crop keeps a part computes that part alone, to the same bits; and on a device
CV-CUDA resizes and crops uint8 pictures in one without antialias, within the tolerance of `resize`.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, cast, get_type_hints

import numpy as np
import torch

from parity.errors import ConfigError
from parity.vision.arguments import MAX_PIXELS, kind, pictures_of
from parity.vision.geometry import middle
from parity.vision.images import Images
from parity.vision.meanings import VERSIONS, note_plan, note_use, unnoted
from parity.vision.resampling import resized_size, window_at_once

P = ParamSpec("P")

_RESIZES = ("resize", "resize_shortest", "resize_longest")
_CROPS = ("crop", "center_crop")


@dataclass(frozen=True)
class Step:
    """One operation of a plan, as `step` makes it.

    Attributes:
        operation: its name.
        arguments: all that it is called with beside the pictures, defaults too.
        run: the operation itself.
    """

    operation: str
    arguments: Mapping[str, Any]
    run: Callable[..., Any]

    def __call__(self, images: Images) -> Any:
        """What the operation gives."""
        return self.run(images, **self.arguments)


def step(operation: Callable[Concatenate[Images, P], object], /, *args: P.args, **kwargs: P.kwargs) -> Step:
    """An operation of `parity.vision` with its arguments, for a plan.

    Raises:
        ConfigError: it is no operation on pictures, or the arguments are none of its.
    """
    name = getattr(operation, "__name__", "")
    if name not in VERSIONS or not operation.__module__.startswith("parity.vision."):
        raise ConfigError(f"step takes an operation of parity.vision, not {kind(operation)}")
    signature = inspect.signature(operation)
    if next(iter(signature.parameters)) != "images":
        raise ConfigError(f"step takes an operation on pictures, {name} is none")
    try:
        bound = signature.bind(None, *args, **kwargs)
    except TypeError as exc:
        raise ConfigError(f"{name}: {exc}") from None
    bound.apply_defaults()
    arguments = copy.deepcopy({key: value for key, value in bound.arguments.items() if key != "images"})
    return Step(name, arguments, operation)


class Plan:
    """Operations that pictures go through, one after another.

        PREPARE = vision.Plan(
            vision.step(vision.resize_shortest, 256, antialias=True),
            vision.step(vision.center_crop, (224, 224)),
            vision.step(vision.normalize, mean=MEAN, std=STD),
        )

    Arguments that fit no picture are refused when the plan is made. Whether the others fit the pictures'
    size, channels and dtype is known when these come. The fingerprint of a process that used a plan, so of a
    golden, has its digest under `plan.NAME`; of several plans of one name, all.

    Args:
        steps: the operations, made by `step`; all but the last give pictures.
        name: what the plan is called in fingerprints; no operation's name.

    Raises:
        ConfigError: there is no step, one before the last gives no pictures, an argument is refused, or the
            name is empty or an operation's.
    """

    __slots__ = ("digest", "name", "steps")

    def __init__(self, *steps: Step, name: str = "plan") -> None:
        self.steps = steps
        self.name = _name(name)
        if not steps:
            raise ConfigError("Plan takes one step or more, made by vision.step")
        for place, one in enumerate(steps):
            if not isinstance(cast("object", one), Step):
                raise ConfigError(f"Plan takes steps, not {kind(one)}; vision.step makes them")
            _check(one)
            if get_type_hints(one.run)["return"] is not Images and place < len(steps) - 1:
                raise ConfigError(f"Plan: {one.operation} gives no pictures for {steps[place + 1].operation}")
        self.digest = _digest(steps)

    def __call__(self, images: Images) -> Any:
        """What the last operation gives for pictures that went through all; each picture by itself."""
        images = pictures_of("Plan", images)
        note_plan(self.name, self.digest)
        found, at = images, 0
        while at < len(self.steps):
            together = _cropped_resize(self.steps[at : at + 2], found)
            found = self.steps[at](found) if together is None else together
            at += 1 if together is None else 2
        return found

    def unfused(self, images: Images) -> Any:
        """The same by one operation after another, nothing fused."""
        found = pictures_of("Plan", images)
        for one in self.steps:
            found = one(found)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Plan({' > '.join(one.operation for one in self.steps)}, {self.digest})"


def _name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise ConfigError(f"Plan: name is {kind(name)}; expected a text that is not empty")
    if name in VERSIONS:
        raise ConfigError(f"Plan: name {name!r} is an operation's; expected another one")
    return name


def _check(one: Step) -> None:
    """Refuse arguments that no pictures fit; raises the operation's ConfigError."""
    with unnoted():
        one(Images([]))


def _digest(steps: tuple[Step, ...]) -> str:
    """16 hex digits of the operations, the versions of their meanings, and their arguments."""
    told = [[one.operation, VERSIONS[one.operation], dict(one.arguments)] for one in steps]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=_plain).encode()).hexdigest()[:16]


def _plain(value: object) -> Any:
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return cast("Any", value).tolist()
    raise ConfigError(f"Plan: an argument is {kind(value)}; expected numbers, names, lists or arrays")


def _cropped_resize(steps: tuple[Step, ...], images: Images) -> Images | None:
    """A resize and a crop within it, in one; None where the two are something else, or no faster in one."""
    if len(steps) < 2 or steps[0].operation not in _RESIZES or steps[1].operation not in _CROPS:
        return None
    first, second = (one.arguments for one in steps)
    if first.get("contract", "float") != "float" or not len(images):
        return None
    side = first.get("side", first.get("size"))
    height, width = second["size"]
    scaled: dict[tuple[int, int], tuple[int, int]] = {}
    corners: dict[tuple[int, int], tuple[int, int]] = {}
    for size in set(images.sizes):
        rows, columns = scaled[size] = resized_size(steps[0].operation, size, side)
        centred = middle((rows, columns), (height, width))
        top, left = corners[size] = second.get("top", centred[0]), second.get("left", centred[1])
        inside = top >= 0 and left >= 0 and top + height <= rows and left + width <= columns
        if not inside or rows * columns > MAX_PIXELS:  # the operations by themselves say what is wrong
            return None
    longest = max(max(*before, *after) for before, after in scaled.items())
    compute = window_at_once(images[0].unsqueeze(0), first["interpolation"], first["antialias"], longest)
    if compute is None:
        return None
    for one in steps:
        note_use(one.operation)
    return images.map(
        lambda pixels: compute(
            pixels,
            scaled[pixels.shape[1], pixels.shape[2]],
            corners[pixels.shape[1], pixels.shape[2]],
            (height, width),
        )
    )
