"""Time zones: instants and hours that lie a constant number of quarters of an hour apart."""

from __future__ import annotations

import datetime
import os
import zoneinfo
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow.types as pat

from parity.triage.case import Case, Explained, Finding, Refuted, Suspect, numbers
from parity.triage.causes.texts import text_values
from parity.triage.values import Pair

_QUARTER: Final = 900
_LARGEST: Final = 26 * 3600

_ZONES: Final = (
    "UTC",
    "Europe/London",
    "Europe/Madrid",
    "Europe/Berlin",
    "America/New_York",
    "America/Chicago",
    "America/Los_Angeles",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Australia/Sydney",
    "Pacific/Auckland",
)

Moment = datetime.datetime
Feature = Callable[[Moment], float]

_FEATURES: Final[dict[str, Feature]] = {
    "hour": lambda t: t.hour,
    "hour with minutes": lambda t: t.hour + t.minute / 60,
    "hour with minutes and seconds": lambda t: t.hour + t.minute / 60 + t.second / 3600,
    "minute of the day": lambda t: t.hour * 60 + t.minute,
    "day of the week, Monday 0": lambda t: t.weekday(),
    "day of the week, Monday 1": lambda t: t.isoweekday(),
    "day of the week, Sunday 0": lambda t: t.isoweekday() % 7,
    "weekend": lambda t: t.weekday() >= 5,
    "day": lambda t: t.day,
    "month": lambda t: t.month,
    "day of the year": lambda t: t.timetuple().tm_yday,
    "minute": lambda t: t.minute,
    "sine of the hour": lambda t: float(np.sin(2 * np.pi * t.hour / 24)),
    "cosine of the hour": lambda t: float(np.cos(2 * np.pi * t.hour / 24)),
}


def timezone_shift(case: Case) -> Finding:
    """A constant shift of instants, or hours and days that fit the timestamps in two zones."""
    tried = False
    for item in case.values:
        if not case.covers(item):
            continue
        found = _shifted(case, item)
        if found is not None:
            return found
        features = _in_two_zones(case, item)
        if features is not None:
            return features
        tried = tried or _is_time(case, item)
    return Refuted("no constant shift and no two time zones explain the two sides") if tried else None


def _is_time(case: Case, item: Pair) -> bool:
    value = item.expected[item.both[0]]
    return (value is not None and value.dtype.kind in "mM") or bool(_moments(case))


def _shifted(case: Case, item: Pair) -> Explained | None:
    """Instants, or seconds since 1970, a constant number of quarters of an hour apart."""
    rows = case.rows_of(item)
    one, other = _seconds(item.expected, rows), _seconds(item.obtained, rows)
    if one is None or other is None or one.shape != other.shape:
        return None
    apart = np.unique(other - one)
    apart = apart[apart != 0]
    if not len(apart) or len(apart) > 2 or np.ptp(apart) not in (0, 3600):
        return None
    if (np.abs(apart) > _LARGEST).any() or (np.abs(apart) % _QUARTER != 0).any():
        return None
    summer = " and ".join(_hours(float(step)) for step in apart)
    season = ", which is one zone's time in winter and in summer" if len(apart) > 1 else ""
    return Explained(
        f"{item.place} lies {summer} apart on {len(rows)} of {len(rows)} differing rows{season}",
        f"the two sides read times in other zones, {summer} apart",
    )


def _seconds(values: Sequence[Any], rows: Sequence[int]) -> np.ndarray[Any, Any] | None:
    picked = [values[row] for row in rows]
    if not picked or any(value is None or value.shape != picked[0].shape for value in picked):
        return None
    stacked = np.stack(picked)
    if stacked.dtype.kind == "M":
        if np.isnat(stacked).any() or stacked.dtype == np.dtype("datetime64[D]"):
            return None
        return stacked.astype("datetime64[us]").astype(np.int64) / 1e6
    if stacked.dtype.kind in "iuf":
        wide = stacked.astype(np.float64)
        for unit in (1.0, 1e3, 1e6, 1e9):
            scaled = wide / unit
            if np.isfinite(scaled).all() and (np.abs(scaled) > 1e8).all() and (np.abs(scaled) < 1e10).all():
                return scaled
    if stacked.dtype.kind == "U" and stacked.ndim == 1:
        return _spelled(stacked.tolist())
    return None


def _spelled(texts: Sequence[str]) -> np.ndarray[Any, Any] | None:
    found: list[float] = []
    for text in texts:
        moment = None
        for form in (None, "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M", "%H:%M", "%H:%M:%S"):
            try:
                moment = Moment.fromisoformat(text) if form is None else Moment.strptime(text, form)
                break
            except ValueError:
                continue
        if moment is None or ":" not in text:
            return None
        naive = moment.replace(tzinfo=None)
        found.append((naive - Moment(1900, 1, 1)).total_seconds())
    return np.asarray(found)


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:+g} hours"


