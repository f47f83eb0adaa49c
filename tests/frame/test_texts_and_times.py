"""Text, times, dates and lists: nulls, hostile text, zones, and what Python and pandas say of them."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import zoneinfo
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.frame import FrameError, Series

UTC = datetime.UTC
ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia"]


def texts(*values: str | None) -> Series:
    return Series(pa.array(values, pa.string()))


def times(values: list[Any], unit: str = "us", zone: str | None = None) -> Series:
    return Series(pa.array(values, pa.timestamp(unit, zone)))  # type: ignore[arg-type]


# --- text


@settings(deadline=None, max_examples=60)
@given(st.lists(st.none() | st.text(), max_size=6), st.integers(-4, 4), st.none() | st.integers(-4, 4))
def test_length_slice_and_plain_search_are_pythons(
    values: list[str | None], start: int, stop: int | None
) -> None:
    series = texts(*values)
    assert series.str.len().to_pylist() == [None if v is None else len(v) for v in values]
    assert series.str.slice(start, stop).to_pylist() == [None if v is None else v[start:stop] for v in values]
    part = next((v[:1] for v in values if v), "x")
    for found, expected in (
        (series.str.contains(part, regex=False), [None if v is None else part in v for v in values]),
        (series.str.startswith(part), [None if v is None else v.startswith(part) for v in values]),
        (series.str.endswith(part), [None if v is None else v.endswith(part) for v in values]),
        (series.str.replace(part, "<>"), [None if v is None else v.replace(part, "<>") for v in values]),
        (series == part, [None if v is None else v == part for v in values]),
    ):
        assert found.to_pylist() == expected


def test_case_is_changed_one_code_point_at_a_time() -> None:
    assert texts("Straße", "ÉTÉ", "日本", None, "👍🏽").str.lower().to_pylist() == [
        "straße",
        "été",
        "日本",
        None,
        "👍🏽",
    ]
    assert texts("straße", "été").str.upper().to_pylist()[1] == "ÉTÉ"
    assert len(texts("straße").str.upper().to_pylist()[0]) == 6


def test_strip_takes_unicodes_white_space() -> None:
    assert texts(" a\t", "\u00a0x\u2003", "a b", "", None).str.strip().to_pylist() == [
        "a",
        "x",
        "a b",
        "",
        None,
    ]


def test_a_pattern_is_an_expression_unless_told() -> None:
    found = texts("a.b", "acb", None)
    assert found.str.contains("a.b").to_pylist() == [True, True, None]
    assert found.str.contains("a.b", regex=False).to_pylist() == [True, False, None]
    assert found.str.replace("a.b", "x").to_pylist() == ["x", "acb", None]
    assert found.str.replace("(a)(.)b", r"\2\1", regex=True).to_pylist() == [".a", "ca", None]
    for wrong in (lambda: found.str.contains("("), lambda: found.str.replace("(?=a)", "b", regex=True)):
        with pytest.raises(FrameError, match="no regular expression of RE2"):
            wrong()
    with pytest.raises(FrameError, match="the pattern is empty"):
        found.str.replace("", "x")
    with pytest.raises(FrameError, match="None is no text"):
        found.str.contains(None)  # type: ignore[arg-type]


def test_texts_are_compared_for_equality_only() -> None:
    left, right = texts("a", None, "é"), texts("a", "b", "e\u0301")
    assert (left == right).to_pylist() == [True, None, False]
    assert (left != "a").to_pylist() == [False, None, True]
    with pytest.raises(FrameError, match="no order that all languages share"):
        _ = left < right
    with pytest.raises(FrameError, match="1 is no text"):
        _ = left == 1


def test_verbs_of_text_are_for_text() -> None:
    with pytest.raises(FrameError, match=r".str is for text, this column is int64"):
        _ = Series(pa.array([1])).str
    with pytest.raises(FrameError, match=r".dt is for times and dates"):
        _ = texts("a").dt
    with pytest.raises(FrameError, match=r".list is for lists"):
        _ = texts("a").list


def test_null_text_is_filled_and_empty_text_is_not_null() -> None:
    assert texts("", None).fillna("none").to_pylist() == ["", "none"]
    assert texts("", None).isna().to_pylist() == [False, True]


# --- times and dates

instants = st.datetimes(datetime.datetime(1800, 1, 1), datetime.datetime(2200, 1, 1), timezones=st.just(UTC))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.none() | instants, max_size=5), st.sampled_from(ZONES))
def test_parts_are_those_of_the_columns_zone(values: list[datetime.datetime | None], zone: str) -> None:
    here = [None if v is None else v.astimezone(zoneinfo.ZoneInfo(zone)) for v in values]
    for series in (times(values, "us", zone), times(values, "us", "UTC").dt.tz_convert(zone)):
        for part in ("year", "month", "day", "hour", "minute"):
            expected = [None if v is None else getattr(v, part) for v in here]
            assert getattr(series.dt, part).to_pylist() == expected
        assert series.dt.weekday.to_pylist() == [None if v is None else v.weekday() for v in here]


def test_zones_have_summers_beyond_the_lists_of_changes() -> None:
    # Arrow by itself knows no summer time from 2037 on
    summer = [datetime.datetime(year, 7, 1, 12, tzinfo=UTC) for year in (2036, 2037, 2038, 2437, 9999)]
    assert times(summer, "us", "Europe/Berlin").dt.hour.to_pylist() == [14] * 5
    last = np.datetime64("32767-12-31T22:59:59", "s").astype(np.int64)
    far = Series(pa.array([None, last, last + 1], pa.int64()).cast(pa.timestamp("s", "Europe/Berlin")))
    assert far.take(torch.tensor([0, 1])).dt.year.to_pylist() == [None, 32767]
    with pytest.raises(FrameError, match=r"dt.year: a year is beyond 32767 \(row 2\)"):
        _ = far.dt.year
    fixed = Series(pa.array([2**31], pa.int64()).cast(pa.timestamp("s", "+05:30")))
    assert fixed.dt.hour.to_pylist() == [8]
    edge = Series(pa.array([None, 2**63 - 1], pa.int64()).cast(pa.timestamp("ns", "Europe/Berlin")))
    with pytest.raises(FrameError, match=r"out of the calendar \(row 1\)"):
        _ = edge.dt.year


def test_the_hour_that_comes_twice_and_the_one_that_never_comes() -> None:
    both = [
        datetime.datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
        datetime.datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
    ]
    assert times(both, "us", "Europe/Berlin").dt.hour.to_pylist() == [2, 2]
    spring = [
        datetime.datetime(2024, 3, 31, 0, 59, tzinfo=UTC),
        datetime.datetime(2024, 3, 31, 1, 0, tzinfo=UTC),
    ]
    assert times(spring, "us", "Europe/Berlin").dt.hour.to_pylist() == [1, 3]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(-(2**62), 2**62), max_size=5), st.sampled_from(["s", "ms", "us", "ns"]))
def test_epoch_rounds_down(ticks: list[int], unit: str) -> None:
    series = Series(pa.array(ticks, pa.int64()).cast(pa.timestamp("ns")))
    per = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    assert series.dt.epoch(unit).to_pylist() == [tick // per for tick in ticks]  # type: ignore[arg-type]


def test_epoch_that_does_not_fit_names_the_row() -> None:
    series = Series(pa.array([0, 2**60], pa.int64()).cast(pa.timestamp("s")))
    with pytest.raises(FrameError, match=r"outside int64 \(row 1\)"):
        series.dt.epoch("ns")
    assert Series(pa.array([datetime.date(1969, 12, 31)])).dt.epoch("ms").to_pylist() == [-86_400_000]


@pytest.mark.slow
def test_parts_do_not_ask_the_zone_of_the_process() -> None:
    code = (
        "import pyarrow as pa; from parity.frame import Series;"
        "print(Series(pa.array([0], pa.timestamp('s'))).dt.hour.to_pylist(),"
        "Series(pa.array([0], pa.timestamp('s', 'UTC'))).dt.hour.to_pylist())"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["[0]", "[0]"]


def test_dates_have_parts_but_no_hour() -> None:
    dates = Series(pa.array([datetime.date(2024, 2, 29), None, datetime.date(1969, 12, 31)]))
    assert dates.dt.month.to_pylist() == [2, None, 12]
    assert dates.dt.weekday.to_pylist() == [3, None, 2]
    with pytest.raises(FrameError, match=r"dt.hour: a date has none"):
        _ = dates.dt.hour
    with pytest.raises(FrameError, match="has no zone"):
        dates.dt.tz_convert("UTC")


def test_times_are_compared_as_instants() -> None:
    series = times([datetime.datetime(2024, 1, 1, tzinfo=UTC), None], "us", "Europe/Berlin")
    same = datetime.datetime(2024, 1, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    assert (series == same).to_pylist() == [True, None]
    assert (series >= same).to_pylist() == [True, None]
    assert series.fillna(same).to_pylist()[1] == same
    with pytest.raises(FrameError, match="one has a zone, the other none"):
        _ = series > datetime.datetime(2024, 1, 1)
    with pytest.raises(FrameError, match=r"use .astype to make the types equal"):
        _ = series > times([datetime.datetime(2024, 1, 1), None])
    with pytest.raises(FrameError, match="finer than"):
        _ = times([None], "s") > datetime.datetime(2024, 1, 1, 0, 0, 0, 5)
    with pytest.raises(FrameError, match="no time zone 'Mars/Olympus'"):
        series.dt.tz_convert("Mars/Olympus")
    naive = times([datetime.datetime(2024, 1, 1), None])
    assert (naive == np.datetime64("2024-01-01")).to_pylist() == [True, None]
    assert (Series(pa.array([datetime.date(2024, 1, 1)])) < datetime.date(2024, 1, 2)).to_pylist() == [True]


def test_pandas_agrees_on_parts() -> None:
    values = pd.date_range("1969-12-30", periods=200, freq="13h7min", tz="Europe/Berlin").as_unit("us")
    series = Series(
        pa.array(values.tz_convert("UTC").tz_localize(None), pa.timestamp("us")).cast(
            pa.timestamp("us", "Europe/Berlin")
        )
    )
    for part in ("year", "month", "day", "hour", "minute", "second"):
        assert getattr(series.dt, part).to_pylist() == getattr(values, part).tolist()
    assert series.dt.weekday.to_pylist() == [value.weekday() for value in values]


def test_a_time_is_never_given_or_robbed_of_a_zone() -> None:
    naive, zoned = times([0]), times([0], "us", "UTC")
    for series, dtype in ((naive, pa.timestamp("us", "UTC")), (zoned, pa.timestamp("us"))):
        with pytest.raises(FrameError, match="one has a zone, the other none"):
            series.astype(dtype)
    late = times([1_700_004_600], "s", "Pacific/Apia")  # 2023-11-14 23:30 UTC
    assert late.astype("date32").to_pylist() == [datetime.date(2023, 11, 15)]
    assert times([1], "us").astype(pa.timestamp("ns")).to_arrow().cast(pa.int64()).to_pylist() == [1000]
    with pytest.raises(FrameError, match=r"row 0"):
        times([1], "us").astype(pa.timestamp("s"))


# --- lists


def test_lists_are_added_up_within_their_row() -> None:
    lists = Series(pa.array([[1.5, None, 2.0], [], None, [None]], pa.list_(pa.float64())))
    assert lists.list.len().to_pylist() == [3, 0, None, 1]
    assert lists.list.sum().to_pylist() == [3.5, 0.0, None, 0.0]
    assert lists.list.mean().to_pylist() == [1.75, None, None, None]
    assert lists.list.min().to_pylist() == [1.5, None, None, None]
    assert lists.list.max().to_pylist() == [2.0, None, None, None]
    whole = Series(pa.array([[1, 2], [2**62, 2**62]], pa.list_(pa.int64())))
    assert whole.list.max().to_pylist() == [2, 2**62]
    with pytest.raises(FrameError, match="sum: outside int64"):
        whole.list.sum()
    with pytest.raises(FrameError, match="a list of string has no numbers"):
        Series(pa.array([["a"]])).list.sum()


@pytest.mark.parametrize(
    ("far", "sign"),
    [
        (np.datetime64("9999-01-01"), 1),
        (np.datetime64("9999-01-01", "s"), 1),
        (np.datetime64(2**62, "s"), 1),
        (np.datetime64(-(2**62), "M"), -1),
        (np.datetime64("-0400", "Y"), -1),
        (datetime.datetime(9999, 1, 1), 1),
        (datetime.datetime(1, 1, 1), -1),
    ],
)
def test_a_time_beyond_the_columns_range_is_compared_truly_and_never_held(far: Any, sign: int) -> None:
    series = times([0, None, 2**63 - 1], "ns")
    assert (series < far).to_pylist() == [sign > 0, None, sign > 0]
    assert (series >= far).to_pylist() == [sign < 0, None, sign < 0]
    assert (series == far).to_pylist() == [False, None, False]
    for put in (lambda: series.fillna(far), lambda: series.where(series == series, far)):
        with pytest.raises(FrameError, match=r"does not fit timestamp\[ns\]"):
            put()


@settings(deadline=None, max_examples=60)
@given(
    st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)),
    st.sampled_from(["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"]),
)
def test_a_time_of_numpy_means_the_same_in_every_unit(when: datetime.datetime, unit: Any) -> None:
    value = np.datetime64(when, "us").astype(f"datetime64[{unit}]")
    ticks = int(value.astype("datetime64[ns]").astype(np.int64))
    series = times([ticks, None], "ns")
    assert (series == value).to_pylist() == [True, None]
    assert np.array(series.fillna(value).to_arrow().cast(pa.int64())).tolist() == [ticks, ticks]


def test_a_time_of_pandas_keeps_its_nanoseconds() -> None:
    series = times([1, None], "ns")
    assert (series == pd.Timestamp(1)).to_pylist() == [True, None]
    with pytest.raises(FrameError, match="finer than"):
        _ = times([0], "us") == pd.Timestamp(1)
    with pytest.raises(FrameError, match="is no timestamp"):
        series.fillna(pd.NaT)


def test_what_lies_behind_a_null_list_is_no_item() -> None:
    hidden = pa.ListArray.from_arrays([0, 2, 3], pa.array([1, 2, 3]), mask=pa.array([True, False]))
    lists = Series(hidden).list
    assert lists.sum().to_pylist() == [None, 3]
    assert lists.max().to_pylist() == [None, 3]
    assert lists.len().to_pylist() == [None, 1]
