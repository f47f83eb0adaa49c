"""`.dt`: the verbs of times and dates, in the zone of the column's type, never in the process's."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, cast

import numpy as np
import pyarrow as pa
import torch

from parity.errors import shown
from parity.frame.dtypes import PER_SECOND, name_of
from parity.frame.engine import engine_for
from parity.frame.errors import FrameError
from parity.frame.numeric import INT64, refuse
from parity.frame.verbs import unknown_verb

if TYPE_CHECKING:
    from parity.frame.series import Series


_DAYS = (-12_687_428, 11_248_737)
"""The days from 1970 of the years -32767 and 32767, beyond which Arrow's calendar wraps."""


class Times:
    """The verbs of a column of times or dates; null in, null out."""

    __slots__ = ("_series",)

    def __init__(self, series: Series) -> None:
        self._series = series

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_verb("Series.dt", name)

    def _part(self, part: str) -> Series:
        series = self._series
        if series.kind == "date" and part in ("hour", "minute", "second"):
            raise FrameError(f"dt.{part}: a date has none")
        ticks, dtype = local(series)
        per_day = 1 if series.kind == "date" else 86_400 * PER_SECOND[cast("Any", dtype).unit]
        days = torch.div(ticks, per_day, rounding_mode="floor")
        refuse((days < _DAYS[0]) | (days > _DAYS[1]), series.valid, f"dt.{part}: a year is beyond 32767")
        found = engine_for(series.device).date_part(ticks, dtype, part)
        return series.like(found, series.valid, pa.int64())

    @property
    def year(self) -> Series:
        """The year of the proleptic Gregorian calendar, int64."""
        return self._part("year")

    @property
    def month(self) -> Series:
        """The month, 1 to 12, int64."""
        return self._part("month")

    @property
    def day(self) -> Series:
        """The day of the month, from 1, int64."""
        return self._part("day")

    @property
    def hour(self) -> Series:
        """The hour, 0 to 23, int64."""
        return self._part("hour")

    @property
    def minute(self) -> Series:
        """The minute, int64."""
        return self._part("minute")

    @property
    def second(self) -> Series:
        """The whole second, int64."""
        return self._part("second")

    @property
    def weekday(self) -> Series:
        """The day of the week, Monday 0 to Sunday 6, int64."""
        return self._part("weekday")

    def tz_convert(self, zone: str) -> Series:
        """The same instants, told in another zone of the time zone database."""
        dtype = cast("Any", self._series.dtype)
        if self._series.kind != "time" or dtype.tz is None:
            raise FrameError("dt.tz_convert: the column has no zone; declare Timestamp(unit=..., tz=...)")
        try:
            zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError) as exc:
            raise FrameError(f"dt.tz_convert: no time zone {shown(zone)}") from exc
        return self._series.like(self._series.tensor, self._series.valid, pa.timestamp(dtype.unit, zone))

    def epoch(self, unit: Literal["s", "ms", "us", "ns"] = "s") -> Series:
        """Whole units since 1970-01-01 (UTC where zoned), rounded down; int64."""
        if unit not in PER_SECOND:
            raise FrameError(f"dt.epoch: no unit {shown(unit)}; expected s, ms, us or ns")
        series = self._series
        if series.kind == "date":
            return series.like(series.tensor, series.valid, pa.int64()) * (86_400 * PER_SECOND[unit])
        have, want = PER_SECOND[cast("Any", series.dtype).unit], PER_SECOND[unit]
        ticks = series.tensor
        if want <= have:
            found = torch.div(ticks, have // want, rounding_mode="floor")
        else:
            found = ticks * (want // have)
            wrong = torch.div(found, want // have, rounding_mode="floor") != ticks
            refuse(wrong, series.valid, f"dt.epoch({unit!r}): outside int64")
        return series.like(found, series.valid, pa.int64())


def local(series: Series) -> tuple[torch.Tensor, pa.DataType]:
    """The ticks and the type of what clocks and calendars show in the column's zone."""
    typed = cast("Any", series.dtype)
    if series.kind == "date" or typed.tz in (None, "UTC"):
        return series.tensor, series.dtype if series.kind == "date" else pa.timestamp(typed.unit)
    most = 2**63 - 1 - 86_400 * PER_SECOND[typed.unit]
    refuse(series.tensor.abs() > most, series.valid, f"a time of {name_of(typed)} is out of the calendar")
    ticks = engine_for(series.device).local_ticks(series.tensor, typed.unit, typed.tz)
    return ticks, pa.timestamp(typed.unit)


def ticks_of(value: object, dtype: pa.DataType, verb: str) -> int:
    """A Python or numpy time as ticks of a column's type, which may be beyond those that the column can hold.

    Raises:
        FrameError: it is no time, has a zone where the column has none or the other way round, or is finer
            than the column's unit.
    """
    typed = cast("Any", dtype)
    if pa.types.is_date32(dtype):
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return (value - datetime.date(1970, 1, 1)).days
    elif isinstance(value, datetime.datetime) and value == value:  # not pandas' NaT
        if (value.tzinfo is not None) != (typed.tz is not None):
            raise FrameError(f"{verb}: {value} beside {name_of(dtype)}: one has a zone, the other none")
        start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC if value.tzinfo else None)
        since = value - start
        microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        nanoseconds = microseconds * 1000 + int(getattr(value, "nanosecond", 0))  # pandas' times have them
        return _exactly(nanoseconds * PER_SECOND[typed.unit], 1_000_000_000, value, dtype, verb)
    elif isinstance(value, np.datetime64) and typed.tz is None and not np.isnat(value):
        numerator, divisor = _seconds_of(value)
        return _exactly(numerator * PER_SECOND[typed.unit], divisor, value, dtype, verb)
    raise FrameError(f"{verb}: {shown(value)} is no {name_of(dtype)}")


def ticks_held(value: object, dtype: pa.DataType, verb: str) -> int:
    """The ticks of a time that a column is to hold.

    Raises:
        FrameError: as `ticks_of` says, or the time is out of the type's range.
    """
    ticks = ticks_of(value, dtype, verb)
    if not INT64[0] <= ticks <= INT64[1]:
        raise FrameError(f"{verb}: {value} does not fit {name_of(dtype)}; use a coarser unit in the schema")
    return ticks


_COARSE: Final = {"W": 604_800, "D": 86_400, "h": 3600, "m": 60, "s": 1}
_FINE: Final = {"ms": 3, "us": 6, "ns": 9, "ps": 12, "fs": 15, "as": 18}


def _seconds_of(value: np.datetime64) -> tuple[int, int]:
    """The seconds since 1970 as a fraction of Python integers: numpy's own conversions wrap."""
    unit, step = np.datetime_data(value.dtype)
    count = int(value.astype(np.int64)) * step
    if unit in _FINE:
        return count, 10 ** _FINE[unit]
    if unit in _COARSE:
        return count * _COARSE[unit], 1
    year, month = divmod(count * (12 if unit == "Y" else 1), 12)
    cycles, year = divmod(1970 + year, 400)  # the calendar repeats after 400 years
    day = datetime.date(year + 400, month + 1, 1) - datetime.date(1970, 1, 1)
    return (day.days + (cycles - 1) * 146_097) * 86_400, 1


def _exactly(numerator: int, divisor: int, value: object, dtype: pa.DataType, verb: str) -> int:
    ticks, rest = divmod(numerator, divisor)
    if rest:
        raise FrameError(f"{verb}: {value} is finer than {name_of(dtype)}")
    return ticks
