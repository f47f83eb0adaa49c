from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.skew import kinds, pool
from benchmarks.skew.kind import Expected, Missing, find_kinds
from benchmarks.skew.pool import score_named
from benchmarks.skew.score import Score
from benchmarks.skew.table import bars, faults, markdown, share, text_table

EXPECTED = ("golden", "preprocess", "score", "wrap")


def right(kind: str = "right", **changed: object) -> Score:
    values = dict.fromkeys(("caught", "law", "stage", "column", "rows", "cause", "twin", "headline"), True)
    given: dict = {"mode": "reference", "expected": EXPECTED, "obtained": EXPECTED, **values, **changed}
    return Score(kind, "What goes wrong.", **given)


def test_all_right_meets_every_bar() -> None:
    assert all(bar["value"] >= bar["bar"] for bar in bars([right()]) if bar["at"] == "least")
    assert faults(right()) == []


def test_what_parity_says_wrongly_is_told_with_what_was_expected() -> None:
    wrong = right("poor", cause=False, obtained=("golden", "preprocess", "score", "gamma"))
    assert faults(wrong) == ["poor: cause is wrap, parity says gamma"]
    assert "cause: 1 of 2, 50.0% (bar 80%)" in text_table([right(), wrong])
    assert "**gamma** for wrap" in markdown([wrong])


def test_a_false_alarm_is_told_loudly() -> None:
    alarmed = right("loud", twin=False, alarm="order: broken")
    assert faults(alarmed) == ["loud: FALSE ALARM on the twin: order: broken"]
    assert "**false alarm**" in markdown([alarmed])


def test_a_kind_that_cannot_run_is_shown_and_counts_as_nothing() -> None:
    missing = Score("lost", "", missing="it needs cv2, which is not installed")
    scores = [right(), missing]
    assert share(scores, "caught") == 1.0
    assert "NOT RUN lost: it needs cv2" in text_table(scores)
    assert "Not run: lost" in markdown(scores)
    (bar,) = [bar for bar in bars(scores) if bar["at"] == "most"]
    assert bar["value"] == 1 > bar["bar"]


def test_a_kind_without_its_library_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lost.py").write_text("import no_such_library\n", encoding="utf-8")
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(tmp_path)])
    assert list(find_kinds(["lost"])) == [Missing("lost", "it needs no_such_library, which is not installed")]
    assert score_named("lost", "own").missing
    with pytest.raises(KeyError, match="no kind 'los'"):
        list(find_kinds(["los"]))


def test_expected_rows_are_all_rows_unless_said() -> None:
    assert Expected("golden", "preprocess", "score", "wrap").rows({"x": 1})


def test_rows_are_the_same_in_every_run() -> None:
    (kind,) = find_kinds(["channel_order"])
    assert not isinstance(kind, Missing)
    assert kind.rows().equals(kind.rows())
    assert isinstance(kind.rows(), pa.Table)


def test_a_crash_of_parity_is_a_kind_that_is_wrong_in_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*given: object) -> None:
        raise ZeroDivisionError("in the middle")

    monkeypatch.setattr(pool, "score", crash)
    found = score_named("channel_order", "own")
    assert (found.caught, found.cause, found.twin, found.missing) == (False, False, False, "")
    assert "CRASHED: ZeroDivisionError: in the middle" in found.alarm
    assert score_named("clean_nan", "own").caught is None
