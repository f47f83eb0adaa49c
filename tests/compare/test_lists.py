"""Rules that judge a whole list: label, topk, cosine, set; and text."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from parity.compare import Comparison, Cosine, Label, Rule, SetLike, Text, Tolerances, TopK, compare
from parity.errors import ConfigError


def judge(expected: Any, obtained: Any, rule: Rule, kind: pa.DataType | None = None) -> Comparison:
    sides = [pa.table({"v": pa.array(side, kind)}) for side in (expected, obtained)]
    return compare(sides[0], sides[1], Tolerances({"v": rule}))


def test_the_same_label_passes_while_logits_differ():
    found = judge([[0.1, 0.9]], [[0.1 + 1e-6, 0.9 - 1e-6]], Label())
    assert found.verdict == "within"
    assert not judge([[0.1, 0.9]], [[0.9, 0.1]], Label())


def test_a_flip_between_near_ties_passes_and_is_counted():
    found = judge([[0.5, 0.5 + 1e-7], [0.1, 0.9]], [[0.5 + 1e-7, 0.5], [0.1, 0.9]], Label(tie=1e-6))
    assert found
    assert found.column("v").ties == 1
    assert not judge([[0.5, 0.5 + 1e-7]], [[0.5 + 1e-7, 0.5]], Label(tie=1e-9))


def test_a_scalar_label_is_exact():
    assert judge(["cat"], ["cat"], Label())
    assert not judge(["cat"], ["dog"], Label())


@pytest.mark.parametrize("rule", [Label(), TopK(k=2), Cosine()])
def test_nan_null_and_length_on_one_side_fail(rule: Rule):
    assert not judge([[0.1, math.nan]], [[0.1, 0.2]], rule)
    assert not judge([[0.1, None]], [[0.1, 0.2]], rule)
    assert not judge([[0.1, 0.2]], [[0.1, 0.2, 0.3]], rule)
    assert not judge([[0.1, 0.2], None], [[0.1, 0.2], [0.1, 0.2]], rule)
    assert judge([[0.1, math.nan], None, []], [[0.1, math.nan], None, []], rule)


def test_ranked_scores_may_swap_within_ties_only():
    expected = [[0.9, 0.5, 0.5 - 1e-9, 0.1]]
    assert judge(expected, [[0.9, 0.5 - 1e-9, 0.5, 0.1]], TopK(k=2, tie=1e-6))
    assert not judge(expected, [[0.5, 0.9, 0.5, 0.1]], TopK(k=2, tie=1e-6))
    assert judge(expected, [[0.9, 0.5, 0.1, 0.2]], TopK(k=2))


def ranked(labels: list[list[str]], scores: list[list[float]]) -> pa.Table:
    return pa.table({"labels": labels, "scores": scores})


def test_tied_labels_may_swap_given_their_scores():
    rules = Tolerances({"labels": TopK(k=3, tie=1e-6, scores="scores")})
    expected = ranked([["a", "b", "c"]], [[0.9, 0.5, 0.5]])
    assert compare(expected, ranked([["a", "c", "b"]], [[0.9, 0.5, 0.5]]), rules)
    assert not compare(expected, ranked([["b", "a", "c"]], [[0.9, 0.5, 0.5]]), rules)
    assert not compare(expected, ranked([["a", "b", "b"]], [[0.9, 0.5, 0.5]]), rules)
    assert not compare(expected, ranked([["a", "c", "b"]], [[0.9, 0.5, 0.5]]))
    assert not judge([["a", "b"]], [["b", "a"]], TopK(k=2))


def test_a_tie_at_the_cut_may_bring_another_label():
    rules = Tolerances({"labels": TopK(k=2, tie=1e-6, scores="scores")})
    expected = ranked([["a", "b"]], [[0.9, 0.5]])
    assert compare(expected, ranked([["a", "z"]], [[0.9, 0.5]]), rules)
    worse = Tolerances({**rules.columns, "scores": TopK(k=2, tie=1)})
    assert not compare(expected, ranked([["a", "z"]], [[0.9, 0.3]]), worse)


def test_a_scores_column_that_is_not_there_is_refused():
    table = ranked([["a"]], [[1.0]])
    with pytest.raises(ConfigError, match="unknown column 'score'; did you mean 'scores'"):
        compare(table, table, Tolerances({"labels": TopK(scores="score")}))


def test_scores_that_are_null_missing_or_no_floats_tie_nothing():
    rules = Tolerances({"labels": TopK(k=2, tie=1.0, scores="scores")})
    expected = ranked([["a", "b"]], [[0.5, 0.5]])
    swapped = ranked([["b", "a"]], [[0.5, 0.5]])
    assert compare(expected, swapped, rules)
    missing = compare(expected, swapped.drop_columns(["scores"]), rules)
    assert missing.column("labels").failing == 1
    null = pa.table({"labels": [["b", "a"]], "scores": pa.array([None], pa.list_(pa.float64()))})
    assert compare(expected, null, rules).column("labels").failing == 1
    texts = pa.table({"labels": [["a", "b"]], "scores": [["x", "y"]]})
    with pytest.raises(ConfigError, match="it takes lists of floats"):
        compare(texts, texts, rules)


def test_cosine_looks_at_direction_and_length():
    assert judge([[3.0, 4.0]], [[3.0001, 4.0]], Cosine())
    assert not judge([[3.0, 4.0]], [[4.0, 3.0]], Cosine())
    assert not judge([[3.0, 4.0]], [[6.0, 8.0]], Cosine())
    assert not judge([[3.0, 4.0], [0.0, 0.0]], [[3.0, 4.0], [1.0, 0.0]], Cosine())
    assert judge([[0.0, 0.0]], [[-0.0, 0.0]], Cosine())


def test_one_bad_row_does_not_hide_among_many():
    expected = [[1.0, 0.0]] * 1000
    found = judge(expected, [*expected[:999], [0.0, 1.0]], Cosine(least=0.5))
    assert found.failing_rows.tolist() == [999]


def test_sets_ignore_order_and_repeats_multisets_only_order():
    assert judge([["a", "b", "b"], []], [["b", "a"], []], SetLike())
    assert not judge([["a", "b", "b"]], [["b", "a", "a"]], SetLike(multiset=True))
    assert judge([["a", "b", "b"]], [["b", "a", "b"]], SetLike(multiset=True))
    assert not judge([["a"]], [["b"]], SetLike())
    assert judge([[0.0, 1.0]], [[1.0, -0.0]], SetLike())
    assert not judge([["a", None]], [["a"]], SetLike())
    found = judge([["a"], ["a"], ["b"]], [["a"], ["b"], ["a"]], SetLike())
    assert found.failing_rows.tolist() == [1, 2]


def test_sets_of_structs_are_refused():
    with pytest.raises(ConfigError, match="lists of plain values"):
        judge([[{"a": 1}]], [[{"a": 2}]], SetLike())


@pytest.mark.parametrize(
    ("one", "other", "forms"),
    [
        ("é", "e\u0301", ("NFC",)),
        (" a\u00a0", "a", ("strip",)),
        ("a\r\nb", "a\nb", ("newlines",)),
        ("STRASSE", "straße", ("casefold",)),
        ("\ufb01", "fi", ("NFKC",)),
    ],
)
def test_text_is_equal_after_the_declared_normalisation_only(one: str, other: str, forms: Any):
    found = judge([one], [other], Text(normalize=forms))
    assert found.verdict == "within"
    assert not judge([one], [other], Text(normalize=()))
    assert not judge([one], [other + "x"], Text(normalize=forms))
    assert judge([[one], None], [[other], None], Text(normalize=forms))


def test_text_that_differs_says_where():
    reason = judge(["caf\u00e9"], ["cafe\u0301"], Text(normalize=())).column("v").worst[0].reason
    assert "at character 3" in reason
    assert "U+00E9 LATIN SMALL LETTER E WITH ACUTE" in reason
