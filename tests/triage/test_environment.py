from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from parity import Batch, Float64, Handler, Schema, Timestamp
from parity.triage import Divergence, cause_named
from parity.triage.causes.contracts import SUSPECTS as CONTRACTS
from tests.triage.divergences import asked_again, by_hand, claims, columns, denies, table_of

RNG = np.random.default_rng(2)


def with_fingerprints(divergence: Divergence, one: dict[str, str], other: dict[str, str]) -> Divergence:
    expected = replace(divergence.expected, fingerprint=one)
    return replace(divergence, expected=expected, obtained=replace(divergence.obtained, fingerprint=other))


def unlike(law: str = "golden") -> Divergence:
    """Rows whose values have nothing to do with each other."""
    return by_hand(RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3)), law=law)


HERE = {
    "digest.artifacts": "aaaa",
    "digest.source": "bbbb",
    "package.numpy": "2.4.6",
    "python": "3.11",
    "profile.precision": '"float32"',
    "profile.device": '"cpu"',
    "profile.threads": "1",
    "operation.resize": "1",
    "plan.prepare": "aa",
}


@pytest.mark.parametrize(
    ("name", "changed", "words"),
    [
        ("weights", {"digest.artifacts": "cccc"}, "aaaa… on the expected side and cccc…"),
        ("source", {"digest.source": "dddd"}, "bbbb… on the expected side"),
        ("environment", {"package.numpy": "1.26.0"}, "numpy 2.4.6 and 1.26.0"),
        ("operation-version", {"operation.resize": "2"}, "operation resize changed: version 1 -> 2"),
        ("operation-version", {"plan.prepare": "bb cc"}, "plan prepare is another: aa -> bb cc"),
        ("precision", {"profile.precision": '"bfloat16"'}, 'precision "float32" and "bfloat16"'),
        ("device", {"profile.device": '"cuda"'}, 'device "cpu" and "cuda"'),
        ("thread-count", {"profile.threads": "8"}, "profile.threads 1 and 8"),
    ],
)
def test_what_differs_between_the_two_sides(name: str, changed: dict[str, str], words: str) -> None:
    divergence = with_fingerprints(unlike(), HERE, {**HERE, **changed})
    found = claims(name, divergence)
    assert found.cause is not None
    assert words in found.cause.evidence
    denies(name, with_fingerprints(unlike(), HERE, HERE))
    denies(name, unlike())


def test_a_plan_that_was_used_beside_another_is_no_change() -> None:
    divergence = with_fingerprints(unlike(), HERE, {**HERE, "plan.prepare": "aa bb"})
    assert "have the same versions" in denies("operation-version", divergence)


def test_weights_are_blamed_before_versions_and_these_before_code() -> None:
    other = {**HERE, "digest.artifacts": "x", "digest.source": "y", "package.numpy": "z"}
    found = claims("weights", with_fingerprints(unlike(), HERE, other))
    assert [cause.name for cause in found.also] == ["environment", "source"]


def test_a_structural_cause_is_blamed_before_weights_and_these_are_mentioned() -> None:
    values = RNG.normal(size=(6, 4))
    scaled = with_fingerprints(by_hand(values, values * 255), HERE, {**HERE, "digest.artifacts": "x"})
    found = claims("affine-scale", scaled)
    assert [cause.name for cause in found.also] == ["weights"]


def test_rows_that_were_decoded_to_something_else_owe_it_to_no_weights() -> None:
    divergence = with_fingerprints(unlike(), HERE, {**HERE, "digest.artifacts": "x", "digest.source": "y"})
    rows = columns(row=[0, 1, 2, 3, 40])
    assert divergence.obtained.traces is not None
    traces = replace(divergence.obtained.traces, inputs=rows)
    divergence = replace(divergence, obtained=replace(divergence.obtained, traces=traces))
    assert "before any weights" in denies("weights", divergence)
    assert "not its code" in denies("source", divergence)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("hash-seed", "PYTHONHASHSEED"),
        ("timezone-of-process", "TZ"),
        ("locale", "LC_ALL"),
        ("locale", "LANG"),
        ("working-directory", "cwd"),
        ("thread-count", "OMP_NUM_THREADS"),
        ("wall-clock", "clock"),
    ],
)
def test_the_one_thing_that_was_varied(name: str, variable: str) -> None:
    divergence = replace(unlike("process"), varied={variable: "other"})
    found = claims(name, divergence)
    assert found.cause is not None
    assert f"{variable} = other alone makes the difference" in found.cause.evidence
    several = replace(divergence, varied={variable: "other", "UMASK": "77"})
    assert "varied together with UMASK" in denies(name, several)
    assert denies(name, replace(divergence, varied={"UMASK": "77"})) == ""


class Hourly(Handler):
    inputs = Schema(time=Timestamp("s", tz="UTC"))
    outputs = Schema(hour=Float64())


def test_the_zone_of_the_process_is_named_with_the_shift_it_makes() -> None:
    seconds = np.arange(6) * 5000 + 1_700_000_000
    varied = replace(by_hand(seconds, seconds + 9 * 3600, law="process"), varied={"TZ": "Asia/Tokyo"})
    found = claims("timezone-of-process", varied)
    assert found.cause is not None
    assert "+9 hours apart" in found.cause.evidence


class Dated(Handler):
    inputs = Schema(a=Float64())
    outputs = Schema(y=Float64())

    def preprocess(self, batch: Batch) -> Any:
        return batch["a"].numpy() + time.time_ns() % 1_000_000_007

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"y": outputs}


class Counted(Dated):
    calls = 0

    def preprocess(self, batch: Batch) -> Any:
        type(self).calls += 1
        return batch["a"].numpy() + type(self).calls


def test_the_clock() -> None:
    rows = table_of(Dated, [{"a": 1.0}, {"a": 2.0}])
    with asked_again(Dated, rows) as (divergence, engine):
        found = claims("wall-clock", divergence, engine)
    assert found.cause is not None
    assert "with the clock stopped it gives the same" in found.cause.evidence
    with asked_again(Counted, rows) as (divergence, engine):
        assert "still change" in denies("wall-clock", divergence, engine)
    claims("wall-clock", unlike("clock"))


@pytest.mark.parametrize(
    ("name", "law", "varied"),
    [
        ("input-mutated", "inputs-untouched", {}),
        ("undeclared-read", "declared-access", {"read": "/etc/limit.json"}),
        ("undeclared-write", "declared-access", {"write": "seen.txt"}),
        ("undeclared-output", "declared-outputs", {}),
        ("empty-batch", "empty-batch", {}),
    ],
)
def test_a_contract_that_its_law_saw_broken(name: str, law: str, varied: dict[str, str]) -> None:
    found = claims(name, replace(unlike(law), varied=varied))
    assert found.cause is not None
    assert all(value in found.cause.evidence for value in varied.values())
    assert denies(name, unlike("golden")) == ""


def test_a_law_without_two_sides_names_its_cause_itself() -> None:
    for suspect in CONTRACTS:
        cause = cause_named(suspect.name, "seen by the law")
        assert (cause.sentence, cause.remedy) == (suspect.sentence, suspect.remedy)
    with pytest.raises(KeyError, match="did you mean 'weights'"):
        cause_named("wieghts", "")
