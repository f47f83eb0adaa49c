from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity import Batch, Float64, Handler, Int64, Schema, load_handler
from parity.codec.decoded import Decoded
from parity.codec.rows import RowDecoder
from parity.compare import compare
from parity.errors import ConfigError, GoldenError, RowsError
from parity.examples import edge_batch, example_batch
from parity.golden import (
    accept,
    check,
    find_case,
    find_cases,
    golden_folder,
    in_ci,
    propose,
    read_case,
    record,
)
from parity.golden.cases import write_case
from parity.handler import LoadedHandler
from tests.test_examples import EVERY_TYPE

HANDLER = """
import numpy as np
from parity import Float32, Float64, Handler, Int64, Schema, String

FACTOR = {factor}

class Scale(Handler):
    inputs = Schema(x=Float64(ge=-100.0, le=100.0), n=Int64(nullable=True))
    outputs = Schema({outputs})

    def preprocess(self, batch):
        for row in np.flatnonzero(~batch["n"].valid):
            batch.reject(int(row), "n is needed")
        return {{"x": batch["x"].numpy(), "n": batch["n"].fill_null(0).numpy()}}

    def inference(self, inputs):
        return inputs["x"] * FACTOR + inputs["n"]

    def postprocess(self, outputs, batch):
        return {{{returned}}}
"""


