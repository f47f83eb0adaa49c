"""Names, types, row counts and keys, found before any value is looked at."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse what pyarrow takes: dicts of numpy arrays, dicts of fields.

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from parity.compare import Close, Comparison, Tolerances, compare
from parity.errors import ConfigError

LOOSE = Tolerances({"x": Close(rtol=1.0)})


def kinds(found: Comparison, *, fails: bool = True) -> set[str]:
    return {finding.kind for finding in found.findings if finding.fails is fails}


# What pytest-regressions passes in silence.


def test_a_column_missing_from_obtained_fails():
    found = compare(pa.table({"x": [1.0], "y": [2]}), pa.table({"x": [1.0]}))
    assert not found
    assert kinds(found) == {"missing_column"}
    assert "'y'" in found.summary()


def test_a_column_only_in_obtained_fails():
    assert kinds(compare(pa.table({"x": [1.0]}), pa.table({"x": [1.0], "y": [2]}))) == {"extra_column"}


def test_int64_to_float32_fails_although_the_values_agree():
    found = compare(pa.table({"x": pa.array([1, 2])}), pa.table({"x": pa.array([1, 2], pa.float32())}))
    assert not found
    assert kinds(found) == {"dtype"}
    assert found.column("x").failing == 0
    assert "is int64, obtained float32" in found.summary()


def test_float64_to_float32_fails_under_any_tolerance():
    values = np.array([0.1, 0.2])
    found = compare(pa.table({"x": values}), pa.table({"x": values.astype(np.float32)}), LOOSE)
    assert not found
    assert kinds(found) == {"dtype"}
    assert found.column("x").failing == 0


def test_empty_text_to_null_fails():
    found = compare(pa.table({"x": pa.array(["", "a"])}), pa.table({"x": pa.array([None, "a"], pa.string())}))
    assert not found
    column = found.column("x")
    assert (column.failing, column.null_mismatches) == (1, 1)
    assert column.worst[0].reason == "null on one side"
    assert (column.worst[0].expected, column.worst[0].obtained) == ("", None)


def test_integers_beyond_2_to_53_differ():
    found = compare(pa.table({"x": [2**53 + 1]}), pa.table({"x": [2**53]}))
    assert not found
    assert found.column("x").worst[0].expected == 2**53 + 1


def test_an_integer_column_with_nulls_made_float_fails():
    obtained = pa.table({"x": pa.array([float(2**53), None])})
    assert not compare(pa.table({"x": pa.array([2**53 + 1, None])}), obtained)


@pytest.mark.parametrize("zone", [None, "Europe/Madrid"])
def test_another_timezone_fails_and_the_instants_are_still_compared(zone: str | None):
    expected = pa.table({"t": pa.array([0, 10**15], pa.timestamp("us", "UTC"))})
    obtained = pa.table({"t": pa.array([0, 10**15], pa.timestamp("us", zone))})
    found = compare(expected, obtained)
    assert kinds(found) == {"timezone"}
    assert found.column("t").identical == 2


def test_a_shift_in_time_shows_both_times():
    hour = 3_600_000_000
    expected = pa.table({"t": pa.array([-hour], pa.timestamp("us", "UTC"))})
    found = compare(expected, pa.table({"t": pa.array([0], pa.timestamp("us", "UTC"))}))
    worst = found.column("t").worst[0]
    assert "1969-12-31 23:00" in str(worst.expected)
    assert "1970-01-01 00:00" in str(worst.obtained)


def test_fixed_sizes_that_differ_are_a_shape_finding():
    expected = pa.table({"v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))})
    obtained = pa.table({"v": pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.float32(), 3))})
    found = compare(expected, obtained)
    assert kinds(found) == {"shape"}
    assert not found.column("v").comparable
    assert found.within_rows == 0


def test_declared_shapes_that_differ_are_found_though_the_sizes_agree():
    def tensor(shape: str) -> pa.Table:
        field = pa.field("v", pa.list_(pa.float32(), 6), metadata={"parity.shape": shape})
        return pa.table([pa.array([[0.0] * 6], field.type)], schema=pa.schema([field]))

    assert kinds(compare(tensor("[2, 3]"), tensor("[3, 2]"))) == {"shape"}


def test_a_struct_field_missing_is_named_by_its_path():
    found = compare(pa.table({"s": [{"a": 1, "b": 2}]}), pa.table({"s": [{"a": 1}]}))
    assert [f.column for f in found.findings if f.kind == "missing_column"] == ["s.b"]
    assert not found


def test_encodings_and_offset_widths_are_not_types():
    words = pa.array(["a", "b", None, "a"])
    expected = pa.table({"x": words, "y": pa.array([[1], [2, 3], None, []], pa.list_(pa.int32()))})
    for other in (words.dictionary_encode(), words.cast(pa.large_string()), words.cast(pa.string_view())):
        obtained = pa.table({"x": other, "y": expected["y"].cast(pa.large_list(pa.int32()))})
        for found in (compare(expected, obtained), compare(obtained, expected)):
            assert found.verdict == "identical"
            assert found.findings == ()


def test_declared_nullability_and_column_order_are_noted_only():
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False), pa.field("y", pa.int64())])
    expected = pa.table([[1], [2]], schema=schema)
    found = compare(expected, pa.table({"y": [2], "x": [1]}))
    assert found.verdict == "identical"
    assert kinds(found, fails=False) == {"nullability", "column_order"}


def test_two_columns_of_one_name_are_refused():
    twice = pa.table([[1], [2]], names=["x", "x"])
    with pytest.raises(ConfigError, match="several columns called 'x'"):
        compare(twice, twice)


# Rows.


def test_row_counts_that_differ_fail_and_the_shared_rows_are_compared():
    found = compare(pa.table({"x": [1, 2, 3]}), pa.table({"x": [1, 9]}))
    assert kinds(found) == {"row_count"}
    assert (found.rows, found.column("x").failing) == (2, 1)


def test_a_key_pairs_rows_whatever_their_order():
    expected = pa.table({"id": ["a", "b", "c"], "x": [1, 2, 3]})
    found = compare(expected, expected.take([2, 0, 1]), key="id")
    assert found.verdict == "identical"
    assert kinds(found, fails=False) == {"row_order"}


def test_missing_extra_and_duplicate_keys_are_told_apart():
    expected = pa.table({"id": [1, 2, 3], "x": [1, 2, 3]})
    obtained = pa.table({"id": [4, 2, 2, 1], "x": [4, 2, 7, 9]})
    found = compare(expected, obtained, key="id")
    assert kinds(found) == {"missing_rows", "extra_rows", "duplicate_keys"}
    assert "id 3" in next(f.message for f in found.findings if f.kind == "missing_rows")
    worst = found.column("x").worst
    assert [(row.row, row.obtained_row, row.key) for row in worst] == [(0, 3, 1)]


@pytest.mark.parametrize("key", ["nme", "score"])
def test_an_unknown_or_float_key_is_refused(key: str):
    table = pa.table({"name": ["a"], "score": [1.0]})
    with pytest.raises(ConfigError, match="key column"):
        compare(table, table, key=key)


def test_answers_that_are_all_ignored_are_not_compared_by_the_absence_of_errors():
    errors = pa.array([None, None], pa.struct([("kind", pa.string())]))
    expected = pa.table({"x": [1.0, 2.0], "y": [1, 2], "_error": errors})
    obtained = pa.table({"x": [3.0, 4.0], "y": [1, 2], "_error": errors})
    ignored = {"kind": "ignore", "reason": "the time of day"}
    assert compare(expected, obtained, Tolerances.from_mapping({"x": ignored})).verdict == "identical"
    assert (
        compare(expected, obtained, Tolerances.from_mapping({"x": ignored, "y": ignored})).verdict
        == "nothing"
    )


def test_nothing_compared_is_not_agreement():
    empty = pa.table({"x": pa.array([], pa.int64())})
    found = compare(empty, empty)
    assert not found
    assert found.verdict == "nothing"
    assert compare(pa.table({}), pa.table({})).verdict == "nothing"


def test_failing_rows_are_positions_in_expected():
    expected = pa.table({"id": [3, 1, 2], "x": [30, 10, 20]})
    found = compare(expected, pa.table({"id": [1, 2, 3], "x": [10, 21, 30]}), key="id")
    assert found.failing_rows.tolist() == [2]


def test_worst_rows_carry_their_inputs():
    inputs = pa.table({"text": ["one", "two"], "pixels": [[0] * 100, [7] * 100]})
    found = compare(pa.table({"x": [1, 2]}), pa.table({"x": [1, 5]}), inputs=inputs)
    given = found.column("x").worst[0].input
    assert given is not None
    assert given["text"] == "two"
    assert given["pixels"] == [7] * 16 + ["… 84 more"]
    with pytest.raises(ConfigError, match="inputs has 1 rows"):
        compare(pa.table({"x": [1, 2]}), pa.table({"x": [1, 5]}), inputs=inputs.slice(1))


# Row errors.

ERROR = pa.struct({"kind": pa.string(), "stage": pa.string(), "field": pa.string(), "message": pa.string()})


def answers(*rows: tuple[float | None, str | None, str]) -> pa.Table:
    errors = [None if kind is None else {"kind": kind, "message": message} for _, kind, message in rows]
    return pa.table({"x": pa.array([row[0] for row in rows]), "_error": pa.array(errors, ERROR)})


def test_error_messages_may_differ_and_are_noted():
    found = compare(
        answers((None, "failed", "a"), (1.0, None, "")), answers((None, "failed", "b"), (1.0, None, ""))
    )
    assert found
    assert kinds(found, fails=False) == {"error_text"}
    assert (found.errors_expected, found.errors_obtained) == (1, 1)


def test_another_error_kind_fails_and_shows_the_whole_error():
    found = compare(answers((None, "failed", "boom")), answers((None, "invalid", "too long")))
    assert [column.name for column in found.divergent()] == ["_error"]
    worst = found.column("_error").worst[0]
    assert isinstance(worst.obtained, dict)
    assert worst.obtained["message"] == "too long"


def test_a_row_that_failed_on_one_side_is_reported_once():
    found = compare(
        answers((1.0, None, ""), (2.0, None, "")), answers((None, "failed", "x"), (2.0, None, ""))
    )
    assert not found
    assert [column.name for column in found.divergent()] == ["_error"]
    assert found.column("x").rows == 1
    assert found.failing_rows.tolist() == [0]


def test_row_errors_never_get_a_tolerance():
    with pytest.raises(ConfigError, match="_error"):
        Tolerances.from_mapping({"_error": {"kind": "ignore", "reason": "noise"}})


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("ns", "Nowhere/Land"), pa.date64()])
@pytest.mark.parametrize("value", [2**62, -(2**62), 1])
def test_times_that_python_cannot_hold_are_shown(kind: pa.DataType, value: int):
    sides = [pa.table({"t": pa.array([moment], pa.int64()).view(kind)}) for moment in (value, 0)]
    worst = compare(sides[0], sides[1]).column("t").worst[0]
    assert isinstance(worst.expected, str)
