"""Each operation has a version, which is told where it was used."""

from __future__ import annotations

import pytest

from parity import Profile, numerics, vision
from parity.exact.conditions import comparable
from parity.vision import meanings
from tests.vision.calls import CALLS, function, on_pictures, operations, pictures_for


def test_every_operation_has_a_version() -> None:
    assert sorted(vision.versions()) == sorted(operations())
    assert min(vision.versions().values()) >= 1


@pytest.mark.parametrize("name", operations())
def test_a_fingerprint_tells_the_version_of_an_operation_that_was_used(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meanings, "_used", set[str]())
    monkeypatch.setattr(meanings, "VERSIONS", {**meanings.VERSIONS, name: 7})
    assert f"operation.{name}" not in numerics.fingerprint(Profile())
    pictures = {"images": pictures_for(name)} if name in on_pictures() else {}
    function(name)(**pictures, **CALLS[name])
    assert numerics.fingerprint(Profile())[f"operation.{name}"] == "7"
    assert f"operation.{name}" not in comparable(numerics.fingerprint(Profile()))
