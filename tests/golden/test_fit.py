"""Cases and schemas: what changed since the recording, and rows that do not fit."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from parity import (
    Decimal,
    Float64,
    Image,
    Int32,
    Int64,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
    load_handler,
)
from parity.errors import ConfigError, RowsError
from parity.golden import check, find_cases, propose, record
from parity.golden.cases import MAX_STAGES_BYTES, check_stages_size
from parity.golden.faults import StaleCaseError
from parity.golden.fit import canonical, schema_changes, schema_texts
from parity.stages import Traces
from tests.test_golden import SOME, rows, write_handler


@pytest.fixture(autouse=True)
def outside_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def edit(folder: Path, old: str, new: str) -> None:
    source = folder / "handler.py"
    text = source.read_text(encoding="utf-8")
    assert old in text
    source.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "le=100.0",
            "le=2.0",
            r"1 of 4 rows do not fit .* row 3: .*Since version 1: field 'x' was Float64\(ge=-100.0, "
            r"le=100.0\), is Float64\(ge=-100.0, le=2.0\); record the case again .*parity golden prune",
        ),
        ("n=Int64(nullable=True)", "n=Int64()", r"field 'n' was Int64\(nullable=True\), is Int64\(\)"),
        ("n=Int64(nullable=True)", "m=Int64()", r"field 'n' is gone .*, field 'm' is new, Int64\(\)"),
        ("n=Int64(nullable=True)", "n=String()", r"field 'n' was Int64\(nullable=True\), is String\(\)"),
    ],
)
def test_a_stale_case_says_which_fields_changed_and_what_to_do(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    folder = write_handler(tmp_path / "scale")
    record(load_handler(folder), SOME, "first", reason="r")
    edit(folder, old, new)
    with pytest.raises(StaleCaseError, match=message):
        find_cases(load_handler(folder))


def test_a_case_recorded_before_schemas_were_kept_names_the_fields_by_arrow_types(tmp_path: Path) -> None:
    folder = write_handler(tmp_path / "scale")
    case = record(load_handler(folder), SOME, "first", reason="r")
    toml = case.path / "case.toml"
    text = toml.read_text(encoding="utf-8")
    text = re.sub('(?m)^digest = ".*\n', "", text[: text.index("[inputs]")])
    toml.write_text(text, encoding="utf-8")
    edit(folder, "n=Int64(nullable=True)", "m=Int64()")
    with pytest.raises(StaleCaseError, match=r"Since version 1: field 'n' is gone, field 'm' is new"):
        find_cases(load_handler(folder))


def test_a_change_that_every_row_bears_is_noted(tmp_path: Path) -> None:
    folder = write_handler(tmp_path / "scale")
    record(load_handler(folder), SOME, "first", reason="r")
    edit(folder, "le=100.0", "le=200.0")
    edit(folder, "n=Int64(nullable=True)", "n=Int64(nullable=True), flag=Int64(default=3)")
    (found,) = check(load_handler(folder))
    assert found.comparison.verdict == "identical"
    assert any(note.startswith("input field 'x' was") for note in found.notes)
    assert "input field 'flag' is new, Int64(default=3)" in found.notes


def test_every_way_to_write_a_field_is_told_and_a_doc_is_none() -> None:
    schema = Schema(
        a=Int64(ge=0, doc="not told"),
        b=Struct(x=Float64(), y=List(String(choices=("p", "q"))), nullable=True),
        c=Tensor("uint8", (None, 3)),
        d=Timestamp(unit="ms", tz="UTC"),
        e=Decimal(9, 2),
        f=Image(form="array", channels=3),
    )
    assert schema_texts(schema) == {
        "a": "Int64(ge=0)",
        "b": "Struct(x=Float64(), y=List(of=String(choices=('p', 'q'))), nullable=True)",
        "c": "Tensor(dtype='uint8', shape=(None, 3))",
        "d": "Timestamp(unit='ms', tz='UTC')",
        "e": "Decimal(precision=9, scale=2)",
        "f": "Image(form='array', channels=3)",
    }
    assert schema_changes(schema_texts(schema), schema) == []
    assert schema_changes({}, schema) == []


MIXED = rows((1.0, 1), (1e9, 1), (2.0, None), (float("nan"), 3))


def test_rows_that_do_not_fit_are_refused_with_the_remedy(tmp_path: Path) -> None:
    scale = load_handler(write_handler(tmp_path / "scale"))
    with pytest.raises(RowsError, match=r"row 1 \(invalid\).*(\n.*)*--invalid skip .*--invalid keep"):
        record(scale, MIXED, "first", reason="r")


def test_rows_that_do_not_fit_can_be_kept_as_rows_that_are_expected_to_fail(tmp_path: Path) -> None:
    folder = write_handler(tmp_path / "scale")
    scale = load_handler(folder)
    case = record(scale, MIXED, "first", reason="r", keep_invalid=True, stages=True)
    assert case.inputs.column("x").to_pylist()[:3] == [1.0, 1e9, 2.0]
    kinds = [error and error["kind"] for error in case.expected.column("_error").to_pylist()]
    assert kinds == [None, "invalid", "rejected", "invalid"]
    assert (case.meta.errors, case.answered) == (3, 1)
    assert case.traces is not None
    assert case.traces.num_rows == 2
    (found,) = check(scale)
    assert (found.comparison.verdict, found.comparison.rows) == ("identical", 4)
    assert [proposal.moved for proposal in propose(scale)] == [False]


def test_a_row_that_fits_since_then_moved(tmp_path: Path) -> None:
    folder = write_handler(tmp_path / "scale")
    record(load_handler(folder), MIXED, "first", reason="r", keep_invalid=True)
    edit(folder, "le=100.0", "le=1e9")
    (found,) = check(load_handler(folder))
    assert found.comparison.verdict == "divergent"
    assert found.comparison.failing_rows.tolist() == [1]


def test_a_row_that_fails_to_fit_since_then_is_stale(tmp_path: Path) -> None:
    folder = write_handler(tmp_path / "scale")
    record(load_handler(folder), MIXED, "first", reason="r", keep_invalid=True)
    edit(folder, "ge=-100.0", "ge=1.5")
    with pytest.raises(StaleCaseError, match=r"1 of 4 rows do not fit .*, the first being row 0"):
        find_cases(load_handler(folder))


def test_a_row_without_a_form_in_the_schemas_types_is_never_kept(tmp_path: Path) -> None:
    scale = load_handler(write_handler(tmp_path / "scale"))
    table = pa.table({"x": [1.0, 2.0], "n": pa.array([1, 2**63], pa.uint64())})
    with pytest.raises(RowsError, match=r"1 of 2 rows failed(\n.*)*no form in the schema's types"):
        record(scale, table, "first", reason="r", keep_invalid=True)
    assert not (tmp_path / "scale" / "golden").exists()


def test_canonical_rows_keep_their_places() -> None:
    schema = Schema(n=Int32(ge=0), s=String(max_length=2, default="d"))
    table = pa.table({"n": [5, -1, 2**40, 7, None]})
    found = canonical(schema, table)
    assert found.rows.to_pydict() == {"n": [5, -1, 7, None], "s": ["d", "d", "d", "d"]}
    assert found.index.tolist() == [0, 1, 3, 4]
    assert sorted(found.errors) == [1, 3]
    assert [error.row for error in found.lost] == [2]
    capped = canonical(schema, table, at_most=1)
    assert (capped.index.tolist(), [error.row for error in capped.lost]) == ([0, 1, 3], [2, 4])


def test_a_case_in_which_every_row_fails_says_that_it_proves_nothing(tmp_path: Path) -> None:
    scale = load_handler(write_handler(tmp_path / "scale"))
    case = record(scale, rows((1.0, None), (2.0, None)), "first", reason="r")
    assert case.answered == 0
    assert any("every row is expected to fail" in note for note in case.notes(scale))


def test_stage_values_too_large_for_a_case_are_refused_by_name_and_size() -> None:
    value = pa.array([0]).to_numpy()
    huge = value.repeat(MAX_STAGES_BYTES // 8 + 1)
    empty = pa.table({"x": [1.0]})
    with pytest.raises(ConfigError, match=r"stage values of 1 rows take 64 MiB, .* 64 MiB.*--limit"):
        check_stages_size(Traces(empty, {"value": [huge]}, {}, empty))
