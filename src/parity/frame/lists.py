"""`.list`: what is computed within each row's own list, and so never mixes rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.frame.dtypes import kind_of, name_of
from parity.frame.errors import FrameError
from parity.frame.grouping import aggregated

if TYPE_CHECKING:
    from parity.frame.series import Series

import torch


class Lists:
    """The verbs of a column of lists; null in, null out. Items that are null are left out."""

    __slots__ = ("_series",)

    def __init__(self, series: Series) -> None:
        self._series = series

    def len(self) -> Series:
        """How many items each list has, null ones included; int64."""
        lengths = cast("Any", pc.list_value_length(cast("Any", self._series.to_arrow()))).cast(pa.int64())
        return self._series.like_arrow(lengths)

    def sum(self) -> Series:
        """The sum of each list's items, floats in float64; 0 of an empty list."""
        return self._aggregated("sum")

    def mean(self) -> Series:
        """The mean of each list's items in float64; null of an empty list."""
        return self._aggregated("mean")

    def min(self) -> Series:
        """The least item of each list; null of an empty list."""
        return self._aggregated("min")

    def max(self) -> Series:
        """The greatest item of each list; null of an empty list."""
        return self._aggregated("max")

    def _aggregated(self, how: str) -> Series:
        lists = cast("Any", self._series.to_arrow())
        item_type = lists.type.value_type
        if kind_of(item_type) not in ("int", "float"):
            raise FrameError(f"list.{how}: a list of {name_of(item_type)} has no numbers")
        items = self._series.like_arrow(lists.flatten())
        # What lies behind a null list is no item: `flatten` leaves it out, and so do these lengths.
        lengths = np.array(cast("Any", pc.list_value_length(lists)).fill_null(0))
        parents = torch.from_numpy(np.repeat(np.arange(len(lists), dtype=np.int64), lengths))
        found = aggregated(items, parents.to(items.device), len(lists), how)
        if self._series.valid is None:
            return found
        valid = self._series.valid if found.valid is None else found.valid & self._series.valid
        return found.like(found.tensor, valid, found.dtype)
