"""CV-CUDA's paths: the contract of the operations through them, their calls, and why they are off."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from parity import vision
from parity.vision import cvcuda, fastpaths
from parity.vision.fastpaths import definitions_only
from tests.vision import test_operations
from tests.vision.fake_cvcuda import FakeCvcuda, RectI
from tests.vision.pictures import images, noise
from tests.vision.test_operations import OPERATIONS

PATHS = {
    *("crop", "flip", "gaussian_blur", "pad", "pad_constant", "resize", "resize_antialiased", "rgb_to_gray"),
    "swap_channels",
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
