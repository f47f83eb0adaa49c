from __future__ import annotations

import numpy as np
import pytest

from parity import (
    Batch,
    Bool,
    Bytes,
    Date,
    Decimal,
    Float32,
    Float64,
    Handler,
    Image,
    Int64,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
    UInt8,
    load_handler,
)
from parity.codec.decoded import Decoded
from parity.column import Column
from parity.examples import example_batch
from parity.handler import LoadedHandler
from parity.laws.forms import WIRES
from tests.laws.trying import FIXTURES, HERE, try_laws

FIELDS = {
    "a": Float64(nullable=True, non_finite="string"),
    "b": String(nullable=True),
    "c": List(Int64(nullable=True)),
    "d": Timestamp(unit="ns", tz="UTC"),
    "e": Decimal(10, 2),
    "f": Image(),
    "g": Tensor("float32", (None, 3), non_finite="string"),
    "h": Struct(p=Bool(), q=Float32(non_finite="string")),
    "i": UInt8(),
    "j": Date(),
    "k": Bytes(),
    "m": Image(form="array"),
    "n": Tensor("bfloat16", (2, 2), non_finite="string"),
}


class Echo(Handler):
    """Answers with the row itself."""

    inputs = Schema(**FIELDS)
    outputs = Schema(**FIELDS)

    def preprocess(self, batch: Batch) -> None:
        return None

    def postprocess(self, outputs: object, batch: Batch) -> dict[str, object]:
        return {name: column.arrow for name, column in batch.items()}


@pytest.mark.slow
def test_every_type_of_field_goes_through_every_law() -> None:
    outcomes = try_laws(LoadedHandler.of(Echo), HERE, example_batch(Echo.inputs, 12))
    assert {law: outcome.detail for law, outcome in outcomes.items() if not outcome} == {}
    tried = [outcome for outcome in outcomes.values() if outcome.verdict != "skipped"]
    assert len(tried) >= 13
    assert all(outcome.pairs > 0 for outcome in tried)


def rounded_on_the_way(batch: Batch) -> Decoded:
    values = batch["x"].numpy().astype(np.float32).astype(np.float64)
    return Decoded.of(Batch(batch.schema, {"x": Column(batch["x"].field, numpy=values)}, batch.num_rows))


@pytest.mark.slow
def test_a_form_that_rounds_breaks_the_law_of_the_wire_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WIRES, "float32 columns", rounded_on_the_way)
    outcome = try_laws(load_handler(FIXTURES / "batch_mean_fixed"), ["wire-form"])["wire-form"]
    assert outcome.verdict == "broken"
    assert outcome.detail.startswith("as columns, and as float32 columns")
    example = outcome.counterexample
    assert example is not None
    assert example.rows.num_rows == 1
    assert outcome.diagnosis is not None
    assert outcome.diagnosis.stage == "decode"
