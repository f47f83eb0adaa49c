"""Each operation has a version, which is told where it was used, and means what that version meant."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from parity import Profile, numerics, vision
from parity.check import check_goldens
from parity.exact.conditions import comparable
from parity.report import advice
from parity.vision import colour, filters, geometry, meanings, resampling, spaces, taps, windows
from parity.vision.curve import Curve
from parity.vision.fastpaths import definitions_only
from tests.vision.calls import CALLS, function, on_pictures, operations, pictures_for
from tests.vision.outcomes import RECORDED, agrees, outcome


def test_every_operation_has_a_version() -> None:
    assert sorted(vision.versions()) == sorted(operations())
    assert min(vision.versions().values()) >= 1


@pytest.mark.parametrize("name", operations())
def test_an_operation_that_was_used_is_noted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = {"images": pictures_for(name)} if name in on_pictures() else {}
    monkeypatch.setattr(meanings, "_used", set[str]())
    function(name)(**pictures, **CALLS[name])
    assert meanings.used()[name] == meanings.VERSIONS[name]


def test_a_fingerprint_tells_the_versions_of_what_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanings, "_used", set[str]())
    monkeypatch.setattr(meanings, "VERSIONS", {**meanings.VERSIONS, "flip": 7})
    assert "operation.flip" not in numerics.fingerprint(Profile())
    vision.flip(pictures_for("flip"), horizontal=True)
    found = numerics.fingerprint(Profile())
    assert found["operation.flip"] == "7"
    assert not [key for key in comparable(found) if key.startswith(numerics.OPERATION)]


@pytest.mark.slow
def test_a_golden_whose_answers_moved_tells_the_operation_that_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handler = str(Path(__file__).parents[2] / "handlers" / "photo_quality")
    assert check_goldens(handler).fingerprint_changes().get("operation.sharpness") is None
    definition = filters.four_neighbours
    monkeypatch.setattr(meanings, "VERSIONS", {**meanings.VERSIONS, "sharpness": 2})
    monkeypatch.setattr(filters, "four_neighbours", lambda pixels: definition(pixels) * 2)
    with definitions_only():
        report = check_goldens(handler)
    assert report.fingerprint_changes()["operation.sharpness"] == ("1", "2")
    (told,) = [step for step in advice(report) if step.startswith("Operation")]
    assert told.startswith("Operation sharpness changed: version 1 -> 2.")


RECORD: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))


def test_what_each_operation_gives_is_recorded_for_its_version() -> None:
    versions = {name: entry["version"] for name, entry in RECORD.items()}
    assert versions == vision.versions(), "run python tools/vision_outcomes.py"


@pytest.mark.parametrize("name", operations())
def test_a_meaning_does_not_change_without_a_new_version(name: str) -> None:
    entry = RECORD[name]
    assert agrees(outcome(name), entry["outcome"]), (
        f"{name} gives other values than version {entry['version']} did: give it a new version in "
        "src/parity/vision/meanings.py, then run python tools/vision_outcomes.py"
    )


OTHER_MEANINGS: dict[str, list[tuple[str, Any, str, Any]]] = {
    "a level more of red": [("rgb_to_gray", colour, "_GRAY_INTEGERS", (9898, 19135, 3735))],
    "a hundredth of a pixel": [("gaussian_blur", filters, "Curve", lambda k, sigma: Curve(k, sigma + 0.01))],
    "another cubic curve": [("resize", resampling, "taps_float32", lambda *args: softer(*args))],
    "a lighter margin": [
        ("letterbox", geometry, "pad", lambda *args, fill: vision.pad(*args, fill=fill + 1))
    ],
    "another border": [
        ("median_blur", windows, "pad", lambda *args, mode: vision.pad(*args, mode="reflect")),
        ("box_blur", windows, "pad", lambda *args, mode: vision.pad(*args, mode="symmetric")),
    ],
    "a standard's last digit": [("yuv_to_rgb", spaces, "_LUMA", {**spaces._LUMA, "bt709": (0.2127, 0.0721)})],
}


def softer(source: int, size: int, kernel: Any, antialias: bool, device: torch.device) -> taps.Taps:
    """Weights of a curve that is mixed with a little of another one."""
    exact = taps.taps_float32(source, size, kernel, antialias, device)
    return replace(exact, weights=exact.weights * 0.999)


@pytest.mark.parametrize("change", OTHER_MEANINGS)
def test_another_meaning_is_noticed(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module, what, instead in OTHER_MEANINGS[change]:
        with monkeypatch.context() as patch:
            patch.setattr(module, what, instead)
            assert not agrees(outcome(name), RECORD[name]["outcome"]), name
        assert agrees(outcome(name), RECORD[name]["outcome"]), name


def test_what_other_processors_compute_is_no_other_meaning() -> None:
    recorded = {"shape": [2], "range": [0.0, 255.0], "means": [100.0, 0.0]}
    assert agrees({**recorded, "means": [100.001, -0.001]}, recorded)
    assert not agrees({**recorded, "means": [100.01, 0.0]}, recorded)
    assert not agrees({**recorded, "shape": [3]}, recorded)
    assert not agrees([recorded], [recorded, recorded])
