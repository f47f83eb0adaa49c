"""Rows with equal keys, rows in order: what groupby, merge, map and sort_values share. All of it is torch.

Two keys are equal when they are the same value: null equals null, NaN equals NaN, -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from parity.frame.engine import engine_for

if TYPE_CHECKING:
    from parity.frame.series import Series


def group_codes(parts: Sequence[Sequence[Series]]) -> tuple[torch.Tensor, torch.Tensor]:
    """The group of each row, and the first row of each group; groups in order of first appearance.

    Args:
        parts: tables with the same key columns; their rows are numbered one table after the other.
    """
    columns = list(zip(*parts, strict=True))
    codes = _column_codes(columns[0])
    for column in columns[1:]:
        more = _column_codes(column)
        pairs = torch.stack([codes, more], dim=1)
        codes = torch.unique(pairs, dim=0, return_inverse=True)[1].reshape(-1)
    return _by_appearance(codes)


def _by_appearance(codes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.arange(len(codes), device=codes.device)
    distinct, inverse = torch.unique(codes, return_inverse=True)
    first = torch.full((len(distinct),), len(codes), dtype=torch.int64, device=codes.device)
    first = first.scatter_reduce(0, inverse, rows, "amin")
    order = torch.argsort(first)
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order), device=codes.device)
    return places[inverse], first[order]


def _column_codes(column: Sequence[Series]) -> torch.Tensor:
    """Int64, equal for equal values; one key column of all tables."""
    first = column[0]
    if first.is_text:
        return engine_for(first.device).codes([series.native for series in column])
    values = torch.cat([series.tensor for series in column])
    valid = torch.cat([series.valid_mask for series in column])
    if values.dtype.is_floating_point:
        values = (values.to(torch.float64) + 0.0).view(torch.int64)
        nan = torch.tensor(float("nan"), dtype=torch.float64, device=values.device).view(torch.int64)
        values = torch.where(torch.cat([s.tensor.isnan() for s in column]), nan, values)
    codes = torch.unique(values.to(torch.int64), return_inverse=True)[1]
    return torch.where(valid, codes, -1)


def sorting_order(columns: Sequence[tuple[Series, bool]]) -> torch.Tensor:
    """The positions that sort the rows by these columns, the first one first; ties keep their order.

    Args:
        columns: each column, and whether it ascends. NaN comes after all numbers and null after NaN, whether
            ascending or not.
    """
    order = torch.arange(len(columns[0][0]), device=columns[0][0].device)
    for series, ascending in reversed(columns):
        keys = engine_for(series.device).ranks(series.native) if series.is_text else series.tensor
        valid = series.valid_mask
        late = ~valid
        if keys.dtype.is_floating_point:
            late = late.to(torch.int64) * 2 + (keys.isnan() & valid).to(torch.int64)
            keys = torch.where(keys.isnan() | ~valid, 0, keys) + 0.0
        else:
            keys = torch.where(valid, keys.to(torch.int64), 0)
        order = order[torch.sort(keys[order], stable=True, descending=not ascending).indices]
        order = order[torch.sort(late[order].to(torch.int64), stable=True).indices]
    return order
