"""Micro-batches scored as a group: what a handler sees, and what comes out, does not show it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.codec.rebatch import rebatch
from parity_batch import score
from parity_batch.groups import MOST_BATCHES, Pace
from parity_batch.settings import Settings
from tests.batch.jobs import contents, read_parts

_ROWS = 4


def batches(sizes: list[int], width: int = 1) -> list[pa.RecordBatch]:
    starts = np.cumsum([0, *sizes])
    return [
        pa.record_batch({"x": np.arange(start, start + size), "text": ["t" * width] * size})
        for start, size in zip(starts.tolist(), sizes, strict=False)
    ]


@given(
    st.lists(st.integers(1, 20 * _ROWS), max_size=20),
    st.lists(st.sampled_from([0.0, 0.05, 1.0]), min_size=1, max_size=10),
)
def test_rows_keep_their_order_and_whole_micro_batches_their_borders(
    sizes: list[int], seconds: list[float]
) -> None:
    pace, found = Pace(), list[pa.RecordBatch]()
    for turn, rows in enumerate(rebatch(batches(sizes), _ROWS, together=pace.batches)):
        found.append(rows)
        pace.took(seconds[turn % len(seconds)])
        assert 1 <= pace.batches() <= MOST_BATCHES
    joined = [row for rows in found for row in rows.column("x").to_pylist()]
    assert joined == list(range(sum(sizes)))
    for rows in found:  # a group is whole micro-batches, so that cutting it gives the same ones
        assert rows.num_rows <= _ROWS or rows.num_rows % _ROWS == 0
    cut = [min(_ROWS, rows.num_rows - start) for rows in found for start in range(0, rows.num_rows, _ROWS)]
    assert cut == [rows.num_rows for rows in rebatch(batches(sizes), _ROWS)]


def test_groups_grow_while_they_are_short_and_shrink_when_they_are_long() -> None:
    pace = Pace()
    for _ in range(10):
        pace.took(0.001)
    assert pace.batches() == MOST_BATCHES
    for _ in range(10):
        pace.took(0.5)
    assert pace.batches() == 1
    assert Pace(0).batches() == 1


def test_large_rows_and_single_rows_stay_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def sizes(rows: int, width: int) -> list[int]:
        found = rebatch(batches([5 * _ROWS], width=width), rows, together=lambda: MOST_BATCHES)
        return [batch.num_rows for batch in found]

    assert sizes(_ROWS, 1) == [5 * _ROWS]
    assert sizes(1, 1) == [1] * 5 * _ROWS
    monkeypatch.setattr("parity.codec.rebatch.TOGETHER_BYTES", 2 * _ROWS * 220)
    assert sizes(_ROWS, 200) == [2 * _ROWS, _ROWS, 2 * _ROWS]
    monkeypatch.setattr("parity.codec.rebatch.TOGETHER_BYTES", 1000)
    assert sizes(_ROWS, 200) == [_ROWS] * 5


_WATCHING = """
from parity import Float64, Handler, Int64, Schema

SEEN = []

class Watching(Handler):
    inputs = Schema(x=Int64(le=9000))
    outputs = Schema(first=Int64(), rows=Int64(), y=Float64())

    def initialize(self, context):
        pass

    def preprocess(self, batch):
        return batch["x"].numpy()

    def inference(self, x):
        if 77 in x:
            raise ValueError("no seventy-seven")
        return x

    def postprocess(self, x, batch):
        return {"first": [int(x[0])] * len(x), "rows": [len(x)] * len(x), "y": x / 7}
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_handler_sees_the_same_micro_batches(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "watching.py").write_text(_WATCHING)
    values = np.arange(9100)  # the last hundred are out of range, and 77 raises
    values[5000] = 9050
    pq.write_table(pa.table({"x": pa.array(values)}), tmp_path / "in.parquet", row_group_size=1000)
    handler = f"{tmp_path / 'watching.py'}:Watching"
    settings = Settings(batch_rows=64, workers=workers)
    found: list[pa.Table] = []
    for name in ("together", "apart"):
        if name == "apart":
            monkeypatch.setattr(Pace, "batches", lambda pace: 1)
        summary = score(tmp_path / "in.parquet", tmp_path / name, handler, settings=settings)
        assert summary.row_errors == {"failed": 1, "invalid": 100}
        found.append(read_parts(tmp_path / name))
    assert contents(tmp_path / "together") == contents(tmp_path / "apart")
    answered = found[0].filter(pc.is_valid(found[0].column("rows")))
    assert answered.num_rows == 9100 - 101
    assert pc.max(answered.column("rows")).as_py() == 64
    firsts = set(answered.column("first").to_pylist())
    assert {
        0,
        64,
        128,
        4992,
    } <= firsts  # each micro-batch of its own: 5000 is not made up for by another's row
