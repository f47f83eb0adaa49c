"""Tables for the tests of compare: of every kind of column, changed, cut and written in many ways."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from parity.compare import Comparison

ERROR = pa.struct({"kind": pa.string(), "message": pa.string()})

COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "f32": (pa.float32(), st.none() | st.floats(width=32)),
    "f64": (pa.float64(), st.floats(-100, 100)),
    "n": (pa.int64(), st.integers(0, 3)),
    "text": (pa.string(), st.none() | st.sampled_from(["a", "b", "ab", ""])),
    "scores": (pa.list_(pa.float32()), st.none() | st.lists(st.floats(0, 1, width=32), max_size=3)),
    "box": (
        pa.struct({"x": pa.float64(), "tags": pa.list_(pa.string())}),
        st.fixed_dictionaries(
            {"x": st.floats(0, 1), "tags": st.lists(st.sampled_from(["u", "v"]), max_size=2)}
        ),
    ),
    "_error": (ERROR, st.none() | st.sampled_from([{"kind": k, "message": m} for k in "ab" for m in "xy"])),
}


@st.composite
def tables(draw: st.DrawFn, *, most: int = 12) -> tuple[pa.Table, pa.Table]:
    """Two tables with an `id` each, in which many values agree and some do not."""
    names = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4, unique=True))
    count = draw(st.integers(1, most))
    expected, obtained = {"id": list(range(count))}, {"id": list(range(count))}
    for name in names:
        values = draw(st.lists(COLUMNS[name][1], min_size=count, max_size=count))
        others = draw(st.lists(COLUMNS[name][1], min_size=count, max_size=count))
        taken = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
        expected[name] = values
        obtained[name] = [
            new if take == 0 else old for old, new, take in zip(values, others, taken, strict=True)
        ]
    schema = pa.schema([("id", pa.int64()), *((name, COLUMNS[name][0]) for name in names)])
    return pa.table(expected, schema=schema), pa.table(obtained, schema=schema)


def facts(found: Comparison, *, rows: bool = True) -> dict[str, Any]:
    """All that a comparison says, means rounded; without row numbers where rows are in another order."""
    told: Any = found.to_dict()
    if not rows:
        told.pop("failing_rows")
        told["findings"] = [finding for finding in told["findings"] if finding["kind"] != "row_order"]
    for column in told["columns"]:
        column["dtype"] = column["dtype"].replace("<item:", "<element:")  # as Parquet calls it
        for measure in ("abs", "rel", "ulp") if column["distances"] else ():
            spread = column["distances"][measure]
            if isinstance(spread["mean"], float) and math.isfinite(spread["mean"]):
                spread["mean"] = float(f"{spread['mean']:.9g}")
        if not rows:
            for name in ("worst", "failing_rows", "differing_rows"):
                column.pop(name)
    return told


def write(table: pa.Table, folder: Path, *, files: int = 1, group: int = 1_000) -> Path:
    """Write a table in parts of about equal length; the folder."""
    folder.mkdir(parents=True)
    for part in range(files):
        start, end = (table.num_rows * place // files for place in (part, part + 1))
        pq.write_table(table.slice(start, end - start), folder / f"part-{part}.parquet", row_group_size=group)
    return folder


def cut(count: int, cuts: Sequence[int]) -> list[tuple[int, int]]:
    """The ranges between the cuts, which are places from 0 to `count`."""
    return list(pairwise(sorted({0, count, *cuts})))
