"""Batches as a server has them after scoring, and captures made of them without a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.capture import CaptureSettings, Origin, PartWriter, Scored, Source, place_of
from parity.codec.arrow import decode_table
from parity.errors import RowError
from parity.result import Result
from parity.schema import Float32, Int64, Schema, String

INPUTS = Schema(name=String(), x=Int64(nullable=True))
OUTPUTS = Schema(y=Float32(), name=String())
SOURCE = Source(
    handler="echo",
    version="1.0.0",
    reference="handlers/echo",
    digests={"source": "ab", "artifacts": "cd"},
    profile={"name": "default", "device": "cpu", "buckets": [8]},
    fingerprint={"python": "3"},
    runner="online",
)
HOUR_NS = 3600 * 10**9


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Heard:
    """What a capture told its metrics."""

    def __init__(self) -> None:
        self.rows = 0
        self.lost_rows = 0
        self.failures = 0

    def captured(self, rows: int) -> None:
        self.rows += rows

    def lost(self, rows: int) -> None:
        self.lost_rows += rows

    def failed(self) -> None:
        self.failures += 1


def origin(request_id: str, time_ns: int = HOUR_NS) -> Origin:
    return Origin(request_id, "rows", time_ns, started=1.0)


def scored(
    names: Sequence[str],
    *,
    ids: Sequence[str] | None = None,
    failing: Sequence[int] = (),
    number: int = 1,
    time_ns: int = HOUR_NS,
) -> Scored:
    """A batch of rows with these names, each a request of its own called as `ids` say, else as its name."""
    rows = len(names)
    table = pa.table({"name": list(names), "x": [None if row % 3 == 2 else row for row in range(rows)]})
    batch = decode_table(INPUTS, table).batch
    good = [row for row in range(rows) if row not in failing]
    answers = pa.table(
        {
            "y": pa.array(np.array(good, np.float32) / 7),
            "name": pa.array([names[row].upper() for row in good], pa.string()),
        }
    )
    errors = tuple(
        RowError(row, "failed", f"{names[row]} cannot be", stage="inference", type="ValueError")
        for row in failing
    )
    result = Result(
        rows,
        decode_table(OUTPUTS, answers).batch,
        np.array(good, np.int64),
        errors,
        buckets=np.full(len(good), 8, np.int32),
    )
    shares = [(origin(name, time_ns), None, 1) for name in (ids or names)]
    return Scored(batch, result, shares, number, finished=1.25)


def part_writer(folder: Path | str, settings: CaptureSettings | None = None, **more: Any) -> PartWriter:
    chosen = settings or CaptureSettings(folder=str(folder))
    place = place_of(folder)
    place.prepare()
    return PartWriter(
        more.pop("source", SOURCE),
        more.pop("inputs", INPUTS),
        more.pop("outputs", OUTPUTS),
        chosen,
        more.pop("place", place),
        **more,
    )


def inputs_of(table: pa.Table, schema: Schema) -> Batch:
    """The recorded inputs, decoded."""
    columns = [table.column(f"input.{name}") for name in schema.names]
    decoded = decode_table(schema, pa.Table.from_arrays(columns, names=list(schema.names)))
    assert not decoded.errors
    return decoded.batch
