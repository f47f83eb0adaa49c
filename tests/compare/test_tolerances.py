"""Tolerances from TOML tables, and which of them applies."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from parity.compare import Close, Exact, Ignore, Label, PairRules, Text, Tolerances, TopK, compare
from parity.errors import ConfigError


def test_rules_are_read_from_tables():
    rules = Tolerances.from_mapping(
        {
            "confidence": {"kind": "close", "ulp": 64},
            "label": {"kind": "label"},
            "ranks": {"kind": "topk", "k": 3, "tie": 1e-6, "scores": "confidence"},
            "title": {"kind": "text", "normalize": ["NFC"]},
            "id": {"kind": "ignore", "reason": "random per request"},
            "v": {"kind": "close", "rtol": 1, "rows": 0.001, "reason": "split points"},
        }
    )
    assert dict(rules.columns) == {
        "confidence": Close(ulp=64),
        "label": Label(),
        "ranks": TopK(k=3, tie=1e-6, scores="confidence"),
        "title": Text(normalize=("NFC",)),
        "id": Ignore(reason="random per request"),
        "v": Close(rtol=1.0, rows=0.001, reason="split points"),
    }
    again = Tolerances.from_mapping({name: rule.to_dict() for name, rule in rules.columns.items()})
    assert again.columns == rules.columns


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"kind": "closer", "ulp": 1}, r"kind = 'closer' is unknown; did you mean 'close'"),
        ({"kind": "close", "rtoll": 1}, r"'rtoll' is unknown for kind = 'close'; did you mean 'rtol'"),
        ({"ulp": 1}, r"\[tolerance.x\] has no kind"),
        ({"kind": "close"}, r"allows nothing"),
        ({"kind": "close", "ulp": -1}, r"ulp = -1.0 is not a tolerance"),
        ({"kind": "close", "rtol": math.nan}, r"rtol = nan is not a tolerance"),
        ({"kind": "close", "rtol": math.inf}, r"rtol = inf is not a tolerance"),
        ({"kind": "close", "ulp": "64"}, r"ulp = '64' is str; expected float"),
        ({"kind": "close", "ulp": True}, r"ulp = True is bool; expected float"),
        ({"kind": "close", "ulp": 1, "scale": "row"}, r"scale = 'row' is not a scale"),
        ({"kind": "exact", "rows": 0.1}, r"without saying why; add reason"),
        ({"kind": "exact", "rows": 1.0, "reason": "x"}, r"lets every row fail"),
        ({"kind": "ignore"}, r"needs a reason"),
        ({"kind": "ignore", "reason": " "}, r"needs a reason"),
        ({"kind": "topk", "k": 0}, r"k = 0 is not a count"),
        ({"kind": "text", "normalize": ["nfc"]}, r"normalize = 'nfc' is unknown"),
        ({"kind": "cosine", "least": 2}, r"least = 2.0 is no cosine"),
        (64, r"\[tolerance.x\] is 64; expected a table"),
    ],
)
def test_wrong_tables_are_refused_with_the_place(table: Any, message: str):
    with pytest.raises(ConfigError, match=message):
        Tolerances.from_mapping({"x": table})


def test_an_unknown_column_is_refused_with_near_names():
    message = "unknown column 'confidense'; did you mean 'confidence'"
    table = {"confidense": {"kind": "close", "ulp": 1}}
    with pytest.raises(ConfigError, match=message):
        Tolerances.from_mapping(table, known=["label", "confidence"])
    answers = pa.table({"confidence": [1.0]})
    with pytest.raises(ConfigError, match=message):
        compare(answers, answers, Tolerances.from_mapping(table))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1]),
        pa.array([True]),
        pa.array(["a"]),
        pa.array([b"a"]),
        pa.array([0], pa.timestamp("us")),
        pa.array([[1]]),
    ],
)
def test_only_floats_get_a_tolerance(values: Any):
    table = pa.table({"x": values})
    with pytest.raises(ConfigError, match="only floats may differ"):
        compare(table, table, Tolerances({"x": Close(atol=1)}))


@pytest.mark.parametrize("kind", ["text", "topk", "set", "cosine", "label"])
def test_rules_are_refused_on_types_they_do_not_judge(kind: str):
    table = pa.table({"x": [1.0]})
    with pytest.raises(ConfigError, match=r"\[tolerance.x\]"):
        compare(table, table, Tolerances.from_mapping({"x": {"kind": kind}}))


def test_integers_have_no_dtype_tolerance():
    with pytest.raises(ConfigError, match="'int64' never gets a tolerance"):
        Tolerances.from_mapping({}, dtypes={"int64": {"kind": "close", "atol": 1}})


def test_column_beats_pair_dtype_beats_dtype_beats_default():
    rules = Tolerances.from_mapping(
        {"x": {"kind": "exact"}},
        dtypes={"float32": {"kind": "close", "ulp": 2}},
        pairs={"cpu:*|cuda:fp16": {"dtype": {"float32": {"kind": "close", "rtol": 0.01}}}},
    )
    assert rules.for_dtype("float64") == Close(ulp=64)
    assert rules.for_dtype("float16") == rules.for_dtype("bfloat16") == Close(ulp=8)
    assert rules.for_dtype("float32") == Close(ulp=2)
    paired = rules.for_pair("cuda:fp16", "cpu:float32")
    assert paired.for_dtype("float32") == Close(rtol=0.01)
    assert paired.for_column("x") == Exact()
    assert rules.for_pair("cpu:float32", "cpu:float32").for_dtype("float32") == Close(ulp=2)


def test_host_against_device_has_wider_defaults_and_a_pair_may_set_a_column():
    assert Tolerances().for_pair("cpu:float32", "cuda:float32").for_dtype("float32") == Close(rtol=1.1e-4)
    rules = Tolerances(pairs={"cpu:*|cuda:*": PairRules(columns={"x": Close(rtol=0.5)})})
    assert rules.for_pair("cpu:float32", "cuda:float32").for_column("x") == Close(rtol=0.5)
    assert rules.for_pair("cpu:float32", "cpu:float32").for_column("x") is None


@pytest.mark.parametrize("pairs", [{"cpu": {}}, {"cpu|cuda": {"tolerances": {}}}, {"cpu|cuda": 3}])
def test_wrong_pairs_are_refused(pairs: Any):
    with pytest.raises(ConfigError, match="pair"):
        Tolerances.from_mapping({}, pairs=pairs)


def test_a_row_budget_forgives_so_many_rows_and_no_more():
    expected = pa.table({"x": list(range(100))})
    rules = Tolerances({"x": Exact(rows=0.02, reason="ids of retried requests")})

    def obtained(wrong: int) -> pa.Table:
        return pa.table({"x": [-1] * wrong + list(range(wrong, 100))})

    found = compare(expected, obtained(2), rules)
    assert found.verdict == "within"
    assert (found.column("x").failing, found.column("x").allowed, found.within_rows) == (2, 2, 98)
    assert not compare(expected, obtained(3), rules)


def test_an_ignored_column_is_shown_and_its_type_still_counts():
    rules = Tolerances({"id": Ignore(reason="random")})
    expected = pa.table({"id": [1], "x": [1]})
    found = compare(expected, pa.table({"id": [2], "x": [1]}), rules)
    assert found.verdict == "identical"
    assert found.column("id").verdict == "ignored"
    assert found.summary().endswith("; not compared: id")
    assert not compare(expected, pa.table({"id": ["2"], "x": [1]}), rules)
    assert compare(expected.select(["id"]), expected.select(["id"]), rules).verdict == "nothing"


def test_a_struct_field_has_its_own_rule():
    expected = pa.table({"box": [{"x": 1.0, "n": 1}]})
    obtained = pa.table({"box": [{"x": 1.1, "n": 1}]})
    assert not compare(expected, obtained)
    assert compare(expected, obtained, Tolerances({"box.x": Close(rtol=0.2)}))
    assert compare(expected, obtained, Tolerances({"box": Close(rtol=0.2)}))
    with pytest.raises(ConfigError, match="only floats"):
        compare(expected, obtained, Tolerances({"box.n": Close(rtol=0.2)}))
    with pytest.raises(ConfigError, match="belongs to the column"):
        compare(expected, obtained, Tolerances({"box.x": Close(rtol=0.2, rows=0.1, reason="x")}))
    with pytest.raises(ConfigError, match=r"unknown column 'box\.y'"):
        compare(expected, obtained, Tolerances({"box.y": Close(rtol=0.2)}))


def test_float_budget_and_rule_are_told_in_words():
    assert str(Close(ulp=64)) == "64 ulp at column scale"
    assert str(Close(rtol=1e-4, atol=1e-6, ulp=2)) == "2 ulp or rtol 0.0001 + atol 1e-06 at column scale"
    found = compare(pa.table({"x": np.ones(1)}), pa.table({"x": np.ones(1)}))
    assert found.column("x").rule == Close(ulp=64)
    nested = pa.table({"s": [{"n": 1, "x": 1.0}]})
    assert compare(nested, nested).column("s").rule == Close(ulp=64)