@pytest.fixture(autouse=True)
def outside_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def write_handler(
    folder: Path, factor: float = 2.0, outputs: str = "y=Float64()", returned: str = '"y": outputs'
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = HANDLER.format(factor=factor, outputs=outputs, returned=returned)
    (folder / "handler.py").write_text(text, encoding="utf-8")
    (folder / "handler.toml").write_text('name = "scale"\nversion = "1"\n', encoding="utf-8")
    return folder


@pytest.fixture
def scale(tmp_path: Path) -> LoadedHandler:
    return load_handler(write_handler(tmp_path / "handlers" / "scale"))


def rows(*pairs: tuple[float, int | None]) -> pa.Table:
    return pa.table({"x": [x for x, _ in pairs], "n": pa.array([n for _, n in pairs], pa.int64())})


SOME = rows((1.0, 1), (0.1, 2**53 + 1), (-0.0, None), (3.5, -7))


def test_a_recorded_case_reads_back_as_it_was(scale: LoadedHandler) -> None:
    case = record(scale, SOME, "first", reason="for the test")
    assert case.inputs.equals(SOME.cast(scale.inputs.to_arrow()))
    assert case.expected.column("y").to_pylist()[::3] == [3.0, 0.0]
    assert str(case.expected.column("_error")[2]["kind"]) == "rejected"
    assert (case.meta.rows, case.meta.errors, case.meta.reason) == (4, 1, "for the test")
    assert case.meta.recorded_profile == scale.profile()
    assert case.meta.fingerprint["package.numpy"] == np.__version__
    assert set(case.meta.digests) == {"source", "artifacts", "inputs", "expected"}
    assert case.notes(scale) == []
    assert [found.name for found in find_cases(scale)] == ["first"]


@pytest.mark.slow
def test_a_case_of_every_field_type_survives_the_disk(tmp_path: Path) -> None:
    class Echo(Handler):
        inputs = EVERY_TYPE
        outputs = EVERY_TYPE

        def preprocess(self, batch: Batch) -> list[int]:
            return [0] * len(batch)

        def postprocess(self, outputs: list[int], batch: Batch) -> dict[str, object]:
            return {name: column.arrow for name, column in batch.items()}

    loaded = LoadedHandler.of(Echo)
    both = Batch.concat([example_batch(EVERY_TYPE, 20), edge_batch(EVERY_TYPE)])
    case = record(loaded, Decoded.of(both), "all", reason="types", golden=tmp_path)
    assert case.meta.errors == 0
    assert compare(both.to_table(), case.inputs).verdict == "identical"
    assert check(loaded, golden=tmp_path)[0].comparison.verdict == "identical"


def test_checking_an_unchanged_handler_is_identical(scale: LoadedHandler) -> None:
    record(scale, SOME, "first", reason="r")
    (found,) = check(scale)
    assert (found.comparison.verdict, found.comparison.rows, found.notes) == ("identical", 4, ())


def test_a_changed_handler_diverges_and_the_change_of_source_is_noted(tmp_path: Path) -> None:
    folder = write_handler(tmp_path / "scale")
    record(load_handler(folder), SOME, "first", reason="r")
    changed = load_handler(write_handler(folder, factor=2.5))
    (found,) = check(changed)
    assert found.comparison.verdict == "divergent"
    assert found.notes == ("the handler's source changed since the case was recorded",)


def test_a_handler_without_goldens_is_told_how_to_record_one(scale: LoadedHandler) -> None:
    assert find_cases(scale) == []
    with pytest.raises(GoldenError, match=r"no golden case in .*golden.*parity golden record"):
        check(scale)


def test_an_existing_case_is_not_overwritten(scale: LoadedHandler) -> None:
    case = record(scale, SOME, "first", reason="r")
    before = (case.path / "case.toml").read_bytes()
    with pytest.raises(GoldenError, match="parity golden update"):
        record(scale, SOME, "first", reason="r")
    assert (case.path / "case.toml").read_bytes() == before


@pytest.mark.parametrize("value", ["true", "1", "TRUE", "on", "woodpecker"])
def test_nothing_is_written_in_ci(scale: LoadedHandler, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    case = record(scale, SOME, "first", reason="r")
    (proposal,) = propose(scale)
    before = sorted((path, path.stat().st_mtime_ns) for path in case.path.rglob("*"))
    monkeypatch.setenv("CI", value)
    assert in_ci()
    for action in (
        lambda: record(scale, SOME, "second", reason="r"),
        lambda: propose(scale),
        lambda: accept(proposal, reason="r"),
    ):
        with pytest.raises(GoldenError, match="in CI") as caught:
            action()
        assert caught.value.exit_code == 3
    assert sorted((path, path.stat().st_mtime_ns) for path in case.path.rglob("*")) == before


@pytest.mark.parametrize("value", ["", "0", "false", "False", "no", "off"])
def test_ci_set_to_false_is_no_ci(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CI", value)
    assert not in_ci()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: (path / "expected.parquet").unlink(), "expected.parquet is missing"),
        (lambda path: (path / "inputs.parquet").unlink(), "inputs.parquet is missing"),
        (lambda path: os.truncate(path / "inputs.parquet", 100), "not the file that was recorded"),
        (lambda path: pq.write_table(SOME, path / "inputs.parquet"), "not the file that was recorded"),
        (lambda path: (path / "case.toml").unlink(), "orphaned"),
        (lambda path: (path / "case.toml").write_text("rows = ["), "not a TOML file"),
        (lambda path: (path / "case.toml").write_text("format = 99"), "case format 1: update parity"),
    ],
    ids=["no-expected", "no-inputs", "truncated", "swapped", "no-toml", "bad-toml", "format"],
)
def test_a_damaged_case_is_refused(scale: LoadedHandler, damage: object, message: str) -> None:
    case = record(scale, SOME, "first", reason="r")
    damage(case.path)  # pyright: ignore[reportCallIssue]
    with pytest.raises(GoldenError, match=message) as caught:
        find_cases(scale)
    assert caught.value.exit_code == 3


def test_a_case_of_another_handler_is_orphaned(scale: LoadedHandler, tmp_path: Path) -> None:
    case = record(scale, SOME, "first", reason="r")
    other = write_handler(tmp_path / "handlers" / "other")
    (other / "handler.toml").write_text('name = "other"\n', encoding="utf-8")
    shutil.copytree(case.path, other / "golden" / "first")
    with pytest.raises(GoldenError, match=r"belongs to handler 'scale', not to 'other'; it is orphaned"):
        find_cases(load_handler(other))


def test_a_case_whose_rows_no_longer_fit_is_stale(tmp_path: Path) -> None:
    folder = write_handler(tmp_path / "scale")
    record(load_handler(folder), SOME, "first", reason="r")
    text = (folder / "handler.py").read_text().replace("le=100.0", "le=2.0")
    (folder / "handler.py").write_text(text)
    with pytest.raises(GoldenError, match=r"stale: 1 of 4 rows do not fit .* row 3"):
        find_cases(load_handler(folder))


