"""Tensors out of nested lists and arrays: exact shape, exact type, and the index of what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from parity.codec.rejection import ValueRejectedError
from parity.codec.tensors import TensorDecoder
from parity.schema import BFLOAT16, DTYPE_NAMES, Tensor, dtype_of

VECTOR = Tensor("float32", (3,))
MATRIX = Tensor("int16", (2, 2))
RAGGED = Tensor("float64", (None, 2))


def decode(field: Tensor, value: Any) -> np.ndarray:
    return TensorDecoder(field).decode(value)


@pytest.mark.parametrize("name", DTYPE_NAMES)
def test_every_dtype_is_read_from_lists_and_from_its_own_arrays(name: str) -> None:
    numbers = [True, False] if name == "bool" else [0, 1]
    for value in (numbers, tuple(numbers), np.array(numbers, dtype_of(name)), np.array(numbers, object)):
        got = decode(Tensor(name, (2,)), value)
        assert got.dtype == dtype_of(name)
        assert got.astype(float).tolist() == [float(number) for number in numbers]
        assert not got.flags.writeable


def test_elements_become_the_nearest_of_the_dtype() -> None:
    assert decode(VECTOR, [0.1, 16777217, 1e-45]).tolist() == [
        float(np.float32(0.1)),
        16777216.0,
        float(np.float32(1e-45)),
    ]
    assert decode(Tensor("bfloat16", (1,)), [1 + 2**-8 + 2**-40]).astype(float).tolist() == [1 + 2**-7]
    got = decode(VECTOR, ["NaN", "-Infinity", -0.0])
    assert np.isnan(got[0])
    assert got[1] == -np.inf
    assert np.signbit(got[2])


def test_shapes_vary_where_they_may() -> None:
    assert decode(RAGGED, [[1, 2]] * 3).shape == (3, 2)
    assert decode(RAGGED, []).shape == (0, 2)
    assert decode(Tensor("int8", (None, None)), [[], []]).shape == (2, 0)
    assert decode(Tensor("int8", (2, 0)), [[], []]).shape == (2, 0)
    assert decode(Tensor("int8", (None, None)), np.zeros((0, 5), np.int8)).shape == (0, 5)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        (VECTOR, [1, 2], "field 'x': shape [2] is not the field's; expected Tensor(float32, [3])"),
        (VECTOR, [[1, 2, 3]], "a list of 1 stands where the shape says 3"),
        (VECTOR, [[1], [2], [3]], "field 'x' at [0]: [1] stands where a number belongs"),
        (VECTOR, [1, None, 3], "field 'x' at [1]: null is no element of a tensor"),
        (VECTOR, [1, 2, True], "field 'x' at [2]: true is of type boolean"),
        (VECTOR, [1, 2, "3"], "field 'x' at [2]: '3' is of type string"),
        (VECTOR, [1.0, 2.0, 1e39], "field 'x' at [2]: 1e+39 is beyond the range of float32"),
        (VECTOR, [1, 2, 10**400], "field 'x' at [2]: the integer is beyond the range of a float"),
        (VECTOR, 1.0, "field 'x': 1.0 is of type float; expected Tensor(float32, [3]); send a list"),
        (VECTOR, None, "field 'x': null is not allowed here"),
        (VECTOR, "abc", "field 'x': 'abc' is of type string"),
        (VECTOR, {"0": 1}, "is of type object"),
        (MATRIX, [[1, 2], [3]], "field 'x' at [1]: a list of 1 stands where the shape says 2"),
        (MATRIX, [[1, 2], 3], "field 'x' at [1]: 3 stands where a list belongs"),
        (MATRIX, [[1, 2], None], "field 'x' at [1]: null stands where a list belongs"),
        (MATRIX, [[1, 2], [3, 40000]], "field 'x' at [1][1]: 40000 is out of range -32768 to 32767"),
        (MATRIX, [[1, 2], [3, 4.0]], "field 'x' at [1][1]: 4.0 is of type float"),
        (MATRIX, [1, 2], "field 'x' at [0]: 1 stands where a list belongs"),
        (Tensor("int8", (None, None)), [[1], [2, 3]], "field 'x' at [1]: a list of 2 beside lists of 1"),
        (Tensor("bool", (1,)), [1], "field 'x' at [0]: 1 is of type integer"),
        (VECTOR, np.zeros(2, np.float32), "shape [2] is not the field's"),
        (VECTOR, np.zeros((1, 3), np.float32), "shape [1, 3] has 2 dimensions, the schema says 1"),
        (VECTOR, np.array([0.5, 0.1, 0.1]), "field 'x' at [1]: 0.1 of dtype float64 is no float32"),
        (VECTOR, np.array([True] * 3), "an array of dtype bool is boolean, not a number"),
        (VECTOR, np.array(["a"] * 3), "an array of dtype <U1 does not hold numbers"),
        (MATRIX, np.ones((2, 2)), "an array of dtype float64 does not hold integers"),
        (MATRIX, np.full((2, 2), 2**15), "field 'x' at [0][0]: 32768 of dtype int64 is no int16"),
        (Tensor("uint64", (1,)), np.array([-1]), "-1 of dtype int64 is no uint64"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_index(field: Tensor, value: Any, text: str) -> None:
    with pytest.raises(ValueRejectedError) as caught:
        decode(field, value)
    assert text in caught.value.message("x")


def test_typed_arrays_pass_where_nothing_is_lost() -> None:
    assert decode(VECTOR, np.array([0.5, np.nan, np.inf])).dtype == np.float32
    assert decode(VECTOR, np.arange(3)).tolist() == [0, 1, 2]
    assert decode(VECTOR, np.array([1, 2, 3], ">i4")).tolist() == [1, 2, 3]
    assert decode(MATRIX, np.ones((2, 2), np.uint8)).dtype == np.int16
    assert decode(MATRIX, np.arange(8, dtype=np.int16).reshape(2, 4)[:, ::2]).tolist() == [[0, 2], [4, 6]]


def test_a_decoded_array_shares_no_memory_with_the_given_one() -> None:
    given = np.zeros(3, np.float32)
    got = decode(VECTOR, given)
    given[0] = 1
    assert got[0] == 0


def test_torch_tensors_are_read() -> None:
    assert decode(VECTOR, torch.ones(3, requires_grad=True)).tolist() == [1, 1, 1]
    got = decode(Tensor("bfloat16", (2,)), torch.tensor([0.1, 2], dtype=torch.bfloat16))
    assert got.dtype == BFLOAT16
    assert got.tolist() == [BFLOAT16.type(0.1), 2]
