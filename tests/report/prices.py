"""A small handler of numbers that leans on its neighbours, and a real report about it."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from parity import Batch, Engine, Float32, Float64, Handler, Int64, Schema, String
from parity.codec.rows import RowDecoder
from parity.compare import compare
from parity.laws import check_laws, laws_named
from parity.report import CheckReport, Entry
from parity.report.samples import samples

ROWS = 64
FINGERPRINT = {"python": "3.11.9", "cpu": "x86-64 AVX2"}
Doubles = np.ndarray[Any, np.dtype[np.float64]]


class Prices(Handler):
    """How far a price is from the mean of its batch: a bug that no test on one batch shows."""

    inputs = Schema(title=String(), price=Float64(), stock=Int64(nullable=True))
    outputs = Schema(title=String(), score=Float32(), rank=Int64())

    def preprocess(self, batch: Batch) -> Doubles:
        return batch["price"].numpy()

    def inference(self, inputs: Doubles) -> Doubles:
        with np.errstate(all="ignore"):
            return inputs - inputs.mean()

    def postprocess(self, outputs: Doubles, batch: Batch) -> dict[str, object]:
        return {
            "title": list(batch["title"]),
            "score": outputs.astype(np.float32),
            "rank": (outputs > 0).astype(np.int64),
        }


@cache
def rows() -> Batch:
    """Give rows of prices between 1 and 100, two thirds of them without a stock."""
    random = np.random.default_rng(3)
    values = [
        {"title": f"boot {row}", "price": round(float(price), 2), "stock": None if row % 3 else row}
        for row, price in enumerate(random.uniform(1, 100, ROWS))
    ]
    decoded = RowDecoder(Prices.inputs).decode(values)
    assert decoded.errors == ()
    return decoded.batch


@cache
def prices_report() -> CheckReport:
    """Give a report of a broken law, a runner that agrees, and one that asks in batches of 1, 7 or 32."""
    inputs = rows().to_table()
    buckets = [1] * 8 + [7] * 24 + [32] * 32
    with Engine(Prices) as engine:
        whole = engine.run(rows()).to_table()
        cuts = [*range(9), 15, 22, 29, 32, ROWS]
        pieces = [rows().slice(start, stop) for start, stop in itertools.pairwise(cuts)]
        answers = {
            "notebook": whole,
            "online": pa.concat_tables([engine.run(piece).to_table() for piece in pieces]),
        }
        laws = check_laws(engine, rows(), laws=laws_named(["batch-size", "order"]))
    entries: list[Entry] = []
    for runner, table in answers.items():
        found = compare(whole, table, inputs=inputs)
        kept = samples(found, whole, table, buckets, inputs=inputs)
        entries.append(Entry(runner, "january", None, ROWS, found, 0.5, samples=kept))
    return CheckReport(
        "prices", "3.0", "default", FINGERPRINT, tuple(entries), tuple(laws), "handlers/prices"
    )
