"""Who waits for an answer: a future, or a callback where a turn of the loop for each request is too much."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

Answer = TypeVar("Answer")
Told = TypeVar("Told", contravariant=True)


class Promise(Protocol[Told]):
    """Who waits for an item's answer: a future, or a `Callback`."""

    def done(self) -> bool:
        """Whether it has been told, or waits no more."""
        ...

    def set_result(self, result: Told, /) -> None:
        """Tell the answer."""
        ...

    def set_exception(self, exception: BaseException, /) -> None:
        """Tell why there is none."""
        ...

    def cancel(self) -> object:
        """Tell that nobody seems to wait."""
        ...


class Callback(Generic[Answer]):
    """A promise whose listener is called at once and once; a future's would wait for the loop's next turn.

    Args:
        listener: given the answer and None, or None and why there is none; must not raise.
    """

    __slots__ = ("_is_done", "_listener")

    def __init__(self, listener: Callable[[Answer | None, BaseException | None], None]) -> None:
        self._listener = listener
        self._is_done = False

    def done(self) -> bool:
        """Whether the listener has been called."""
        return self._is_done

    def set_result(self, result: Answer, /) -> None:
        """Call the listener with an answer."""
        self._is_done = True
        self._listener(result, None)

    def set_exception(self, exception: BaseException, /) -> None:
        """Call the listener with what went wrong."""
        self._is_done = True
        self._listener(None, exception)

    def cancel(self) -> None:
        """Call the listener with CancelledError, unless it has been called."""
        if not self._is_done:
            self.set_exception(asyncio.CancelledError())
