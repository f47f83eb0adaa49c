"""What is sent over shared memory is what comes out, whatever its size, layout and device."""

import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from parity.shared_values import Channel, Region, UnsendableError


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    one, other = socket.socketpair()
    to, back = Region.new(), Region.new()
    first = Channel(one, to, back)
    second = Channel(other, Region(os.dup(back.descriptor)), Region(os.dup(to.descriptor)))
    yield first, second
    first.close()
    second.close()


@dataclass
class Pair:
    left: Any
    right: Any


def test_arrays_of_any_layout_come_out_as_they_were(ends: tuple[Channel, Channel]):
    first, second = ends
    random = np.random.default_rng(3)
    values: list[Any] = [
        random.normal(size=(3, 5)),
        np.asfortranarray(random.normal(size=(4, 6))),
        random.normal(size=(8, 8))[::2, 1::3],
        np.empty((0, 7), np.float32),
        np.array(3, np.int8),
        np.array(["a", "längst"], object),
        np.array([b"x"], "S3"),
        "text",
        None,
    ]
    first.send({"values": values, "pair": Pair(values[0], (1, 2))})
    found = second.receive()
    for sent, got in zip(values, found["values"], strict=True):
        if isinstance(sent, np.ndarray):
            np.testing.assert_array_equal(got, sent)
            assert got.dtype == sent.dtype
        else:
            assert got == sent
    assert found["pair"].left is found["values"][0], "one array stays one"
    assert found["values"][1].flags.f_contiguous
    found["values"][0][:] = 1.0


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12, dtype=torch.bfloat16).reshape(3, 4),
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.randn(4, 6)[:, ::2],
        torch.tensor(5),
        torch.empty(0, 3, dtype=torch.float16),
        torch.tensor([True, False]),
        torch.randn(3, 1).expand(3, 4),
        torch.tensor([1 + 2j]).conj(),
    ],
    ids=lambda tensor: f"{tensor.dtype}-{tuple(tensor.shape)}",  # the same in every worker
)
def test_tensors_keep_type_values_and_dense_strides(ends: tuple[Channel, Channel], tensor: torch.Tensor):
    first, second = ends
    first.send([tensor])
    (found,) = second.receive()
    assert found.dtype == tensor.dtype
    assert torch.equal(found, tensor)
    if tensor.is_contiguous() or tensor.is_contiguous(memory_format=torch.channels_last):
        assert found.stride() == tensor.stride()


def test_a_region_grows_and_a_value_stays_the_receivers_own(ends: tuple[Channel, Channel]):
    first, second = ends
    kept: list[tuple[np.ndarray[Any, Any], int]] = []
    for size in (10, 3_000_000, 5, 20_000_000, 7):
        sent = np.arange(size)
        first.send(sent)
        found = second.receive()
        second.send(found)
        assert np.array_equal(first.receive(), sent)
        kept.append((found, size))
    for found, size in kept:
        assert np.array_equal(found, np.arange(size)), "what is sent later does not write over it"
        assert found.ctypes.data % 64 == 0


def test_what_cannot_be_sent_is_refused_and_nothing_is_sent(ends: tuple[Channel, Channel]):
    first, second = ends
    with pytest.raises(UnsendableError, match="no other process"):
        first.send(threading.Lock())
    first.send(1)
    assert second.receive() == 1


class Refuses:
    def __reduce__(self) -> Any:
        raise ValueError("not this one")


def test_whatever_a_value_raises_when_it_is_pickled_it_is_refused(ends: tuple[Channel, Channel]):
    first, second = ends
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (Refuses(), deep):
        with pytest.raises(UnsendableError, match="no other process"):
            first.send(value)
    first.send(1)
    assert second.receive() == 1


def test_a_region_that_is_closed_twice_leaves_the_descriptors_of_others_alone():
    region = Region.new()
    region.mapped(10)
    number = region.descriptor
    region.close()
    other = os.memfd_create("other")
    try:
        if other != number:
            os.dup2(other, number)
        region.close()
        assert os.fstat(number).st_size == 0, "still open"
    finally:
        os.close(number)
        if other != number:
            os.close(other)


def test_an_end_that_is_gone_is_told(ends: tuple[Channel, Channel]):
    first, second = ends
    second._connection.close()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(EOFError):
        first.receive()