@pytest.mark.parametrize(
    ("outputs", "returned"),
    [
        ("z=Float64()", '"z": outputs'),
        ("y=Float32()", '"y": outputs.astype("float32")'),
        ("y=Float64(), extra=Int64()", '"y": outputs, "extra": outputs.astype("int64")'),
    ],
    ids=["renamed", "retyped", "added"],
)
def test_a_case_whose_answers_have_another_schema_is_stale_and_can_be_updated(
    tmp_path: Path, outputs: str, returned: str
) -> None:
    folder = write_handler(tmp_path / "scale")
    record(load_handler(folder), SOME, "first", reason="r")
    changed = load_handler(write_handler(folder, outputs=outputs, returned=returned))
    with pytest.raises(GoldenError, match=r"stale.*parity golden update"):
        check(changed)
    (proposal,) = propose(changed)
    assert proposal.moved
    assert proposal.comparison is None
    assert "stale" in proposal.why_not_compared
    accept(proposal, reason="new outputs")
    assert check(changed)[0].comparison.verdict == "identical"


@pytest.mark.slow
def test_an_update_shows_what_moved_and_writes_only_when_accepted(tmp_path: Path) -> None:
    folder = write_handler(tmp_path / "scale")
    record(load_handler(folder), SOME, "first", reason="r")
    changed = load_handler(write_handler(folder, factor=2.5))
    (proposal,) = propose(changed)
    assert proposal.comparison is not None
    assert proposal.comparison.column("y").failing == 3 - 1
    assert check(changed)[0].comparison.verdict == "divergent"
    accept(proposal, reason="a better factor")
    case = find_case(changed, "first")
    assert (case.meta.reason, case.notes(changed)) == ("a better factor", [])
    assert check(changed)[0].comparison.verdict == "identical"
    assert [path.name for path in case.path.parent.iterdir()] == ["first"]


def test_an_update_of_an_unchanged_handler_moves_nothing(scale: LoadedHandler) -> None:
    record(scale, SOME, "first", reason="r")
    assert [proposal.moved for proposal in propose(scale)] == [False]


@pytest.mark.slow
def test_the_tolerance_at_the_recording_is_the_one_that_counts(tmp_path: Path) -> None:
    folder = write_handler(tmp_path / "scale")
    record(load_handler(folder), SOME, "first", reason="r")
    write_handler(folder, factor=2.001)
    loose = '[tolerance.y]\nkind = "close"\nrtol = 0.5\n'
    (folder / "handler.toml").write_text(f'name = "scale"\n{loose}', encoding="utf-8")
    changed = load_handler(folder)
    (found,) = check(changed)
    assert found.comparison.verdict == "divergent"
    assert any("tolerance differs" in note for note in found.notes)
    for proposal in propose(changed):
        accept(proposal, reason="looser")
    write_handler(folder)
    (folder / "handler.toml").write_text(f'name = "scale"\n{loose}', encoding="utf-8")
    assert check(load_handler(folder))[0].comparison.verdict == "within"


def test_rows_that_do_not_fit_are_not_recorded(scale: LoadedHandler) -> None:
    with pytest.raises(RowsError, match=r"2 of 3 rows failed"):
        record(scale, rows((1e9, 1), (1.0, 1), (float("nan"), 1)), "first", reason="r")
    assert not golden_folder(scale).exists()


