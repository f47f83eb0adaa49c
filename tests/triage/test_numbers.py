from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parity import Batch, Float64, Handler, Schema
from tests.triage.divergences import against, by_hand, claims, columns, denies, in_batch, table_of

RNG = np.random.default_rng(3)
VECTORS = [RNG.normal(size=6) * 3 for _ in range(6)]
NARROW = [value.astype(np.float32) for value in VECTORS]


def softmax(value: np.ndarray) -> np.ndarray:
    powers = np.exp(value - value.max())
    return (powers / powers.sum()).astype(value.dtype)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("softmax", softmax),
        ("log_softmax", lambda value: np.log(softmax(value))),
        ("sigmoid", lambda value: (1 / (1 + np.exp(-value.astype(np.float64)))).astype(value.dtype)),
        ("exp", np.exp),
        ("log1p", lambda value: np.log1p(np.abs(value))),
        ("max(x, 0)", lambda value: np.maximum(value, 0)),
    ],
)
@pytest.mark.parametrize("values", [VECTORS, NARROW])
def test_a_function_that_one_side_leaves_out(name: str, function: Any, values: list[np.ndarray]) -> None:
    given = [np.abs(value) if name == "log1p" else value for value in values]
    for sides in (given, [function(value) for value in given]), ([function(value) for value in given], given):
        found = claims("softmax-missing", by_hand(*sides, stage="inference"))
        assert found.cause is not None
        assert found.cause.evidence.startswith(name)


def test_a_softmax_of_another_temperature_is_no_missing_softmax() -> None:
    cooler = [softmax(value * 0.5) for value in VECTORS]
    assert denies("softmax-missing", by_hand(VECTORS, cooler))


def test_positive_values_equal_to_their_own_maximum_with_zero_explain_nothing() -> None:
    positive = [np.abs(value) + 1 for value in VECTORS]
    assert denies("softmax-missing", by_hand(positive, [value + 1 for value in positive]))


# Rounding.


@pytest.mark.parametrize(
    ("digits", "values"), [(0, VECTORS), (1, NARROW), (3, VECTORS), (4, NARROW), (6, VECTORS)]
)
def test_one_side_rounded_to_decimals(digits: int, values: list[np.ndarray]) -> None:
    found = claims("rounding", by_hand(values, [np.round(value, digits) for value in values]))
    assert found.cause is not None
    assert ("whole numbers" if digits == 0 else f"{digits} decimals") in found.cause.evidence


def test_one_side_cut_to_decimals() -> None:
    found = claims("rounding", by_hand(VECTORS, [np.trunc(value * 100) / 100 for value in VECTORS]))
    assert found.cause is not None
    assert "2 decimals toward zero" in found.cause.evidence


def test_six_significant_digits() -> None:
    values = [np.exp(value * 3).astype(np.float32) for value in VECTORS]
    short = [np.array([float(f"{item:.4g}") for item in value], np.float32) for value in values]
    found = claims("rounding", by_hand(values, short))
    assert found.cause is not None
    assert "4 significant digits" in found.cause.evidence


@pytest.mark.parametrize(
    ("one", "other", "ways"),
    [
        (np.round, lambda x: np.floor(x + 0.5), "half to even on the expected side, half up"),
        (np.floor, np.trunc, "down on the expected side, toward zero"),
    ],
)
def test_two_ways_of_rounding_an_input(one: Any, other: Any, ways: str) -> None:
    x = np.array([0.5, -2.5, 1.25, -3.75, 2.5, 7.0, -0.5, 3.5])
    inputs = columns(x=x)
    found = claims("rounding", by_hand(one(x), other(x), inputs))
    assert found.cause is not None
    assert ways in found.cause.evidence
    assert "input 'x'" in found.cause.evidence


