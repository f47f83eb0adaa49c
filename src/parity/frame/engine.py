"""What a frame asks of a library for text and times, and which library answers on a device.

Arrow answers on the host, and its answers are the definition. On a CUDA device cuDF answers each question for
which it gives Arrow's answers in a self-test on this very machine; Arrow answers the others.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

import pyarrow as pa
import torch

Flags = tuple[torch.Tensor, torch.Tensor | None]
"""Values on the engine's device, and where they are not null; None where all are."""


class TextEngine(Protocol):
    """Text and times by one library.

    `native` is the library's own column of text. Tensors are on `device`; positions are int64 and -1 in
    `take` gives null. A null row is null in every answer, and its value in a tensor is 0 or False.

    Attributes:
        name: the library.
        device: where its tensors are.
    """

    name: str
    device: torch.device

    def from_arrow(self, values: pa.Array[Any]) -> Any:
        """A column of the library's own."""
        ...

    def to_arrow(self, native: Any) -> pa.Array[Any]:
        """The column as Arrow strings."""
        ...

    def valid(self, native: Any) -> torch.Tensor | None:
        """Where the rows are not null; None where all are."""
        ...

    def take(self, native: Any, positions: torch.Tensor) -> Any:
        """The rows at these positions, null for -1."""
        ...

    def concat(self, natives: list[Any]) -> Any:
        """The rows of several columns, one after the other."""
        ...

    def lower(self, native: Any) -> Any:
        """Each code point in lower case."""
        ...

    def upper(self, native: Any) -> Any:
        """Each code point in upper case."""
        ...

    def strip(self, native: Any) -> Any:
        """Without Unicode's white space at both ends."""
        ...

    def length(self, native: Any) -> Flags:
        """The number of code points, int64."""
        ...

    def contains(self, native: Any, pattern: str, regex: bool) -> Flags:
        """Whether the pattern is in the text; bool."""
        ...

    def starts(self, native: Any, prefix: str) -> Flags:
        """Whether the text begins so; bool."""
        ...

    def ends(self, native: Any, suffix: str) -> Flags:
        """Whether the text ends so; bool."""
        ...

    def replace(self, native: Any, pattern: str, by: str, regex: bool) -> Any:
        """Every occurrence of the pattern, from left to right, replaced."""
        ...

    def slice(self, native: Any, start: int, stop: int | None) -> Any:
        """The code points from start to stop, which may count from the end."""
        ...

    def lookup(self, native: Any, known: list[str]) -> torch.Tensor:
        """The position of each text among `known`, which are distinct; -1 for null and for all others."""
        ...

    def codes(self, natives: list[Any]) -> torch.Tensor:
        """A number for each row of the columns one after the other, equal for equal texts; -1 for null."""
        ...

    def ranks(self, native: Any) -> torch.Tensor:
        """The place of each text among the distinct ones, by code points; -1 for null."""
        ...

    def local_ticks(self, ticks: torch.Tensor, unit: str, zone: str) -> torch.Tensor:
        """What clocks show in a zone at these instants, as ticks of a time without a zone."""
        ...

    def date_part(self, ticks: torch.Tensor, dtype: pa.DataType, part: str) -> torch.Tensor:
        """The year, month, day, hour, minute, second or weekday (Monday 0) of times without a zone, int64."""
        ...


def engine_for(device: torch.device) -> TextEngine:
    """The engine of a device; the same object every time."""
    key = str(device)
    with _LOCK:
        if key not in _ENGINES:
            _ENGINES[key] = _made(device)
        return _ENGINES[key]


def _made(device: torch.device) -> TextEngine:
    from parity.frame.arrow_engine import ArrowEngine

    host = ArrowEngine(device)
    if device.type != "cuda":
        return host
    from parity.frame.cudf_engine import proven

    return proven(host)


_ENGINES: dict[str, TextEngine] = {}
_LOCK = threading.Lock()
