"""Many rows through every runner's whole job in exact mode; benchmarks has a million of them."""

from __future__ import annotations

import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.agreement.digests import Digests, digests_of
from benchmarks.agreement.rows import HANDLERS, ROW, write_rows
from benchmarks.five_runners import agreement
from parity import Float32, Int64, Schema, String, load_handler
from parity.codec.arrow import check_schema
from parity.schema import (
    Bool,
    Bytes,
    Date,
    Decimal,
    Field,
    Float16,
    Float64,
    Int8,
    List,
    Struct,
    Tensor,
    Timestamp,
)
from tests.parity_bars.test_all_runners_agree import installed

OUTPUTS = Schema(score=Float32(), count=Int64(), label=String())
ANSWERS: dict[str, Any] = {
    "row": pa.array([2, 0, 1]),
    "score": pa.array([0.5, 0.0, 1.5], pa.float32()),
    "count": pa.array([7, 8, 9]),
    "label": pa.array(["a", "b", "a"]),
}


def digested(folder: Path, rows: int = 3, **changed: Any) -> Digests:
    """The digests of the three answers, some columns changed."""
    folder.mkdir(parents=True)
    pq.write_table(pa.table({**ANSWERS, **changed}), folder / "a.parquet")
    return digests_of(folder, OUTPUTS, rows)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_runner_gives_the_same_bits_for_every_row(tmp_path: Path) -> None:
    found = agreement("films", 2000, [runner.name for runner in installed()], tmp_path)
    assert set(found["rows of other bits, any two runners"].values()) == {0}
    assert set(found["answers beyond one a row, any runner"].values()) == {0}
    assert found["rows with an answer"] == 2000
    assert found["different answers"] > 1900


def test_the_order_of_answers_does_not_matter_and_their_files_do_not(tmp_path: Path) -> None:
    whole = digested(tmp_path / "whole")
    table = pa.table(ANSWERS)
    (tmp_path / "parts").mkdir()
    for place in range(3):
        pq.write_table(table.slice(2 - place, 1), tmp_path / "parts" / f"{place}.parquet")
    assert digests_of(tmp_path / "parts", OUTPUTS, 3).differing(whole) == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"score": pa.array([0.5, -0.0, 1.5], pa.float32())},
        {"score": pa.array([0.5, 0.0, np.nextafter(np.float32(1.5), np.float32(2))], pa.float32())},
        {"count": pa.array([7, 8, 10])},
        {"label": pa.array(["a", "c", "a"])},
        {"_error": pa.array([None, "invalid: no", None])},
    ],
    ids=["zero's sign", "last bit", "integer", "text", "no answer"],
)
def test_one_answer_of_other_bits_is_one_row_that_differs(tmp_path: Path, changed: dict[str, Any]) -> None:
    expected = digested(tmp_path / "expected")
    assert digested(tmp_path / "obtained", **changed).differing(expected) == 1


@pytest.mark.parametrize(
    ("field", "values"),
    [
        (Int64(nullable=True), [0, 2, 1 << 62]),
        (Int8(nullable=True), [0, -1, 1]),
        (Float16(nullable=True), [0.0, -0.0, 2.5]),
        (Float32(nullable=True), [0.0, -0.0, float("inf")]),
        (Float64(nullable=True), [1.5, 2.5, 0.1]),
        (Bool(nullable=True), [True, False]),
        (String(nullable=True), ["", "a", "b"]),
        (Bytes(nullable=True), [b"", b"a", b"\x00"]),
        (Timestamp("us", nullable=True), [0, 1, 1 << 50]),
        (Date(nullable=True), [0, 1]),
        (Decimal(5, 2, nullable=True), [decimal.Decimal("0.00"), decimal.Decimal("0.01")]),
        (
            List(Float32(nullable=True), nullable=True),
            [[], [0.0], [-0.0], [0.0, 0.0], [None], [1.0, 2.0], [2.0, 1.0]],
        ),
        (List(String(), nullable=True), [[], [""], ["a"], ["a", "b"], ["b", "a"]]),
        (List(List(Int64()), nullable=True), [[], [[]], [[], []], [[1], [2]], [[1, 2]], [[1, 2], []]]),
        (Tensor("float32", (2,), nullable=True), [[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]]),
        (Tensor("uint8", (None,), nullable=True), [[], [0], [0, 0], [0, 1], [1, 0]]),
        (
            Struct(a=Int64(nullable=True), b=String(), nullable=True),
            [{"a": None, "b": ""}, {"a": 1, "b": ""}, {"a": 1, "b": "x"}],
        ),
    ],
    ids=lambda value: value.describe() if isinstance(value, Field) else "",
)
def test_a_rows_digest_depends_on_its_value_alone(tmp_path: Path, field: Field, values: list[Any]) -> None:
    schema = Schema(answer=field)
    everything = [*values, None]
    whole = _digests(tmp_path / "whole", schema, [everything])
    assert len(set(whole.words.tolist())) == len(everything)
    assert not whole.without
    for name, parts in {
        "each alone": [[value] for value in everything],
        "nulls alone": [values, [None]],
        "among others": [everything[:1], everything[1:]],
    }.items():
        assert _digests(tmp_path / name, schema, parts).differing(whole) == 0, name


def _digests(folder: Path, schema: Schema, parts: list[list[Any]]) -> Digests:
    """The digests of answers in one file a part, of one row and of several, in order."""
    folder.mkdir()
    start = 0
    for part in parts:
        answers = pa.array(part, schema["answer"].arrow_type)
        rows = pa.array(range(start, start + len(part)), pa.int64())
        pq.write_table(pa.table({"row": rows, "answer": answers}), folder / f"{start}.parquet")
        start += len(part)
    return digests_of(folder, schema, start)


def test_two_rows_that_change_places_differ(tmp_path: Path) -> None:
    expected = digested(tmp_path / "expected")
    assert digested(tmp_path / "obtained", row=pa.array([0, 2, 1])).differing(expected) == 2


def test_answers_that_lack_or_are_there_twice_are_counted(tmp_path: Path) -> None:
    assert digested(tmp_path / "lacking", rows=5).without == 2
    twice = digested(tmp_path / "twice", row=pa.array([0, 0, 1]))
    assert (twice.without, twice.twice) == (1, 1)


def test_an_answer_of_no_row_of_the_dataset_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rows 0 to 2 of a dataset of 2"):
        digested(tmp_path / "beyond", rows=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", HANDLERS)
def test_the_rows_fit_the_handler_and_are_the_same_each_time(tmp_path: Path, name: str) -> None:
    tables: list[pa.Table] = []
    for folder in (tmp_path / "one", tmp_path / "other"):
        write_rows(name, folder, 50)
        tables.append(pa.concat_tables([pq.read_table(path) for path in sorted(folder.iterdir())]))
    assert tables[0].equals(tables[1])
    assert tables[0].column(ROW).to_pylist() == list(range(50))
    root = Path(__file__).resolve().parents[2]
    assert check_schema(load_handler(root / HANDLERS[name]).inputs, tables[0].schema) == []
