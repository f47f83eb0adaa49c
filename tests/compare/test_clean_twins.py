"""What must not be flagged: harmless differences that a careless comparison reports."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from parity.compare import Label, Tolerances, TopK, compare


def test_normalising_in_float64_then_casting_is_within_tolerance():
    pixels = np.random.default_rng(0).integers(0, 256, 5000)
    wide = ((pixels / 255 - 0.485) / 0.229).astype(np.float32)
    narrow = (pixels.astype(np.float32) / np.float32(255) - np.float32(0.485)) / np.float32(0.229)
    assert (wide != narrow).any()
    found = compare(pa.table({"x": wide}), pa.table({"x": narrow}))
    assert found.verdict == "within"
    assert found.identical_rows < found.within_rows == found.rows


def test_sums_in_another_order_are_within_tolerance():
    terms = np.random.default_rng(1).normal(size=(300, 1000)).astype(np.float32)
    one = terms.sum(axis=1)
    other = terms[:, ::-1].cumsum(axis=1, dtype=np.float32)[:, -1]
    assert (one != other).any()
    assert compare(pa.table({"x": one}), pa.table({"x": other}))


def test_rounding_a_response_to_six_digits_is_flagged():
    values = np.random.default_rng(2).random(1000, np.float32)
    rounded = np.array([float(f"{v:.4g}") for v in values], np.float32)
    assert not compare(pa.table({"x": values}), pa.table({"x": rounded}))


def test_json_repr_round_trips_to_the_bit():
    values = np.random.default_rng(3).normal(size=1000).astype(np.float32)
    again = np.array(json.loads(json.dumps(values.astype(float).tolist())), np.float32)
    assert compare(pa.table({"x": values}), pa.table({"x": again})).verdict == "identical"


def test_tied_entries_may_swap_under_a_tie_aware_rank():
    rules = Tolerances({"items": TopK(k=3, tie=1e-6, scores="scores")})
    expected = pa.table({"items": [[7, 8, 9]], "scores": [[0.5, 0.25, 0.25]]})
    obtained = pa.table({"items": [[7, 9, 8]], "scores": [[0.5, 0.25, 0.25]]})
    assert compare(expected, obtained, rules)


def test_the_same_label_with_other_logits():
    rules = Tolerances({"logits": Label()})
    assert compare(pa.table({"logits": [[1.0, 2.0]]}), pa.table({"logits": [[1.0, 2.0 + 1e-6]]}), rules)


def test_field_order_in_a_struct():
    expected = pa.table(
        {"s": pa.array([{"a": 1, "b": 2.0}], pa.struct({"a": pa.int64(), "b": pa.float64()}))}
    )
    obtained = pa.table(
        {"s": pa.array([{"b": 2.0, "a": 1}], pa.struct({"b": pa.float64(), "a": pa.int64()}))}
    )
    assert compare(expected, obtained).verdict == "identical"


def test_nan_on_both_sides_and_negative_zero():
    expected = pa.table({"x": [float("nan"), 0.0]})
    assert compare(expected, pa.table({"x": [float("nan"), -0.0]})).verdict == "within"
