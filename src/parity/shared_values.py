"""Python values between two processes of ours, their arrays over memory that both see.

A value is pickled with protocol 5: its arrays are written once into the sender's region and copied once out
of it. A socket beside it says that a value is there and how many bytes it has. Regions have no name: they go
with the two processes, however these end.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle  # noqa: TID251 - between a process and one that it has started itself, never from a file
import socket
import struct
import sys
from typing import Any, cast

import numpy as np

_ALIGNMENT = 64
_LEAST_BYTES = 1 << 20
_SIZE = struct.Struct("!Q")
_COUNT = struct.Struct("<Q")


class UnsendableError(TypeError):
    """A value that no other process can be sent."""


class Region:
    """Memory that the process with this file descriptor shares with another one; it grows as it must."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._map: mmap.mmap | None = None

    @staticmethod
    def new() -> Region:
        """An empty one."""
        return Region(os.memfd_create("parity", os.MFD_CLOEXEC))

    def mapped(self, size: int) -> mmap.mmap:
        """At least so many bytes of it."""
        if self._map is None or len(self._map) < size:
            if os.fstat(self.descriptor).st_size < size:
                os.ftruncate(self.descriptor, max(_LEAST_BYTES, size + size // 4))
            if self._map is not None:
                self._map.close()
            self._map = mmap.mmap(self.descriptor, os.fstat(self.descriptor).st_size)
        return self._map

    def close(self) -> None:
        """Let go of it; once is enough, and twice does no harm."""
        if self._map is not None:
            self._map.close()
            self._map = None
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class Channel:
    """One end of a pair that sends a value, gets one, and so on; for one thread at a time.

    Args:
        connection: a stream socket to the other end.
        outgoing: where this end writes its values.
        incoming: where the other end writes its own.
    """

    def __init__(self, connection: socket.socket, outgoing: Region, incoming: Region) -> None:
        self._connection = connection
        self._outgoing = outgoing
        self._incoming = incoming

    def send(self, value: object) -> None:
        """Send a value; the other end must have read the one before, as one that answers has.

        Raises:
            UnsendableError: it cannot be pickled; nothing was sent.
            OSError: the other end is gone.
        """
        pieces = _pieces(value)
        starts, size = _layout([len(piece) for piece in pieces])
        target = self._outgoing.mapped(size)
        for start, piece in zip(starts, pieces, strict=True):
            target[start : start + len(piece)] = piece
        self._connection.sendall(_SIZE.pack(size))

    def receive(self) -> Any:
        """The next value; its arrays are the caller's own, and may be written to.

        Raises:
            EOFError: the other end is gone.
        """
        (size,) = _SIZE.unpack(_exactly(self._connection, _SIZE.size))
        memory = np.empty(size + _ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        view = memoryview(cast("Any", memory))[start : start + size]
        source = memoryview(self._incoming.mapped(size))
        try:
            view[:] = source[:size]
        finally:
            source.release()
        return _value(view)

    def close(self) -> None:
        """Let the other end read that this one is gone."""
        self._connection.close()
        self._outgoing.close()
        self._incoming.close()


def copied(value: object) -> Any:
    """The value as the other end of a channel would get it; raises whatever that raises."""
    return pickle.loads(pickle.dumps(value, protocol=5))


def _pieces(value: object) -> list[memoryview | bytes]:
    """The lengths of the other pieces, the pickle, and the buffers that it leaves out."""
    buffers: list[pickle.PickleBuffer] = []
    sink = io.BytesIO()
    try:
        _Pickler(sink, protocol=5, buffer_callback=buffers.append).dump(value)
    except Exception as exc:  # a user's __reduce__ may do anything
        raise UnsendableError(f"no other process can be sent this: {exc}") from exc
    raw: list[memoryview] = []
    for buffer in buffers:
        try:
            raw.append(buffer.raw())
        except BufferError:  # of several dimensions that are not in one piece: numpy leaves none such out
            raw.append(memoryview(bytes(cast("Any", buffer))))
    body = [sink.getbuffer(), *raw]
    head = b"".join(_COUNT.pack(number) for number in (len(body), *(len(piece) for piece in body)))
    return [head, *body]


def _value(view: memoryview) -> Any:
    (count,) = _COUNT.unpack(view[: _COUNT.size])
    lengths = [_COUNT.unpack_from(view, _COUNT.size * (place + 1))[0] for place in range(count)]
    starts, _ = _layout([_COUNT.size * (count + 1), *lengths])
    body = [view[start : start + length] for start, length in zip(starts[1:], lengths, strict=True)]
    return pickle.loads(body[0], buffers=body[1:])


def _layout(lengths: list[int]) -> tuple[list[int], int]:
    """Where each piece begins, and where the last one ends."""
    starts: list[int] = []
    at = 0
    for length in lengths:
        starts.append(at)
        at += -(-length // _ALIGNMENT) * _ALIGNMENT
    return starts, at


class _Pickler(pickle.Pickler):
    """Leaves the memory of tensors out of the pickle, as numpy does with arrays."""

    def reducer_override(self, obj: object) -> Any:
        """How a plain tensor is made again; whatever else is pickled as it wants to be."""
        torch = cast("Any", sys.modules.get("torch"))
        if torch is None or type(obj) is not torch.Tensor:
            return NotImplemented
        tensor = cast("Any", obj)
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.requires_grad:
            return NotImplemented
        device = str(tensor.device)
        tensor = tensor.resolve_conj().resolve_neg().cpu()
        order = sorted(range(tensor.dim()), key=lambda axis: -tensor.stride(axis))  # stable
        packed = tensor.permute(order).contiguous()
        memory = packed.reshape(-1).view(torch.uint8).numpy() if packed.numel() else np.empty(0, np.uint8)
        return _tensor, (memory, str(tensor.dtype), tuple(packed.shape), order, device)


def _tensor(memory: Any, dtype: str, shape: tuple[int, ...], order: list[int], device: str) -> Any:
    """A tensor of the memory, its axes in the order in which they lie there."""
    import torch

    kind = getattr(torch, dtype.removeprefix("torch."))
    flat = torch.from_numpy(memory).view(kind) if len(memory) else torch.empty(0, dtype=kind)
    back = [order.index(axis) for axis in range(len(order))]
    return flat.reshape(shape).permute(back).to(device)


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            raise EOFError("the other end is gone")
        found += more
    return found
