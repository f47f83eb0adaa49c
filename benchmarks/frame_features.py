"""Feature code written with a frame and with pandas: CPU times of the same features, by size of the batch.

The rows come as Arrow columns and leave as a float32 matrix, as in a handler's preprocess. Both are run in
turn in one process on one thread, and the least of several times counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import torch

from parity.frame import Frame

SIZES = (1, 64, 4_096, 200_000)
TOWNS = {name: place for place, name in enumerate(["oslo", "bergen", "tromsø", "bodø", "molde"])}
INCOMES = {"town": list(TOWNS), "income": [61.5, 55.0, 52.25, 50.0, 48.75]}
EDGES = [0.0, 10.0, 50.0, 200.0, 1_000.0]

Matrix = npt.NDArray[np.float32]


def table(rows: int) -> dict[str, pa.Array[Any]]:
    """Columns of offers, some values null."""
    random = np.random.default_rng(3)
    missing = random.random(rows) < 0.1
    names = [" Oslo", "Bergen ", "TROMSØ", "Bodø", "elsewhere"]
    seconds = random.integers(1_600_000_000, 1_750_000_000, rows)
    return {
        "town": pa.array([names[place] for place in random.integers(0, 5, rows)], pa.string(), mask=missing),
        "price": pa.array(random.lognormal(4, 1, rows)),
        "area": pa.array(random.normal(80, 20, rows), mask=random.random(rows) < 0.1),
        "pictures": pa.array(random.integers(0, 30, rows), mask=missing),
        "posted": pa.array(seconds * 1_000_000).cast(pa.timestamp("us", "UTC")),
        "sold": pa.array(random.random(rows) < 0.5),
    }


def with_frame(columns: dict[str, pa.Array[Any]], incomes: Frame) -> Matrix:
    """The features by parity's frame."""
    frame = Frame(columns, of_batch=True)
    town = frame["town"].str.strip().str.lower()
    posted = frame["posted"].dt.tz_convert("Europe/Oslo").dt
    known = frame[["price"]].assign(town=town).merge(incomes, on="town")
    return (
        frame[["sold"]]
        .assign(
            town=town.map(TOWNS, default=-1).fillna(-1),
            income=known["income"].fillna(50.0).normalize(mean=55.0, std=4.5),
            price=frame["price"].log1p().clip(0, 12),
            area=frame["area"].fillna(80.0).normalize(mean=80.0, std=20.0),
            per_area=frame["price"] / frame["area"].fillna(80.0).clip(1.0),
            pictures=frame["pictures"].fillna(0).clip(0, 20),
            bracket=frame["price"].bucket(EDGES),
            hour=posted.hour,
            weekend=posted.weekday >= 5,
            north=town.isin(["tromsø", "bodø"]).fillna(False),
        )
        .to_numpy()
    )


def with_pandas(columns: dict[str, pa.Array[Any]], incomes: pd.DataFrame) -> Matrix:
    """The features by pandas with its default types."""
    frame = pa.table(columns).to_pandas()
    town = frame["town"].str.strip().str.lower()
    posted = frame["posted"].dt.tz_convert("Europe/Oslo").dt
    known = pd.DataFrame({"town": town}).merge(incomes, on="town", how="left")
    found = pd.DataFrame(
        {
            "sold": frame["sold"],
            "town": town.map(TOWNS).fillna(-1),
            "income": (known["income"].fillna(50.0) - 55.0) / 4.5,
            "price": np.log1p(frame["price"]).clip(0, 12),
            "area": (frame["area"].fillna(80.0) - 80.0) / 20.0,
            "per_area": frame["price"] / frame["area"].fillna(80.0).clip(lower=1.0),
            "pictures": frame["pictures"].fillna(0).clip(0, 20),
            "bracket": np.digitize(frame["price"], EDGES),
            "hour": posted.hour,
            "weekend": posted.day_of_week >= 5,
            "north": town.isin(["tromsø", "bodø"]),
        }
    )
    return found.to_numpy(np.float32)


def least_seconds(works: list[Callable[[], object]], repeats: int, calls: int) -> list[float]:
    """The least CPU seconds of one call of each work; the works take turns."""
    found = [float("inf")] * len(works)
    for _ in range(repeats):
        for place, work in enumerate(works):
            start = time.process_time()
            for _ in range(calls):
                work()
            found[place] = min(found[place], (time.process_time() - start) / calls)
    return found


def run() -> dict[str, Any]:
    """Milliseconds of both, and how many times faster the frame is."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    pa.set_cpu_count(1)
    bars: list[dict[str, Any]] = []
    sizes: dict[str, Any] = {}
    try:
        for rows in SIZES:
            columns = table(rows)
            ours, theirs = Frame(INCOMES), pd.DataFrame(INCOMES)
            mine, others = with_frame(columns, ours), with_pandas(columns, theirs)
            np.testing.assert_allclose(mine, others, rtol=1e-6)
            calls = max(1, 2_000 // max(rows, 100))
            frame_s, pandas_s = least_seconds(
                [lambda c=columns, o=ours: with_frame(c, o), lambda c=columns, t=theirs: with_pandas(c, t)],
                7,
                calls,
            )
            sizes[f"{rows} rows"] = {
                "frame_ms": round(frame_s * 1e3, 3),
                "pandas_ms": round(pandas_s * 1e3, 3),
            }
            bars.append(
                {
                    "what": f"times as fast as pandas, {rows} rows",
                    "value": pandas_s / frame_s,
                    "bar": 1.0,
                    "at": "least",
                }
            )
    finally:
        torch.set_num_threads(threads)
    return {"bars": bars, **sizes}
