"""Values that travel as text: timestamps, dates, decimals, base64. Strict both ways, never rounded or cut.

Functions that read raise ValueError with what is wrong and what would be right; the caller names the field.
"""

from __future__ import annotations

import binascii
import datetime
import decimal
import re
from typing import Any, Final

import numpy as np

from parity.schema import TimeUnit

TICKS_PER_SECOND: Final[dict[str, int]] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DIGITS: Final[dict[str, int]] = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_ATTOSECONDS: Final[dict[str, int]] = {
    "W": 7 * 86_400 * 10**18, "D": 86_400 * 10**18, "h": 3_600 * 10**18, "m": 60 * 10**18, "s": 10**18,
    "ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1,
}  # fmt: skip

_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,30}))?(?:([Zz])|([+-])(\d\d):(\d\d))?",
    re.ASCII,
)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_DECIMAL = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,6})?", re.ASCII)
_UTC_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_ORDINAL = 719_163
_DAYS_IN_400_YEARS = 146_097
_CONTEXT = decimal.Context(
    prec=200, traps=[decimal.Inexact, decimal.InvalidOperation], Emin=-999_999, Emax=999_999
)
TEXT_DAYS: Final = (-719_528, 2_932_896)
"""The days that four-digit years can tell: 0000-01-01 to 9999-12-31."""


def tick_limits(unit: TimeUnit) -> tuple[int, int]:
    """The least and greatest tick: int64's without its minimum, which numpy and pandas read as NaT.

    Seconds are held to what milliseconds can tell, since Parquet and Polars have no coarser unit.
    """
    high = (2**63 - 1) // 1000 if unit == "s" else 2**63 - 1
    return -high, high


def ticks_from_text(text: str, unit: TimeUnit, zoned: bool) -> int:
    """ISO 8601 text as ticks since 1970-01-01, in UTC for a zoned field."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(f"is not ISO 8601; write {_example(unit, zoned)}")
    year, month, day, hour, minute, second, fraction, utc, sign, offset_hour, offset_minute = match.groups()
    has_offset = utc is not None or sign is not None
    if zoned and not has_offset:
        raise ValueError(
            f"has no offset, and the field is zoned; add 'Z' or an offset, as in {_example(unit, True)}"
        )
    if has_offset and not zoned:
        raise ValueError(
            f"has an offset, and the field has no zone; send local time, as in {_example(unit, False)}"
        )
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        raise ValueError("has an hour, minute or second out of range")
    seconds = (
        _days(int(year), int(month), int(day)) * 86_400 + int(hour) * 3_600 + int(minute) * 60 + int(second)
    )
    if sign is not None:
        if int(offset_hour) > 23 or int(offset_minute) > 59:
            raise ValueError("has an offset out of range")
        offset = int(offset_hour) * 3_600 + int(offset_minute) * 60
        seconds -= offset if sign == "+" else -offset
    return _in_range(seconds * TICKS_PER_SECOND[unit] + _fraction(fraction or "", unit), unit)


def ticks_from_datetime(value: datetime.datetime, unit: TimeUnit, zoned: bool) -> int:
    """A Python datetime (or pandas Timestamp, with its nanoseconds) as ticks since 1970-01-01."""
    if value != value:  # pandas' NaT is a datetime that differs from itself
        raise ValueError("is NaT, which is not a value; send None where the field is nullable")
    offset = value.utcoffset()
    if zoned and offset is None:
        raise ValueError("is naive, and the field is zoned; give it a tzinfo")
    if not zoned and offset is not None:
        raise ValueError("has a tzinfo, and the field has no zone; send local time without one")
    since = value - _UTC_EPOCH if zoned else value.replace(tzinfo=None) - _EPOCH
    micros = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
    nanos = micros * 1000 + (int(getattr(value, "nanosecond", 0)))
    return _in_range(_rescale(nanos, 10**9, TICKS_PER_SECOND[unit], unit), unit)


def ticks_from_datetime64(value: np.datetime64, unit: TimeUnit, zoned: bool) -> int:
    """A numpy datetime64, which is naive, as ticks since 1970-01-01."""
    if np.isnat(value):
        raise ValueError("is NaT, which is not a value; send None where the field is nullable")
    if zoned:
        raise ValueError(
            "is a numpy datetime64, which has no zone, and the field is zoned; send an aware datetime"
        )
    name, count = np.datetime_data(value.dtype)
    if name not in _ATTOSECONDS:
        raise ValueError(f"has unit {name!r}, which is no fixed length of time")
    attos = int(value.astype(np.int64)) * count * _ATTOSECONDS[name]
    return _in_range(_rescale(attos, 10**18, TICKS_PER_SECOND[unit], unit), unit)


def days_from_text(text: str) -> int:
    """A date written YYYY-MM-DD as days since 1970-01-01."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError("is not a date; write 'YYYY-MM-DD'")
    return _days(int(match[1]), int(match[2]), int(match[3]))


