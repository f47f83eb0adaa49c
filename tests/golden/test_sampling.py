"""A few rows of many: every rare kind is in, the same rows each time, whatever the batches."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parity.batch import Batch
from parity.codec.arrow import decode_table
from parity.compare import compare
from parity.errors import ConfigError, DatasetError, RowsError, SchemaError
from parity.examples import edge_batch, example_batch
from parity.golden import Sample, Sampler, sample_dataset, strata_of
from parity.golden.datasets import dataset_files
from parity.golden.marking import marks_of
from parity.schema import (
    Bool,
    Date,
    Decimal,
    Field,
    Float32,
    Float64,
    Image,
    Int64,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
    UInt64,
)
from tests.golden.pictures import jpeg, png
from tests.test_examples import EVERY_TYPE

PLAIN = Schema(x=Float64(), word=String(nullable=True), plan=String(choices=("free", "pro")))


def table(schema: Schema, **columns: list[Any]) -> pa.Table:
    return pa.Table.from_arrays(
        [pa.array(columns[name], field.arrow_type) for name, field in schema.items()],
        schema=pa.schema([field.to_arrow(name) for name, field in schema.items()]),
    )


def many(rows: int, seed: int = 0) -> pa.Table:
    """Ordinary rows of PLAIN, all alike in kind."""
    rng = np.random.default_rng(seed)
    words = [f"word {number} {'x' * int(rng.integers(4))}" for number in range(rows)]
    return table(PLAIN, x=rng.normal(5, 1, rows).tolist(), word=words, plan=["free"] * rows)


def with_rare(rows: int = 5000) -> pa.Table:
    """Rows of PLAIN, one of each rare kind among them, at places that are no batch's edge."""
    columns = many(rows).to_pydict()
    columns["x"][1234] = float("nan")
    columns["x"][77] = -1e300
    columns["x"][78] = 1e300
    columns["x"][4001] = float("-inf")
    columns["x"][4002] = -0.0
    columns["word"][333] = None
    columns["word"][334] = ""
    columns["word"][335] = "w" * 400
    columns["word"][336] = "e\u0301t\u00e9"
    columns["word"][337] = "\U0001f600"
    columns["plan"][4999] = "pro"
    return table(PLAIN, **columns)


RARE = {77, 78, 333, 334, 335, 336, 337, 1234, 4001, 4002, 4999}


def sample_of(
    rows: pa.Table, size: int, *, seed: int = 0, batch: int = 512, schema: Schema = PLAIN
) -> Sample:
    sampler = Sampler(schema, size, seed)
    for start in range(0, rows.num_rows, batch):
        sampler.add(rows.slice(start, batch))
    return sampler.finish()


@pytest.mark.slow
def test_every_rare_row_is_in_and_the_rest_is_spread() -> None:
    found = sample_of(with_rare(), 60)
    assert set(found.positions.tolist()) >= RARE
    assert (found.rows.num_rows, found.total, found.missing) == (60, 5000, [])
    ordinary = [place for place in found.positions.tolist() if place not in RARE]
    assert min(ordinary) < 1000
    assert max(ordinary) > 4000
    assert compare(with_rare().take(found.positions.tolist()), found.rows).verdict == "identical"


@pytest.mark.slow
def test_the_same_rows_are_taken_each_time_whatever_the_batches_and_others_for_another_seed() -> None:
    rows = with_rare()
    found = sample_of(rows, 60)
    for batch in (1000, 97, 5000):
        again = sample_of(rows, 60, batch=batch)
        assert again.positions.tolist() == found.positions.tolist()
        assert again.coverage == found.coverage
    other = sample_of(rows, 60, seed=1).positions.tolist()
    assert set(other) >= RARE
    assert other != found.positions.tolist()


@pytest.mark.slow
def test_too_small_a_sample_takes_the_rarest_and_says_what_is_missing_and_what_would_do() -> None:
    found = sample_of(with_rare(), 5)
    assert found.rows.num_rows == 5
    assert set(found.positions.tolist()) < RARE
    assert found.missing
    assert sample_of(with_rare(), found.needed).missing == []
    assert found.needed < len(found.coverage)


def test_coverage_counts_the_rows_of_the_dataset_and_of_the_sample() -> None:
    counts = {item.stratum: (item.in_dataset, item.in_sample) for item in sample_of(with_rare(), 60).coverage}
    assert counts["x: NaN"] == (1, 1)
    assert counts["x: greatest"] == (1, 1)
    assert counts["plan: 'pro'"] == (1, 1)
    assert counts["plan: 'free'"] == (4999, 59)
    assert counts["word: beyond ASCII"] == (2, 2)
    assert counts["word: null"] == (1, 1)


def test_a_dataset_smaller_than_the_sample_is_taken_whole() -> None:
    found = sample_of(many(7), 60)
    assert found.positions.tolist() == list(range(7))


