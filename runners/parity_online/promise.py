"""Who waits for an answer: a future, or what takes it at once, without another turn of the loop."""

from __future__ import annotations

from typing import Protocol, TypeVar

Told = TypeVar("Told", contravariant=True)


class Promise(Protocol[Told]):
    """Who waits for an item's answer: a future, or a request of `parity_online.fastpath`; must not raise."""

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
