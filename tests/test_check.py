from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from parity import Batch, Engine, Profile, Result, load_handler
from parity.check import check_goldens, run_check, running
from parity.codec.arrow import decode_table
from parity.column import Column
from parity.errors import (
    ConfigError,
    DatasetError,
    FingerprintError,
    GoldenError,
    ReferenceNotFoundError,
    RunnerError,
)
from parity.examples import example_batch
from parity.golden import record
from parity.laws import LAWS
from parity.report import as_json, html, terminal
from tests.test_golden import write_handler

Change = Callable[[Result], Result]


@dataclass(eq=False)
class FakeRunner:
    """A runner of this process whose answers a test may change on their way."""

    name: str = "fake"
    wire_forms: tuple[str, ...] = ("only",)
    change: Change = lambda result: result
    command_name: str = ""
    command: Any = None

    def replay(
        self,
        handler_ref: str,
        rows: pa.Table,
        profile: Profile,
        *,
        app_dir: str | None = None,
        wire: str | None = None,
    ) -> Result:
        loaded = load_handler(handler_ref, app_dir=app_dir)
        with Engine(loaded, profile) as engine:
            return self.change(engine.score(decode_table(loaded.inputs, rows)))


def first_answer_moved(result: Result) -> Result:
    values = result.outputs["y"].numpy().copy()
    values[0] += 0.25
    columns = {"y": Column(result.outputs["y"].field, numpy=values)}
    return Result(result.num_rows, Batch(result.outputs.schema, columns), result.index, result.errors)


def one_answer_lost(result: Result) -> Result:
    outputs, index = result.outputs.slice(0, 1), result.index[:1]
    return Result(int(index[0]) + 1, outputs, index, ())


def crash(result: Result) -> Result:
    raise RunnerError("the server ended with exit code 9")


def surprise(result: Result) -> Result:
    raise KeyError("lost")


@pytest.fixture
def scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("CI", raising=False)
    folder = write_handler(tmp_path / "scale")
    loaded = load_handler(folder)
    rows = example_batch(loaded.inputs, 12).to_table()
    record(loaded, rows, "first", reason="r")
    record(loaded, rows.slice(3, 4), "second", reason="r")
    return str(folder)


def test_every_case_goes_through_every_runner_in_every_wire_form(scale: str) -> None:
    runners = [FakeRunner(), FakeRunner("other", ("json", "binary"))]
    lines: list[str] = []
    report = run_check(scale, runners=runners, laws=[], progress=lines.append)
    assert [(entry.name, entry.case, entry.rows, entry.verdict) for entry in report.entries] == [
        ("engine", "first", 12, "identical"),
        ("engine", "second", 4, "identical"),
        ("fake", "first", 12, "identical"),
        ("fake", "second", 4, "identical"),
        ("other json", "first", 12, "identical"),
        ("other json", "second", 4, "identical"),
        ("other binary", "first", 12, "identical"),
        ("other binary", "second", 4, "identical"),
    ]
    assert (report.verdict, report.exit_code, report.rows_compared) == ("agrees", 0, 64)
    assert lines == ["16 rows through fake: only", "16 rows through other: json, binary"]
    assert report.fingerprint_changes() == {}
    assert report.notes == ()


def test_runners_that_start_slowly_are_asked_by_name_or_thoroughly(
    scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = {"fake": FakeRunner(), "slow": FakeRunner("slow")}
    monkeypatch.setattr(running, "runner_names", lambda: sorted(installed))
    monkeypatch.setattr(running, "usual_runner_names", lambda: ["fake"])
    monkeypatch.setattr(running, "find_runner", installed.__getitem__)
    plain = run_check(scale, laws=[])
    assert plain.runners() == ["engine", "fake"]
    assert plain.notes == ("not checked: slow, slow to start; --thorough asks all, --runner one",)
    for thorough in (
        run_check(scale, laws=[], thorough=True),
        run_check(scale, runners=["fake", "slow"], laws=[]),
    ):
        assert list(thorough.runners()) == ["engine", "fake", "slow"]
        assert thorough.notes == ()


def test_a_runner_that_changes_an_answer_diverges(scale: str) -> None:
    report = run_check(scale, runners=[FakeRunner(), FakeRunner("bad", change=first_answer_moved)], laws=[])
    assert [(entry.runner, entry.case) for entry in report.failures()] == [("bad", "first")]
    assert (report.verdict, report.exit_code) == ("diverges", 1)
    for render in (terminal.render, html.render, as_json.render):
        assert "bad" in render(report)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (crash, "the server ended with exit code 9"),
        (surprise, "KeyError: 'lost'"),
        (one_answer_lost, "1 answers came back for 16 rows"),
    ],
)
def test_a_runner_that_crashes_is_told_beside_the_others(scale: str, change: Change, message: str) -> None:
    report = run_check(scale, runners=[FakeRunner("bad", change=change), FakeRunner()], laws=[])
    assert [(entry.runner, entry.verdict) for entry in report.entries] == [
        ("engine", "identical"),
        ("engine", "identical"),
        ("bad", "crashed"),
        ("bad", "crashed"),
        ("fake", "identical"),
        ("fake", "identical"),
    ]
    assert report.entries[2].error == message
    assert (report.verdict, report.exit_code) == ("runner crashed", 6)


