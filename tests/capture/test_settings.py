"""Capture settings from handler.toml and options."""

from __future__ import annotations

from typing import Any

import pytest

from parity.capture import CaptureSettings
from parity.errors import ConfigError

KEY = b"k" * 16


def test_options_take_precedence_and_never_uncover_a_field():
    table = {"folder": "a", "sample": 0.5, "drop": ["name"], "hash": ["account"]}
    found = CaptureSettings.of(table, {"folder": "b", "sample": None, "drop": ["age", "name"]}, key=KEY)
    assert found == CaptureSettings(folder="b", sample=0.5, drop=("name", "age"), hash=("account",), key=KEY)


def test_a_key_is_in_no_text():
    assert "kkkk" not in repr(CaptureSettings(folder="a", key=KEY))


def test_an_unknown_setting_is_told_the_near_one():
    with pytest.raises(ConfigError, match="did you mean 'rotate_mb'"):
        CaptureSettings.of({"rotate_mib": 1})
    with pytest.raises(ConfigError, match="no setting 'key'"):
        CaptureSettings.of({"key": "x"})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"folder": 3}, "folder = 3"),
        ({"sample": 1.1}, "sample = 1.1"),
        ({"sample": True}, "sample = True"),
        ({"sample": float("nan")}, "sample = nan"),
        ({"keep_errors": 1}, "keep_errors = 1"),
        ({"rotate_mb": 0}, "rotate_mb = 0"),
        ({"rotate_s": "60"}, "rotate_s = '60'"),
        ({"queue_mb": float("inf")}, "queue_mb = inf"),
        ({"drop": "name"}, "drop = 'name' is not a list"),
        ({"hash": [1]}, r"hash = \[1\] is not a list"),
        ([1], "write \\[online.capture\\]"),
    ],
)
def test_a_wrong_value_is_refused(table: Any, said: str):
    with pytest.raises(ConfigError, match=said):
        CaptureSettings.of(table)


def test_a_hash_needs_a_key_that_cannot_be_guessed():
    with pytest.raises(ConfigError, match="there is no key"):
        CaptureSettings(folder="a", hash=("name",))
    with pytest.raises(ConfigError, match="has 5 bytes"):
        CaptureSettings(folder="a", hash=("name",), key=b"short")
    CaptureSettings(hash=("name",))  # nothing is captured, so nothing needs a key
