"""Labels and scores of single columns, and times on the command line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from parity.compare import Label, Rule
from parity.errors import ConfigError
from parity.replay import moment_ns
from parity.replay.labels import LabelTally, label_form
from parity.replay.scores import ScoreTally
from parity.schema import Bool, Field, Float16, Float32, Int8, Int64, List, String, Tensor, Timestamp


@pytest.mark.parametrize(
    ("field", "rule", "form"),
    [
        (String(), None, "value"),
        (Bool(), None, "value"),
        (Int64(), None, ""),
        (Int64(ge=0, le=9), None, "value"),
        (Int64(choices=(1, 500_000)), None, "value"),
        (Int64(), Label(), "value"),
        (Int8(), None, "value"),
        (Float32(), None, ""),
        (Tensor("float32", (10,)), None, "scores"),
        (Tensor("float32", (1,)), None, ""),
        (Tensor("float32", (None,)), None, ""),
        (Tensor("float32", (None,)), Label(), "scores"),
        (Tensor("float32", (2, 2)), None, ""),
        (Tensor("int64", (4,)), None, ""),
        (List(Float32()), Label(), "scores"),
        (List(Float32()), None, ""),
        (Timestamp(), None, ""),
    ],
)
def test_which_columns_are_labels(field: Field, rule: Rule | None, form: str):
    assert label_form(field, rule) == form


def test_null_is_a_label_of_its_own():
    tally = LabelTally("label", of_scores=False)
    flips = tally.add(pa.array(["a", None, None, "b"]), pa.array(["a", None, "b", None]))
    assert flips.tolist() == [False, False, True, True]
    assert tally.drift().pairs == (("b", "null", 1), ("null", "b", 1))


def test_rare_changes_are_counted_together():
    tally = LabelTally("label", of_scores=False)
    names = [f"x{number}" for number in range(40)]
    tally.add(pa.array(["a"] * 41), pa.array([*names, "x0"]))
    drift = tally.drift()
    assert drift.pairs[0] == ("a", "x0", 2)
    assert (len(drift.pairs), drift.other, drift.flips) == (12, 28, 41)


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 3)])
def test_the_largest_score_is_the_label(kind: Any):
    tally = LabelTally("scores", of_scores=True)
    one: Any = pa.array([[0.1, 0.9, 0.0], [1.0, 0.0, 0.0]], kind)
    other: Any = pa.array([[0.2, 0.8, 0.0], [0.0, 0.0, 1.0]], kind)
    assert tally.add(one, other).tolist() == [False, True]
    assert tally.drift().pairs == (("0", "2", 1),)
    rows: Any = pa.array([None, [1.0, 2.0, 3.0]], kind)
    assert tally.add(rows, rows).tolist() == [False, False]


def test_what_is_no_number_on_a_side_is_left_out_of_the_shift():
    tally = ScoreTally("score")
    nan, inf = float("nan"), float("inf")
    tally.add(pa.array([1.0, nan, 2.0, None, inf]), pa.array([1.5, 1.0, nan, 3.0, inf]), np.arange(5))
    drift = tally.drift()
    assert drift is not None
    assert (drift.rows, drift.up, drift.mean_shift, drift.largest_shift) == (1, 1, 0.5, 0.5)
    assert (drift.spearman, drift.kendall, drift.top) == (None, None, ((1, 1.0),))
    assert ScoreTally("none").drift() is None


@pytest.mark.parametrize("field", [Float16(), Float32(), Int64(nullable=True)])
def test_numbers_of_every_kind_can_be_followed(field: Field):
    tally = ScoreTally("score")
    rows = np.arange(2)
    tally.add(pa.array([1, 2], field.arrow_type), pa.array([2, 1], field.arrow_type), rows)
    drift = tally.drift()
    assert drift is not None
    assert (drift.up, drift.down, drift.spearman, drift.kendall) == (1, 1, -1.0, -1.0)


def test_top_rows_that_move_away_are_missed():
    tally = ScoreTally("score")
    values = np.arange(40, dtype=np.float64)
    moved = np.where(values >= 36, 0.0, values)
    tally.add(pa.array(values), pa.array(moved), np.arange(40))
    drift = tally.drift()
    assert drift is not None
    assert drift.top == ((10, 0.6),)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-02", 86_400),
        ("1970-01-01T00:01", 60),
        ("1970-01-01T01:00:00.5+01:00", 0.5),
        ("1970-01-01T00:00:01Z", 1),
    ],
)
def test_times_are_utc_without_a_zone(text: str, seconds: float):
    assert moment_ns(text, "--since") == int(seconds * 10**9)


def test_what_is_no_time_is_told():
    with pytest.raises(ConfigError, match="--since 'yesterday' is no time; write 2026-11-29"):
        moment_ns("yesterday", "--since")
