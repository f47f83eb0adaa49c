"""Padding extends every leaf of a tree with real rows and cutting takes them off again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parity.padding import UnpaddableError, cut, pad


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Inputs:
    ids: np.ndarray
    names: list[str]


def leaves(rows: int) -> st.SearchStrategy[Any]:
    return st.sampled_from(
        [
            np.arange(rows, dtype=np.int64),
            np.arange(rows * 6, dtype=np.float32).reshape(rows, 2, 3),
            np.asfortranarray(np.arange(rows * 4.0).reshape(rows, 4)),
            np.array([f"row {row}" for row in range(rows)], dtype=object),
            torch.arange(rows * 3).reshape(rows, 3),
            torch.arange(rows * 2, dtype=torch.bfloat16).reshape(2, rows).T,
            [f"row {row}" for row in range(rows)],
            np.float32(3),
            "a setting",
            None,
            torch.tensor(5),
        ]
    )


@st.composite
def trees(draw: st.DrawFn) -> tuple[int, Any]:
    rows = draw(st.integers(1, 5))
    tree = st.recursive(
        leaves(rows),
        lambda inner: st.one_of(
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.tuples(inner, inner),
            st.builds(Pair, inner, inner),
        ),
        max_leaves=6,
    )
    return rows, draw(tree)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return type(value).__name__, [plain(item) for item in value]
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.tolist()
    return (str(value.dtype), value.tolist()) if isinstance(value, np.ndarray) else value


@pytest.mark.slow
@given(trees(), st.integers(0, 5))
def test_cutting_undoes_padding(case: tuple[int, Any], extra: int):
    rows, tree = case
    bucket = rows + extra
    assert plain(cut(pad(tree, rows, bucket), rows, bucket)) == plain(tree)


def test_padding_repeats_the_last_real_row_in_new_memory():
    array = np.array([[1, 2], [3, 4]])
    padded = pad({"a": array, "b": (["x", "y"],), "c": torch.tensor([1.0, 2.0])}, 2, 4)
    assert padded["a"].tolist() == [[1, 2], [3, 4], [3, 4], [3, 4]]
    assert padded["b"] == (["x", "y", "y", "y"],)
    assert padded["c"].tolist() == [1.0, 2.0, 2.0, 2.0]
    assert not np.shares_memory(padded["a"], array)


@pytest.mark.parametrize("width", [1, 3, 7, 64])
def test_padded_memory_is_contiguous_and_aligned_even_when_the_batch_is_full(width: int):
    memory = np.arange(16 * width + 1, dtype=np.float32)[1:].reshape(16, width)
    for leaf in (memory, np.asfortranarray(memory)):
        padded = pad(leaf, 16, 16)
        assert padded.flags.c_contiguous
        assert padded.ctypes.data % 64 == 0
        assert np.array_equal(padded, leaf)
    tensor = pad(torch.from_numpy(memory.copy())[:, ::1], 16, 32)
    assert tensor.is_contiguous()
    assert tensor.data_ptr() % 64 == 0


def test_dataclasses_are_padded_member_by_member():
    padded = pad(Inputs(np.array([1]), ["a"]), 1, 2)
    assert padded.ids.tolist() == [1, 1]
    assert padded.names == ["a", "a"]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": np.zeros((3, 2))}, r"shape \(3, 2\) at value\['a'\] for 2 rows"),
        ((np.zeros(2), [1, 2, 3]), r"list of 3 items at value\[1\] for 2 rows"),
        ({"a": {1, 2}}, r"a set at value\['a'\], which cannot be padded"),
    ],
)
def test_what_cannot_be_padded_is_named_with_its_place(tree: Any, message: str):
    with pytest.raises(UnpaddableError, match=message):
        pad(tree, 2, 4)
