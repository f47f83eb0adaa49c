"""Fast paths against the definitions, over sizes and dtypes; and what happens where one cannot be used."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from parity import vision
from parity.doctor import examine
from parity.vision import Images, fastpaths
from parity.vision.fastpaths import T0, T1, FastPath, definitions_only, fast
from tests.vision.pictures import file_of, images, noise, outcome, photo

HOST = [backend for backend in vision.backends() if backend.place == "host"]


def test_all_of_opencvs_paths_are_used_here() -> None:
    assert {backend.operation for backend in HOST} == {
        *("box_sum", "decode", "dilate", "erode", "flip", "gaussian_blur", "laplacian", "median_blur"),
        *(
            "pad",
            "resize",
            "rgb_to_gray",
            "rgb_to_hsv",
            "rotate90",
            "swap_axes",
            "swap_channels",
            "to_planes",
            "warp",
        ),
    }
    for backend in HOST:
        assert backend.used, backend


PIPELINES: dict[str, tuple[float, Any]] = {
    "flip": (T0, lambda x: vision.flip(x, horizontal=True)),
    "turn": (T0, lambda x: vision.rotate90(x, 3)),
    "pad": (T0, lambda x: vision.pad(x, 1, 0, 2, 1, mode="symmetric")),
    "edge": (T0, lambda x: vision.pad(x, 9, 8, 7, 6, mode="edge")),
    "swap": (T0, lambda x: vision.swap_channels(x, (2, 0, 1))),
    "gray": (T0, vision.rgb_to_gray),
    "linear": (T1, lambda x: vision.resize(x, (31, 44), antialias=False)),
    "cubic": (T1, lambda x: vision.resize(x, (5, 90), interpolation="cubic", antialias=False)),
    "antialiased": (T0, lambda x: vision.resize(x, (5, 90), antialias=True)),
    "warp": (T1, lambda x: vision.warp_affine(x, [[0.9, 0.3, -2], [-0.3, 0.9, 5]])),
    "perspective": (
        T1,
        lambda x: vision.warp_perspective(x, [[1, 0.1, 0], [0, 1, 1], [0.01, 0.02, 1]], (30, 44)),
    ),
    "blur": (T1, lambda x: vision.gaussian_blur(vision.pad(x, 4, 4, 4, 4), kernel=5, sigma=1.3)),
}


@pytest.mark.parametrize("name", PIPELINES)
@given(st.integers(2, 70), st.integers(2, 70), st.booleans(), st.booleans())
@settings(max_examples=20)
def test_a_fast_path_gives_what_torch_gives(
    name: str, height: int, width: int, unit: bool, natural: bool
) -> None:
    tolerance, operation = PIPELINES[name]
    picture = images(photo(height, width) if natural else noise(1, height, width))
    picture = vision.to_float(picture) if unit else picture
    found = operation(picture)
    with definitions_only():
        expected = operation(picture)
    assert found.dtype == expected.dtype
    apart = (found[0].to(torch.float64) - expected[0].to(torch.float64)).abs().max().item()
    assert apart <= tolerance * picture.peak


@given(st.integers(1, 70), st.integers(1, 70))
def test_sharpness_has_the_same_bits_with_opencv_and_without(height: int, width: int) -> None:
    picture = images(noise(2, height, width))
    found = vision.sharpness(picture)
    with definitions_only():
        assert torch.equal(vision.sharpness(picture), found)


def a_path(run: Any, error: Exception | None = None) -> FastPath:
    def load() -> Any:
        if error:
            raise error
        return run

    tries = [lambda f: f(torch.zeros(1, 2, 2, 3))]
    return FastPath("double", "Fast", "host", load, lambda x: x * 2, lambda: tries, T1)


def raises(_: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("no such kernel")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (a_path(lambda x: x * 2), "the same bits"),
        (a_path(lambda x: x * 2 + 0.01), "within 0.01 of 255 levels"),
        (a_path(lambda x: x * 2 + 0.1), "its self-test was off by 0.1 of 255 levels, more than"),
        (a_path(lambda x: x * float("nan")), "its self-test was off by inf of 255 levels"),
        (a_path(lambda x: (x * 2)[:, :1]), "(1, 1, 2, 3) of torch.float32 where torch gives (1, 2, 2, 3)"),
        (a_path(lambda x: (x * 2).double()), "of torch.float64 where torch gives"),
        (a_path(raises), "its self-test raised RuntimeError: no such kernel"),
        (a_path(None, ImportError("Fast is not installed")), "Fast is not"),
    ],
)
def test_a_path_is_used_only_where_it_agrees(
    path: FastPath, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastpaths, "_paths", {("double", "host"): path})
    monkeypatch.setattr(fastpaths, "_settled", {})
    run = fast("double", torch.zeros(1))
    (backend,) = vision.backends()
    assert said in backend.reason
    assert backend.used == (run is not None) == (said in ("the same bits", "within 0.01 of 255 levels"))
    with definitions_only():
        assert fast("double", torch.zeros(1)) is None
    assert fast("other", torch.zeros(1)) is None


WITHOUT = """
import sys
sys.modules["cv2"] = None
import torch
from parity import vision
pictures = vision.Images([torch.arange(48, dtype=torch.uint8).reshape(4, 4, 3)])
print(vision.resize(pictures, (2, 2), antialias=False)[0][0, 0].tolist())
print(vision.rgb_to_gray(pictures)[0][0, 0].item(), vision.sharpness(pictures).item())
print({backend.reason for backend in vision.backends() if backend.library == "OpenCV"})
"""


@pytest.mark.slow
def test_without_opencv_torch_does_it_and_says_so() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    resized, rest, reasons = done.stdout.splitlines()
    assert resized == "[7.5, 8.5, 9.5]"
    picture = Images([torch.arange(48, dtype=torch.uint8).reshape(4, 4, 3)])
    assert rest == f"{vision.rgb_to_gray(picture)[0][0, 0].item()} {vision.sharpness(picture).item()}"
    assert reasons == """{"OpenCV is not installed: pip install 'parity[opencv]'"}"""


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
def test_files_that_are_damaged_are_decoded_or_refused_as_by_pillow(options: dict[str, Any]) -> None:
    generator = np.random.default_rng(3)
    for turn in range(60):
        data = bytearray(file_of(Pillow.fromarray(photo(45, 67)), "JPEG", quality=80, **options))
        data[int(generator.integers(2, len(data)))] = int(generator.integers(0, 256))
        if turn % 5 == 0:
            del data[int(generator.integers(20, len(data))) :]
        with definitions_only():
            expected = outcome(bytes(data))
        found = outcome(bytes(data))
        assert type(found) is type(expected)
        assert found == expected if isinstance(found, str) else np.array_equal(found, expected)


@pytest.mark.slow
def test_opencv_is_imported_when_an_operation_first_needs_it() -> None:
    code = "import sys; from parity import vision; assert 'cv2' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_doctor_tells_what_does_each_operation() -> None:
    found = examine()
    assert found.vision["resize on the host"].startswith("OpenCV, within ")
    assert "flip on the host: OpenCV, the same bits" in dict(found.sections())["vision"]
    if not torch.cuda.is_available():
        assert found.vision["flip on the device"] == "torch; CV-CUDA is off: no CUDA device"


@pytest.mark.parametrize("antialias", [True, False])
def test_one_thread_or_two_give_the_same_bits(antialias: bool) -> None:
    picture = images(np.asarray(noise(3, 200, 300)))
    threads = torch.get_num_threads()
    found: list[torch.Tensor] = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            with definitions_only():
                found.append(vision.resize(picture, (90, 101), antialias=antialias)[0])
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)
