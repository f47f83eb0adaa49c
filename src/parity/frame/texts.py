"""`.str`: the verbs of text. A character is a Unicode code point; no locale is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from parity.errors import shown
from parity.frame.engine import Flags, engine_for
from parity.frame.errors import FrameError
from parity.frame.verbs import unknown_verb

if TYPE_CHECKING:
    from parity.frame.series import Series


class Texts:
    """The verbs of a column of text; null in, null out."""

    __slots__ = ("_series",)

    def __init__(self, series: Series) -> None:
        self._series = series

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_verb("Series.str", name)

    @property
    def _engine(self) -> Any:
        return engine_for(self._series.device)

    def lower(self) -> Series:
        """In lower case, one code point at a time."""
        return self._series.like_native(self._engine.lower(self._series.native))

    def upper(self) -> Series:
        """In upper case, one code point at a time: what Unicode maps to several stays one."""
        return self._series.like_native(self._engine.upper(self._series.native))

    def strip(self) -> Series:
        """Without Unicode's white space at both ends."""
        return self._series.like_native(self._engine.strip(self._series.native))

    def len(self) -> Series:
        """The number of code points, int64."""
        found, valid = self._engine.length(self._series.native)
        return self._series.like(found, valid, pa.int64())

    def contains(self, pattern: str, *, regex: bool = True) -> Series:
        """Whether the text holds the pattern: an expression of RE2, or itself with `regex=False`."""
        return self._flags(self._engine.contains(self._series.native, _text(pattern, "contains"), regex))

    def startswith(self, prefix: str) -> Series:
        """Whether the text begins so."""
        return self._flags(self._engine.starts(self._series.native, _text(prefix, "startswith")))

    def endswith(self, suffix: str) -> Series:
        """Whether the text ends so."""
        return self._flags(self._engine.ends(self._series.native, _text(suffix, "endswith")))

    def replace(self, pattern: str, by: str, *, regex: bool = False) -> Series:
        r"""Every occurrence replaced; with `regex=True` by RE2, groups in `by` as \1."""
        native = self._series.native
        return self._series.like_native(
            self._engine.replace(native, _text(pattern, "replace"), _text(by, "replace"), regex)
        )

    def slice(self, start: int = 0, stop: int | None = None) -> Series:
        """The code points from `start` to `stop` (exclusive); negative ones count from the end."""
        return self._series.like_native(self._engine.slice(self._series.native, start, stop))

    def _flags(self, found: Flags) -> Series:
        values, valid = found
        return self._series.like(values, valid, pa.bool_())


def _text(value: object, verb: str) -> str:
    if not isinstance(value, str):
        raise FrameError(f"str.{verb}: {shown(value)} is no text")
    return value