def test_two_ways_of_dividing_an_integer() -> None:
    cents = np.array([-12, 15, -30, 28, -41, 77, 60, -85, 99, 101])
    inputs = columns(cents=cents)
    found = claims("rounding", by_hand(cents // 10, np.trunc(cents / 10).astype(int), inputs))
    assert found.cause is not None
    assert "after a division by 10" in found.cause.evidence


def test_one_step_apart_on_a_grid() -> None:
    one = np.array([0.25, 0.5, 1.75, 2.05])
    claims("rounding", by_hand(one, one + np.array([0.01, -0.01, 0.01, 0.01])))


def test_texts_of_numbers_with_other_digits() -> None:
    found = claims("rounding", by_hand(["3.14159", "2.5", "1.41421"], ["3.14", "2.5", "1.41"]))
    assert found.cause is not None
    assert "2 decimals" in found.cause.evidence


@pytest.mark.parametrize(
    "changed",
    [
        [np.round(value, 3) + 0.01 for value in VECTORS],
        [value * 1.001 for value in VECTORS],
        [np.zeros(6) for _ in VECTORS],
    ],
)
def test_numbers_that_are_no_rounding(changed: list[np.ndarray]) -> None:
    assert denies("rounding", by_hand(VECTORS, changed))


def test_whole_numbers_one_apart_are_counts_and_no_rounding() -> None:
    counts = [np.array([3.0, 1.0, 0.0]), np.array([2.0, 2.0, 5.0])]
    assert denies("rounding", by_hand(counts, [value + np.array([1.0, 0.0, -1.0]) for value in counts]))


def test_a_single_value_that_happens_to_be_round_is_no_rounding() -> None:
    assert denies("rounding", by_hand([0.4871], [0.5]))


# Widths.


def test_float32_on_one_side() -> None:
    wide = [value.astype(np.float64) for value in VECTORS]
    claims("recast", by_hand(wide, NARROW))
    found = claims("recast", by_hand(wide, [value.astype(np.float32).astype(np.float64) for value in wide]))
    assert found.cause is not None
    assert "cast to float32" in found.cause.evidence
    claims("recast", by_hand(wide, [value.astype(np.float16).astype(np.float64) for value in wide]))


class Splits(Handler):
    """A tree's split."""

    inputs = Schema(x=Float64())
    outputs = Schema(y=Float64())

    def value(self, x: np.ndarray) -> np.ndarray:
        return x

    def preprocess(self, batch: Batch) -> Any:
        return np.where(self.value(batch["x"].numpy()) < float(np.float32(0.1)), 1.0, 2.0)

    def inference(self, inputs: Any) -> Any:
        return inputs * 7

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class NarrowSplits(Splits):
    def value(self, x: np.ndarray) -> np.ndarray:
        return x.astype(np.float32)


class OtherSplit(Splits):
    def value(self, x: np.ndarray) -> np.ndarray:
        return x + 0.2


def test_inputs_cast_to_float32_and_asked_again() -> None:
    rows = table_of(Splits, [{"x": x} for x in (0.05, 0.1, 0.2, 0.0999)])
    with against(NarrowSplits, Splits, rows) as (divergence, engine):
        found = claims("recast", divergence, engine)
    assert found.rows == (1,)
    assert found.cause is not None
    assert "cast to float32 first" in found.cause.evidence
    with against(OtherSplit, Splits, rows) as (divergence, engine):
        assert denies("recast", divergence, engine)


def test_noise_beyond_float32_is_no_recast() -> None:
    assert denies("recast", by_hand(VECTORS, [value * (1 + 1e-6) for value in VECTORS]))


def test_integers_that_wrap() -> None:
    big = np.array([2**31 + 5, 7, 3 * 2**31])
    found = claims("wrap", by_hand(big, big.astype(np.int32).astype(np.int64)))
    assert found.rows == (0, 2)
    assert denies("wrap", by_hand(big, big + 128))


def test_saturated_pixels_that_wrap() -> None:
    sharp = [RNG.integers(-60, 320, (8, 8)) for _ in range(3)]
    clipped = [np.clip(value, 0, 255).astype(np.uint8) for value in sharp]
    wrapped = [value.astype(np.uint8) for value in sharp]
    found = claims("wrap", by_hand(clipped, wrapped))
    assert found.cause is not None
    assert "at the end of the range" in found.cause.evidence
    scaled = [value.astype(np.float32) / 255 for value in clipped]
    claims("wrap", by_hand(scaled, [value.astype(np.float32) / 255 for value in wrapped]))
    assert denies("wrap", by_hand(clipped, [value // 2 for value in clipped]))


# Scales.


@pytest.mark.parametrize(
    ("scale", "offset", "known"),
    [(1 / 255, 0.0, "1/255"), (255.0, 0.0, "1/255"), (1 / 127.5, -1.0, "1/127.5 - 1"), (2.5, 7.0, "")],
)
def test_one_scale_for_all(scale: float, offset: float, known: str) -> None:
    values = [np.abs(value) * 40 for value in NARROW]
    found = claims("affine-scale", by_hand(values, [(v * scale + offset).astype(np.float32) for v in values]))
    assert found.cause is not None
    assert known in found.cause.evidence


def test_a_scaler_with_constants_for_each_feature() -> None:
    mean, deviation = np.arange(6) * 3.0, np.arange(6) + 0.5
    found = claims("affine-scale", by_hand(VECTORS, [(value - mean) / deviation for value in VECTORS]))
    assert found.cause is not None
    assert "each of 6 features" in found.cause.evidence


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (VECTORS, [value**3 for value in VECTORS]),
        ([1.0, 2.0], [2.0, 4.0]),
        ([True, False, True, True], [False, True, False, False]),
        ([5.0] * 8, [9.0] * 8),
    ],
)
def test_too_little_or_no_line_is_no_scale(one: Any, other: Any) -> None:
    denies("affine-scale", by_hand(one, other))


def test_a_deviation_of_a_sample_and_of_a_population() -> None:
    windows = RNG.normal(size=(5, 8))
    features = [np.array([w.mean(), w.std(ddof=1)]) for w in windows]
    inputs = columns(window=windows)
    found = claims("ddof", by_hand(features, [np.array([w.mean(), w.std()]) for w in windows], inputs))
    assert found.cause is not None
    assert "n = 8" in found.cause.evidence
    claims("ddof", by_hand([w.var(ddof=1) for w in windows], [w.var() for w in windows], inputs))
    assert denies("ddof", by_hand([w.std() for w in windows], [w.std() * 1.07 for w in windows], inputs))


def test_gamma() -> None:
    levels = [np.linspace(0.02, 1, 48).reshape(6, 8).astype(np.float32) ** (row + 1) for row in range(3)]
    found = claims("gamma", by_hand(levels, [value**2.2 for value in levels]))
    assert found.cause is not None
    assert "2.2" in found.cause.evidence
    assert denies("gamma", by_hand(levels, [np.sin(value) for value in levels]))


def test_clipping() -> None:
    found = claims("clipping", by_hand(VECTORS, [np.clip(value, -2, 2.5) for value in VECTORS]))
    assert found.cause is not None
    assert "-2 and 2.5" in found.cause.evidence
    assert denies("clipping", by_hand(VECTORS, [np.clip(value, -2, 2.5) + 0.1 for value in VECTORS]))


class Halved(Splits):
    """In half precision where there are many rows."""

    def preprocess(self, batch: Batch) -> Any:
        values = batch["x"].numpy()
        return values.astype(np.float16).astype(np.float64) if len(batch) > 3 else values


def test_half_precision_in_large_batches_only() -> None:
    batch = table_of(Halved, [{"x": float(x)} for x in RNG.normal(size=4)])
    with in_batch(Halved, batch, 2) as (divergence, engine):
        claims("recast", divergence, engine)