def test_an_error_in_what_was_asked_is_not_a_crash_of_the_runner(scale: str) -> None:
    def refuse(result: Result) -> Result:
        raise DatasetError("no room on the disk")

    with pytest.raises(DatasetError, match="no room"):
        run_check(scale, runners=[FakeRunner(change=refuse)], laws=[])


def test_a_runner_that_refuses_is_no_crash(scale: str) -> None:
    def refuse(result: Result) -> Result:
        raise FingerprintError("not the machine that was proven")

    report = run_check(scale, runners=[FakeRunner("bad", change=refuse)], laws=[])
    assert [entry.verdict for entry in report.entries] == ["identical", "identical", "refused", "refused"]
    assert (report.verdict, report.exit_code) == ("refused", 4)


def test_a_runner_is_sent_all_rows_at_once(scale: str) -> None:
    sizes: list[int] = []

    @dataclass(eq=False)
    class Counting(FakeRunner):
        def replay(self, handler_ref: str, rows: pa.Table, profile: Profile, **options: Any) -> Result:
            sizes.append(rows.num_rows)
            return super().replay(handler_ref, rows, profile, **options)

    report = run_check(scale, runners=[Counting()], laws=["runner"])
    assert len(sizes) == 1
    assert sizes[0] > 16
    assert [(law.law, law.verdict) for law in report.laws] == [("runner", "holds")]
    assert report.laws[0].pairs == sizes[0] - 16


def test_a_runner_that_crashed_makes_its_law_impossible(scale: str) -> None:
    report = run_check(scale, runners=[FakeRunner("bad", change=crash)], laws=["runner"])
    assert [(law.law, law.verdict) for law in report.laws] == [("runner", "unable")]
    assert report.exit_code == 6


def test_what_a_changed_handler_does_otherwise_is_told_by_stage(scale: str) -> None:
    source = Path(scale, "handler.py")
    source.write_text(source.read_text().replace("* FACTOR", "* (FACTOR + 1)"), encoding="utf-8")
    report = run_check(scale, runners=[FakeRunner()], laws=[])
    assert report.exit_code == 1
    for entry in report.failures():
        assert entry.diagnosis is not None
        assert entry.diagnosis.column == "y"
        assert entry.comparison is not None
        assert set(entry.diagnosis.rows) == set(entry.comparison.failing_rows.tolist()) != set()
    assert len({id(entry.diagnosis) for entry in report.failures()}) == 2


def test_what_a_runner_does_to_answers_on_their_way_is_told_as_encoding(scale: str) -> None:
    report = run_check(scale, runners=[FakeRunner("bad", change=first_answer_moved)], laws=[])
    (entry,) = report.failures()
    assert entry.diagnosis is not None
    assert entry.diagnosis.stage == "encode"
    assert entry.diagnosis.rows == (0,)


def test_a_runner_that_agrees_when_asked_again_is_noted(scale: str) -> None:
    asked = 0

    def once(result: Result) -> Result:
        nonlocal asked
        asked += 1
        return first_answer_moved(result) if asked == 1 else result

    report = run_check(scale, runners=[FakeRunner("moody", change=once)], laws=[])
    (entry,) = report.failures()
    assert entry.diagnosis is None
    assert any("moody agreed" in note for note in report.notes)


@pytest.mark.slow
def test_the_laws_are_tried_on_the_golden_rows(scale: str) -> None:
    report = run_check(scale, runners=[FakeRunner()])
    assert [law.law for law in report.laws] == [law.name for law in LAWS]
    assert all(report.laws)
    json.loads(as_json.render(report))