def test_no_rows_and_no_sample_are_refused() -> None:
    with pytest.raises(ConfigError, match="a sample of 0 rows"):
        Sampler(PLAIN, 0)
    with pytest.raises(ConfigError, match="no rows to sample"):
        Sampler(PLAIN, 3).finish()


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(1, 50), st.integers(0, 3))
def test_a_sample_is_a_function_of_rows_and_seed(sizes: list[int], size: int, seed: int) -> None:
    rows = Batch.concat([example_batch(PLAIN, sum(sizes)), edge_batch(PLAIN)]).to_table()
    sampler = Sampler(PLAIN, size, seed)
    start = 0
    for step in [*sizes, rows.num_rows]:
        sampler.add(rows.slice(start, step))
        start += step
    found = sampler.finish()
    whole = sample_of(rows, size, seed=seed, batch=rows.num_rows)
    assert found.positions.tolist() == whole.positions.tolist()
    assert found.coverage == whole.coverage
    assert found.rows.num_rows == min(size, rows.num_rows)


@pytest.mark.slow
def test_few_rows_of_a_large_dataset_are_held_at_a_time() -> None:
    sampler = Sampler(PLAIN, 20)
    for start in range(40):
        sampler.add(many(500, seed=start))
    held = sampler._held
    assert len(held) < 200
    assert sum(one.nbytes for one in held.values()) < 40_000


@pytest.mark.slow
def test_rows_of_every_field_type_have_strata_and_a_small_sample_covers_them_all() -> None:
    rows = Batch.concat([example_batch(EVERY_TYPE, 300), edge_batch(EVERY_TYPE)]).to_table()
    found = sample_of(rows, 60, schema=EVERY_TYPE, batch=64)
    assert found.missing == []
    heads = {item.stratum.split(":")[0].split(" ")[0].split(".")[0].rstrip("[]") for item in found.coverage}
    assert heads - {"row"} == set(EVERY_TYPE.names)


INSTANT = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("field", "ordinary", "rare", "stratum"),
    [
        (Float32(), 1.5, float("nan"), "v: NaN"),
        (Float32(), 1.5, float("inf"), "v: infinite"),
        (Float32(), 1.5, 1e-42, "v: subnormal"),
        (Float32(), 1.5, -0.0, "v: -0.0"),
        (Float64(nullable=True), 1.5, None, "v: null"),
        (Int64(), 7, 2**53 + 1, "v: beyond 2**53"),
        (Int64(), 7, -(2**63), "v: least"),
        (UInt64(), 7, 2**64 - 1, "v: greatest"),
        (UInt64(), 7, 0, "v: least"),
        (Int64(choices=(1, 2)), 1, 2, "v: 2"),
        (Bool(), True, False, "v: False"),
        (Decimal(9, 2), decimal.Decimal("1.50"), decimal.Decimal("-9.99"), "v: negative"),
        (String(), "plain text", "", "v: empty"),
        (String(), "plain text", "longer plain text", "v: longest"),
        (String(), "plain text", " plain text", "v: space at an end"),
        (String(), "plain text", "plain\u00e9text", "v: beyond ASCII"),
        (String(), "plain text", "plain\ttext", "v: control characters"),
        (Timestamp(tz="UTC"), INSTANT, INSTANT.replace(year=1969), "v: before 1970"),
        (Timestamp(tz="UTC"), INSTANT, INSTANT.replace(microsecond=5), "v: fraction of a second"),
        (Timestamp(unit="s"), INSTANT.replace(tzinfo=None), datetime.datetime(2030, 1, 1), "v: latest"),
        (Date(), DAY, datetime.date(1900, 1, 1), "v: earliest"),
        (Tensor("float32", (2,)), [1.0, 2.0], [1.0, float("nan")], "v: with NaN"),
        (Tensor("uint8", (2,)), [1, 2], [7, 7], "v: all alike"),
        (Tensor("int64", (None,)), [1, 2], [], "v: empty"),
        (Tensor("int64", (None,)), [1, 2], [1, 2, 1], "v: most elements"),
        (Tensor("bool", (2,)), [True, False], [True, True], "v: all alike"),
        (List(Int64()), [1, 2], [], "v: empty"),
        (List(Int64()), [1, 2], [2, 1, 2], "v: longest"),
        (List(Float64()), [1.0, 2.0], [1.0, float("nan")], "v[]: NaN"),
        (List(String()), ["a", "b"], ["a", "b", "rare", "rare", "rare"], "v[]: 'rare'"),
        (List(List(Int64())), [[1], [2]], [[1], [-3]], "v[][]: negative"),
        (Struct(a=Float64(), b=String()), {"a": 1.0, "b": "x"}, {"a": -1.0, "b": "x"}, "v.a: negative"),
        (List(Struct(a=Int64())), [{"a": 1}], [{"a": 0}], "v[].a: zero"),
        (Image(), png(4, 4), png(4, 4, color=6), "v: PNG RGBA"),
        (Image(), png(4, 4), png(4, 4, bits=16), "v: PNG RGB 16-bit"),
        (Image(), png(4, 4), png(4, 5), "v size: 4x5"),
        (Image(), jpeg(4, 4), jpeg(4, 4, orientation=6), "v: orientation 6"),
        (Image(), jpeg(4, 4), jpeg(4, 4, parts=1), "v: JPEG grey"),
        (Image(), jpeg(4, 4), jpeg(40, 40), "v: most pixels"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("v") else "",
)
def test_one_rare_value_among_many_is_sampled(
    field: Field, ordinary: object, rare: object, stratum: str
) -> None:
    schema = Schema(v=field)
    values = [ordinary] * 200
    values[137] = rare
    rows = table(schema, v=values)
    assert strata_of(schema, rows)[stratum] == 1
    found = sample_of(rows, max(4, sample_of(rows, 1, schema=schema).needed), schema=schema, batch=64)
    assert 137 in found.positions.tolist()
    counts = {item.stratum: (item.in_dataset, item.in_sample) for item in found.coverage}
    assert counts[stratum] == (1, 1)


def test_free_text_and_values_that_never_come_again_are_no_categories() -> None:
    assert not any(name.startswith("word: 'word") for name in strata_of(PLAIN, many(20)))
    assert not any(name.startswith("word: 'word") for name in strata_of(PLAIN, many(500)))
    few = table(PLAIN, x=[1.0] * 9, word=["a", "b", "c"] * 3, plan=["free"] * 9)
    assert strata_of(PLAIN, few)["word: 'a'"] == 3


def test_the_row_with_most_nulls_is_a_kind() -> None:
    schema = Schema(a=Int64(nullable=True), b=Int64(nullable=True))
    rows = table(schema, a=[1, None, None, 4], b=[1, 2, None, None])
    assert strata_of(schema, rows)["row: most nulls"] == 1


def test_no_rows_have_no_strata() -> None:
    assert strata_of(EVERY_TYPE, example_batch(EVERY_TYPE, 3).to_table().slice(0, 0)) == {}
    marks_of(EVERY_TYPE, example_batch(EVERY_TYPE, 1).to_table())


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "day=2").mkdir(parents=True)
    rows = with_rare()
    pq.write_table(rows.slice(0, 2000), folder / "a.parquet", row_group_size=300)
    pq.write_table(rows.slice(2000), folder / "day=2" / "b.parquet")
    (folder / "_errors").mkdir()
    pq.write_table(rows.slice(0, 3), folder / "_errors" / "x.parquet")
    (folder / ".c.parquet").write_bytes(b"half")
    return folder