@pytest.mark.parametrize(
    ("table", "case", "reason", "message"),
    [
        (SOME.slice(0, 0), "first", "r", "no rows"),
        (SOME, "../first", "r", "will not do for a folder"),
        (SOME, "", "r", "will not do for a folder"),
        (SOME, "first", "  ", "needs a reason"),
    ],
)
def test_a_recording_that_proves_nothing_is_refused(
    scale: LoadedHandler, table: pa.Table, case: str, reason: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        record(scale, table, case, reason=reason)


def test_decoded_rows_can_be_recorded(scale: LoadedHandler) -> None:
    decoded = RowDecoder(scale.inputs).decode([{"x": 1, "n": 2}])
    assert record(scale, decoded, "first", reason="r").expected.column("y").to_pylist() == [4.0]


def test_the_nearest_golden_folder_wins(
    scale: LoadedHandler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = scale.root
    assert root is not None
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    assert golden_folder(scale) == root / "golden"
    farther = [
        work / "golden" / "scale",
        tmp_path / "golden" / "scale",
        tmp_path / "handlers" / "golden" / "scale",
    ]
    for folder in [*farther, root / "golden"]:
        folder.mkdir(parents=True)
        assert golden_folder(scale).resolve() == folder.resolve()


def test_a_first_case_goes_to_the_nearest_shared_golden_folder(
    scale: LoadedHandler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "golden").mkdir()
    monkeypatch.chdir(tmp_path / "handlers")
    assert golden_folder(scale) == tmp_path / "golden" / "scale"


def test_an_explicit_golden_folder_holds_cases_or_a_folder_for_each_handler(
    scale: LoadedHandler, tmp_path: Path
) -> None:
    shared, direct = tmp_path / "shared", tmp_path / "direct"
    case = record(scale, SOME, "first", reason="r", golden=shared)
    assert case.path == shared / "scale" / "first"
    shutil.copytree(case.path, direct / "first")
    assert [found.path for found in find_cases(scale, direct)] == [direct / "first"]


def test_an_unknown_case_is_named_with_those_there_are(scale: LoadedHandler) -> None:
    record(scale, SOME, "first", reason="r")
    with pytest.raises(GoldenError, match=r"no golden case 'frist' in .*; there: first"):
        check(scale, cases=["frist"])


def test_what_the_stages_returned_is_kept_when_asked_for(scale: LoadedHandler) -> None:
    case = record(scale, SOME, "first", reason="r", stages=True)
    kept = case.traces
    assert kept is not None
    assert set(kept.preprocess) == {"value['x']", "value['n']"}
    assert [None if value is None else float(value) for value in kept.inference["value"]][::3] == [3.0, 0.0]
    assert record(scale, SOME, "second", reason="r").traces is None


def test_an_update_keeps_the_stages_of_a_case_that_has_them_and_makes_none_for_others(tmp_path: Path) -> None:
    folder = write_handler(tmp_path / "scale")
    record(load_handler(folder), SOME, "first", reason="r", stages=True)
    record(load_handler(folder), SOME, "second", reason="r")
    changed = load_handler(write_handler(folder, factor=2.5))
    first, second = propose(changed)
    for proposal in (first, second):
        accept(proposal, reason="a better factor")
    kept = find_case(changed, "first").traces
    assert kept is not None
    assert kept.inference["value"][0] == 3.5
    assert not (second.path / "stages.arrow").exists()


def test_a_reason_may_hold_any_character(scale: LoadedHandler) -> None:
    reason = 'quotes " and \\ and \x7f and \n lines, ünïcödé \U0001f600'
    record(scale, SOME, "first", reason=reason)
    assert find_case(scale, "first").meta.reason == reason


def test_a_failed_write_leaves_nothing_behind(scale: LoadedHandler) -> None:
    case = record(scale, SOME, "first", reason="r")
    meta = replace(case.meta, tolerance={"y": {"kind": object()}})
    with pytest.raises(GoldenError, match="cannot be kept"):
        write_case(case.path.parent / "second", case.inputs, case.expected, meta)
    assert [path.name for path in case.path.parent.iterdir()] == ["first"]
    assert read_case(case.path, scale).meta == case.meta


def test_a_handler_of_a_notebook_records_where_it_is_told(tmp_path: Path) -> None:
    class Double(Handler):
        inputs = Schema(n=Int64())
        outputs = Schema(y=Float64())

        def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
            return inputs["n"] * 2.0

        def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
            return {"y": outputs}

    loaded = LoadedHandler.of(Double)
    case = record(loaded, pa.table({"n": [1, 2]}), "first", reason="r", golden=tmp_path)
    assert case.path == tmp_path / "double" / "first"
    assert case.expected.column("y").to_pylist() == [2.0, 4.0]
