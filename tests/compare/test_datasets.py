"""Datasets on disk: what they may look like, how rows pair, and what is said when they cannot be read."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.compare import Close, Exact, Ignore, Tolerances, compare, compare_datasets
from parity.compare.datasets import ParquetDataset
from parity.compare.hashing import hash_rows
from parity.errors import ConfigError, DatasetError
from tests.compare.cases import facts, write


def numbers(count: int, start: int = 0) -> pa.Table:
    places = np.arange(start, start + count)
    texts = [None if place % 7 == 3 else f"text {place}" for place in places.tolist()]
    return pa.table({"id": places, "score": np.sqrt(places), "text": texts})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


# What names a dataset.


def test_a_file_a_folder_and_a_glob_of_parts_are_the_same_rows(folder: Path):
    table = numbers(50)
    pq.write_table(table, folder / "whole.parquet")
    parts = write(table, folder / "parts", files=4, group=5)
    for other in (parts, parts / "part-*.parquet", parts / "*"):
        assert compare_datasets(folder / "whole.parquet", other).verdict == "identical"


def test_bookkeeping_beside_the_parts_is_not_read(folder: Path):
    parts = write(numbers(9), folder / "parts", files=3)
    (parts / "_parity.json").write_text("{}", encoding="utf-8")
    write(numbers(9), parts / "_errors")
    (parts / ".part-9.parquet").write_bytes(b"half a file")
    (parts / "notes.txt").write_text("no Parquet", encoding="utf-8")
    (parts / "part-2.parquet").rename(parts / "part-2")
    assert ParquetDataset(parts).num_rows == 9
    assert compare_datasets(parts, parts).rows == 9


def test_folders_named_by_a_value_are_a_column(folder: Path):
    for name, table in (("day=1", numbers(3)), ("day=2", numbers(3, 3)), ("day=10", numbers(1, 6))):
        write(table, folder / "hive" / name)
    days = pa.array([1, 1, 1, 10, 2, 2, 2])
    rows = pa.concat_tables([numbers(3), numbers(1, 6), numbers(3, 3)])
    pq.write_table(rows.append_column("day", days), folder / "flat.parquet")
    for key in (None, "id", ("day", "id")):
        found = compare_datasets(folder / "flat.parquet", folder / "hive", key=key)
        assert (found.verdict, found.rows) == ("identical", 7)
    write(numbers(1), folder / "hive" / "day=next%20week")
    names = ParquetDataset(folder / "hive")
    assert names.schema.field("day").type == pa.string()
    read = pa.Table.from_batches(names.batches(["day"]))
    assert read["day"].unique().to_pylist() == ["1", "10", "2", "next week"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scroes.parquet", "'scores.parquet'"),
        ("none/a.parquet", "give a Parquet file, a folder or a glob"),
        ("empty", "holds no Parquet file"),
        ("*.pqt", "no file matches"),
        ("text.parquet", "not readable as Parquet"),
    ],
)
def test_what_is_no_dataset_is_refused(folder: Path, name: str, message: str):
    pq.write_table(numbers(1), folder / "scores.parquet")
    (folder / "empty").mkdir()
    (folder / "text.parquet").write_text("no Parquet", encoding="utf-8")
    with pytest.raises(DatasetError, match=message.replace("*", r"\*")):
        compare_datasets(folder / "scores.parquet", folder / name)


def test_parts_of_unlike_columns_are_refused(folder: Path):
    parts = write(numbers(4), folder / "parts")
    pq.write_table(numbers(4).drop_columns(["score"]), parts / "part-1.parquet")
    with pytest.raises(DatasetError, match=r"'score' is in .*part-0.* and not in .*part-1"):
        ParquetDataset(parts)
    narrow = numbers(4).set_column(1, "score", pa.array(np.zeros(4, np.float32)))
    pq.write_table(narrow, parts / "part-1.parquet")
    with pytest.raises(DatasetError, match=r"'score' is double in .* and float in .*part-1"):
        ParquetDataset(parts)
    pq.write_table(numbers(4), parts / "part-1.parquet")
    write(numbers(4), parts / "day=1")
    with pytest.raises(DatasetError, match="others do not have"):
        ParquetDataset(parts)


@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("place", [4, 1_000])
def test_a_damaged_page_is_named_with_its_file(folder: Path, place: int, key: str | None):
    path = folder / "a.parquet"
    pq.write_table(numbers(2_000), path, compression="zstd", write_page_checksum=True)
    whole = bytearray(path.read_bytes())
    whole[place : place + 50] = bytes(50)
    (folder / "b.parquet").write_bytes(whole)
    with pytest.raises(DatasetError, match=r"b\.parquet: cannot be read to its end"):
        compare_datasets(path, folder / "b.parquet", key=key)
    (folder / "c.parquet").write_bytes(whole[:-20])
    with pytest.raises(DatasetError, match=r"c\.parquet: not readable as Parquet"):
        compare_datasets(path, folder / "c.parquet", key=key)


# Rows in order.


def test_a_dataset_that_ends_early_is_compared_as_far_as_it_goes(folder: Path):
    one = write(numbers(20), folder / "a", files=3)
    other = write(numbers(14), folder / "b", files=2)
    for sides, counts in (((one, other), (20, 14)), ((other, one), (14, 20))):
        found = compare_datasets(*sides)
        assert (found.verdict, found.rows) == ("divergent", 14)
        assert (found.expected_rows, found.obtained_rows) == counts
        assert [finding.kind for finding in found.findings] == ["row_count"]


def test_row_errors_are_counted_to_the_end(folder: Path):
    kind = pa.struct({"kind": pa.string()})
    errors = pa.array([{"kind": "failed"} if row % 3 == 0 else None for row in range(12)], kind)
    table = numbers(12).append_column("_error", errors)
    found = compare_datasets(write(table, folder / "a"), write(table.slice(0, 5), folder / "b"))
    assert (found.errors_expected, found.errors_obtained) == (4, 2)


@pytest.mark.parametrize("groups", [(4, 4), (4, 5), (4, 1_000)])
def test_columns_that_are_the_same_bytes_are_compared_all_the_same(folder: Path, groups: Sequence[int]):
    table = numbers(21)
    off = table.set_column(1, "score", pa.array(np.sqrt(np.arange(21)) + (np.arange(21) > 17)))
    one = write(table, folder / "a", files=2, group=groups[0])
    other = write(off, folder / "b", files=2, group=groups[1])
    found = compare_datasets(one, other, Tolerances({"text": Exact()}))
    assert facts(found) == facts(compare(table, off, Tolerances({"text": Exact()})))
    assert found.failing_rows.tolist() == [18, 19, 20]


def test_types_that_differ_are_reported_once_however_many_batches(folder: Path):
    table = numbers(40)
    texts = table.set_column(0, "id", table["id"].cast(pa.string()))
    found = compare_datasets(
        write(table, folder / "a", group=3), write(texts.append_column("new", table["id"]), folder / "b")
    )
    assert [finding.kind for finding in found.findings] == ["extra_column", "dtype"]


def test_datasets_without_rows_or_common_columns_compare_nothing(folder: Path):
    none = write(numbers(0), folder / "none")
    for key in (None, "id"):
        assert compare_datasets(none, none, key=key).verdict == "nothing"
    other = write(numbers(3).rename_columns(["a", "b", "c"]), folder / "other")
    found = compare_datasets(write(numbers(3), folder / "some"), other)
    assert (found.verdict, found.columns) == ("divergent", ())


# Rows by key.


def shuffled(table: pa.Table) -> pa.Table:
    return table.take(np.random.default_rng(5).permutation(table.num_rows))


@pytest.mark.slow
@pytest.mark.parametrize("part_bytes", [200, 1 << 20])
def test_rows_in_any_order_pair_by_key_in_bounded_memory(folder: Path, part_bytes: int):
    one, other = write(numbers(500), folder / "a", files=2), write(shuffled(numbers(500)), folder / "b")
    found = compare_datasets(one, other, key="id", part_bytes=part_bytes)
    assert (found.verdict, found.rows) == ("identical", 500)
    assert [finding.kind for finding in found.findings] == ["row_order"]


@pytest.mark.parametrize("part_bytes", [64, 1 << 20])
def test_missing_extra_and_repeated_keys_are_named_with_their_counts(folder: Path, part_bytes: int):
    extra = pa.concat_tables([numbers(90), numbers(3, 40), numbers(3, 40), numbers(9, 200)])
    one, other = write(numbers(100), folder / "a"), write(shuffled(extra), folder / "b")
    found = compare_datasets(one, other, key="id", part_bytes=part_bytes)
    told = {finding.kind: finding.message for finding in found.findings}
    assert told["missing_rows"] == "10 rows missing from obtained: id 90, 91, 92, 93, 94 and 5 more"
    assert told["extra_rows"].startswith("9 rows in obtained only: id ")
    assert told["duplicate_keys"].startswith("6 rows repeated in obtained: id ")
    assert told["duplicate_keys"].count("(3 times)") == 3
    assert found.rows == 90
    assert [column.failing for column in found.columns] == [0, 0, 0]


@pytest.mark.slow
def test_repeated_keys_in_the_same_order_are_found(folder: Path):
    for table in (pa.concat_tables([numbers(60), numbers(60)]), pa.concat_tables([numbers(60), numbers(1)])):
        side = write(table, folder / str(table.num_rows))
        found = compare_datasets(side, side, key="id", part_bytes=64)
        assert found.verdict == "divergent"
        assert {finding.kind for finding in found.findings} == {"duplicate_keys"}
        assert found.rows == 60


@pytest.mark.parametrize("key", ["id", "text", ("text", "id")])
def test_keys_in_the_same_order_need_no_temporary_files(folder: Path, key: Any):
    table = numbers(60).filter(pa.array([row % 7 != 3 for row in range(60)]))
    side = write(table, folder / "a", files=3)
    found = compare_datasets(side, side, key=key, part_bytes=64, temporary=folder / "is not there")
    assert (found.verdict, found.rows) == ("identical", table.num_rows)
    with pytest.raises(DatasetError, match=r"is not there.*no temporary folder"):
        compare_datasets(
            side,
            write(shuffled(table), folder / "b"),
            key=key,
            part_bytes=64,
            temporary=folder / "is not there",
        )


def test_temporary_files_are_gone_afterwards(folder: Path):
    one, other = write(numbers(60), folder / "a"), write(shuffled(numbers(60)), folder / "b")
    (folder / "t").mkdir()
    compare_datasets(one, other, key="id", part_bytes=64, temporary=folder / "t")
    damaged = folder / "b" / "part-0.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(DatasetError):
        compare_datasets(one, other, key="id", part_bytes=64, temporary=folder / "t")
    assert list((folder / "t").iterdir()) == []


@pytest.mark.slow
def test_worst_rows_carry_their_key_and_place(folder: Path):
    off = numbers(60).set_column(
        1, "score", pa.array([v + (n == 44) for n, v in enumerate(np.sqrt(np.arange(60)))])
    )
    one, other = write(numbers(60), folder / "a"), write(off.take(list(range(59, -1, -1))), folder / "b")
    for key, shown in (("id", 44), (("text", "id"), {"text": "text 44", "id": 44})):
        found = compare_datasets(one, other, key=key, part_bytes=64)
        worst = found.column("score").worst
        assert [(row.row, row.obtained_row, row.key) for row in worst] == [(44, 15, shown)]
        assert found.failing_rows.tolist() == [44]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("idd", "key column 'idd' is not in the expected table; did you mean 'id'"),
        ("score", "key column 'score' is double; a key is an integer"),
        (("id", "id"), "given twice"),
        ("tags", r"key column 'tags' is list<"),
    ],
)
def test_a_key_that_cannot_identify_rows_is_refused(folder: Path, key: Any, message: str):
    table = numbers(3).append_column("tags", pa.array([["a"]] * 3))
    side = write(table, folder / "a")
    with pytest.raises(ConfigError, match=message):
        compare_datasets(side, side, key=key)
    with pytest.raises(ConfigError, match=message):
        compare(table, table, key=key)


def test_a_key_that_one_side_lacks_or_types_otherwise_is_refused(folder: Path):
    one = write(numbers(3), folder / "a")
    other = write(numbers(3).drop_columns(["id"]), folder / "b")
    with pytest.raises(ConfigError, match="'id' is not in the obtained table"):
        compare_datasets(one, other, key="id")
    texts = numbers(3).set_column(0, "id", pa.array(["0", "1", "2"]))
    with pytest.raises(ConfigError, match="int64 in expected and string in obtained"):
        compare_datasets(one, write(texts, folder / "c"), key="id")


def test_keys_of_two_widths_pair_and_the_dtype_is_reported(folder: Path):
    narrow = numbers(30).set_column(0, "id", pa.array(np.arange(30), pa.uint8()))
    one, other = write(numbers(30), folder / "a"), write(shuffled(narrow), folder / "b")
    for part_bytes in (64, 1 << 20):
        found = compare_datasets(one, other, key="id", part_bytes=part_bytes)
        assert found.rows == 30
        assert {finding.kind for finding in found.findings if finding.fails} == {"dtype"}


@pytest.mark.slow
def test_encoded_and_nested_columns_survive_the_parts(folder: Path):
    table = pa.table(
        {
            "id": [f"é{n}" for n in range(40)],
            "word": pa.array([f"w{n % 3}" for n in range(40)]).dictionary_encode(),
            "s": [{"a": [n, None], "b": f"{n}"} for n in range(40)],
            "d": pa.array(list(range(40)), pa.decimal128(9, 2)),
            "t": pa.array(list(range(40)), pa.timestamp("ns", "UTC")),
            "a.b": list(range(40)),
            "a": [{"b": n} for n in range(40)],
            "m": pa.array([[("k", n)] for n in range(40)], pa.map_(pa.string(), pa.int64())),
            "none": pa.nulls(40),
        }
    )
    words = pa.array([f"w{n % 3}" for n in range(40)]).dictionary_encode()
    lists = pa.ListArray.from_arrays(pa.array(range(41), pa.int32()), words)
    table = table.append_column("words", lists)
    one, other = write(table, folder / "a", group=7), write(shuffled(table), folder / "b", group=9)
    for key in ("id", "a.b", "d", "t", ("word", "id")):
        found = compare_datasets(one, other, key=key, part_bytes=64)
        assert (found.verdict, found.rows) == ("identical", 40)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, None, 2**63 - 1, -1]),
        pa.array([0, 2**64 - 1, None], pa.uint64()),
        pa.array(["a", "ab", "", None, "é", "b" * 300]),
        pa.array(["a", "ab", "", None], pa.large_string()),
        pa.array([b"a", b"\0", b"", None]),
        pa.array([b"ab", b"cd", None], pa.binary(2)),
        pa.array([0, 1, None], pa.timestamp("us")),
        pa.array([0, 1, None], pa.date32()),
        pa.array([True, False, None]),
        pa.array([1, 2, None], pa.decimal128(9, 2)),
    ],
)
def test_a_hash_depends_on_the_value_alone(values: Any):
    hashes = hash_rows([values])
    assert len(set(hashes.tolist())) == len(values)
    padded = pa.concat_arrays([values, values, values]).slice(len(values), len(values))
    assert hash_rows([padded]).tolist() == hashes.tolist()
    assert [hash_rows([values.slice(place, 1)])[0] for place in range(len(values))] == hashes.tolist()
    both = hash_rows([values, values])
    assert len({*both.tolist(), *hashes.tolist()}) == 2 * len(values)


# Which columns.


def test_only_the_columns_asked_for_are_compared_and_the_rest_is_named(folder: Path):
    off = numbers(5).set_column(2, "text", pa.array(["x"] * 5))
    one, other = write(numbers(5), folder / "a"), write(off, folder / "b")
    rules = Tolerances({"score": Close(ulp=1), "text": Exact()})
    found = compare_datasets(one, other, rules, columns=["score"], key="id")
    assert found.verdict == "identical"
    assert [column.name for column in found.columns] == ["id", "score"]
    assert [finding.message for finding in found.findings] == ["not compared, as was asked for: text"]
    with pytest.raises(ConfigError, match="'scores': there is no such column; did you mean 'score'"):
        compare_datasets(one, other, columns=["scores"])


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (Tolerances({"scroe": Exact()}), "unknown column 'scroe'; did you mean 'score'"),
        (
            Tolerances(dtypes={"float32": Exact()}),
            r"\[dtype.float32\] is never used.*floats there are: float64",
        ),
        (
            Tolerances({"box": Ignore(reason="r"), "box.x": Exact()}),
            r"\[tolerance.'box.x'\] is never used: 'box' is ignored",
        ),
    ],
)
def test_a_rule_that_decides_nothing_is_refused(folder: Path, rules: Tolerances, message: str):
    table = numbers(3).append_column("box", pa.array([{"x": 1.0}] * 3))
    side = write(table, folder / "a")
    with pytest.raises(ConfigError, match=message):
        compare_datasets(side, side, rules)


def test_a_default_for_floats_where_there_are_none_is_refused(folder: Path):
    side = write(numbers(3).select(["id"]), folder / "a")
    with pytest.raises(ConfigError, match=r"\[default\] is never used"):
        compare_datasets(side, side, Tolerances(default=Exact()))


@pytest.mark.parametrize("files", [1, 3])
def test_files_that_are_the_same_bytes_are_compared_in_full(folder: Path, files: int):
    table = numbers(30).append_column("list", pa.array([[float(n), None] for n in range(30)]))
    table = table.append_column("half", pa.array(np.arange(30, dtype=np.float16)))
    table = table.append_column("gap", pa.array([None if n % 5 == 0 else n / 3 for n in range(30)]))
    sides = [write(table, folder / name, files=files, group=4) for name in "ab"]
    for rules in (Tolerances(), Tolerances({"gap": Ignore(reason="r")})):
        for key in (None, "id"):
            found = compare_datasets(*sides, rules, key=key)
            assert facts(found) == facts(compare(table, table, rules, key=key))
            assert found.rows == 30


def test_columns_of_another_declaration_are_not_taken_for_the_same(folder: Path):
    for name, nullable in (("a", True), ("b", False)):
        schema = pa.schema([pa.field("x", pa.int64(), nullable=nullable)])
        pq.write_table(pa.table([[1, 2, 3]], schema=schema), folder / f"{name}.parquet")
    found = compare_datasets(folder / "a.parquet", folder / "b.parquet")
    assert (found.verdict, found.column("x").identical) == ("identical", 3)
    assert [finding.kind for finding in found.findings] == ["nullability"]
