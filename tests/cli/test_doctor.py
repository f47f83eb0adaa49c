from __future__ import annotations

import importlib.metadata
import json

import pytest

from parity import __version__
from tests.cli.conftest import Parity


@pytest.mark.slow
def test_the_doctor_tells_versions_devices_runners_and_extras(parity: Parity) -> None:
    done = parity("doctor")
    assert done.code == 0
    for heading in ("here", "packages", "devices", "torch", "runners", "extras"):
        assert f"\n{heading}\n" in f"\n{done.out}"
    assert f"parity {__version__}" in done.out
    assert "  batch: ready" in done.out


@pytest.mark.slow
def test_the_doctor_speaks_json(parity: Parity) -> None:
    found = json.loads(parity("doctor", "--json").out)
    assert found["packages"]["numpy"] == importlib.metadata.version("numpy")
    assert set(found["runners"]) == {"batch", "notebook", "online", "ray", "spark"}
    assert {extra["name"] for extra in found["extras"]} >= {"torch", "online", "notebook", "dev"}
    assert "cpu" in found["devices"]
    assert int(found["torch"]["threads"]) >= 1


def test_a_missing_package_is_named_with_its_extra(parity: Parity, monkeypatch: pytest.MonkeyPatch) -> None:
    requires = ["numpy>=2", "nowhere-to-be-found>=3; extra == 'online'", "orjson>=3; extra == 'online'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: requires)
    done = parity("doctor")
    assert "online: missing nowhere-to-be-found>=3; pip install 'parity[online]'" in done.out
