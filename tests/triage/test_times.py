from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

import numpy as np
import pytest

from parity import Batch, Float64, Handler, Schema, Timestamp
from tests.triage.divergences import against, by_hand, claims, columns, denies, table_of

MOMENTS = [
    datetime.datetime(2024, month, day, hour, 10, tzinfo=datetime.UTC)
    for month, day, hour in [(1, 1, 0), (2, 3, 23), (4, 9, 12), (6, 30, 22), (7, 15, 7), (12, 31, 23)]
]


class Clock(Handler):
    inputs = Schema(time=Timestamp("s", tz="UTC"))
    outputs = Schema(demand=Float64())

    def local(self, moment: datetime.datetime) -> datetime.datetime:
        return moment

    def feature(self, moment: datetime.datetime) -> float:
        return moment.hour

    def preprocess(self, batch: Batch) -> Any:
        return np.array(
            [self.feature(self.local(moment)) for moment in batch["time"].to_pylist()], np.float64
        )

    def inference(self, inputs: Any) -> Any:
        return np.sin(inputs + 0.3)

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"demand": outputs}


class Tokyo(Clock):
    def local(self, moment: datetime.datetime) -> datetime.datetime:
        return moment.astimezone(zoneinfo.ZoneInfo("Asia/Tokyo"))


class Madrid(Clock):
    def local(self, moment: datetime.datetime) -> datetime.datetime:
        return moment.astimezone(zoneinfo.ZoneInfo("Europe/Madrid"))


class Weekday(Clock):
    def feature(self, moment: datetime.datetime) -> float:
        return moment.weekday()


class WeekdayInTokyo(Weekday, Tokyo):
    pass


class Backwards(Clock):
    def feature(self, moment: datetime.datetime) -> float:
        return (moment.hour * 7) % 24


ROWS = table_of(Clock, [{"time": moment} for moment in MOMENTS])


@pytest.mark.parametrize(
    ("reference", "handler", "words"),
    [
        (
            Clock,
            Tokyo,
            "the hour of 'time' in UTC on the expected side and in Asia/Tokyo on the obtained side",
        ),
        (Madrid, Clock, "in Europe/Madrid on the expected side and in UTC"),
        (Weekday, WeekdayInTokyo, "the day of the week, Monday 0 of 'time' in UTC"),
    ],
)
def test_a_feature_of_the_time_in_another_zone(
    reference: type[Handler], handler: type[Handler], words: str
) -> None:
    with against(reference, handler, ROWS) as (divergence, engine):
        found = claims("timezone-shift", divergence, engine)
    assert found.cause is not None
    assert words in found.cause.evidence


@pytest.mark.parametrize("hours", [9, -4, 5.75])
def test_instants_a_constant_number_of_quarters_apart(hours: float) -> None:
    instants = np.array([moment.replace(tzinfo=None) for moment in MOMENTS], "datetime64[s]")
    shifted = instants + np.timedelta64(int(hours * 3600), "s")
    found = claims("timezone-shift", by_hand(instants, shifted))
    assert found.cause is not None
    assert f"{hours:+g} hours" in found.cause.evidence
    seconds = instants.astype(np.int64)
    claims("timezone-shift", by_hand(seconds, seconds + int(hours * 3600)))
    claims("timezone-shift", by_hand(seconds * 1000, (seconds + int(hours * 3600)) * 1000))
    claims("timezone-shift", by_hand([str(x) for x in instants], [str(x) for x in shifted]))


def test_days_in_another_zone() -> None:
    zone = zoneinfo.ZoneInfo("Asia/Tokyo")
    inputs = ROWS
    days = [moment.date().isoformat() for moment in MOMENTS]
    found = claims(
        "timezone-shift", by_hand(days, [m.astimezone(zone).date().isoformat() for m in MOMENTS], inputs)
    )
    assert found.cause is not None
    assert "the day" in found.cause.sentence


@pytest.mark.parametrize("seconds", [100, 7 * 3600 + 11, 40 * 3600])
def test_other_distances_are_no_zones(seconds: int) -> None:
    instants = np.array([moment.replace(tzinfo=None) for moment in MOMENTS], "datetime64[s]")
    assert denies(
        "timezone-shift", by_hand(instants, instants + np.timedelta64(seconds, "s"), columns(t=instants))
    )


def test_another_feature_of_the_same_time_is_no_zone() -> None:
    with against(Clock, Backwards, ROWS) as (divergence, engine):
        assert "no two time zones" in denies("timezone-shift", divergence, engine)
