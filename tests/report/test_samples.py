"""Samples hold what differs first, tie places to rows, and stay small."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse dicts of numpy arrays, which pyarrow takes.

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from parity.compare import Close, Exact, Tolerances, compare
from parity.report.samples import (
    MAX_CHANGES,
    MAX_EQUAL,
    MAX_OUTSIDE,
    MAX_WITHIN,
    BucketShare,
    Change,
    Samples,
    samples,
)
from parity.stages import Traces

from .photos import SIDE, Photo, SwappedPhoto, asked, photos


def found_in(expected: dict[str, Any], obtained: dict[str, Any], **more: Any) -> Samples:
    sides = pa.table(expected), pa.table(obtained)
    return samples(compare(*sides, more.pop("tolerances", None)), *sides, **more)


def test_a_point_for_each_row_of_a_small_column():
    kept = found_in({"x": [1.0, 2.0, None, np.inf]}, {"x": [1.0, 2.5, 3.0, np.nan]})
    column = kept.column("x")
    assert column is not None
    assert column.rows.tolist() == [0, 1, 2, 3]
    assert column.outside.tolist() == [False, True, True, True]
    assert column.errors[:2].tolist() == [0.0, 0.5]
    assert np.isnan(column.errors[2:]).all()
    assert column.of_rows == 4


def test_rows_that_differ_come_first_in_large_columns():
    rows = 20_000
    expected = np.arange(rows, dtype=np.float64) + 1
    obtained = expected.copy()
    obtained[::7] *= 1.5
    obtained[1::7] *= 1 + 1e-15
    kept = found_in({"x": expected}, {"x": obtained}, tolerances=Tolerances({"x": Close(rtol=1e-9)}))
    column = kept.column("x")
    assert column is not None
    errors = column.errors
    assert int(column.outside.sum()) == MAX_OUTSIDE
    assert int((errors == 0).sum()) == MAX_EQUAL
    assert int(((errors > 0) & ~column.outside).sum()) == MAX_WITHIN
    assert column.rows[0] == 0
    assert column.rows[-1] >= rows - 7


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 3), pa.large_list(pa.int64())]
)
def test_a_list_is_sampled_where_it_differs_most(kind: pa.DataType):
    expected = pa.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], kind)
    obtained = pa.array([[1, 2, 3], [4, 9, 7], [7, 8, 10]], kind)
    column = found_in({"x": expected}, {"x": obtained}).column("x")
    assert column is not None
    assert column.elements[1:].tolist() == [1, 2]
    assert column.expected.tolist()[1:] == [5, 9]
    assert column.obtained.tolist()[1:] == [9, 10]


def test_lists_of_other_lengths_nulls_and_nan_do_not_confuse_the_places():
    expected = pa.array([[1.0], None, [], [1.0, np.nan, 3.0], [2.0, np.nan]])
    obtained = pa.array([[1.0, 2.0], [5.0], [], [1.0, np.nan, 4.0], [2.0, 7.0]])
    column = found_in({"x": expected}, {"x": obtained}).column("x")
    assert column is not None
    assert np.isnan(column.expected[:3]).all()
    assert (column.expected[3], column.obtained[3], column.elements[3]) == (3.0, 4.0, 2)
    assert (column.obtained[4], column.elements[4]) == (7.0, 1)


def test_nothing_is_kept_of_tables_that_agree_or_whose_rows_do_not_pair():
    assert found_in({"x": [1]}, {"x": [1]}) == Samples()
    assert found_in({"x": [1, 2]}, {"x": [1]}) == Samples()


def test_rows_are_counted_by_the_batch_size_that_inference_saw():
    kept = found_in(
        {"x": [1.0, 2.0, 3.0, 4.0, 5.0]}, {"x": [1.0, 9.0, 9.0, 9.0, 5.0]}, buckets=[1, 1, 16, 16, 0]
    )
    assert kept.buckets == (BucketShare(1, 2, 1, 1), BucketShare(16, 2, 2, 2))
    assert found_in({"x": [1]}, {"x": [2]}, buckets=[1, 2]).buckets == ()


def test_the_most_frequent_changes_of_labels_are_counted():
    labels = [f"label {place % 20}" for place in range(400)]
    moved = ["boot" if place % 20 < 2 else f"other {place}" for place in range(400)]
    kept = found_in({"x": labels}, {"x": moved}, tolerances=Tolerances({"x": Exact()}))
    assert len(kept.changes["x"]) == MAX_CHANGES
    assert kept.changes["x"][0] == Change("label 0", "boot", 20)
    assert found_in({"x": [1.5]}, {"x": [2.5]}).changes == {}


def test_columns_that_are_no_numbers_or_cannot_be_compared_have_no_points():
    kept = found_in(
        {"x": ["a"], "y": [1], "z": [{"a": 1.0}], "t": pa.array([1], pa.timestamp("s"))},
        {"x": ["b"], "y": ["c"], "z": [{"a": 2.0}], "t": pa.array([2], pa.timestamp("s"))},
    )
    assert kept.columns == ()


def test_samples_are_json():
    kept = found_in({"x": [1.0, np.nan, 2.0**60]}, {"x": [np.inf, 1.0, -np.inf]}, buckets=[1, 2, 3])
    told = json.loads(json.dumps(kept.to_dict(), allow_nan=False))
    assert told["columns"][0]["obtained"] == ["Infinity", 1.0, "-Infinity"]
    assert told["columns"][0]["expected"][1] == "NaN"
    assert told["buckets"][0] == {"size": 1, "rows": 1, "differing": 1, "outside": 1}


def test_images_of_inputs_answers_and_stages_are_kept_for_the_worst_rows():
    (right, ours), (wrong, theirs) = asked(Photo), asked(SwappedPhoto)
    inputs = photos().to_table()
    kept = samples(compare(right, wrong), right, wrong, inputs=inputs, traces=(ours, theirs))
    rows = list(dict.fromkeys(item.row for item in kept.pictures))
    assert 2 <= len(rows) <= 6
    first = [(item.source, item.where) for item in kept.pictures if item.row == rows[0]]
    assert first == [
        ("input", "photo"),
        ("input", "file"),
        ("answer", "mask"),
        ("preprocess", "value['pixels']"),
        ("inference", "value['warm']"),
    ]
    sizes = {(item.expected.width, item.expected.height) for item in kept.pictures if item.expected}
    assert sizes == {(SIDE, SIDE), (0, 0)}
    same = samples(compare(right, wrong), right, wrong, traces=(ours, ours))
    assert {item.source for item in same.pictures} == {"answer"}


def test_rows_that_a_stage_never_saw_have_no_picture():
    (right, ours), (wrong, theirs) = asked(Photo), asked(SwappedPhoto)
    empty = Traces(theirs.inputs, {"value['pixels']": [None] * theirs.num_rows}, {}, theirs.outputs)
    kept = samples(compare(right, wrong), right, wrong, traces=(ours, empty))
    assert {item.source for item in kept.pictures} == {"answer"}
