"""Aggregations over groups of rows, in one order on every device; floats are added in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import torch

from parity.errors import did_you_mean
from parity.frame.dtypes import FLOATS, held_as, name_of
from parity.frame.errors import FrameError, rows_shown

if TYPE_CHECKING:
    from parity.frame.frame import Frame
    from parity.frame.series import Series

AGGREGATIONS: Final = ("sum", "mean", "count", "min", "max")


class GroupBy:
    """Rows in groups of equal keys; see `Frame.groupby`."""

    __slots__ = ("_frame", "_keys")

    def __init__(self, frame: Frame, keys: tuple[str, ...]) -> None:
        self._frame = frame
        self._keys = keys

    def agg(self, **wanted: Any) -> Frame:
        """One row a group, in order of first appearance: the keys, then each `name=(column, how)`.

        `how` is sum, mean, count, min or max, of what is not null in the group. A sum of nothing is 0; a
        mean, min or max of nothing is null.

        Raises:
            FrameError: there is no such column or aggregation, or an integer sum does not fit int64.
        """
        from parity.frame.keys import group_codes

        if not wanted:
            raise FrameError("agg: name at least one, such as total=('price', 'sum')")
        frame = self._frame
        codes, first = group_codes([[frame[key] for key in self._keys]])
        columns: dict[str, Series] = {key: frame[key].take(first) for key in self._keys}
        for name, pair in wanted.items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise FrameError(f"agg: {name}={pair!r}; expected a pair such as ('price', 'sum')")
            if name in columns:
                raise FrameError(f"agg: {name!r} is already a column of the result")
            column, how = pair
            columns[name] = aggregated(frame[column], codes, len(first), how)
        return frame.of_columns(columns, len(first))


def aggregated(series: Series, groups: torch.Tensor, count: int, how: str) -> Series:
    """One value for each group of a series' rows.

    Args:
        series: what is aggregated.
        groups: (rows,) int64, the group of each row, from 0.
        count: how many groups there are.
        how: sum, mean, count, min or max.
    """
    if how not in AGGREGATIONS:
        raise FrameError(f"no aggregation {how!r}; {did_you_mean(how, AGGREGATIONS)}")
    valid = series.valid_mask
    groups = groups[valid]
    many = torch.zeros(count, dtype=torch.int64, device=series.device)
    many = many.index_add(0, groups, torch.ones_like(groups))
    if how == "count":
        return series.like(many, None, pa.int64())
    if series.kind not in ("int", "float") and not (
        series.kind in ("time", "date") and how in ("min", "max")
    ):
        raise FrameError(f"{how}: a column of {name_of(series.dtype)} has none")
    values = series.tensor[valid]
    some = None if bool((many > 0).all()) else many > 0
    if how in ("min", "max"):
        start = torch.zeros(count, dtype=held_as(series.dtype), device=series.device)
        reduce = "amin" if how == "min" else "amax"
        return series.like(
            start.scatter_reduce(0, groups, values, reduce, include_self=False), some, series.dtype
        )
    if how == "sum" and series.dtype not in FLOATS:
        return series.like(_exact_sum(values, groups, count), None, pa.int64())
    total = _sum(values.to(torch.float64), groups, many)
    if how == "sum":
        return series.like(total, None, pa.float64())
    return series.like(total / many.clamp(min=1), some, pa.float64())


def _sum(values: torch.Tensor, groups: torch.Tensor, many: torch.Tensor) -> torch.Tensor:
    """Float64 sums, each group's values added in the order of their rows."""
    if values.device.type == "cpu":
        return torch.zeros(len(many), dtype=torch.float64).index_add(0, groups, values)
    order = torch.sort(groups, stable=True).indices  # adding by index has no order on a GPU
    return torch.segment_reduce(values[order], "sum", lengths=many, initial=0.0)


def _exact_sum(values: torch.Tensor, groups: torch.Tensor, count: int) -> torch.Tensor:
    """Int64 sums; the two halves of each value are added apart, so that an overflow is seen."""
    zeros = torch.zeros(count, dtype=torch.int64, device=values.device)
    high = zeros.index_add(0, groups, values >> 32)
    low = zeros.index_add(0, groups, values & 0xFFFFFFFF)
    high = high + (low >> 32)
    wrong = (high < -(2**31)) | (high >= 2**31)
    if bool(wrong.any()):
        rows: list[int] = wrong.nonzero().reshape(-1).tolist()
        raise FrameError(f"sum: outside int64 (groups: {rows_shown(rows)}); use .astype('float64') first")
    return (high << 32) | (low & 0xFFFFFFFF)