def days_from_date(value: object) -> int:
    """A Python date or numpy datetime64[D] as days since 1970-01-01."""
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            raise ValueError("is NaT, which is not a value; send None where the field is nullable")
        if np.datetime_data(value.dtype) != ("D", 1):
            raise ValueError("is a numpy datetime64 finer or coarser than a day; send datetime64[D]")
        days = int(value.astype(np.int64))
        if not -(2**31) <= days < 2**31:
            raise ValueError("is out of the range of a date")
        return days
    if isinstance(value, datetime.datetime):
        raise ValueError("is a datetime; send its .date()")
    if isinstance(value, datetime.date):
        return value.toordinal() - _EPOCH_ORDINAL
    raise TypeError


def timestamp_texts(ticks: np.ndarray[Any, Any], unit: TimeUnit, zoned: bool) -> list[str]:
    """int64 ticks as ISO 8601 text with the unit's digits, in UTC with "Z" for a zoned field.

    The caller has ruled out what `has_text` says no to.
    """
    texts = np.datetime_as_string(ticks.view(f"datetime64[{unit}]"), unit=unit).tolist()
    return [f"{text}Z" for text in texts] if zoned else texts


def date_texts(days: np.ndarray[Any, Any]) -> list[str]:
    """int64 days since 1970-01-01 as "YYYY-MM-DD"."""
    return np.datetime_as_string(days.astype(np.int64).view("datetime64[D]"), unit="D").tolist()


def has_text(ticks: np.ndarray[Any, Any], ticks_per_day: int) -> np.ndarray[Any, Any]:
    """Which ticks fall in the years 0000 to 9999, all that ISO 8601 text can tell without agreement."""
    days = np.floor_divide(ticks, ticks_per_day)
    return (days >= TEXT_DAYS[0]) & (days <= TEXT_DAYS[1])


def decimal_from_text(text: str, precision: int, scale: int) -> decimal.Decimal:
    """Decimal text with exactly `scale` digits behind the point; "-0" is 0."""
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError("is not a decimal number; write it as '12.50'")
    return exact_decimal(decimal.Decimal(text), precision, scale)


def exact_decimal(value: decimal.Decimal | int, precision: int, scale: int) -> decimal.Decimal:
    """A number with exactly `scale` digits behind the point, refused where that would round or not fit."""
    number = decimal.Decimal(value)
    if not number.is_finite():
        raise ValueError("is not a finite decimal number")
    if not number:
        return decimal.Decimal((0, (0,), -scale))
    if number.adjusted() >= precision - scale:
        raise ValueError(f"has more than {precision - scale} digits before the point")
    try:
        return number.quantize(decimal.Decimal((0, (1,), -scale)), context=_CONTEXT)
    except (decimal.Inexact, decimal.InvalidOperation):
        raise ValueError(
            f"has more than {scale} digits behind the point; round it first, as you mean it"
        ) from None


def decimal_text(value: decimal.Decimal) -> str:
    """Plain digits, no exponent."""
    return format(value, "f")


def bytes_from_base64(text: str) -> bytes:
    """Strict RFC 4648 base64: the standard alphabet, padded, no line breaks, no stray bits."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as exc:  # binascii.Error, and text that is not ASCII
        raise ValueError(f"is not strict base64 ({exc}); send the standard alphabet with padding") from None
    if text[-4:].encode() != binascii.b2a_base64(data[(len(data) - 1) // 3 * 3 :], newline=False):
        raise ValueError("is not strict base64 (stray bits at the end); encode the bytes again")
    return data


def base64_text(data: bytes) -> str:
    """Base64 as `bytes_from_base64` reads it."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _days(year: int, month: int, day: int) -> int:
    try:
        if year == 0:  # Python's calendar starts with year 1; the Gregorian calendar repeats after 400 years
            return datetime.date(400, month, day).toordinal() - _DAYS_IN_400_YEARS - _EPOCH_ORDINAL
        return datetime.date(year, month, day).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        raise ValueError("is not a day of the calendar") from None


def _fraction(digits: str, unit: TimeUnit) -> int:
    kept = _DIGITS[unit]
    if digits[kept:].strip("0"):
        raise ValueError(
            f"is finer than the field's unit {unit}; cut the digits you can spare, or declare a finer unit"
        )
    return int(digits[:kept].ljust(kept, "0") or "0")


def _rescale(ticks: int, per_second: int, wanted: int, unit: TimeUnit) -> int:
    step, rest = divmod(ticks * wanted, per_second)
    if rest:
        raise ValueError(f"is finer than the field's unit {unit}; round it first, or declare a finer unit")
    return step


def _in_range(ticks: int, unit: TimeUnit) -> int:
    low, high = tick_limits(unit)
    if not low <= ticks <= high:
        raise ValueError(f"is out of the range of unit {unit}; declare a coarser unit")
    return ticks


def _example(unit: TimeUnit, zoned: bool) -> str:
    fraction = "." + "123456789"[: _DIGITS[unit]] if _DIGITS[unit] else ""
    return f"'2024-03-31T01:30:00{fraction}{'Z' if zoned else ''}'"
