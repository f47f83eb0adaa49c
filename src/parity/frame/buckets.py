"""Numbers to the buckets they fall in, by edges that were computed once, offline."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import torch

from parity.frame.dtypes import name_of
from parity.frame.errors import FrameError
from parity.frame.numeric import INT64, both_valid, number_for

if TYPE_CHECKING:
    from parity.frame.series import Series


def bucket(series: Series, edges: Sequence[float], right: bool) -> Series:
    """See `Series.bucket`; int64, null for NaN."""
    places, valid = _places(series, edges, right, "bucket")
    return series.like(places, valid, pa.int64())


def cut(
    series: Series, bins: Sequence[float], right: bool, include_lowest: bool, labels: Sequence[str] | None
) -> Series:
    """See `Series.cut`; int64 or labels, null outside the bins and for NaN."""
    if len(bins) < 2:
        raise FrameError(f"cut: {len(bins)} edges bound no bin; give at least 2")
    if labels is not None and len(labels) != len(bins) - 1:
        raise FrameError(f"cut: {len(bins) - 1} bins and {len(labels)} labels")
    places, valid = _places(series, bins, right, "cut")
    if include_lowest:
        edge = bins[0] if right else bins[-1]
        places = torch.where(series.tensor == edge, 1 if right else len(bins) - 1, places)
    inside = (places > 0) & (places < len(bins))
    valid = both_valid(valid, None if bool(inside.all()) else inside)
    codes = torch.where(inside, places - 1, 0)
    if labels is None:
        return series.like(codes, valid, pa.int64())
    codes = codes if valid is None else torch.where(valid, codes, -1)
    return series.like_arrow(pa.array(list(labels), pa.string())).take(codes)


def _places(
    series: Series, edges: Sequence[float], right: bool, verb: str
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """How many edges are at or before each value, and where that is known."""
    if series.kind not in ("int", "float"):
        raise FrameError(f"{verb}: a column of {name_of(series.dtype)} is no number")
    ordered = list(edges)
    for edge in ordered:
        number_for(edge, pa.float64(), verb)
    if any(math.isnan(edge) for edge in ordered) or any(
        low >= high for low, high in itertools.pairwise(ordered)
    ):
        raise FrameError(f"{verb}: edges {ordered} do not rise strictly")
    exact = series.kind == "int" and all(
        isinstance(edge, int) and INT64[0] <= edge <= INT64[1] for edge in ordered
    )
    dtype = torch.int64 if exact else torch.float64
    values = series.tensor.to(dtype)
    found = torch.bucketize(values, torch.tensor(ordered, dtype=dtype, device=values.device), right=not right)
    known = None if not values.dtype.is_floating_point else ~values.isnan()
    if known is not None and bool(known.all()):
        known = None
    return found, both_valid(series.valid, known)
