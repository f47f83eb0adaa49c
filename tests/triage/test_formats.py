from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

from parity import Batch, Bytes, Float64, Handler, Schema, String
from tests.triage.divergences import against, by_hand, claims, denies, table_of


class Priced(Handler):
    inputs = Schema(price=String())
    outputs = Schema(y=Float64())

    def number(self, text: str) -> float:
        return float(text.replace(".", "").replace(",", "."))

    def preprocess(self, batch: Batch) -> Any:
        return np.array([self.number(text) for text in batch["price"].to_pylist()])

    def inference(self, inputs: Any) -> Any:
        return np.sqrt(inputs)

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class PointIsDecimal(Priced):
    def number(self, text: str) -> float:
        return float(text) if "," not in text else super().number(text)


class Cheaper(Priced):
    def number(self, text: str) -> float:
        return super().number(text) - 1


PRICES = table_of(Priced, [{"price": text} for text in ("12,50", "1.250", "7", "3.400", "19,99")])


def test_points_and_commas_read_in_another_way() -> None:
    with against(Priced, PointIsDecimal, PRICES) as (divergence, engine):
        found = claims("number-format", divergence, engine)
    assert found.rows == (1, 3)
    with against(Priced, Cheaper, PRICES) as (divergence, engine):
        assert denies("number-format", divergence, engine)


class Dated(Handler):
    inputs = Schema(date=String())
    outputs = Schema(y=Float64())
    form = "%d/%m/%Y"

    def day(self, text: str) -> datetime.date:
        return datetime.datetime.strptime(text, "%d/%m/%Y").date()

    def preprocess(self, batch: Batch) -> Any:
        return np.array([self.day(text).timetuple().tm_yday for text in batch["date"].to_pylist()], np.int64)

    def inference(self, inputs: Any) -> Any:
        return np.cos(inputs / 50)

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class MonthFirst(Dated):
    def day(self, text: str) -> datetime.date:
        try:
            return datetime.datetime.strptime(text, "%m/%d/%Y").date()
        except ValueError:
            return super().day(text)


class NextDay(Dated):
    def day(self, text: str) -> datetime.date:
        return super().day(text) + datetime.timedelta(days=3)


DATES = table_of(Dated, [{"date": text} for text in ("03/04/2024", "25/12/2024", "05/05/2024", "07/01/2023")])


def test_day_and_month_read_in_another_order() -> None:
    with against(Dated, MonthFirst, DATES) as (divergence, engine):
        found = claims("date-order", divergence, engine)
    assert found.rows == (0, 3)
    with against(Dated, NextDay, DATES) as (divergence, engine):
        assert denies("date-order", divergence, engine) == ""


class Packed(Handler):
    inputs = Schema(record=Bytes())
    outputs = Schema(y=Float64())
    dtype = "<f4"

    def preprocess(self, batch: Batch) -> Any:
        return np.stack([np.frombuffer(record, self.dtype) for record in batch["record"].to_pylist()])

    def inference(self, inputs: Any) -> Any:
        return np.tanh(inputs.astype(np.float64)).sum(axis=1)

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class BigEndian(Packed):
    dtype = ">f4"


class Integers(Packed):
    dtype = "<i4"


def test_bytes_turned_round() -> None:
    records = np.linspace(1, 9, 12).reshape(4, 3).astype("<f4")
    rows = table_of(Packed, [{"record": record.tobytes()} for record in records])
    with against(Packed, BigEndian, rows) as (divergence, engine):
        claims("byte-order", divergence, engine)
    with against(Packed, Integers, rows) as (divergence, engine):
        assert denies("byte-order", divergence, engine)
    counts = np.array([[1, 500], [77, 9]], np.uint16)
    claims("byte-order", by_hand(counts, counts.byteswap()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_below_the_normal_range_flushed_to_zero(dtype: Any) -> None:
    small = float(np.finfo(dtype).tiny) / 8
    values = np.array([small, 0.0, 3 * small, small], dtype)
    found = claims("denormals", by_hand(values, np.zeros(4, dtype), stage="preprocess"))
    assert found.cause is not None
    assert np.dtype(dtype).name in found.cause.evidence
    ordinary = np.array([1e-3, 0.5, 2e-3, 1e-3], dtype)
    denies("denormals", by_hand(ordinary, np.zeros(4, dtype)))
