"""Micro-batches scored as a group: what a handler sees, and what comes out, does not show it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.codec.rebatch import rebatch
from parity.profile import Profile
from parity_batch import parts, score
from parity_batch.groups import MOST_BATCHES, Pace
from parity_batch.settings import Settings
from tests.batch.jobs import contents, part_files, read_parts

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


_UNEVEN = """
from parity import Float64, Handler, Int64, Schema, String

class Uneven(Handler):
    inputs = Schema(x=Int64(le=10**6))
    outputs = Schema(y=Float64(nullable=True), rows=Int64(), text=String())

    def initialize(self, context):
        pass

    def preprocess(self, batch):
        return batch["x"].numpy()

    def inference(self, x):
        if (x % 7001 == 7000).any():
            raise ValueError("one of them")
        return x

    def postprocess(self, x, batch):
        y = [None if value % 11 == 0 else value / 7 for value in x.tolist()]
        return {"y": y, "rows": [len(x)] * len(x), "text": ["t" * (value % 40) for value in x.tolist()]}
"""


@pytest.mark.parametrize("preprocess_workers", [0, 1])
@pytest.mark.parametrize("buckets", [(), (4, 32)])
def test_the_bytes_of_a_part_do_not_follow_the_clock(
    tmp_path: Path, buckets: tuple[int, ...], preprocess_workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row groups, pages and buckets are the same, however many micro-batches are scored together."""
    (tmp_path / "uneven.py").write_text(_UNEVEN)
    values = np.random.default_rng(5).permutation(60_000)
    values[::9000] = 2 * 10**6  # refused before the handler sees them
    table = pa.table({"x": pa.array(values), "note": pa.array([f"note {value % 977}" for value in values])})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=7000)
    monkeypatch.setattr(parts, "ROW_GROUP_BYTES", 256 * 1024)
    handler = f"{tmp_path / 'uneven.py'}:Uneven"
    turns = itertools.cycle([1, 2, 3, 7, 16])
    found: list[dict[str, bytes]] = []
    for name, pace in {"apart": lambda _: 1, "many": lambda _: 16, "mixed": lambda _: next(turns)}.items():
        monkeypatch.setattr(Pace, "batches", pace)
        settings = Settings(
            batch_rows=100,
            workers=1,
            preprocess_workers=preprocess_workers,
            profile=Profile(buckets=buckets),
        )
        score(tmp_path / "in.parquet", tmp_path / name, handler, columns=["x", "note"], settings=settings)
        found.append(contents(tmp_path / name))
    assert pq.ParquetFile(part_files(tmp_path / "apart")[0]).num_row_groups > 3
    assert found[0] == found[1] == found[2]
