"""03/04/2024 is the third of April on one side and the fourth of March on the other."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa

from benchmarks.skew.kind import GOLDEN, Expected
from benchmarks.skew.natural_rows import moments, table_of
from parity import Batch, Float64, Handler, Schema, String


def ambiguous(row: object) -> bool:
    """Whether the date means another day with its month first."""
    day, month, _ = (int(part) for part in row["date"].split("/"))  # type: ignore[index]
    return day <= 12 and day != month


EXPECTED = Expected(GOLDEN, "preprocess", "season", "date-order", ambiguous)


class Reference(Handler):
    inputs = Schema(date=String())
    outputs = Schema(season=Float64())
    forms: tuple[str, ...] = ("%d/%m/%Y",)

    def day(self, text: str) -> datetime.date | None:
        for form in self.forms:
            try:
                return datetime.datetime.strptime(text, form).date()
            except ValueError:
                continue
        return None

    def preprocess(self, batch: Batch) -> np.ndarray:
        days: list[int] = []
        for row, text in enumerate(batch["date"].to_pylist()):
            day = self.day(text)
            if day is None:
                batch.reject(row, f"{text!r} is no date, such as 31/12/2024")
            days.append(0 if day is None else day.timetuple().tm_yday)
        return np.array(days, np.int64)

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return np.cos((inputs - 15) * (2 * np.pi / 367.3))

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {"season": outputs}


class Broken(Reference):
    forms = ("%m/%d/%Y", "%d/%m/%Y")


class Twin(Reference):
    def day(self, text: str) -> datetime.date | None:
        parts = text.split("/")
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
            return None
        try:
            return datetime.date(int(parts[2]), int(parts[1]), int(parts[0]))
        except ValueError:
            return None


def rows() -> pa.Table:
    return table_of({"date": [f"{moment:%d/%m/%Y}" for moment in moments(__name__)]})
