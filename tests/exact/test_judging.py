"""Answers that were both promised are judged by their bits; all others by the declared rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from parity import Profile, numerics
from parity.compare import Close, Exact, Ignore, Label, Tolerances, compare
from parity.exact import tolerances

RECORDED = Profile(name="a", buckets=(16, 32), exact=True)
NOTHING: Mapping[str, str] = {}
IGNORED = Ignore(reason="for people")
DECLARED = Tolerances(columns={"y": Close(rtol=1e-3), "debug": IGNORED, "label": Label()})


def judged_by_bits(
    profile: Profile, recorded: Profile = RECORDED, environment: Mapping[str, str] = NOTHING
) -> bool:
    fingerprint = {**numerics.fingerprint(recorded), **environment}
    rules = tolerances(DECLARED, recorded, fingerprint, profile)
    assert rules is DECLARED or rules.columns == {"y": Exact(), "debug": IGNORED, "label": Exact()}
    return rules is not DECLARED


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"name": "b", "certificate": "elsewhere"}, True),
        ({"buckets": ()}, True),
        ({"exact": False}, False),
        ({"buckets": (64,)}, False),
        ({"threads": 2}, False),
        ({"precision": "float64"}, False),
        ({"seed": 1}, False),
    ],
)
def test_bits_are_demanded_where_one_certificate_covers_both(change: dict[str, Any], expected: bool) -> None:
    assert judged_by_bits(replace(RECORDED, **change)) is expected


def test_answers_recorded_without_exact_or_elsewhere_are_judged_as_declared() -> None:
    assert not judged_by_bits(RECORDED, replace(RECORDED, exact=False))
    assert not judged_by_bits(RECORDED, environment={"package.numpy": "1.0"})
    assert not judged_by_bits(RECORDED, environment={"cpu": "other"})
    assert judged_by_bits(RECORDED, environment={"timezone": "Asia/Kathmandu", "torch.threads": "7"})


def test_one_bit_is_a_divergence_then() -> None:
    expected = pa.table({"y": pa.array([1.0, 2.0], pa.float32())})
    moved = pa.table({"y": pa.array([1.0, float(np.nextafter(np.float32(2), np.float32(3)))], pa.float32())})
    rules = tolerances(DECLARED, RECORDED, numerics.fingerprint(RECORDED), RECORDED)
    declared = Tolerances(columns={"y": DECLARED.columns["y"]})
    assert compare(expected, moved, declared)
    assert not compare(expected, moved, Tolerances({"y": rules.columns["y"]}, rules.dtypes))
    assert not compare(expected, moved, Tolerances({}, rules.dtypes))
