"""Numerics are set as the profile says, on every thread, and recorded."""

from __future__ import annotations

import ctypes
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from parity import Batch, Engine, Handler, Int64, Profile, Schema, numerics
from parity.codec.rows import RowDecoder
from parity.exact.conditions import comparable
from parity.pipeline import Pipeline


def openmp_threads() -> int:
    """What OpenMP itself says on this thread; torch's own getter would set it first."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.rsplit(" ", 1)[-1]
        if Path(path).name.startswith(("libgomp", "libiomp", "libomp")):
            return int(ctypes.CDLL(path).omp_get_max_threads())
    pytest.skip("no OpenMP library is loaded")


class Threads(Handler):
    """Answers with the number of OpenMP threads that its inference may use."""

    inputs = Schema(x=Int64())
    outputs = Schema(threads=Int64())

    def inference(self, inputs: Any) -> Any:
        return np.full(len(inputs["x"]), openmp_threads())

    def postprocess(self, outputs: Any, batch: Batch) -> Any:
        return {"threads": outputs}


@pytest.mark.parametrize("threads", [1, 2])
def test_every_thread_that_runs_a_stage_has_the_profiles_thread_count(threads: int):
    decoded = RowDecoder(Threads.inputs).decode([{"x": 1}, {"x": 2}])
    with Engine(Threads, Profile(threads=threads)) as engine:
        here = engine.score(decoded)
        with ThreadPoolExecutor(1) as pool:
            there = pool.submit(engine.score, decoded).result()
        (piped,) = Pipeline(engine).map([decoded])
    for result in (here, there, piped):
        assert result.outputs["threads"].to_pylist() == [threads, threads]


def test_engines_with_other_counts_take_turns_on_one_thread():
    decoded = RowDecoder(Threads.inputs).decode([{"x": 1}])
    with Engine(Threads, Profile(threads=1)) as one, Engine(Threads, Profile(threads=2)) as two:
        found = [engine.score(decoded).outputs["threads"][0] for engine in (one, two, one, two)]
    assert found == [1, 2, 1, 2]


def test_seeds_are_set_when_a_handler_is_loaded():
    drawn = []
    for _ in range(2):
        with Engine(Threads, Profile(seed=7)):
            drawn.append((random.random(), float(np.random.random()), float(torch.rand(1))))  # noqa: NPY002
    assert drawn[0] == drawn[1]


def test_precision_and_determinism_follow_the_profile():
    numerics.apply(Profile(tf32=True, deterministic=False))
    assert torch.get_float32_matmul_precision() == "high"
    assert torch.backends.cudnn.allow_tf32
    assert not torch.are_deterministic_algorithms_enabled()
    numerics.apply(Profile())
    assert torch.get_float32_matmul_precision() == "highest"
    assert not torch.backends.cudnn.allow_tf32
    assert torch.are_deterministic_algorithms_enabled()


def test_a_fingerprint_is_the_same_twice_and_tells_profiles_apart():
    assert numerics.fingerprint(Profile()) == numerics.fingerprint(Profile())
    assert numerics.fingerprint(Profile()) != numerics.fingerprint(Profile(buckets=(4,)))
    assert all(
        isinstance(key, str) and isinstance(value, str)
        for key, value in numerics.fingerprint(Profile()).items()
    )


def packages() -> dict[str, str]:
    found = numerics.fingerprint(Profile())
    return {key: value for key, value in found.items() if "opencv" in key or key.endswith(("cv2", "jpeg"))}


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, distribution: str, module: str) -> None:
    """A distribution of version 9.9 with one module, found before all others."""
    about = folder / f"{distribution.replace('-', '_')}-9.9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 9.9\n")
    (folder / f"{module}.py").write_text("__version__ = '9.9'")
    monkeypatch.syspath_prepend(str(folder))


@pytest.mark.parametrize(
    ("distribution", "module"),
    [
        ("opencv-python", "cv2"),
        ("opencv-contrib-python", "cv2"),
        ("opencv-contrib-python-headless", "cv2"),
        ("simplejpeg", "simplejpeg"),
    ],
)
def test_a_fingerprint_names_what_may_do_image_operations(
    distribution: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    installed(tmp_path, monkeypatch, distribution, module)
    assert packages()[f"package.{distribution}"] == "9.9"
    monkeypatch.setitem(sys.modules, module, None)  # installed, and cannot be imported
    assert f"package.{distribution}" not in packages()


def test_opencv_of_no_known_distribution_is_recorded_by_its_own_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(numerics, "_VISION_PACKAGES", {"cv2_of_a_system": ("no-such-distribution",)})
    (tmp_path / "cv2_of_a_system.py").write_text("__version__ = '4.6.0'")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = numerics.fingerprint(Profile())
    assert found["package.cv2_of_a_system"] == "4.6.0"


def test_a_fingerprint_imports_no_opencv_that_a_distribution_tells_of():
    code = (
        "import sys; from parity import Profile, numerics; "
        "found = numerics.fingerprint(Profile()); "
        "assert 'package.opencv-python-headless' in found, found; assert 'cv2' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_operation_that_is_left_to_torch_is_told(monkeypatch: pytest.MonkeyPatch):
    from parity.vision import fastpaths

    key = ("flip", "host")
    left = fastpaths.Backend("flip", "host", "OpenCV", False, "its self-test was off", 0.0)
    assert "vision.flip" not in numerics.fingerprint(Profile())
    monkeypatch.setitem(fastpaths._settled, key, (None, left))
    assert numerics.fingerprint(Profile())["vision.flip"] == "torch: its self-test was off"
    assert "vision.flip" not in comparable(numerics.fingerprint(Profile()))
