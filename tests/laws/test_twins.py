from __future__ import annotations

import pytest

from parity import (
    Decimal,
    Float32,
    Float64,
    Image,
    Int64,
    List,
    Schema,
    String,
    Tensor,
    Timestamp,
)
from parity.codec import arrow
from parity.examples import edge_batch, example_batch
from parity.laws.twins import NUDGES, near_twins
from parity.stages import row_digests

EVERYTHING = Schema(
    a=Float64(nullable=True),
    b=String(max_length=7),
    c=List(Int64()),
    d=Timestamp(unit="ns", tz="UTC"),
    e=Decimal(10, 2),
    f=Image(),
    g=Tensor("float32", (None, 3)),
    h=Int64(ge=0, le=5),
    i=Float32(ge=-1.0, le=1.0),
    j=String(choices=("a", "b")),
)


@pytest.mark.parametrize("nudge", NUDGES)
def test_twins_fit_and_differ(nudge: float) -> None:
    for batch in (example_batch(EVERYTHING, 20), edge_batch(EVERYTHING)):
        twins = near_twins(batch, nudge)
        assert twins.num_rows == batch.num_rows
        assert not arrow.decode_table(EVERYTHING, twins.to_table()).errors
        ours, theirs = row_digests(batch.to_table()), row_digests(twins.to_table())
        assert all(one != other for one, other in zip(ours, theirs, strict=True))


def test_twins_differ_by_next_to_nothing() -> None:
    batch = example_batch(EVERYTHING, 20)
    twins = near_twins(batch, 1e-6)
    for one, other in zip(batch["a"].to_pylist(), twins["a"].to_pylist(), strict=True):
        assert (one is None) == (other is None)
        assert one is None or abs(one - other) <= 1.01e-6 * abs(one)
    assert twins["f"].to_pylist() == batch["f"].to_pylist()
    assert near_twins(batch, 1e-3)["b"].to_pylist() == [text.swapcase() for text in batch["b"].to_pylist()]
