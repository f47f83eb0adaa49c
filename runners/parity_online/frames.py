"""Frames over a stream socket between a server and its replicas: a kind, a length, that many bytes."""

from __future__ import annotations

import socket
import struct

_HEAD = struct.Struct("!cQ")


def send_frame(connection: socket.socket, kind: bytes, body: bytes) -> None:
    """Send one frame; its kind is one byte."""
    connection.sendall(_HEAD.pack(kind, len(body)))
    connection.sendall(body)


def receive_frame(connection: socket.socket) -> tuple[bytes, memoryview]:
    """The next frame.

    Raises:
        EOFError: the other side is gone.
    """
    kind, length = _HEAD.unpack(_receive(connection, _HEAD.size))
    return kind, _receive(connection, length)


def _receive(connection: socket.socket, size: int) -> memoryview:
    buffer = memoryview(bytearray(size))
    at = 0
    while at < size:
        got = connection.recv_into(buffer[at:])
        if got == 0:
            raise EOFError("the other side is gone")
        at += got
    return buffer
