"""A law that cannot run says so, and what a handler raises while it is loaded ends no check."""

from __future__ import annotations

from pathlib import Path

import pytest

from parity import Engine, Float64, Handler, Schema
from parity.errors import FingerprintError, StageError
from parity.examples import example_batch
from parity.handler import LoadedHandler
from parity.laws import check_laws, laws_named
from parity.laws.law import Law
from parity.laws.outcome import LawOutcome
from parity.profile import Profile


class Expiring(Handler):
    """Loads while its licence lasts."""

    inputs = Schema(x=Float64())
    outputs = Schema(y=Float64())

    def initialize(self, context):
        import datetime

        if datetime.datetime.now(datetime.UTC).year > 2034:
            raise RuntimeError("licence expired")

    def postprocess(self, outputs, batch):
        return {"y": batch["x"].numpy() * 2}


class Failing(Handler):
    """Answers nothing."""

    inputs = Schema(x=Float64())
    outputs = Schema(y=Float64())

    def preprocess(self, batch):
        raise ValueError("no")


def tried(handler: type[Handler], *names: str, **options) -> dict[str, LawOutcome]:
    with Engine(LoadedHandler.of(handler)) as engine:
        rows = example_batch(handler.inputs, 8)
        return {item.law: item for item in check_laws(engine, rows, laws=laws_named(names), **options)}


def test_a_handler_that_does_not_load_at_another_time_breaks_the_law_of_the_clock():
    outcome = tried(Expiring, "clock")["clock"]
    assert outcome.verdict == "broken"
    assert outcome.counterexample is not None
    assert outcome.counterexample.column == "_error"


def test_a_profile_that_cannot_run_here_is_no_agreement():
    elsewhere = Profile("elsewhere", device="cuda:63")
    outcome = tried(Expiring, "device", profiles=[elsewhere])["device"]
    assert outcome.verdict == "unable"
    assert "cuda:63" in outcome.detail
    both = tried(Expiring, "device", profiles=[Profile("same", seed=5), elsewhere])["device"]
    assert both.verdict == "unable"
    assert both.pairs == 8


@pytest.mark.parametrize(
    "error", [FingerprintError("not here"), StageError("x", handler="h", stage="initialize")]
)
def test_what_is_raised_on_the_way_leaves_the_other_laws_their_turn(error: Exception):
    class Raising:
        name = "raising"
        sentence = "s"

        def check(self, bench):
            raise error

    law: Law = Raising()
    with Engine(LoadedHandler.of(Expiring)) as engine:
        found = check_laws(engine, example_batch(Expiring.inputs, 4), laws=[law, *laws_named(["order"])])
    assert [item.verdict for item in found] == ["unable", "holds"]


def test_rows_that_all_fail_prove_nothing_about_writing():
    outcome = tried(Failing, "inputs-untouched")["inputs-untouched"]
    assert outcome.verdict == "nothing"


@pytest.mark.slow
def test_rows_that_all_fail_prove_nothing_about_access(tmp_path: Path):
    from parity.registry import load_handler

    (tmp_path / "handler.py").write_text(
        "from parity import Float64, Handler, Schema\n"
        "class Failing(Handler):\n"
        "    inputs = Schema(x=Float64())\n"
        "    outputs = Schema(y=Float64())\n"
        "    def preprocess(self, batch): raise ValueError('no')\n"
    )
    loaded = load_handler(tmp_path)
    with Engine(loaded) as engine:
        (outcome,) = check_laws(engine, example_batch(loaded.inputs, 4), laws=laws_named(["declared-access"]))
    assert outcome.verdict == "nothing"
