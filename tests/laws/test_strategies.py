from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings

from parity import (
    Bool,
    Bytes,
    Date,
    Decimal,
    Float16,
    Float64,
    Image,
    Int64,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
    UInt8,
)
from parity.codec import arrow
from parity.laws.strategies import generated_batch, rows_of
from parity.schema import Field
from parity.stages import row_digests

EVERYTHING = Schema(
    a=Float64(nullable=True),
    b=String(max_length=5),
    c=List(Int64(nullable=True)),
    d=Timestamp(unit="ns", tz="UTC"),
    e=Decimal(10, 2),
    f=Image(),
    g=Tensor("float32", (None, 3)),
    h=Struct(p=Bool(), q=Float16()),
    i=UInt8(),
    j=Date(),
    k=Bytes(max_length=4),
)


@pytest.mark.slow
def test_rows_are_drawn_for_every_type_of_field_and_fit() -> None:
    batch = generated_batch(EVERYTHING, 40)
    assert batch.num_rows > 30
    assert not arrow.decode_table(EVERYTHING, batch.to_table()).errors
    assert 0 < batch["a"].null_count < batch.num_rows
    assert len(set(row_digests(batch.to_table()))) == batch.num_rows


@pytest.mark.parametrize(
    "field",
    [
        *EVERYTHING.values(),
        Int64(ge=-3, le=-1),
        Int64(choices=(5, 2**60)),
        Float64(ge=1e300),
        Float16(le=-1.0),
        Tensor("bool", (2, 2)),
        Tensor("bfloat16", (None, None)),
        Tensor("uint64", (3,), nullable=True),
        Image(form="array", channels=4),
        String(choices=("a",)),
        Timestamp(unit="s"),
        Decimal(3, 3),
        List(Struct(p=String(nullable=True))),
    ],
    ids=lambda field: field.describe(),
)
def test_rows_drawn_for_a_field_fit_it(field: Field) -> None:
    schema = Schema(value=field)
    batch = generated_batch(schema, 6)
    assert batch.num_rows >= 1
    assert not arrow.decode_table(schema, batch.to_table()).errors


def digest() -> str:
    rows = row_digests(generated_batch(EVERYTHING, 12).to_table())
    return hashlib.sha256(b"".join(rows)).hexdigest()


@pytest.mark.slow
def test_what_hypothesis_drew_before_changes_no_row() -> None:
    before = digest()

    @settings(database=None, max_examples=50)
    @given(rows_of(EVERYTHING))
    def draw(row: dict[str, object]) -> None:
        assert row

    draw()
    assert digest() == before


@pytest.mark.slow
def test_the_same_rows_are_drawn_in_every_process_and_nothing_is_left_behind(tmp_path: Path) -> None:
    code = "from tests.laws.test_strategies import digest; print(digest())"
    root = Path(__file__).parents[2]
    run = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r}); {code}"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest()
    assert list(tmp_path.iterdir()) == []


def test_a_field_of_few_values_gives_few_rows() -> None:
    assert generated_batch(Schema(x=Bool()), 16).num_rows == 2
    assert generated_batch(Schema(x=String(choices=("a", "b", "c"))), 16).num_rows == 3


def test_another_seed_gives_other_rows() -> None:
    one, other = (generated_batch(Schema(x=Float64()), 8, seed).to_table() for seed in (0, 1))
    assert row_digests(one) != row_digests(other)
