"""Recorded rows asked again: agreement, drift and where it lies, and rows that cannot be asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity import numerics
from parity.capture import CaptureSettings, CaptureWriter, Origin, Refused, Source, place_of
from parity.compare import Close, Exact, Tolerances
from parity.errors import ConfigError, NothingComparedError, ReferenceNotFoundError, RowError, RunnerError
from parity.profile import Profile
from parity.registry import load_handler
from parity.replay import DriftReport, Wanted, replay_capture
from parity.replay import replaying as module
from parity.result import Result
from tests.replay.traffic import HOUR_NS, NOON_NS, Here, incomes, record, write_handler

KEY = b"0123456789abcdef"


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    """A hundred requests of version 1.0.0, one a minute from a full hour on."""
    folder = tmp_path / "captured"
    record(folder, write_handler(tmp_path / "old" / "credit"), incomes())
    return folder


def replay(captured: Path, handler: str, here: Here | None = None, **more: Any) -> DriftReport:
    return replay_capture(captured, runner=here or Here(), handler=handler, **more)


def expected_scores(weight: float, rows: int = 100) -> Any:
    income = np.array([row["income"] for row in incomes(rows)], np.float32)
    return 1 / (1 + np.exp(-income * np.float32(weight))).astype(np.float32)


def test_the_handler_that_answered_agrees_bit_by_bit(captured: Path, tmp_path: Path):
    report = replay(captured, str(tmp_path / "old" / "credit"))
    assert report
    assert (report.verdict, report.exit_code, report.rows) == ("agrees", 0, 100)
    assert {column.name: column.verdict for column in report.columns} == dict.fromkeys(
        ("score", "label", "chances", "rank", "_error"), "identical"
    )
    assert (report.failing_rows, report.differing_rows) == (0, 0)
    assert report.traffic.handlers == {"credit 1.0.0": 100}
    assert (report.traffic.parts, report.traffic.lost_rows) == (1, 0)
    assert [hour.rows for hour in report.hours] == [60, 40]
    assert all(label.flips == 0 for label in report.labels)
    assert not any(score.moved for score in report.scores)
    assert report.scores[0].spearman == pytest.approx(1.0)


def test_another_weight_drifts_and_the_report_says_how(captured: Path, tmp_path: Path):
    changes = {"score >= 0.5": "score >= 0.6"}
    new = write_handler(tmp_path / "new" / "credit", version="2.0.0", weight=2.0, changes=changes)
    report = replay(captured, new)
    assert (report.verdict, report.exit_code, report.version) == ("drifts", 1, "2.0.0")
    old_scores, new_scores = expected_scores(1.0), expected_scores(2.0)
    (label,) = [item for item in report.labels if item.column == "label"]
    flipped = (old_scores >= 0.5) & (new_scores < 0.6)
    assert label.flips == np.count_nonzero(flipped) > 0
    assert label.pairs == (("yes", "no", label.flips),)
    (score,) = [item for item in report.scores if item.column == "score"]
    shift = new_scores.astype(np.float64) - old_scores.astype(np.float64)
    assert (score.up, score.down) == (np.count_nonzero(shift > 0), np.count_nonzero(shift < 0))
    assert score.mean_shift == pytest.approx(shift.mean())
    assert score.median_shift == pytest.approx(np.quantile(shift, 0.5, method="nearest"))
    assert abs(score.largest_shift) == pytest.approx(np.abs(shift).max())
    assert score.spearman == pytest.approx(1.0), "the order stays"
    assert score.top == ((10, 1.0),)
    first, second = report.hours
    assert (first.rows, second.rows) == (60, 40)
    assert (first.flips, second.flips) == (flipped[:60].sum(), flipped[60:].sum())
    assert report.versions[0].failing == report.failing_rows == first.failing + second.failing
    assert report.worst[0].fails
    assert report.worst[0].request_id.startswith("r")
    assert report.worst[0].input["name"] == f"n{report.worst[0].request_id[1:]}"


def test_scores_of_a_vector_flip_where_its_largest_place_does(captured: Path, tmp_path: Path):
    new = write_handler(tmp_path / "new" / "credit", weight=-1.0)
    (chances,) = [item for item in replay(captured, new).labels if item.column == "chances"]
    assert chances.of_scores
    assert chances.flips == 100
    assert {pair[:2] for pair in chances.pairs} == {("0", "1"), ("1", "0")}


@pytest.mark.slow
def test_the_portions_make_no_difference(captured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    new = write_handler(tmp_path / "new" / "credit", weight=1.5)
    whole: Any = replay(captured, new).to_dict()
    real = module.portions

    def small(*arguments: Any, **options: Any) -> Any:
        return real(*arguments, **options, rows=13)

    here = Here()
    monkeypatch.setattr(module, "portions", small)
    pieces: Any = replay(captured, new, here).to_dict()
    assert len(here.asked) > 5
    for key in ("rows", "verdict", "labels", "hours", "versions", "failures", "failing_rows"):
        assert pieces[key] == whole[key], key
    for one, other in zip(pieces["scores"], whole["scores"], strict=True):
        assert one == {**other, **{name: pytest.approx(other[name]) for name in other if "mean" in name}}


def test_two_versions_in_one_capture_are_told_apart(captured: Path, tmp_path: Path):
    new = write_handler(tmp_path / "new" / "credit", version="1.1.0", weight=3.0)
    record(captured, new, incomes(50), start_ns=NOON_NS + 2 * HOUR_NS, prefix="s")
    report = replay(captured, new)
    assert report.traffic.handlers == {"credit 1.0.0": 100, "credit 1.1.0": 50}
    found = {item.name: item for item in report.versions}
    assert (found["1.1.0"].rows, found["1.1.0"].failing) == (50, 0)
    assert found["1.0.0"].failing > 50
    assert [hour.rows for hour in report.hours] == [60, 40, 50]
    only = replay(captured, new, wanted=Wanted(versions=("1.1.0",)))
    assert (only.verdict, only.rows) == ("agrees", 50)
    with pytest.raises(ConfigError, match=r"no rows of version '1.1'; did you mean '1.1.0'"):
        replay(captured, new, wanted=Wanted(versions=("1.1",)))


def test_rows_are_chosen_by_time_number_and_sample(captured: Path, tmp_path: Path):
    old = str(tmp_path / "old" / "credit")
    minute = 60 * 10**9
    since = Wanted(since_ns=NOON_NS + 10 * minute, until_ns=NOON_NS + 15 * minute)
    assert replay(captured, old, wanted=since).rows == 5
    assert replay(captured, old, wanted=Wanted(limit=12)).rows == 12
    half = replay(captured, old, wanted=Wanted(sample=0.5))
    assert 30 < half.rows < 70
    assert replay(captured, old, wanted=Wanted(sample=0.5)).hours == half.hours
    none = replay(captured, old, wanted=Wanted(since_ns=NOON_NS + 100 * HOUR_NS))
    assert (none.verdict, none.exit_code, none.rows) == ("nothing compared", 5, 0)
    assert "no recorded row" in none.notes[0]


@pytest.mark.parametrize("wrong", [{"sample": 0.0}, {"sample": 1.5}, {"limit": 0}])
def test_a_choice_of_nothing_is_refused(wrong: dict[str, Any]):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Wanted(**wrong)


@pytest.mark.parametrize(
    ("hidden", "reason"),
    [
        ({"drop": ("name",)}, "input 'name' was dropped at capture"),
        ({"hash": ("input.name",), "key": KEY}, "of input 'name' only a hash was captured"),
    ],
)
def test_rows_without_an_input_are_not_replayed_though_it_has_a_default(
    tmp_path: Path, hidden: dict[str, Any], reason: str
):
    folder, ref = tmp_path / "captured", write_handler(tmp_path / "credit")
    settings = CaptureSettings(folder=str(folder), **hidden)
    record(folder, ref, incomes(20), settings=settings)
    here = Here()
    report = replay(folder, ref, here)
    assert not here.asked
    assert (report.verdict, report.exit_code, report.rows) == ("nothing compared", 5, 0)
    assert [(item.reason, item.rows) for item in report.not_replayable] == [(reason, 20)]
    assert report.traffic.hidden
    assumed = replay(folder, ref, assume={"name": "anybody"})
    assert (assumed.verdict, assumed.rows) == ("agrees", 20)
    assert "input 'name' was not recorded; a value was assumed for it" in assumed.notes
    with pytest.raises(ConfigError, match="--assume nam: no such input; did you mean 'name'"):
        replay(folder, ref, assume={"nam": "x"})
    with pytest.raises(ConfigError, match="--assume name: "):
        replay(folder, ref, assume={"name": 3})


def test_rows_that_can_be_replayed_are_and_the_others_are_counted(captured: Path, tmp_path: Path):
    settings = CaptureSettings(folder=str(captured), drop=("income",))
    record(captured, str(tmp_path / "old" / "credit"), incomes(30), settings=settings, prefix="s")
    report = replay(captured, str(tmp_path / "old" / "credit"))
    assert (report.verdict, report.rows, report.rows_not_replayed) == ("agrees", 100, 30)


def test_a_dropped_answer_is_not_compared_and_messages_are_left_alone(tmp_path: Path):
    folder, ref = tmp_path / "captured", write_handler(tmp_path / "credit", rejects="n3")
    settings = CaptureSettings(folder=str(folder), drop=("score", "chances"))
    record(folder, ref, incomes(20), settings=settings)
    report = replay(folder, ref)
    assert report.verdict == "agrees"
    assert [column.name for column in report.columns] == ["label", "rank", "_error"]
    assert "answer 'score' was dropped at capture, and is not compared" in report.notes
    everything = CaptureSettings(folder="x", drop=("score", "chances", "label", "rank"))
    record(tmp_path / "none", ref, incomes(20), settings=everything)
    nothing = replay(tmp_path / "none", ref)
    assert (nothing.verdict, nothing.exit_code) == ("nothing compared", 5)


def test_other_schemas_are_told_apart_from_drift(captured: Path, tmp_path: Path):
    inputs = 'income=Float32(), name=String(default="nobody"), note=String(nullable=True, default=None)'
    more = write_handler(
        tmp_path / "a" / "credit", changes={inputs: inputs.replace("note=", "age=Int64(default=0), memo=")}
    )
    report = replay(captured, more)
    assert report.verdict == "agrees"
    assert "input 'age' is new since version 1.0.0; it took its default" in report.notes
    assert "input 'note' of version 1.0.0 is no input any more" in report.notes
    needed = write_handler(tmp_path / "b" / "credit", changes={inputs: inputs + ", age=Int64()"})
    report = replay(captured, needed)
    assert report.verdict == "nothing compared"
    assert report.not_replayable[0].reason == "input 'age' is new since version 1.0.0, and has no default"
    other = write_handler(tmp_path / "c" / "credit", changes={inputs: inputs.replace("String(d", "Int64(d")})
    (tmp_path / "c" / "credit" / "handler.py").write_text(
        (tmp_path / "c" / "credit" / "handler.py").read_text().replace('default="nobody"', "default=0")
    )
    report = replay(captured, other)
    assert report.verdict == "nothing compared"
    assert "column 'name'" in report.not_replayable[0].reason


def test_an_answer_that_is_gone_drifts_and_one_that_is_new_is_noted(captured: Path, tmp_path: Path):
    gone = write_handler(
        tmp_path / "gone" / "credit",
        changes={", rank=Int64())": ")", '            "rank": np.round(score * 10).astype(np.int64),\n': ""},
    )
    report = replay(captured, gone)
    assert report.verdict == "drifts"
    assert "'rank'" in report.findings[0]
    new = write_handler(
        tmp_path / "new" / "credit",
        changes={"rank=Int64())": "rank=Int64(), half=Float32())", '"rank"': '"half": score / 2, "rank"'},
    )
    report = replay(captured, new)
    assert report.verdict == "agrees"
    assert "answer 'half' is new since version 1.0.0" in report.notes


@pytest.mark.slow
def test_rows_that_fail_on_one_side_only_are_drift(tmp_path: Path):
    folder, old = tmp_path / "captured", write_handler(tmp_path / "old" / "credit", rejects="n3")
    record(folder, old, incomes(20))
    assert replay(folder, old).verdict == "agrees", "the same row fails in the same way"
    new = write_handler(tmp_path / "new" / "credit", rejects="n5")
    report = replay(folder, new)
    assert report.verdict == "drifts"
    failures = report.failures
    assert (failures.only_recorded, failures.only_replayed, failures.other_kind) == (1, 1, 0)
    assert failures.messages == (("rejected: handler credit: this name is refused", 1),)
    assert failures.requests == ("r5",)
    assert report.hours[0].one_sided == 2
    raising = write_handler(
        tmp_path / "raising" / "credit",
        rejects="n3",
        changes={"batch.reject(row, ": "raise ValueError(row, "},
    )
    report = replay(folder, raising)
    assert report.failures.other_kind == 1
    assert report.verdict == "drifts"


def test_a_row_that_fits_no_more_fails_now_only(captured: Path, tmp_path: Path):
    strict = write_handler(
        tmp_path / "new" / "credit", changes={"income=Float32()": "income=Float32(le=2.9)"}
    )
    report = replay(captured, strict)
    assert report.failures.only_replayed == sum(row["income"] > 2.9 for row in incomes())
    assert report.failures.messages[0][0].startswith("invalid: ")


def test_a_budget_of_rows_counts_over_everything(captured: Path, tmp_path: Path):
    table = '[tolerance.label]\nkind = "label"\nrows = {}\nreason = "few are near a half"\n'
    table += "".join(
        f'[tolerance.{name}]\nkind = "ignore"\nreason = "not now"\n' for name in ("score", "chances", "rank")
    )
    changes = {"score >= 0.5": "score >= 0.6"}
    flips = int(((expected_scores(1.0) >= 0.5) & (expected_scores(1.0) < 0.6)).sum())
    for share, verdict in ((flips / 100, "agrees"), ((flips - 1) / 100, "drifts")):
        ref = write_handler(tmp_path / verdict / "credit", toml=table.format(share), changes=changes)
        report = replay(captured, ref)
        assert report.verdict == verdict
        assert report.labels[0].flips == flips


def test_tolerances_can_be_given(captured: Path, tmp_path: Path):
    new = write_handler(tmp_path / "new" / "credit", weight=1.0001)
    wide = Tolerances(columns={"score": Close(rtol=0.1), "chances": Close(rtol=0.1)})
    assert replay(captured, new).verdict == "drifts"
    assert replay(captured, new, tolerances=wide).verdict == "agrees"


@pytest.mark.slow
def test_rows_are_asked_at_the_bucket_they_were_answered_at(tmp_path: Path):
    folder, ref = tmp_path / "captured", write_handler(tmp_path / "credit", rejects="n3")
    profile = Profile(name="padded", buckets=(4, 8), seed=3)
    record(folder, ref, incomes(9), profile=profile, batch=6)  # 6 rows at bucket 8, then 3 at bucket 4
    here = Here()
    report = replay(folder, ref, here)
    assert report.verdict == "agrees"
    assert sorted((rows, asked.buckets) for rows, asked in here.asked) == [(1, (4, 8)), (3, (4,)), (5, (8,))]
    assert {asked.seed for _, asked in here.asked} == {3}
    assert [item.name for item in report.profiles] == ["padded"]
    named = Here()
    assert replay(folder, ref, named, profile="default", settings=["seed=5"]).verdict == "agrees"
    assert named.asked == [(9, Profile(seed=5))]
    changed = Here()
    replay(folder, ref, changed, settings=["threads=2"])
    assert {(asked.threads, asked.seed) for _, asked in changed.asked} == {(2, 3)}


@pytest.mark.slow
def test_bits_are_expected_where_exact_mode_promised_them(tmp_path: Path):
    folder, ref = tmp_path / "captured", write_handler(tmp_path / "credit")
    exact = Profile(name="exact", buckets=(8,), exact=True)
    stored = {**vars(exact)}
    record(
        folder,
        ref,
        incomes(16),
        profile=Profile(buckets=(8,)),
        batch=8,
        stored_profile=stored,
        fingerprint=numerics.fingerprint(exact),
    )
    same = replay(folder, ref)
    assert (same.verdict, same.differing_rows) == ("agrees", 0)
    assert all(column.rule == Exact() for column in same.columns)
    nudged = {"return 1 / (1": "return np.float32(1.0000001) / (1"}
    new = write_handler(tmp_path / "new" / "credit", changes=nudged)
    assert replay(folder, new).verdict == "drifts", "one bit is enough"
    loose = replay(folder, new, profile="default")
    assert loose.verdict == "agrees", "nothing was promised for the default profile"


def test_a_runner_that_loses_rows_or_crashes_is_no_agreement(captured: Path, tmp_path: Path):
    class Short(Here):
        def replay(self, *arguments: Any, **options: Any) -> Result:
            found = super().replay(*arguments, **options)
            return Result(99, found.outputs.slice(0, 99), found.index[:99])

    class Crashing(Here):
        def replay(self, *arguments: Any, **options: Any) -> Result:
            raise RunnerError("it crashed")

    old = str(tmp_path / "old" / "credit")
    with pytest.raises(RunnerError, match="99 answers came back for 100 rows"):
        replay(captured, old, Short())
    with pytest.raises(RunnerError, match="it crashed"):
        replay(captured, old, Crashing())
    with pytest.raises(ConfigError, match="wire form 'arow'; did you mean 'arrow'"):
        replay(captured, old, wire="arow")


def test_what_was_lost_and_kept_beside_the_sample_is_noted(tmp_path: Path):
    folder, ref = tmp_path / "captured", write_handler(tmp_path / "credit", rejects="n3")
    settings = CaptureSettings(folder=str(folder), sample=0.5, keep_errors=True)
    record(folder, ref, incomes(40), settings=settings, lost=5)
    report = replay(folder, ref)
    assert report.traffic.lost_rows == 5
    assert report.traffic.rates == (0.5,)
    assert any("5 rows were lost" in note for note in report.notes)
    assert any("beside the sample" in note for note in report.notes)


def test_the_handler_is_found_by_its_recorded_name(
    captured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ReferenceNotFoundError, match=r"neither handlers/credit/ nor credit/ is it here; it was"
    ):
        replay_capture(captured, runner=Here())
    write_handler(tmp_path / "handlers" / "credit")
    report = replay_capture("captured", runner=Here())
    assert report.reference == "handlers/credit"
    assert report


def test_where_a_capture_says_the_handler_was_is_never_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ref = write_handler(tmp_path / "elsewhere" / "credit")
    record(tmp_path / "captured", ref, incomes(5))
    (tmp_path / "elsewhere" / "credit" / "handler.py").write_text("raise SystemExit('loaded')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ReferenceNotFoundError, match="elsewhere"):
        replay_capture("captured", runner=Here())


@pytest.mark.slow
def test_traffic_of_several_handlers_needs_a_name(tmp_path: Path):
    folder = tmp_path / "captured"
    ref = write_handler(tmp_path / "credit")
    record(folder, ref, incomes(5))
    other = write_handler(tmp_path / "debit")
    text = (tmp_path / "debit" / "handler.toml").read_text().replace('"credit"', '"debit"')
    (tmp_path / "debit" / "handler.toml").write_text(text)
    record(folder, other, incomes(6))
    with pytest.raises(ConfigError, match=r"2 handlers \(credit, debit\); name one with --handler"):
        replay_capture(folder, runner=Here())
    assert replay(folder, other).rows == 6
    assert replay_capture(folder / "credit", runner=Here(), handler=ref).rows == 5
    third = write_handler(tmp_path / "third")
    text = (tmp_path / "third" / "handler.toml").read_text().replace('"credit"', '"third"')
    (tmp_path / "third" / "handler.toml").write_text(text)
    with pytest.raises(ConfigError, match="holds no traffic of handler 'third'"):
        replay(folder, third)
    assert replay(folder / "credit", third).rows == 5, "a renamed handler may be asked one handler's rows"


def test_an_empty_folder_is_nothing_to_compare(tmp_path: Path):
    with pytest.raises(NothingComparedError):
        replay_capture(tmp_path, runner=Here())


def record_refused(folder: Path, ref: str, version: str, times_ns: list[int]) -> None:
    """Requests of two rows each that did not fit the schema, at these times."""
    loaded = load_handler(ref)
    source = Source(handler="credit", version=version)
    settings = CaptureSettings(folder=str(folder))
    writer = CaptureWriter(source, loaded.inputs, loaded.outputs, settings, place_of(folder))
    errors = [RowError(row, "invalid", "income is a text", "income") for row in range(2)]
    for number, time_ns in enumerate(times_ns):
        origin = Origin(f"bad-{number}", "rows", time_ns, 0.0)
        writer.offer_refused(Refused.of(origin, errors, b"[]", most_bytes=100))
    assert writer.close()


def test_refused_rows_are_counted_and_not_asked_again(captured: Path, tmp_path: Path):
    handler = str(tmp_path / "old" / "credit")
    record_refused(captured, handler, "1.0.0", [NOON_NS, NOON_NS + HOUR_NS, NOON_NS + 2 * HOUR_NS])
    record_refused(captured, handler, "0.9.0", [NOON_NS])
    report = replay(captured, handler)
    assert (report.verdict, report.rows) == ("agrees", 100)
    assert (report.traffic.refused_requests, report.traffic.refused_rows) == (4, 8)
    assert any("8 rows of 4 requests did not fit the schema" in note for note in report.notes)
    wanted = Wanted(versions=("1.0.0",), until_ns=NOON_NS + HOUR_NS)
    assert replay(captured, handler, wanted=wanted).traffic.refused_requests == 1
    assert replay(captured / "credit", handler).traffic.refused_requests == 4, "its own folder is enough"
