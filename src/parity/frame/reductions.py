"""One value of a whole column: what mixes rows, and is refused for the rows of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from parity.frame.errors import FrameError
from parity.frame.grouping import aggregated

if TYPE_CHECKING:
    from parity.frame.series import Series


def reduced(series: Series, how: str) -> Any:
    """The column's sum, mean, min, max or count; None of nothing, but a sum of 0."""
    refuse_mixing(series.of_batch, how, "frame.across_rows()['x']")
    groups = torch.zeros(len(series), dtype=torch.int64, device=series.device)
    return aggregated(series, groups, 1, how).to_pylist()[0]


def refuse_mixing(of_batch: bool, verb: str, through: str = "frame.across_rows()") -> None:
    """Raise FrameError when a verb that mixes rows is used on the rows of a batch."""
    if of_batch:
        raise FrameError(
            f"{verb} mixes the rows of a batch: a row's answer would depend on its neighbours, which the "
            f"laws forbid. Compute constants offline, work within a row's list by .list, or, where meant, "
            f"say {through}.{verb}(...)"
        )
