from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

from parity import Bytes, Engine, Float64, Handler, Image, Int64, Schema, Timestamp, load_handler
from parity.examples import example_batch
from parity.handler import LoadedHandler
from parity.laws import Bench
from parity.laws.process import HASH_SEED, between
from parity.laws.snippets import handler_source, rows_source, snippet
from parity.laws.workers import CWD
from parity.profile import Profile
from parity.stages import row_digests
from tests.laws.conftest import Write
from tests.laws.test_process import HASHING
from tests.laws.trying import FIXTURES, try_laws

STATEFUL = """
class FitsOnFirst(Handler):
    inputs = Schema(x=Float64(ge=-1e6, le=1e6))
    outputs = Schema(y=Float64())

    def initialize(self, context: Context) -> None:
        self.mean = None

    def inference(self, inputs):
        if self.mean is None:
            self.mean = float(inputs["x"].mean())
        return inputs["x"] - self.mean

    def postprocess(self, outputs, batch: Batch) -> dict[str, object]:
        return {"y": outputs}
"""

DATED = """
import datetime


class Dated(Handler):
    inputs = Schema(x=Int64(ge=0, le=9))
    outputs = Schema(y=Int64())

    def initialize(self, context: Context) -> None:
        self.year = datetime.date.today().year

    def postprocess(self, outputs, batch: Batch) -> dict[str, object]:
        return {"y": outputs["x"] + self.year}
"""


def said(source: str) -> list[str]:
    """What a snippet prints, run as a notebook runs a cell."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "snippet", "exec"), {"__name__": "__main__"})
    return printed.getvalue().splitlines()


def answers_differ(source: str) -> None:
    one, other = (line.rpartition(": ")[2] for line in said(source)[-2:])
    assert one
    assert one != other, source


@pytest.mark.slow
@pytest.mark.parametrize(
    ("handler", "law"),
    [
        ("batch_mean", "neighbours"),
        ("sorted_output", "order"),
        ("kept_on_self", "concurrency"),
        ("mutated_tensor", "inputs-untouched"),
    ],
)
def test_a_snippet_shows_the_difference(handler: str, law: str) -> None:
    example = try_laws(load_handler(FIXTURES / handler), [law])[law].counterexample
    assert example is not None
    answers_differ(example.snippet)


@pytest.mark.slow
@pytest.mark.parametrize(("source", "law"), [(STATEFUL, "history"), (DATED, "clock")])
def test_a_snippet_takes_along_what_was_asked_before_and_the_clock(
    write: Write, source: str, law: str
) -> None:
    example = try_laws(write(source), [law])[law].counterexample
    assert example is not None
    answers_differ(example.snippet)


@pytest.mark.slow
def test_a_snippet_starts_processes_where_these_differ(write: Write) -> None:
    loaded = write(HASHING)
    with Engine(loaded) as engine, Bench(engine, example_batch(loaded.inputs, 2)) as bench:
        pair = between(bench, {HASH_SEED: "1", CWD: str(bench.elsewhere)})
        source, why_not = snippet(loaded, engine.profile, pair, bench.batch([0]), "bucket", 0)
    assert why_not == ""
    answers_differ(source)


def test_a_class_without_a_folder_has_no_snippet_and_the_reason_is_told() -> None:
    class Sorting(Handler):
        inputs = Schema(x=Int64(ge=0, le=1000))
        outputs = Schema(y=Int64())

        def postprocess(self, outputs: dict[str, np.ndarray], batch: object) -> dict[str, object]:
            return {"y": np.sort(outputs["x"])}

    example = try_laws(LoadedHandler.of(Sorting), ["order"])["order"].counterexample
    assert example is not None
    assert example.snippet == ""
    assert "no folder to be loaded from again" in example.why_no_snippet


@pytest.mark.parametrize(
    "schema",
    [
        Schema(x=Float64(), n=Int64(nullable=True), t=Timestamp(unit="us", tz="UTC"), b=Bytes()),
        Schema(i=Image()),
    ],
)
def test_rows_are_told_to_the_last_bit(schema: Schema) -> None:
    class Loaded:
        inputs = schema

    rows = example_batch(schema, 5)
    source, imports = rows_source(rows)
    names: dict[str, object] = {"loaded": Loaded}
    exec("\n".join(sorted(imports)), names)
    found = eval(source, names)
    assert row_digests(found.to_table()) == row_digests(rows.to_table())


def test_a_profile_of_its_own_is_told_by_its_settings() -> None:
    loaded = load_handler(FIXTURES / "mlp")
    assert handler_source(loaded, loaded.profile())[1] == "profile = loaded.profile('default')"
    changed = handler_source(loaded, Profile(threads=2))[1]
    assert changed == "profile = loaded.profile('default').with_settings(['threads=2'])"
    with Engine(loaded, loaded.profile().with_settings(["threads=2"])) as engine:
        assert handler_source(loaded, engine.profile)[1] == changed