def _in_two_zones(case: Case, item: Pair) -> Explained | None:
    """Hours, days and the like that are one timestamp's in a zone on each side."""
    rows = item.both[:64]
    for column, moments in _moments(case).items():
        kept = [row for row in rows if moments[row] is not None]
        if not kept or not set(case.failing) & set(kept):
            continue
        picked = [moments[row] for row in kept]
        for place, one, other in _scalars(item, kept):
            for feature, function in _FEATURES.items():
                ours = _zones_that_give(picked, function, one, case)
                theirs = _zones_that_give(picked, function, other, case) if ours else []
                if ours and theirs and (len(kept) > 1 or len(ours) < 12):
                    return Explained(
                        f"{place} is the {feature} of {column!r} in {ours[0]} on the expected side and in "
                        f"{theirs[0]} on the obtained side, on all {len(kept)} rows",
                        f"one side takes the {feature} in {ours[0]}, the other in {theirs[0]}",
                    )
        days = _days(item, kept, picked, case)
        if days is not None:
            return Explained(
                f"{item.place} is the day of {column!r} in {days[0]} on the expected side and in {days[1]} "
                f"on the obtained side, on all {len(kept)} rows",
                f"one side takes the day in {days[0]}, the other in {days[1]}",
            )
    return None


def _scalars(item: Pair, rows: list[int]) -> Iterator[tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """The differing numbers of a place, one a row: of each column where it is a vector."""
    one, other = numbers(item.expected, rows), numbers(item.obtained, rows)
    if one is None or other is None or one.shape != other.shape:
        return
    if one.ndim == 1:
        yield item.place, one, other
    elif one.ndim == 2 and one.shape[1] <= 64:
        for column in range(one.shape[1]):
            if not np.array_equal(one[:, column], other[:, column], equal_nan=True):
                yield f"{item.place}[{column}]", one[:, column], other[:, column]


def _days(item: Pair, rows: list[int], moments: Sequence[Any], case: Case) -> tuple[str, str] | None:
    found: list[str] = []
    for values in (item.expected, item.obtained):
        texts = text_values(values, rows)
        picked = [values[row] for row in rows]
        if texts is None:
            if any(value is None or value.dtype != np.dtype("datetime64[D]") for value in picked):
                return None
            texts = [str(value[()]) for value in picked if value is not None]
        for name, zone in _zones(case):
            if [_in_zone(moment, zone).date().isoformat() for moment in moments] == [
                text[:10] for text in texts
            ]:
                found.append(name)
                break
        else:
            return None
    return (found[0], found[1]) if found[0] != found[1] else None


def _zones_that_give(
    moments: Sequence[Any], feature: Feature, values: np.ndarray[Any, Any], case: Case
) -> list[str]:
    found: list[str] = []
    for name, zone in _zones(case):
        given = [feature(_in_zone(moment, zone)) for moment in moments]
        if np.allclose(given, values, rtol=0, atol=1e-5):
            found.append(name)
    return found


def _in_zone(moment: Moment, zone: datetime.tzinfo) -> Moment:
    return moment.astimezone(zone)


def _zones(case: Case) -> Iterator[tuple[str, datetime.tzinfo]]:
    """Zones by name: those that are set here first, then common ones, then all constant shifts."""
    named = [field.type.tz for field in case.divergence.rows.schema if pat.is_timestamp(field.type)]
    named += [case.divergence.varied.get("TZ"), *(side.fingerprint.get("timezone") for side in case.sides)]
    named += [os.environ.get("TZ"), *_ZONES]
    for name in dict.fromkeys(name for name in named if name):
        try:
            yield name, zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            continue
    for quarters in range(-56, 57):
        shift = datetime.timedelta(minutes=15 * quarters)
        if quarters:
            yield f"UTC{_hours(shift.total_seconds())}", datetime.timezone(shift)


def _moments(case: Case) -> dict[str, list[Moment | None]]:
    """The timestamps among the inputs as instants; of those without a zone, as if in UTC."""
    found: dict[str, list[Moment | None]] = {}
    rows = case.divergence.rows
    for field in rows.schema:
        if pat.is_timestamp(field.type):
            values = case.inputs[field.name]
            found[field.name] = [None if value is None else _moment(value) for value in values]
        elif pat.is_integer(field.type):
            seconds = _seconds(case.inputs[field.name], range(rows.num_rows))
            if seconds is not None:
                found[field.name] = [
                    Moment.fromtimestamp(float(second), datetime.UTC) for second in seconds.tolist()
                ]
    return found


def _moment(value: Any) -> Moment | None:
    ticks = int(value.astype("datetime64[us]").astype(np.int64))
    try:
        return Moment(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=ticks)
    except OverflowError:
        return None


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "timezone-shift",
        "the two sides read times in other zones",
        "constant shifts by quarters of an hour; hours, days and months of the timestamps in zones and "
        "shifts",
        "declare Timestamp(tz=...), and convert to the zone that is meant: never fromtimestamp without tz",
        timezone_shift,
        ("path", "process"),
    )


SUSPECTS: Final = tuple(_suspects())