@pytest.mark.slow
def test_a_handler_that_differs_from_itself_is_nondeterministic(tmp_path: Path, scale: str) -> None:
    source = Path(scale, "handler.py")
    source.write_text(
        source.read_text().replace('* FACTOR + inputs["n"]', "* FACTOR + np.random.normal()"),
        encoding="utf-8",
    )
    report = run_check(scale, runners=[FakeRunner()], laws=["repeatable"])
    assert (report.verdict, report.exit_code) == ("nondeterministic", 7)
    example = report.laws[0].counterexample
    assert example is not None
    assert example.labels[example.row].startswith(("first row", "second row", "edge row"))
    assert any("source changed" in note for note in report.notes)


def test_nothing_compared_is_no_agreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    folder = write_handler(tmp_path / "scale")
    ignore = 'name = "scale"\n[tolerance.y]\nkind = "ignore"\nreason = "to see"\n'
    (folder / "handler.toml").write_text(ignore, encoding="utf-8")
    loaded = load_handler(folder)
    rows = example_batch(loaded.inputs, 1).to_table()
    record(loaded, rows, "first", reason="r")
    report = run_check(str(folder), runners=[], laws=[])
    assert (report.verdict, report.exit_code) == ("nothing compared", 5)


def test_goldens_alone_are_checked_in_this_process(scale: str) -> None:
    report = check_goldens(scale, cases=["second"])
    assert [(entry.name, entry.case, entry.verdict) for entry in report.entries] == [
        ("engine", "second", "identical")
    ]
    assert report.exit_code == 0


def test_a_profile_and_settings_reach_the_runner(scale: str) -> None:
    seen: list[Profile] = []

    @dataclass(eq=False)
    class Looking(FakeRunner):
        def replay(self, handler_ref: str, rows: pa.Table, profile: Profile, **options: Any) -> Result:
            seen.append(profile)
            return super().replay(handler_ref, rows, profile, **options)

    report = run_check(scale, runners=[Looking()], settings=["buckets=[16]"], laws=[])
    assert [profile.buckets for profile in seen] == [(16,)]
    assert report.exit_code == 0


def test_a_handler_without_goldens_proves_nothing(tmp_path: Path) -> None:
    folder = write_handler(tmp_path / "scale")
    with pytest.raises(GoldenError, match="no golden case"):
        run_check(str(folder), runners=[FakeRunner()])


def test_an_unknown_runner_or_law_is_named_with_those_there_are(scale: str) -> None:
    with pytest.raises(
        ReferenceNotFoundError, match=r"no runner 'onlin' is installed; did you mean 'online'"
    ):
        run_check(scale, runners=["onlin"])
    with pytest.raises(ConfigError, match=r"no law 'orders'; did you mean 'order'"):
        run_check(scale, runners=[FakeRunner()], laws=["orders"])


def test_rows_that_fail_fail_in_every_runner(scale: str) -> None:
    report = run_check(scale, runners=[FakeRunner()], laws=[], cases=["first"])
    comparison = report.entries[0].comparison
    assert comparison is not None
    assert comparison.errors_expected == comparison.errors_obtained
    assert comparison.errors_expected == int(
        np.sum(example_batch(load_handler(scale).inputs, 12)["n"].null_count)
    )


SWAPPED = """
import numpy as np
from parity import Float32, Handler, Schema, Tensor

class Reds(Handler):
    inputs = Schema(photo=Tensor("uint8", (16, 16, 3)))
    outputs = Schema(red=Float32())

    def preprocess(self, batch):
        return batch["photo"].numpy()

    def inference(self, inputs):
        return inputs[..., 0].mean(axis=(1, 2), dtype=np.float32)

    def postprocess(self, outputs, batch):
        return {"red": outputs}
"""


@pytest.mark.slow
def test_swapped_channels_are_named_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    folder = tmp_path / "reds"
    (folder / "golden").mkdir(parents=True)
    source = folder / "handler.py"
    source.write_text(SWAPPED, encoding="utf-8")
    loaded = load_handler(folder)
    record(loaded, example_batch(loaded.inputs, 8).to_table(), "first", reason="r", stages=True)
    source.write_text(SWAPPED.replace(".numpy()", ".numpy()[..., ::-1]"), encoding="utf-8")
    report = run_check(str(folder), runners=[], laws=[])
    (entry,) = report.failures()
    assert entry.diagnosis is not None
    assert entry.diagnosis.cause is not None
    assert (entry.diagnosis.stage, entry.diagnosis.cause.name) == ("preprocess", "channel-order")
    assert entry.samples is not None
    assert {picture.source for picture in entry.samples.pictures} >= {"preprocess"}
    assert "channel-order" in terminal.render(report)
    assert html.render(report).count("data:image/png") >= 3
