"""The bars: both example handlers, all goldens, all runners and wire forms."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity import Engine, load_handler
from parity.codec.arrow import decode_table
from parity.compare import Tolerances, compare
from parity.golden import find_cases
from parity.registry import Runner, find_runner, replay_wires, runner_names
from parity.result import Result
from parity_spark.java import java_problem

ROOT = Path(__file__).resolve().parents[2]
HANDLERS = {"fashion": ["label", "class_id"], "films": ["band"]}


def installed() -> list[Runner]:
    """All runners; Spark's only where there is a Java, unless one is demanded."""
    names = runner_names()
    if os.environ.get("PARITY_REQUIRE_SPARK") != "1" and java_problem(
        os.environ.get("JAVA_HOME"), os.environ.get("PATH", "")
    ):
        names.remove("spark")
    return [find_runner(name) for name in names]


ROUTES = [(runner.name, wire) for runner in installed() for wire in runner.wire_forms]

SAMPLED = 200

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", autouse=True)
def clusters():
    """End the clusters that replays keep."""
    yield
    for runner in installed():
        if runner.name in ("ray", "spark"):
            cast("Any", runner).close()


def handler_ref(name: str) -> str:
    return str(ROOT / "handlers" / name)


def test_all_runners_and_both_wire_forms_are_here():
    assert {"notebook", "batch", "online", "ray"} <= {runner for runner, _ in ROUTES}
    assert {("online", "rows"), ("online", "oip")} <= set(ROUTES)


@functools.cache
def answers(name: str, profile: str, runner: str) -> dict[str, Result]:
    """The answers to all golden rows, then to a sample, of a runner that was started once, by wire form."""
    loaded = load_handler(handler_ref(name))
    rows = pa.concat_tables([*(case.inputs for case in find_cases(loaded)), sample(name, SAMPLED)])
    return dict(replay_wires(find_runner(runner), handler_ref(name), rows, loaded.profile(profile)))


@pytest.mark.parametrize(("runner", "wire"), ROUTES)
@pytest.mark.parametrize("name", HANDLERS)
def test_goldens_hold_within_tolerance_and_labels_are_identical(name: str, runner: str, wire: str):
    loaded = load_handler(handler_ref(name))
    cases = find_cases(loaded)
    assert cases, f"no golden of {name} is found"
    # Each pool of Ray actors costs seconds: its one bucket is within the same tolerances.
    table = answers(name, "exact" if runner == "ray" else "default", runner)[wire].to_table()
    start = 0
    for case in cases:
        obtained = table.slice(start, case.inputs.num_rows)
        start += case.inputs.num_rows
        comparison = compare(case.expected, obtained, Tolerances.from_mapping(loaded.manifest.tolerance))
        assert comparison, comparison
        for label in HANDLERS[name]:
            assert obtained[label].to_pylist() == case.expected[label].to_pylist()


@pytest.mark.parametrize(("runner", "wire"), ROUTES)
@pytest.mark.parametrize("name", HANDLERS)
def test_one_bucket_of_32_gives_the_same_bits_everywhere(name: str, runner: str, wire: str):
    loaded = load_handler(handler_ref(name))
    profile = loaded.profile("exact")
    assert profile.buckets == (32,)
    rows = sample(name, SAMPLED)
    with Engine(loaded, profile) as engine:
        expected = engine.score(decode_table(loaded.inputs, rows))
    assert len(expected.outputs) >= SAMPLED - 10
    everything = answers(name, "exact", runner)[wire]
    first = everything.num_rows - SAMPLED
    kept = np.flatnonzero(everything.index >= first)
    assert (everything.index[kept] - first).tolist() == expected.index.tolist()
    for column in loaded.outputs.names:
        obtained = everything.outputs.take(kept)[column]
        assert bits(obtained.arrow) == bits(expected.outputs[column].arrow)


def sample(name: str, rows: int) -> pa.Table:
    """Rows of the committed sample, chosen by a fixed seed, inputs only."""
    table = pq.read_table(ROOT / "data" / name)
    chosen = np.sort(np.random.default_rng(5).choice(table.num_rows, rows, replace=False))
    names = list(load_handler(handler_ref(name)).inputs.names)
    return table.take(cast("Any", pa.array(chosen))).select(names)


def bits(array: pa.Array) -> list[Any]:
    """The values with floats as their bit patterns, so that -0.0 and NaN are told apart."""
    if pa.types.is_floating(array.type):
        return array.view(pa.int32() if array.type == pa.float32() else pa.int64()).to_pylist()
    return array.to_pylist()
