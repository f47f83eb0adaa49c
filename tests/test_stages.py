"""Stage values row by row, and the tap that brings them out of another process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from parity import Engine, Float32, Handler, Int64, List, Schema, String, Tensor
from parity.batch import Batch
from parity.codec import frames
from parity.handler import LoadedHandler
from parity.registry import load_handler
from parity.stages import (
    Traces,
    Value,
    leaves,
    read_tap,
    read_tap_fingerprint,
    read_traces,
    row_digests,
    snapshot,
    traces,
    write_traces,
)

SCHEMA = Schema(x=Tensor("float32", (2,)), name=String(nullable=True))


@dataclass
class Features:
    x: np.ndarray
    names: list[str]


class Twice(Handler):
    inputs = SCHEMA
    outputs = Schema(y=Float32(), n=Int64())

    def initialize(self, context):
        self.buffer = np.empty((64, 2), np.float32)

    def preprocess(self, batch):
        return {"f": Features(batch["x"].numpy() * 2, [str(name) for name in batch["name"].to_pylist()])}

    def inference(self, inputs):
        rows = len(inputs["f"].names)
        self.buffer[:rows] = inputs["f"].x
        return self.buffer[:rows], inputs["f"].names

    def postprocess(self, outputs, batch):
        sums = outputs[0].sum(1)
        if np.isnan(sums).any():
            raise ValueError("NaN")
        return {"y": sums.astype(np.float32), "n": np.array([len(name) for name in outputs[1]], np.int64)}


def batch(values: list[float]) -> Batch:
    rows = [{"x": [v, 1.0], "name": None if v == 2 else f"row {v}"} for v in values]
    return frames.decode(SCHEMA, rows).batch


def traced(values: list[float]) -> Traces:
    with Engine(LoadedHandler.of(Twice)) as engine:
        rows = batch(values)
        return traces(rows, engine.run(rows, stages=True))


def there(values: Sequence[Value | None]) -> list[Value]:
    """The values, none of which is missing."""
    found = [value for value in values if value is not None]
    assert len(found) == len(values)
    return found


def test_a_trace_holds_each_row_of_each_leaf():
    found = traced([1, 2, 3])
    assert list(found.preprocess) == ["value['f'].x", "value['f'].names"]
    assert [value.tolist() for value in there(found.preprocess["value['f'].x"])] == [[2, 2], [4, 2], [6, 2]]
    assert [str(value) for value in found.inference["value[1]"]] == ["row 1", "None", "row 3"]
    assert found.outputs.column("y").to_pylist() == [4, 6, 8]


def test_a_failed_row_has_no_stage_values_and_its_neighbours_have_theirs():
    found = traced([1, float("nan"), 3])
    assert [value is None for value in found.inference["value[0]"]] == [False, True, False]
    stages = [error and error["stage"] for error in found.outputs.column("_error").to_pylist()]
    assert stages == [None, "postprocess", None]


def test_stage_values_are_copies_of_a_buffer_that_is_used_again():
    with Engine(LoadedHandler.of(Twice)) as engine:
        rows = batch([1, 2])
        first = engine.run(rows, stages=True)
        engine.run(batch([8, 9]), stages=True)
    assert there(traces(rows, first).inference["value[0]"])[0].tolist() == [2, 2]


def test_traces_survive_a_file_bit_for_bit(tmp_path: Path):
    found = traced([1, float("nan"), 3])
    write_traces(tmp_path / "t.arrow", found)
    back = read_traces(tmp_path / "t.arrow")
    for one, other in ((back.inputs, found.inputs), (back.outputs, found.outputs)):
        assert one.schema.equals(other.schema)
        assert row_digests(one) == row_digests(other)
    for stage in ("preprocess", "inference"):
        assert list(back.stage(stage)) == list(found.stage(stage))
        for path, values in found.stage(stage).items():
            for one, other in zip(values, back.stage(stage)[path], strict=True):
                assert (one is None) == (other is None)
                if one is not None and other is not None:
                    assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())


def test_rows_are_found_by_content_and_strangers_are_named():
    found = traced([1, 2, 3, 9])
    rows = batch([3, 4, 1, 1]).to_table()
    aligned, known, strangers = found.aligned(rows)
    assert known == [0, 2, 3]
    assert aligned.outputs.column("y").to_pylist() == [8, 4, 4]
    assert strangers == [1, 3]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        (1.0, np.nextafter(np.float64(1), 2), False),
        (None, float("nan"), False),
    ],
)
def test_digests_tell_bits_apart(one: float | None, other: float | None, same: bool):
    digests = [row_digests(pa.table({"x": pa.array([v], pa.float64())}))[0] for v in (one, other)]
    assert (digests[0] == digests[1]) is same


def test_digests_do_not_see_how_a_table_was_cut():
    table = pa.table({"x": ["a", None, "long text"], "l": [[1], [], [2, 3]]})
    pieces = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert row_digests(pieces) == row_digests(table)
    assert row_digests(table.slice(2)) == row_digests(table)[2:]


def test_digests_see_values_and_not_how_columns_are_described():
    plain = pa.table({"x": [1, 2]})
    described = pa.schema([pa.field("x", pa.int64(), nullable=False, metadata={"a": "b"})])
    assert row_digests(plain) == row_digests(plain.cast(described))


def test_rows_that_never_came_are_nulls():
    found = traced([1, 2])
    both = Traces.concat([found.take([1]), found.missing(1)])
    assert both.num_rows == 2
    assert both.inputs.column("name").to_pylist() == [None, None]
    assert [value is None for value in both.preprocess["value['f'].x"]] == [False, True]
    assert both.outputs.column("y").to_pylist() == [6, None]


def test_digests_do_not_see_what_lies_under_a_null():
    def array(under: int) -> pa.Array:
        values = pa.array(np.array([7, under], np.int64)).buffers()[1]
        return pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), values])

    assert row_digests(pa.table({"x": array(1)})) == row_digests(pa.table({"x": array(2)}))


def test_leaves_and_snapshots_keep_types():
    torch = pytest.importorskip("torch")
    array, tensor = np.ones(2), torch.ones(2)
    value = {"a": (array, tensor), "b": [1, 2], "c": None}
    assert [path for path, _ in leaves(value)] == ["value['a'][0]", "value['a'][1]", "value['b']"]
    kept = snapshot(value)
    array[:] = 5
    tensor[:] = 5
    assert kept["a"][0].tolist() == [1, 1]
    assert kept["a"][1].tolist() == [1, 1]


@pytest.mark.slow
def test_an_engine_in_another_process_writes_to_the_tap(tmp_path: Path):
    handler = tmp_path / "handler.py"
    handler.write_text(
        "import numpy as np\n"
        "from parity import *\n"
        "class H(Handler):\n"
        "    inputs = Schema(x=Int64())\n"
        "    outputs = Schema(y=Int64())\n"
        "    def preprocess(self, batch): return batch['x'].numpy() * 2\n"
        "    def postprocess(self, y, batch): return {'y': y}\n"
    )
    code = (
        "import sys\nfrom parity import Engine, load_handler\nfrom parity.codec import frames\n"
        "h = load_handler(sys.argv[1])\n"
        "with Engine(h) as e:\n"
        "    for rows in ([1, 2], [3]): r = e.run(frames.decode(h.inputs, {'x': np.array(rows)}).batch)\n"
        "    assert r.stages == ()\n"
    )
    environment = {**os.environ, "PARITY_TAP": str(tmp_path / "tap")}
    subprocess.run(
        [sys.executable, "-c", "import numpy as np\n" + code, str(handler)], env=environment, check=True
    )
    found = read_tap(tmp_path / "tap")
    assert found is not None
    assert found.inputs.column("x").to_pylist() == [1, 2, 3]
    assert [value.item() for value in there(found.preprocess["value"])] == [2, 4, 6]
    assert "digest.source" in read_tap_fingerprint(tmp_path / "tap")
    rows = pa.table({"x": [3, 1]}, schema=load_handler(handler).inputs.to_arrow())
    assert found.aligned(rows)[0].outputs.column("y").to_pylist() == [6, 2]


def test_without_a_tap_stages_are_kept_only_when_asked_for():
    with Engine(LoadedHandler.of(Twice)) as engine:
        assert engine.run(batch([1])).stages == ()
        assert len(engine.run(batch([1]), stages=True).stages) == 1


def test_a_list_valued_leaf_is_told_row_by_row():
    class Words(Handler):
        inputs = Schema(words=List(String()))
        outputs = Schema(n=Int64())

        def preprocess(self, batch):
            return [len(words) for words in batch["words"].to_pylist()]

        def postprocess(self, outputs, batch):
            return {"n": outputs}

    with Engine(LoadedHandler.of(Words)) as engine:
        rows = frames.decode(Words.inputs, [{"words": ["a"]}, {"words": []}]).batch
        found = traces(rows, engine.run(rows, stages=True))
    assert [int(value) for value in there(found.preprocess["value"])] == [1, 0]
