"""`--tensor-type arrow` and `--spark-compatible` change types by rule, and nothing else."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.errors import ConfigError, DatasetError
from parity.output_form import OutputForm, formed, spark_type
from parity_batch import Settings, score
from tests.batch.jobs import ORDERS, orders, read_parts


def write(folder: Path, **columns: pa.Array) -> None:
    table = orders(3)
    for name, column in columns.items():
        table = table.append_column(name, column)
    folder.mkdir()
    pq.write_table(table, folder / "a.parquet")


def test_tensors_are_an_extension_type_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = orders(4).set_column(2, "quantity", pa.array([1, -1, 2, 3]))
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    score(tmp_path / "in", tmp_path / "list", ORDERS)
    score(tmp_path / "in", tmp_path / "arrow", ORDERS, settings=Settings(form=OutputForm("arrow")))
    plain, found = (read_parts(tmp_path / name).column("vector") for name in ("list", "arrow"))
    assert found.type == cast("Any", pa).fixed_shape_tensor(pa.float32(), [3])
    assert cast("Any", found.combine_chunks()).storage.to_pylist() == plain.to_pylist()
    assert plain.to_pylist()[1] is None


SPARK: list[tuple[pa.Array, pa.DataType, list[Any]]] = [
    (pa.array([1.5, None], pa.float16()), pa.float32(), [1.5, None]),
    (pa.array([1_000_001_999, None], pa.timestamp("ns", "UTC")), pa.timestamp("us", "UTC"),
     [datetime.datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=datetime.UTC), None]),
    (pa.array(["x" * 20, None], pa.string_view()), pa.string(), ["x" * 20, None]),
    (pa.array([2**63, None], pa.uint64()), pa.uint64(), [2**63, None]),
    (pa.array([{"a": [1.5]}, None], pa.struct([("a", pa.list_(pa.float16()))])),
     pa.struct([("a", pa.list_(pa.float32()))]), [{"a": [1.5]}, None]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "kind", "values"), SPARK, ids=lambda item: str(getattr(item, "type", ""))[:20]
)
def test_types_that_spark_lacks_are_narrowed(
    tmp_path: Path, column: pa.Array, kind: pa.DataType, values: list[Any]
) -> None:
    whole = pa.concat_arrays([column, column.slice(0, 1)])
    write(tmp_path / "in", passed=whole)
    settings = Settings(form=OutputForm(spark=True))
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["passed"], settings=settings)
    found = read_parts(tmp_path / "out").column("passed")
    assert str(found.type).replace("element", "item") == str(kind).replace("element", "item")
    assert found.to_pylist()[:2] == values


TIME = pa.timestamp("ns", "UTC")
ARROW: Any = pa
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def micros(values: Any) -> Any:
    """Times within lists, structs and maps as whole microseconds."""
    if isinstance(values, datetime.datetime):
        return round((values - EPOCH) / datetime.timedelta(microseconds=1))
    if isinstance(values, dict):
        return {key: micros(value) for key, value in cast("Any", values).items()}
    return [micros(value) for value in values] if isinstance(values, list | tuple) else values


def nested_times() -> list[tuple[Any, list[Any]]]:
    """Columns of nanoseconds, and what they are in microseconds, rounded down."""
    times = ARROW.array([-1, None, -1000, -1001, 0, 999, 1001], pa.int64()).cast(TIME)
    floor = [-1, None, -1, -2, 0, 0, 1]
    keys, letters = ARROW.array(list("abcdefg")), "abcdefg"
    struct = ARROW.StructArray.from_arrays([times, keys], ["t", "k"], mask=pa.array([False] * 6 + [True]))
    structs: list[Any] = [{"t": t, "k": k} for t, k in zip(floor[:6], letters[:6], strict=True)]
    structs.append(None)
    pairs = [[k, t] for k, t in zip(letters, floor, strict=True)]
    offsets = ARROW.array([0, 2, None, 2, 5, 7], pa.int32())

    def cut(values: list[Any]) -> list[Any]:
        return [values[0:2], [], None, values[2:5], values[5:7]]

    return [
        (times, floor),
        (struct, structs),
        (ARROW.ListArray.from_arrays(offsets, times), cut(floor)),
        (ARROW.LargeListArray.from_arrays(offsets.cast(pa.int64()), times), cut(floor)),
        (ARROW.FixedSizeListArray.from_arrays(times.slice(1), 2), [floor[1:3], floor[3:5], floor[5:7]]),
        (ARROW.ListArray.from_arrays(offsets, struct), cut(structs)),
        (ARROW.MapArray.from_arrays(offsets, keys, times), cut(pairs)),
    ]


@pytest.mark.parametrize("start", [0, 1, 3])
@pytest.mark.parametrize("chunked", [False, True])
def test_nanoseconds_are_rounded_down_at_any_depth(start: int, chunked: bool) -> None:
    for given, expected in nested_times():
        kind = spark_type(given.type)
        assert kind is not None
        assert "ns" not in str(kind)
        column = given.slice(start)
        found = formed(pa.chunked_array([column, column]) if chunked else column, kind)
        found.validate(full=True)
        assert found.type == kind
        assert micros(found.to_pylist()) == expected[start:] * (2 if chunked else 1)


def test_times_within_maps_are_written_as_spark_reads_them(tmp_path: Path) -> None:
    values = [[("a", EPOCH - datetime.timedelta(microseconds=1))], None, [("b", EPOCH)]]
    write(tmp_path / "in", passed=pa.array(values, pa.map_(pa.string(), TIME)))
    settings = Settings(form=OutputForm(spark=True))
    score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["passed"], settings=settings)
    found = read_parts(tmp_path / "out").column("passed")
    assert cast("Any", found.type).item_type == pa.timestamp("us", "UTC")
    assert micros(found.to_pylist()) == [[["a", -1]], None, [["b", 0]]]
    assert spark_type(pa.map_(pa.string(), pa.time64("us"))) is None


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.decimal256(70, 2), pa.list_(pa.time32("s"))], ids=str)
def test_types_that_spark_lacks_altogether_are_refused(tmp_path: Path, kind: pa.DataType) -> None:
    assert spark_type(kind) is None
    write(tmp_path / "in", passed=cast("Any", pa).nulls(3, kind))
    settings = Settings(form=OutputForm(spark=True))
    with pytest.raises(DatasetError, match=r"column 'passed' is .*, which Spark cannot read; cast it first"):
        score(tmp_path / "in", tmp_path / "out", ORDERS, columns=["passed"], settings=settings)
    assert not (tmp_path / "out").exists()


def test_another_form_is_another_job(tmp_path: Path) -> None:
    write(tmp_path / "in")
    score(tmp_path / "in", tmp_path / "out", ORDERS)
    with pytest.raises(DatasetError, match="form: was"):
        score(tmp_path / "in", tmp_path / "out", ORDERS, settings=Settings(form=OutputForm("arrow")))


def test_a_form_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="tensor type 'numpy' is neither 'list' nor 'arrow'"):
        OutputForm(cast("Any", "numpy"))
    with pytest.raises(ConfigError, match="Spark does not know"):
        OutputForm("arrow", spark=True)


def test_every_part_says_who_made_it(tmp_path: Path) -> None:
    write(tmp_path / "in")
    score(tmp_path / "in", tmp_path / "out", ORDERS)
    metadata = pq.ParquetFile(tmp_path / "out" / "part-00000-u00000.parquet").schema_arrow.metadata or {}
    assert metadata[b"parity.handler"] == b"orders"
    assert metadata[b"parity.version"] == b"1.2.0"
    assert b'"buckets": []' in metadata[b"parity.profile"]
    assert len(metadata[b"parity.fingerprint"]) == 64
