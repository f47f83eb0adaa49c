"""`astype`: to another type, exactly or not at all, but for the rounding of floats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import torch

from parity.frame.dtypes import FLOATS, INTEGERS, PER_SECOND, held_as, kind_of, name_of
from parity.frame.errors import FrameError, rows_shown
from parity.frame.numeric import refuse
from parity.frame.times import local

if TYPE_CHECKING:
    from parity.frame.series import Series


def cast_to(series: Series, dtype: pa.DataType) -> Series:
    """The values in another type.

    Integers to floats and floats to narrower floats round to the nearest (beyond the range to infinity).
    Floats to integers, and integers to narrower ones, must fit exactly. Text to numbers is read as Arrow
    reads it; whole numbers and bools become text.

    Raises:
        FrameError: a value does not fit, with the rows, or there is no such conversion.
    """
    source, target = kind_of(series.dtype), kind_of(dtype)
    if dtype == series.dtype:
        return series
    told = f"astype: {name_of(series.dtype)} to {name_of(dtype)}"
    if target in ("int", "float") and source in ("bool", "int", "float"):
        return series.like(_number(series, dtype, told), series.valid, dtype)
    if target == "bool" and source == "int":
        values = series.tensor
        refuse((values != 0) & (values != 1), series.valid, f"{told} is for 0 and 1; compare with != 0")
        return series.like(values != 0, series.valid, dtype)
    if target == "text" and source in ("bool", "int"):
        return series.like_arrow(series.to_arrow().cast(pa.string()))
    if target in ("int", "float", "bool") and source == "text":
        return series.like_arrow(_read(series.to_arrow(), dtype, told))
    if source == "time" and target == "time":
        zones = [cast("Any", kind).tz for kind in (series.dtype, dtype)]
        if (zones[0] is None) != (zones[1] is None):
            raise FrameError(f"{told}: one has a zone, the other none; declare the zone in the schema")
    if source == "time" and target == "date":
        ticks, zoneless = local(series)
        per_day = 86_400 * PER_SECOND[cast("Any", zoneless).unit]
        days = torch.div(ticks, per_day, rounding_mode="floor")
        return series.like(days, series.valid, dtype)
    if source == "date" and target == "time" and cast("Any", dtype).tz is not None:
        raise FrameError(f"{told}: a date is midnight in no zone; declare Timestamp(tz=...) in the schema")
    if target == "time" and source in ("time", "date"):
        return series.like_arrow(_read(series.to_arrow(), dtype, told))
    if target in ("int", "float") and source == "other":
        return series.like_arrow(_read(series.to_arrow(), dtype, told))
    hints = {
        ("float", "bool"): "compare with != 0",
        ("float", "text"): "libraries write floats in different ways; round to an integer first",
        ("time", "int"): "use .dt.epoch('s')",
        ("date", "int"): "use .dt.epoch('s')",
        ("text", "time"): "declare the field as Timestamp in the schema, which reads ISO 8601",
    }
    raise FrameError(f"{told} is not offered; {hints.get((source, target), 'convert it before the frame')}")


def _number(series: Series, dtype: pa.DataType, told: str) -> torch.Tensor:
    values = series.tensor
    if dtype in FLOATS:
        return (_odd(values) if FLOATS[dtype] == torch.float16 else values).to(FLOATS[dtype])
    low, high = INTEGERS[dtype]
    if values.dtype.is_floating_point:
        wide = values.to(torch.float64)
        # float(high) is 2**63 for int64, which does not fit
        wrong = ~((wide >= low) & (wide < float(high) + 1.0) & (wide == wide.floor()))
        refuse(
            wrong, series.valid, f"{told}: a value is NaN, fractional or out of range; round and clip first"
        )
        return torch.where(wrong, 0.0, wide).to(torch.int64)
    values = values.to(held_as(dtype))
    refuse((values < low) | (values > high), series.valid, f"{told}: a value is outside {low} to {high}")
    return values


def _odd(values: torch.Tensor) -> torch.Tensor:
    """Float64 as float32, what is not exact to its odd neighbour; then rounding to float16 rounds once.

    Torch goes from float64 to float16 by way of float32, and so rounds twice.
    """
    if values.dtype != torch.float64:
        return values
    near = values.to(torch.float32)
    back = near.to(torch.float64)
    even = (near.view(torch.int32) & 1) == 0
    infinity = torch.full_like(near, torch.inf)
    other = torch.nextafter(near, torch.where(back < values, infinity, -infinity))
    return torch.where((back != values) & even & ~values.isnan(), other, near)


def _read(values: pa.Array[Any], dtype: pa.DataType, told: str) -> pa.Array[Any]:
    try:
        return cast("Any", values).cast(dtype)
    except pa.ArrowException as exc:
        wrong = [row for row in range(len(values)) if not _casts(values.slice(row, 1), dtype)]
        raise FrameError(
            f"{told}: {exc} ({rows_shown(wrong)})" if wrong else f"{told}: {exc}", wrong
        ) from exc


def _casts(value: pa.Array[Any], dtype: pa.DataType) -> bool:
    try:
        pc.cast(cast("Any", value), dtype)
    except pa.ArrowException:
        return False
    return True
