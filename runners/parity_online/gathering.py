"""How much memory larger bodies may take that come below ASGI, all connections together. Counts, no more."""

from __future__ import annotations

ROOM_BYTES = 128 * 1024 * 1024
"""So much of bodies whose requests are not answered yet; further ones go by ASGI, part after part."""


class Room:
    """Room for bodies until their requests are answered; for the event loop alone.

    Args:
        limit_bytes: the room there is.
    """

    def __init__(self, limit_bytes: int = ROOM_BYTES) -> None:
        self._left_bytes = limit_bytes
        self.limit_bytes = limit_bytes

    @property
    def taken_bytes(self) -> int:
        """What bodies take now."""
        return self.limit_bytes - self._left_bytes

    def enter(self, size: int) -> bool:
        """Take room for a body of this size; False where there is not enough."""
        if size > self._left_bytes:
            return False
        self._left_bytes -= size
        return True

    def leave(self, size: int) -> None:
        """Give back what `enter` took."""
        self._left_bytes += size
