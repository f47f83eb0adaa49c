"""CV-CUDA's paths: the contract of the operations through them, their calls, and why they are off."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parity import vision
from parity.vision import Images, Plan, cvcuda, fastpaths, step
from parity.vision.fastpaths import definitions_only
from parity.vision.plans import Step
from tests.vision import fake_cvcuda, test_operations
from tests.vision.fake_cvcuda import FakeCvcuda, RectI
from tests.vision.pictures import images, noise, ragged, sides
from tests.vision.test_operations import OPERATIONS

PATHS = {
    *("crop", "flip", "gaussian_blur", "pad", "pad_constant", "resize", "resize_antialiased", "rgb_to_gray"),
    *("resize_cropped", "swap_channels"),
}

# The contract of the operations, test by test, under this module's fixture.
for _name, _test in vars(test_operations).items():
    if _name.startswith("test_") and "gpu" not in _name and "large" not in _name:
        globals()[_name] = _test


@pytest.fixture(scope="module", autouse=True)
def fake() -> Iterator[FakeCvcuda]:
    """All pictures are taken to be on a device, and CV-CUDA is the fake."""
    found = FakeCvcuda()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fastpaths, "_place", lambda _: "device")
        patch.setattr(fastpaths, "_device", lambda: torch.device("cpu"))
        patch.setattr(fastpaths, "_settled", {})
        patch.setattr(cvcuda, "library", lambda: found)
        patch.setattr(cvcuda, "_stream", lambda _: 0x7F00)
        yield found


def test_all_paths_pass_their_self_tests_and_are_used(fake: FakeCvcuda) -> None:
    found = {backend.operation: backend for backend in vision.backends() if backend.place == "device"}
    assert set(found) == PATHS
    for backend in found.values():
        assert (backend.library, backend.used) == ("CV-CUDA", True), backend
    assert set(fake.limits) == {cvcuda.CACHE_BYTES}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("linear", {"tvresize_into"}),
        ("linear plain", {"tvresize_into"}),
        ("letterbox", {"tvresize_into", "copymakeborder_into"}),
        ("center_crop", {"customcrop_into"}),
        ("pad edge", {"copymakeborder_into"}),
        ("flip", {"flip_into"}),
        ("gray", {"cvtcolor_into"}),
        ("bgr", {"channelreorder_into"}),
        ("blur", {"copymakeborder_into", "gaussian_into"}),
        ("nearest", set()),
        ("rotate90", set()),
    ],
)
def test_an_operation_is_cvcudas_and_is_called_once_for_each_size(
    call: str, expected: set[str], fake: FakeCvcuda
) -> None:
    pictures = images(noise(1, 30, 40), noise(2, 20, 25), noise(3, 30, 40))
    vision.backends()
    fake.calls.clear()
    found = OPERATIONS[call](pictures)
    assert set(fake.calls) == expected
    assert len(fake.calls) == 2 * len(expected)
    fake.calls.clear()
    with definitions_only():
        torch_alone = OPERATIONS[call](pictures)
    assert not fake.calls
    for one, other in zip(found, torch_alone, strict=True):
        assert torch.allclose(one.to(torch.float32), other.to(torch.float32), atol=1e-4 * 255)


def test_sides_beyond_float32s_places_are_torchs(fake: FakeCvcuda) -> None:
    long = images(noise(1, 2, cvcuda.LONGEST_SIDE + 1))
    vision.backends()
    fake.calls.clear()
    vision.resize(long, (2, 9), antialias=True)
    vision.resize(images(noise(1, 2, 9)), (2, cvcuda.LONGEST_SIDE + 1), antialias=False)
    assert not fake.calls


IN_ONE = "resize_crop_convert_reformat_into"

PLAIN = Plan(
    step(vision.resize_shortest, 32, antialias=False),
    step(vision.center_crop, (28, 30)),
    step(vision.normalize, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4)),
)


def test_a_plan_resizes_and_crops_in_one_call_for_each_size(fake: FakeCvcuda) -> None:
    pictures = images(noise(1, 90, 120), noise(2, 200, 70), noise(3, 90, 120))
    vision.backends()
    fake.calls.clear()
    found = PLAIN(pictures)
    assert fake.calls == [IN_ONE, IN_ONE]
    assert torch.allclose(found, PLAIN.unfused(pictures), atol=1e-4 / 0.2)
    with definitions_only():
        assert torch.allclose(found, PLAIN.unfused(pictures), atol=1e-4 / 0.2)


@given(ragged(), sides(40), sides(30), sides(30), st.data())
@settings(max_examples=60)
def test_what_is_resized_and_cropped_in_one_is_within_the_tolerance_of_resize(
    arrays: list[np.ndarray], side: int, height: int, width: int, data: st.DataObject
) -> None:
    corner = data.draw(st.integers(-1, side)), data.draw(st.integers(-1, side))
    plan = Plan(
        step(vision.resize_longest, side, antialias=False), step(vision.crop, *corner, (height, width))
    )
    for one, other in zip(plan(images(*arrays)), plan.unfused(images(*arrays)), strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        assert (one - other).abs().max() <= 1e-4 * 255


@pytest.mark.parametrize("source", [333, cvcuda.LONGEST_SIDE_IN_ONE])
@pytest.mark.parametrize("size", [7, 331, cvcuda.LONGEST_SIDE_IN_ONE])
def test_the_longest_sides_that_are_done_in_one_are_within_the_tolerance(source: int, size: int) -> None:
    edges = (np.arange(source * 9) % 2 * 255).astype(np.uint8)  # the steepest there is
    plan = Plan(
        step(vision.resize, (size, size), antialias=False), step(vision.center_crop, (size, max(1, size - 1)))
    )
    for picture in (edges.reshape(source, 9, 1), edges.reshape(9, source, 1)):
        (found,), (expected,) = plan(images(picture)), plan.unfused(images(picture))
        with definitions_only():
            (defined,) = plan.unfused(images(picture))
        assert (found - expected).abs().max() <= 1e-4 * 255
        assert (found - defined).abs().max() <= 1e-4 * 255


OTHERS: dict[str, tuple[Images, Step, Step]] = {
    "floats": (
        vision.to_float(images(noise(1, 20, 30))),
        step(vision.resize, (15, 15), antialias=False),
        step(vision.center_crop, (9, 9)),
    ),
    "four channels": (
        images(noise(1, 20, 30, 4)),
        step(vision.resize, (15, 15), antialias=False),
        step(vision.center_crop, (9, 9)),
    ),
    "cubic": (
        images(noise(1, 20, 30)),
        step(vision.resize, (15, 15), interpolation="cubic", antialias=False),
        step(vision.center_crop, (9, 9)),
    ),
    "nearest": (
        images(noise(1, 20, 30)),
        step(vision.resize, (15, 15), interpolation="nearest", antialias=False),
        step(vision.center_crop, (9, 9)),
    ),
    "antialiased": (
        images(noise(1, 20, 30)),
        step(vision.resize, (15, 15), antialias=True),
        step(vision.center_crop, (9, 9)),
    ),
    "whole numbers": (
        images(noise(1, 20, 30)),
        step(vision.resize, (15, 15), antialias=False, contract="u8_exact"),
        step(vision.center_crop, (9, 9)),
    ),
    "a crop that leaves the picture": (
        images(noise(1, 20, 30)),
        step(vision.resize, (15, 15), antialias=False),
        step(vision.center_crop, (16, 9)),
    ),
    "a long side": (
        images(noise(1, 2, cvcuda.LONGEST_SIDE_IN_ONE + 1)),
        step(vision.resize, (2, 15), antialias=False),
        step(vision.center_crop, (2, 9)),
    ),
    "a long side afterwards": (
        images(noise(1, 2, 30)),
        step(vision.resize, (2, cvcuda.LONGEST_SIDE_IN_ONE + 1), antialias=False),
        step(vision.center_crop, (2, 9)),
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_the_kernel_does_not_mean_is_not_done_in_one(case: str, fake: FakeCvcuda) -> None:
    pictures, first, second = OTHERS[case]
    vision.backends()
    fake.calls.clear()
    (found,) = Plan(first, second)(pictures)
    assert IN_ONE not in fake.calls
    assert torch.equal(found, second(first(pictures))[0])


def rounding(cvcuda: FakeCvcuda, **given: Any) -> Any:
    made = KERNEL(cvcuda, **given)
    made.values[...] = made.values.round()
    return made


def cropping_elsewhere(cvcuda: FakeCvcuda, **given: Any) -> Any:
    left, top = given.pop("cropPos")
    return KERNEL(cvcuda, cropPos=(max(0, left - 1), top), **given)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (rounding, "its self-test was off by 0.5 of 255 levels, more than 0.0255"),
        (cropping_elsewhere, "its self-test was off by .* of 255 levels, more than 0.0255"),
    ],
)
def test_a_kernel_that_means_something_else_is_off_and_its_plan_is_done_step_by_step(
    other: Any, said: str, fake: FakeCvcuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_cvcuda, f"_{IN_ONE}", other)
    monkeypatch.setattr(fastpaths, "_settled", {})
    (backend,) = (one for one in vision.backends() if one.operation == "resize_cropped")
    assert not backend.used
    assert re.match(said, backend.reason)
    fake.calls.clear()
    pictures = images(noise(1, 90, 120))
    assert torch.equal(PLAIN(pictures), PLAIN.unfused(pictures))
    assert set(fake.calls) == {"tvresize_into", "customcrop_into"}


KERNEL = fake_cvcuda._resize_crop_convert_reformat_into


def lent(shape: tuple[int, ...], stream: int = 5, *, dtype: torch.dtype = torch.uint8) -> Any:
    return cvcuda._Lent(torch.zeros(shape, dtype=dtype), stream)


WRONG: dict[str, Any] = {
    "a name that is another release's": lambda m, d, s, t: m.flip_into(d, s, flip_code=1, stream=t),
    "a stream by place": lambda m, d, s, t: m.flip_into(d, s, 1, t),
    "no stream": lambda m, d, s, t: m.flip_into(d, s, 1),
    "another stream": lambda m, d, s, t: m.flip_into(d, s, 1, stream=m.as_stream(6)),
    "arguments in another order": lambda m, d, s, t: m.customcrop_into(d, m.RectI(0, 0, 4, 4), s, stream=t),
    "rows for columns": lambda m, d, s, t: m.customcrop_into(d, s, m.RectI(0, 0, 3, 4), stream=t),
    "a rectangle outside": lambda m, d, s, t: m.customcrop_into(d, s, m.RectI(1, 0, 4, 4), stream=t),
    "margins by place": lambda m, d, s, t: m.copymakeborder_into(
        d, s, m.Border.CONSTANT, [0.0], 0, 0, stream=t
    ),
    "a text for an enum": lambda m, d, s, t: m.tvresize_into(d, s, "LINEAR", True, stream=t),
    "another enum": lambda m, d, s, t: m.tvresize_into(d, s, m.Border.WRAP, True, stream=t),
    "bytes to resize": lambda m, d, s, t: m.tvresize_into(d, s, m.Interp.LINEAR, True, stream=t),
    "one number for two": lambda m, d, s, t: m.gaussian_into(d, s, 3, 1.0, m.Border.REFLECT101, stream=t),
    "another layout": lambda m, d, s, t: m.as_tensor(lent((1, 3, 4, 4)), "NCHW"),
    "floats to the kernel of bytes": lambda m, d, s, t: m.resize_crop_convert_reformat_into(
        m.as_tensor(lent((1, 4, 4, 3), dtype=torch.float32), "NHWC"),
        m.as_tensor(lent((1, 4, 4, 3), dtype=torch.float32), "NHWC"),
        *((4, 4), m.Interp.LINEAR, (0, 0)),
        manip=m.ChannelManip.NO_OP,
        scale=1.0,
        offset=0.0,
        srcCast=False,
        stream=t,
    ),
    "three dimensions": lambda m, d, s, t: m.as_tensor(lent((4, 4, 3)), "NHWC"),
    "stream 0": lambda m, d, s, t: m.as_tensor(with_stream_0(), "NHWC"),
    "what is not there": lambda m, d, s, t: m.resize_shortest(s, 3),
}


def with_stream_0() -> Any:
    found = lent((1, 4, 4, 3))
    found.__cuda_array_interface__["stream"] = 0
    return found


@pytest.mark.parametrize("case", WRONG)
def test_the_fake_refuses_what_cvcuda_would(case: str, fake: FakeCvcuda) -> None:
    target, source = (fake.as_tensor(lent((1, 4, 4, 3)), "NHWC") for _ in range(2))
    with pytest.raises((TypeError, AssertionError, AttributeError)):
        WRONG[case](fake, target, source, fake.as_stream(5))


def test_the_fake_takes_what_it_refuses_once_it_is_right(fake: FakeCvcuda) -> None:
    target, source = (fake.as_tensor(lent((1, 4, 4, 3)), "NHWC") for _ in range(2))
    stream = fake.as_stream(5)
    assert isinstance(fake.RectI(0, 0, 4, 4), RectI)
    fake.flip_into(target, source, 1, stream=stream)
    fake.customcrop_into(target, source, fake.RectI(0, 0, 4, 4), stream=stream)
    assert fake.as_tensor(lent((1, 4, 4, 3), 0), "NHWC").stream == -1


@pytest.mark.parametrize(
    ("version", "error", "said"),
    [
        (None, None, r"CV-CUDA is not installed: pip install 'parity\[gpu\]'"),
        ("0.20.1", None, "CV-CUDA 0.20.1 is installed, and its calls may be others than those of 0.19"),
        ("0.18.0", None, "others than those of 0.19"),
        (
            "0.19.0",
            ImportError("libcuda.so.1: cannot open shared object file"),
            r"CV-CUDA 0.19.0 cannot be imported: libcuda.so.1: cannot .* \(the NVIDIA driver brings it\)",
        ),
    ],
)
def test_it_says_why_it_is_off(
    version: str | None, error: Exception | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def installed(name: str) -> str:
        if version is None or name != "cvcuda-cu12":
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    def imported(name: str) -> Any:
        assert name == "cvcuda"
        raise error or AssertionError("it must not be imported")

    monkeypatch.setattr(importlib.metadata, "version", installed)
    monkeypatch.setattr(importlib, "import_module", imported)
    with pytest.raises(ImportError, match=said):
        LIBRARY()


LIBRARY = cvcuda.library
