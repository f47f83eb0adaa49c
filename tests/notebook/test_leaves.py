from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from parity.schema import BFLOAT16
from parity_notebook.leaves import leaves

Pair = namedtuple("Pair", "left right")


@dataclass
class Box:
    corner: np.ndarray
    label: str


def test_an_array_tells_dtype_shape_and_range() -> None:
    (leaf,) = leaves(np.array([[1.0, 2.0], [3.0, 6.0]], np.float32))
    assert (leaf.path, leaf.kind, leaf.dtype, leaf.shape) == ("", "numpy.ndarray", "float32", (2, 2))
    assert (leaf.minimum, leaf.maximum, leaf.mean, leaf.non_finite) == (1.0, 6.0, 3.0, 0)
    assert leaf.sample == "[1, 2, 3, 6]"
    assert leaf.range_text == "1 to 6, mean 3"


def test_a_tensor_tells_the_same() -> None:
    (leaf,) = leaves(torch.tensor([[1.0, 2.0]], requires_grad=True).T)
    assert (leaf.kind, leaf.dtype, leaf.shape) == ("torch.Tensor", "float32", (2, 1))
    assert (leaf.minimum, leaf.maximum, leaf.mean) == (1.0, 2.0, 1.5)


@pytest.mark.parametrize(
    "array", [np.array([1.5, -2.0]).astype(BFLOAT16), torch.tensor([1.5, -2.0]).bfloat16()]
)
def test_bfloat16_has_a_range(array: object) -> None:
    (leaf,) = leaves(array)
    assert (leaf.dtype, leaf.minimum, leaf.maximum) == ("bfloat16", -2.0, 1.5)


def test_nan_and_infinity_are_counted_and_do_not_hide_the_rest() -> None:
    (leaf,) = leaves(np.array([np.nan, np.inf, 1.0, 3.0]))
    assert (leaf.minimum, leaf.maximum, leaf.mean, leaf.non_finite) == (1.0, math.inf, 2.0, 2)
    assert leaf.range_text == "1 to inf, mean 2, 2 not finite"
    (leaf,) = leaves(np.array([np.nan, np.nan]))
    assert (leaf.minimum, leaf.range_text, leaf.non_finite) == (None, "", 2)


def test_64_bit_integers_are_told_exactly() -> None:
    (leaf,) = leaves(np.array([2**63 - 1, -(2**63)]))
    assert (leaf.minimum, leaf.maximum) == (-(2**63), 2**63 - 1)
    (leaf,) = leaves(np.array([2**64 - 1], np.uint64))
    assert leaf.range_text.startswith("18446744073709551615 to 18446744073709551615")


def test_empty_text_and_time_arrays_have_no_range() -> None:
    for array in (np.empty((0, 3)), np.array(["a"]), np.array([True]), np.array(["2020-01-01"], "M8[D]")):
        (leaf,) = leaves(array)
        assert leaf.range_text == ""
        assert leaf.shape == array.shape


def test_a_tree_is_told_leaf_by_leaf_with_paths() -> None:
    value = {"a": (np.zeros(1), Pair(np.ones(1), 7)), "b": Box(np.full(1, 2.0), "cat"), "c": None}
    found = {leaf.path: leaf for leaf in leaves(value)}
    assert list(found) == [
        "['a'][0]", "['a'][1].left", "['a'][1].right", "['b'].corner", "['b'].label", "['c']",
    ]  # fmt: skip
    assert found["['a'][1].right"].minimum == 7
    assert found["['b'].label"].sample == "'cat'"


def test_a_sample_is_short_and_says_that_there_is_more() -> None:
    (leaf,) = leaves(np.full(7, 1 / 3))
    assert leaf.sample == "[0.333333, 0.333333, 0.333333, 0.333333, 0.333333, 0.333333, …]"
    (leaf,) = leaves(np.array(["a\n", "b"], dtype=object))
    assert leaf.sample == r"['a\n', 'b']"


def test_a_list_is_one_item_a_row() -> None:
    (leaf,) = leaves([np.array([1.0]), np.array([2.0, 9.0])])
    assert (leaf.kind, leaf.dtype, leaf.shape, leaf.maximum) == ("list", "ndarray", (2,), 9.0)
    (leaf,) = leaves(["a", None])
    assert (leaf.dtype, leaf.shape, leaf.range_text) == ("str", (2,), "")
    (leaf,) = leaves([])
    assert leaf.shape == (0,)
