from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from parity import Engine, Handler, Int64, Schema
from parity.examples import example_batch
from parity.handler import LoadedHandler
from parity.laws import Bench, process
from parity.laws.process import BASELINE, between, one_of, variations
from parity.laws.workers import CWD, THREADS
from tests.laws.conftest import Write
from tests.laws.trying import HERE, try_laws

HASHING = """
class Hashing(Handler):
    inputs = Schema(word=String(), n=Int64(ge=0, le=9))
    outputs = Schema(bucket=Int64(), n=Int64())

    def postprocess(self, outputs, batch: Batch) -> dict[str, object]:
        return {"bucket": [hash(word) % 1024 for word in outputs["word"]], "n": outputs["n"]}
"""

ZONED = """
import datetime


class Zoned(Handler):
    inputs = Schema(at=Timestamp(unit="s", tz="UTC"))
    outputs = Schema(hour=Int64())

    def postprocess(self, outputs, batch: Batch) -> dict[str, object]:
        seconds = outputs["at"].astype("int64").tolist()
        return {"hour": [datetime.datetime.fromtimestamp(second).hour for second in seconds]}
"""

FOLDERED = """
from pathlib import Path


class Foldered(Handler):
    inputs = Schema(x=Int64(ge=0, le=9))
    outputs = Schema(y=Int64())

    def initialize(self, context: Context) -> None:
        self.factor = 2 if Path("pyproject.toml").exists() else 3

    def postprocess(self, outputs, batch: Batch) -> dict[str, object]:
        return {"y": outputs["x"] * self.factor + 1}
"""

THREADED = """
class Threaded(Handler):
    inputs = Schema(x=Int64(ge=0, le=9))
    outputs = Schema(y=Int64())

    def postprocess(self, outputs, batch: Batch) -> dict[str, object]:
        return {"y": outputs["x"] * self.context.profile.threads + 1}
"""

ENCODED = """
class Encoded(Handler):
    inputs = Schema(x=Int64(ge=0, le=9))
    outputs = Schema(text=String())

    def initialize(self, context: Context) -> None:
        with open(context.path("words.txt")) as file:
            self.word = file.read()

    def postprocess(self, outputs, batch: Batch) -> dict[str, object]:
        return {"text": [self.word * x for x in outputs["x"].tolist()]}
"""

CLEAN = """
class Clean(Handler):
    inputs = Schema(word=String(), n=Int64(ge=0, le=9))
    outputs = Schema(length=Int64(), n=Int64())

    def initialize(self, context: Context) -> None:
        self.factor = int(context.path("factor.txt").read_text(encoding="utf-8"))

    def postprocess(self, outputs, batch: Batch) -> dict[str, object]:
        return {"length": [len(word) * self.factor for word in outputs["word"]], "n": outputs["n"]}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "variable", "column"),
    [(HASHING, "PYTHONHASHSEED", "bucket"), (FOLDERED, "another working folder", "y")],
)
def test_the_one_variable_that_is_responsible_is_found(
    write: Write, source: str, variable: str, column: str
) -> None:
    # This process's hash seed is random, as everybody's is, so a fresh process shows that one already.
    outcome = try_laws(write(source), ["process"])["process"]
    assert outcome.verdict == "broken"
    example = outcome.counterexample
    assert example is not None
    assert example.rows.num_rows == 1
    assert example.column == column
    assert example.how.startswith(f"in a fresh process, and in one with {variable}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "name"),
    [(ZONED, "TZ"), (THREADED, THREADS), (ENCODED, "LC_ALL")],
    ids=["TZ", "threads", "locale"],
)
def test_each_variable_reaches_the_process(
    write: Write, source: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_known_locales", frozenset)  # plain ASCII, whatever this system has
    loaded = write(source, files={"words.txt": "straße"})
    with Engine(loaded) as engine, Bench(engine, example_batch(loaded.inputs, 8)) as bench:
        pair = between(bench, one_of(variations(bench)[0], name))
        batch = bench.batch(bench.golden)
        one, other = pair.one.ask(batch, False), pair.other.ask(batch, True)
        compared = bench.compare(bench.golden, (one.answers, other.answers))
    assert compared.verdict == "divergent"
    assert name in pair.varied
    assert len(pair.varied) == 1 or name == "LC_ALL"
    if name != "LC_ALL":  # there the handler does not even load
        assert other.traces is not None
        assert other.fingerprint is not None


@pytest.mark.slow
def test_a_clean_handler_holds_in_every_process_and_touches_nothing_it_should_not(write: Write) -> None:
    loud = CLEAN.replace(
        "        return {", '        print("what it prints disturbs nobody" * 99)\n        return {'
    )
    outcomes = try_laws(write(loud, files={"factor.txt": "3"}), ["declared-access", "process"])
    assert {law: outcome.verdict for law, outcome in outcomes.items()} == {
        "declared-access": "holds",
        "process": "holds",
    }
    assert all(outcome.pairs > 0 for outcome in outcomes.values())


@pytest.mark.slow
def test_a_process_that_dies_leaves_the_law_untried_and_says_so(write: Write) -> None:
    loaded = write(
        """
        import os
        import signal


        class Dies(Handler):
            inputs = Schema(x=Int64())
            outputs = Schema(y=Int64())

            def initialize(self, context: Context) -> None:
                if os.environ.get("PYTHONHASHSEED") == "0":
                    os.write(2, b"out of memory, or so")
                    os.kill(os.getpid(), signal.SIGKILL)

            def postprocess(self, outputs, batch: Batch) -> dict[str, object]:
                return {"y": outputs["x"]}
        """
    )
    outcome = try_laws(loaded, ["process"])["process"]
    assert (outcome.verdict, bool(outcome)) == ("unable", False)
    assert "ended with code -9" in outcome.detail
    assert "out of memory, or so" in outcome.detail


def test_a_class_without_a_folder_is_skipped_with_the_reason() -> None:
    class Here(Handler):
        inputs = Schema(x=Int64())
        outputs = Schema(x=Int64())

    outcomes = try_laws(LoadedHandler.of(Here), ["process", "declared-access"])
    assert {outcome.verdict for outcome in outcomes.values()} == {"skipped"}
    assert all("no folder to be loaded from" in outcome.detail for outcome in outcomes.values())


def test_the_environments_lie_far_apart(write: Write) -> None:
    loaded = write(CLEAN, files={"factor.txt": "3"})
    with Engine(loaded) as engine, Bench(engine, example_batch(loaded.inputs, 2)) as bench:
        found = variations(bench)
        with Bench(engine, example_batch(loaded.inputs, 2), thorough=True) as more:
            thorough = variations(more)
    assert len(found) == 2
    assert len({varied["PYTHONHASHSEED"] for varied in thorough}) == len(thorough) == 6
    assert found[0]["TZ"] != found[1]["TZ"]
    assert found[0][THREADS] == "2"
    assert found[0][CWD] != str(Path.cwd())
    assert set(BASELINE) == {"PYTHONHASHSEED"}


def test_the_laws_of_this_process_start_no_other() -> None:
    assert {"process", "declared-access"}.isdisjoint(HERE)


@pytest.mark.slow
def test_the_worker_ends_when_its_caller_does(write: Write) -> None:
    # It reads commands from stdin, which the caller's end closes.
    done = subprocess.run(
        [sys.executable, "-P", "-m", "parity.laws.worker", "."],
        stdin=subprocess.DEVNULL,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0
