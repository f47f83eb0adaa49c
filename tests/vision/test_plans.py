"""Plans give what their operations give one by one, and tell when they changed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parity import Profile, numerics, vision
from parity.errors import ConfigError
from parity.vision import Images, Plan, meanings, plans, resampling, step
from tests.vision.calls import CALLS, function, on_pictures
from tests.vision.pictures import images, noise, ragged, sides
from tests.vision.test_arguments import refused

CHECKED = [name for name in on_pictures() if "boxes" not in CALLS[name]]
"""Operations for plans: boxes are those of certain pictures."""

PICTURES: dict[str, Any] = {
    "shortest": lambda n: step(vision.resize_shortest, n, antialias=True),
    "longest": lambda n: step(vision.resize_longest, n, interpolation="cubic", antialias=True),
    "resize": lambda n: step(vision.resize, (n, n + 3), antialias=True),
    "cubic": lambda n: step(vision.resize, (n + 2, n), interpolation="cubic", antialias=True),
    "plain": lambda n: step(vision.resize, (n, n), antialias=False),
    "nearest": lambda n: step(vision.resize, (n, n), interpolation="nearest", antialias=False),
    "center": lambda n: step(vision.center_crop, (n, max(1, n - 2))),
    "corner": lambda n: step(vision.crop, n % 3 - 1, n % 2, (n, n)),
    "u8": lambda _: step(vision.to_u8),
    "float": lambda _: step(vision.to_float),
    "flip": lambda _: step(vision.flip, horizontal=True),
    "pad": lambda n: step(vision.pad, n % 4, 1, 2, 0, mode="edge"),
    "warp": lambda n: step(vision.rotate, 7.0 * n),
}


@given(ragged(), st.lists(st.tuples(st.sampled_from(list(PICTURES)), sides(12)), min_size=1, max_size=5))
@settings(max_examples=40)
def test_a_plan_has_the_bits_of_its_operations_one_by_one(
    arrays: list[np.ndarray], chain: list[tuple[str, int]]
) -> None:
    plan = Plan(*(PICTURES[name](number) for name, number in chain))
    found, expected = plan(images(*arrays)), plan.unfused(images(*arrays))
    assert (found.peak, found.dtype, found.sizes) == (expected.peak, expected.dtype, expected.sizes)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@given(ragged(), sides(20), sides(20), sides(20), st.sampled_from(["linear", "cubic"]), st.booleans())
@settings(max_examples=40)
def test_a_crop_of_a_resize_has_its_bits(
    arrays: list[np.ndarray], side: int, height: int, width: int, interpolation: Any, unit: bool
) -> None:
    plan = Plan(
        step(vision.resize_shortest, side, interpolation=interpolation, antialias=True),
        step(vision.center_crop, (height, width)),
    )
    batch = vision.to_float(images(*arrays)) if unit else images(*arrays)
    for one, other in zip(plan(batch), plan.unfused(batch), strict=True):
        assert torch.equal(one, other)
    (alone, *_) = plan(Images([batch[0]], batch.peak))
    assert torch.equal(alone, plan(batch)[0])


@given(st.lists(st.tuples(st.sampled_from(list(PICTURES)), sides(12)), max_size=5), st.sampled_from(CHECKED))
@settings(max_examples=40)
def test_no_pictures_go_through_every_plan(chain: list[tuple[str, int]], last: str) -> None:
    plan = Plan(*(PICTURES[name](number) for name, number in chain), step(function(last), **CALLS[last]))
    found, expected = plan(Images([])), plan.unfused(Images([]))
    assert type(found) is type(expected)
    if isinstance(found, torch.Tensor):
        assert torch.equal(found, expected)
        assert not found.numel()
    elif isinstance(found, Images | list):
        assert len(found) == 0


PRESET = Plan(
    step(vision.resize_shortest, 32, antialias=True),
    step(vision.center_crop, (28, 28)),
    step(vision.normalize, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4)),
)


def test_a_preset_is_fused_and_gives_one_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = images(noise(1, 90, 120), noise(2, 200, 70), noise(3, 90, 120))
    expected = PRESET.unfused(batch)
    fused: list[Any] = []
    windowed = resampling.resized_window

    def noted(*args: Any, **named: Any) -> torch.Tensor:
        fused.append(args[1])
        return windowed(*args, **named)

    monkeypatch.setattr(resampling, "resized_window", noted)
    assert torch.equal(PRESET(batch), expected)
    assert sorted(fused) == [(32, 42), (91, 32)]


def test_equal_plans_have_one_digest_and_others_another() -> None:
    def plan(*, side: int = 8, mean: Any = (0.5,) * 3, crop: int = 5) -> Plan:
        return Plan(
            step(vision.resize_shortest, side, antialias=True),
            step(vision.center_crop, (crop, crop)),
            step(vision.normalize, mean=mean, std=(1, 1, 1)),
        )

    assert plan() == plan(mean=np.full(3, 0.5)) == plan(mean=[0.5] * 3)
    assert len({plan(), plan(side=9), plan(mean=(0.5, 0.5, 0.4)), plan(crop=6)}) == 4
    assert str(plan()).startswith("Plan(resize_shortest > center_crop > normalize, ")
    spelled = Plan(step(vision.resize, size=(4, 5), antialias=True, interpolation="linear", contract="float"))
    assert spelled == Plan(step(vision.resize, (4, 5), antialias=True))


@pytest.mark.slow
def test_a_digest_does_not_depend_on_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from tests.vision.test_plans import PRESET; print(PRESET.digest)"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == PRESET.digest
    monkeypatch.setattr(plans, "VERSIONS", {**meanings.VERSIONS, "center_crop": 2})
    assert Plan(*PRESET.steps) != PRESET


def test_a_fingerprint_tells_the_digest_of_a_plan_that_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanings, "_plans", dict[str, set[str]]())
    plan = Plan(step(vision.to_float), name="prepare")
    assert "plan.prepare" not in numerics.fingerprint(Profile())
    plan(images(noise(1, 4, 4)))
    assert numerics.fingerprint(Profile())["plan.prepare"] == plan.digest
    other = Plan(step(vision.invert), name="prepare")
    other(images(noise(1, 4, 4)))
    both = numerics.fingerprint(Profile())["plan.prepare"]
    assert both.split() == sorted([plan.digest, other.digest])
    assert not numerics.tells_change("plan.prepare", plan.digest, both)


def test_a_plan_that_no_picture_passed_used_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanings, "_used", set[str]())
    monkeypatch.setattr(meanings, "_plans", dict[str, set[str]]())
    for name in CHECKED:
        Plan(step(function(name), **CALLS[name]))
    with pytest.raises(ConfigError):
        Plan(step(vision.center_crop, (0, 3)))
    found = numerics.fingerprint(Profile())
    assert not [name for name in found if name.startswith((numerics.OPERATION, numerics.PLAN))]
    vision.flip(Images([]), horizontal=True)
    assert numerics.fingerprint(Profile())["operation.flip"] == "1"


@pytest.mark.parametrize("name", CHECKED)
def test_arguments_of_every_operation_are_checked_when_a_plan_is_made(name: str) -> None:
    hints = get_type_hints(function(name))
    for parameter in CALLS[name]:
        for value in refused(hints[parameter]):
            with pytest.raises(ConfigError, match=rf"\b{name}\b.*\b{parameter}\b"):
                Plan(step(function(name), **{**CALLS[name], parameter: value}))


def test_what_a_plan_was_made_of_may_change_afterwards() -> None:
    mean = [0.5, 0.5, 0.5]
    plan = Plan(step(vision.normalize, mean=mean, std=(1, 1, 1)))
    batch = images(noise(1, 4, 4))
    before = plan(batch)
    mean[0] = 0.0
    assert torch.equal(plan(batch), before)


untyped: Any = step


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Plan, "takes one step or more"),
        (lambda: Plan(vision.flip), "takes steps, not .* vision.step makes them"),  # pyright: ignore
        (lambda: Plan(step(vision.sharpness), step(vision.to_u8)), "sharpness gives no pictures for to_u8"),
        (lambda: Plan(step(vision.center_crop, (0, 3))), r"center_crop: size \(0, 3\)"),
        (lambda: Plan(step(vision.letterbox, (0, -3), antialias=True)), r"letterbox: size \(0, -3\)"),
        (lambda: Plan(step(vision.normalize, mean=[0] * 3, std=[1, 0, 1])), "normalize: std .*no deviation"),
        (lambda: Plan(step(vision.normalize, mean=[0], std=[1] * 3)), "normalize: 1 means .* and 3 standard"),
        (lambda: Plan(step(vision.normalize, mean=[0] * 2, std=[1] * 2)), "normalize: 2 means .*1, 3 or 4"),
        (lambda: Plan(step(vision.encode_jpeg, quality=0, subsampling="4:4:4")), "encode_jpeg: quality 0"),
        (lambda: Plan(step(vision.to_u8), name="resize"), "name 'resize' is an operation's"),
        (lambda: Plan(step(vision.to_u8), name=""), "name is '' of type str; expected a text"),
        (lambda: Plan(step(vision.to_u8), name=3), "name is 3 of type int"),  # pyright: ignore
        (lambda: untyped(print), "step takes an operation of parity.vision"),
        (lambda: untyped(vision.topk, 3), "step takes an operation on pictures, topk is none"),
        (lambda: untyped(vision.resize, (3, 3)), "resize: missing a required argument: 'antialias'"),
        (lambda: untyped(vision.flip, sideways=True), "flip: .*unexpected keyword argument 'sideways'"),
        (lambda: PRESET(noise(1, 4, 4)), "Plan takes Images"),  # pyright: ignore
    ],
)
def test_what_is_no_plan_is_refused(make: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make()
