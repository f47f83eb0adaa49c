"""Rules beyond tolerance: bits, nulls that are NaN, texts within some edits, pixels."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.compare import Bits, Close, Comparison, Exact, Pixels, Rule, Text, Tolerances, compare
from parity.compare.texts import edits_apart
from parity.errors import ConfigError


def judge(expected: Any, obtained: Any, rule: Rule, kind: pa.DataType | None = None) -> Comparison:
    sides = [pa.table({"v": pa.array(side, kind)}) for side in (expected, obtained)]
    return compare(sides[0], sides[1], Tolerances({"v": rule}))


# Bits.


def test_bits_tell_zeros_and_nans_apart():
    assert judge([1.0, math.nan, 0.0], [1.0, math.nan, 0.0], Bits()).verdict == "identical"
    found = judge([0.0, 1.0], [-0.0, 1.0], Bits())
    assert (found.verdict, found.failing_rows.tolist()) == ("divergent", [0])
    payloads = np.array([0x7FF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    assert not judge(payloads[:1], payloads[1:], Bits())
    assert judge(payloads[:1], payloads[1:], Exact())
    assert not judge([[0.0]], [[-0.0]], Bits())


# Nulls.


@pytest.mark.parametrize("rule", [Close(ulp=1, nulls="nan"), Exact(nulls="nan")])
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.list_(pa.float32())])
def test_null_may_equal_nan_where_that_is_declared(rule: Rule, kind: pa.DataType):
    def values(*items: float | None) -> list[Any]:
        return [[item] for item in items] if pa.types.is_list(kind) else list(items)

    one, other = values(1.0, None, None, math.nan), values(1.0, math.nan, None, None)
    found = judge(one, other, rule, kind)
    assert (found.verdict, found.differing_rows.tolist()) == ("within", [1, 3])
    assert found.column("v").null_mismatches == 0
    assert found.column("v").worst[0].reason == "null against NaN"
    wrong = judge(values(None, 2.0), values(1.0, None), rule, kind)
    assert wrong.failing_rows.tolist() == [0, 1]
    distinct = judge(one, other, Exact(), kind)
    assert distinct.failing_rows.tolist() == [1, 3]


def test_a_policy_for_nulls_is_refused_where_it_means_nothing():
    with pytest.raises(ConfigError, match="for floats only"):
        judge([1], [1], Exact(nulls="nan"))
    with pytest.raises(ConfigError, match="nulls = 'NaN' is not a policy"):
        Exact(nulls="NaN")


# Text.


def test_texts_may_be_some_edits_apart():
    rule = Text(normalize=("casefold",), edits=2)
    found = judge(["kitten", "abc", "ABC"], ["kitTenz!", "abcdef", "abc"], rule)
    assert found.failing_rows.tolist() == [1]
    assert found.column("v").worst[0].reason.endswith("; 3 edits apart")
    assert str(rule) == "text after casefold, 2 edits"


def test_of_texts_beyond_their_edits_the_furthest_comes_first():
    found = judge(["aaaa", "aaaa", "aaaa"], ["bbaa", "bbbb", "bbba"], Text(normalize=(), edits=1))
    assert [row.row for row in found.column("v").worst] == [1, 2, 0]


def edits_by_table(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for place, ours in enumerate(one, 1):
        before, row[0] = row[0], place
        for at, theirs in enumerate(other, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (ours != theirs))
    return row[-1]


@pytest.mark.slow
@given(st.text("abé", max_size=9), st.text("abé", max_size=9))
def test_edits_are_counted_as_by_the_textbook(one: str, other: str):
    assert edits_apart(one, other) == edits_apart(other, one) == edits_by_table(one, other)


def test_the_place_of_a_difference_is_shown_in_its_surroundings():
    one = "x" * 500 + " the quick brown fox jumps over the lazy dog"
    reason = judge([one], [one.replace("brown", "braun")], Text()).column("v").worst[0].reason
    assert "at character 513 ('o' U+006F LATIN SMALL LETTER O, obtained 'a' U+0061" in reason
    assert "in '…the quick br|own fox jump…'; 2 edits apart" in reason
    ends = judge(["ab"], ["abc"], Exact()).column("v").worst[0].reason
    assert "at character 2 (the end, obtained 'c'" in ends
    assert "in 'ab|'; 1 edit apart" in ends


def test_the_place_is_that_of_a_difference_that_normalisation_leaves():
    found = judge(["É, then blue"], ["E\u0301, then glue"], Text(normalize=("NFC", "casefold")))
    assert "after NFC, casefold at character 8 ('b'" in found.column("v").worst[0].reason


def test_white_space_of_any_kind_may_count_as_one_space():
    rule = Text(normalize=("spaces",))
    assert judge([" a\u00a0 b\n"], ["a b"], rule).verdict == "within"
    assert not judge(["ab"], ["a b"], rule)


def test_a_count_of_edits_is_a_whole_number():
    with pytest.raises(ConfigError, match="edits = -1 is not a count"):
        Text(edits=-1)


# Pixels.


def images(*rows: list[int]) -> pa.Array[Any]:
    return pa.array(list(rows), pa.list_(pa.uint8()))


def test_no_pixel_is_further_apart_than_declared():
    one, other = images([0, 255, 7], [1, 1, 1]), images([1, 254, 7], [1, 3, 1])
    found = judge(one, other, Pixels(lsb=1))
    assert found.failing_rows.tolist() == [1]
    assert judge(one, other, Pixels(lsb=2))
    assert not judge(images([0, 255]), images([255, 0]), Pixels(lsb=1))
    assert not judge(images([1, 1]), images([1, 1, 1]), Pixels(lsb=255))


def test_a_mean_error_never_passes_for_a_pixel():
    one, other = images([10] * 10_000), images([10] * 9_999 + [250])
    assert not judge(one, other, Pixels(lsb=5, psnr=30))
    assert judge(one, other, Pixels(lsb=255, psnr=30))
    assert not judge(one, other, Pixels(lsb=255, psnr=60))


@pytest.mark.parametrize("rule", [Pixels(lsb=255), Pixels(lsb=0)])
def test_images_of_another_shape_differ_though_their_bytes_agree(rule: Rule):
    kind = pa.struct({"data": pa.list_(pa.uint8()), "shape": pa.list_(pa.int32(), 2)})
    one = [{"data": [1] * 6, "shape": shape} for shape in ([2, 3], [2, 3])]
    other = [{"data": [1] * 6, "shape": shape} for shape in ([2, 3], [3, 2])]
    assert judge(one, other, rule, kind).failing_rows.tolist() == [1]


def test_pixels_are_refused_for_anything_but_bytes():
    with pytest.raises(ConfigError, match="lists and tensors of uint8"):
        judge([[1.0]], [[1.0]], Pixels())
    with pytest.raises(ConfigError, match=r"lsb = 1\.5 is not a count"):
        Pixels(lsb=1.5)


# Nested values.


def test_the_place_in_nested_lists_is_told_in_full():
    one = [[[1, 2], [3, 4]], [[5]]]
    other = [[[1, 2], [3, 9]], [[5]]]
    assert judge(one, other, Exact()).column("v").worst[0].where == "v[1][1]"
    structs = judge([[{"a": [1, 2]}]], [[{"a": [1, 3]}]], Exact())
    assert structs.column("v").worst[0].where == "v.a[0][1]"