@pytest.mark.slow
def test_a_folder_a_glob_and_a_file_are_streamed(dataset: Path) -> None:
    told: list[int] = []
    found = sample_dataset(dataset, PLAIN, 60, batch_rows=128, progress=told.append)
    assert found.sample.positions.tolist() == sample_of(with_rare(), 60).positions.tolist()
    assert (found.files, found.left_out, told[-1]) == (2, 0, 5000)
    by_glob = sample_dataset(f"{dataset}/**/*.parquet", PLAIN, 60)
    assert by_glob.sample.total == 5000
    assert sample_dataset(dataset / "a.parquet", PLAIN, 5).sample.total == 2000


def test_a_dataset_that_is_not_there_or_no_parquet_is_named(dataset: Path) -> None:
    with pytest.raises(DatasetError, match="no file, folder or glob"):
        dataset_files(dataset / "nowhere")
    empty = dataset.parent / "empty"
    empty.mkdir()
    with pytest.raises(DatasetError, match="holds no Parquet file"):
        dataset_files(empty)
    with pytest.raises(DatasetError, match="no file matches"):
        dataset_files(f"{dataset}/*.orc")
    (dataset / "z.parquet").write_bytes(b"PAR1 but not for long")
    with pytest.raises(DatasetError, match=r"z\.parquet: not readable as Parquet"):
        sample_dataset(dataset, PLAIN, 5)


def test_a_file_without_the_columns_is_named(dataset: Path) -> None:
    pq.write_table(pa.table({"y": [1.0]}), dataset / "c.parquet")
    with pytest.raises(SchemaError, match=r"c\.parquet does not fit the schema: column 'x'"):
        sample_dataset(dataset, PLAIN, 5)


@pytest.fixture
def misfits(tmp_path: Path) -> Path:
    words = pa.array(["a", "b", None, "d"] * 50)
    plans = pa.array(["free"] * 150 + ["gratis"] * 50)
    rows = pa.table({"x": [1.0] * 200, "word": words, "plan": plans})
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=64)
    return tmp_path / "rows.parquet"


def test_rows_that_do_not_fit_are_refused_left_out_or_kept(misfits: Path) -> None:
    with pytest.raises(RowsError, match=r"row 150 of rows\.parquet: .*'gratis'(.*\n.*)*--invalid skip"):
        sample_dataset(misfits, PLAIN, 10)
    skipped = sample_dataset(misfits, PLAIN, 10, invalid="skip")
    assert (skipped.left_out, skipped.sample.total) == (50, 150)
    assert skipped.first_left_out.startswith("row 150 of rows.parquet")
    kept = sample_dataset(misfits, PLAIN, 10, invalid="keep", batch_rows=60)
    counts = {item.stratum: (item.in_dataset, item.in_sample) for item in kept.sample.coverage}
    assert counts["plan: does not fit"] == (50, 1)
    assert counts["plan: 'free'"][0] == 150
    assert len(decode_table(PLAIN, kept.sample.rows).errors) == 1
