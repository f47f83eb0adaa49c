"""Frames over a stream socket between a server and its replicas: a kind, a number, a length, that many bytes.

The number tells to which batch a frame belongs; 0 where it belongs to none.
"""

from __future__ import annotations

import socket
import struct

_HEAD = struct.Struct("!cQQ")


def send_frame(connection: socket.socket, kind: bytes, body: bytes = b"", number: int = 0) -> None:
    """Send one frame; its kind is one byte."""
    connection.sendall(_HEAD.pack(kind, number, len(body)))
    connection.sendall(body)


def receive_frame(connection: socket.socket) -> tuple[bytes, int, memoryview]:
    """The next frame.

    Raises:
        EOFError: the other side is gone.
    """
    kind, number, length = _HEAD.unpack(_receive(connection, _HEAD.size))
    return kind, number, _receive(connection, length)


def _receive(connection: socket.socket, size: int) -> memoryview:
    buffer = memoryview(bytearray(size))
    at = 0
    while at < size:
        got = connection.recv_into(buffer[at:])
        if got == 0:
            raise EOFError("the other side is gone")
        at += got
    return buffer
