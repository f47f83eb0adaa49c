"""`isin` and `map`: what is known of a value, from a list or a table that was made once, offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import torch

from parity.errors import shown
from parity.frame.dtypes import name_of
from parity.frame.engine import engine_for
from parity.frame.errors import FrameError
from parity.frame.numeric import number_for, text_for

if TYPE_CHECKING:
    from parity.frame.series import Series


def isin(series: Series, values: Sequence[object]) -> Series:
    """See `Series.isin`; NaN among the values finds NaN."""
    if isinstance(values, str | bytes):
        raise FrameError("isin: give a list of values, not one text")
    try:
        known = list(values)
    except TypeError:
        raise FrameError(f"isin: give a list of values, not {shown(values)}") from None
    if series.is_text:
        texts = list(dict.fromkeys(text_for(value, "isin") for value in known))
        found = engine_for(series.device).lookup(series.native, texts) >= 0
    elif series.kind in ("int", "float", "bool"):
        numbers = [number_for(value, series.dtype, "isin") for value in known]
        tensor = series.tensor.to(torch.uint8) if series.kind == "bool" else series.tensor
        found = torch.isin(tensor, torch.tensor(numbers, dtype=tensor.dtype, device=tensor.device))
        if any(number != number for number in numbers):
            found = found | tensor.isnan()
    else:
        raise FrameError(f"isin: not for a column of {name_of(series.dtype)}; compare with == and |")
    return series.like(found, series.valid, pa.bool_())


def mapped(series: Series, mapping: Any, default: object) -> Series:
    """See `Series.map`."""
    if callable(mapping) or not isinstance(mapping, Mapping):
        raise FrameError(
            "map: needs a mapping of values; a function of Python would see rows on the host only"
        )
    if not mapping:
        raise FrameError("map: the mapping is empty")
    answers = list(mapping.values()) + ([] if default is None else [default])
    pool = series.like_arrow(_one_type(answers))
    places = _places(series, list(mapping))
    if default is not None:
        places = torch.where((places < 0) & series.valid_mask, len(answers) - 1, places)
    return pool.take(places)


def _places(series: Series, keys: list[Any]) -> torch.Tensor:
    """The position of each value among the keys; -1 for null and for others."""
    if series.is_text:
        return engine_for(series.device).lookup(series.native, [text_for(key, "map") for key in keys])
    if series.kind not in ("int", "bool"):
        raise FrameError(f"map: keys are texts or integers, this column is {name_of(series.dtype)}; see .cut")
    wanted = torch.tensor(
        [int(number_for(key, series.dtype, "map")) for key in keys], dtype=torch.int64, device=series.device
    )
    ordered, order = torch.sort(wanted)
    values = series.tensor.to(torch.int64)
    near = torch.searchsorted(ordered, values).clamp(max=len(keys) - 1)
    return torch.where((ordered[near] == values) & series.valid_mask, order[near], -1)


def _one_type(answers: list[Any]) -> pa.Array[Any]:
    """The mapping's values as Arrow, which must be of one type: bool, int64, float64 or text."""
    values = [answer.item() if hasattr(answer, "item") else answer for answer in answers]
    kinds = {type(value) for value in values if value is not None}
    for kind, dtype in ((bool, pa.bool_()), (int, pa.int64()), (float, pa.float64()), (str, pa.string())):
        if kinds == {kind} or (kind is float and kinds == {int, float}):
            values = [float(v) if kind is float and v is not None else v for v in values]
            try:
                return pa.array(values, dtype)
            except (OverflowError, ValueError) as exc:
                raise FrameError(f"map: a value of the mapping does not fit {name_of(dtype)}: {exc}") from exc
    told = sorted(kind.__name__ for kind in kinds)
    raise FrameError(
        f"map: the mapping's values (default included) are {told}; expected one type: bool, int, float or str"
    )
