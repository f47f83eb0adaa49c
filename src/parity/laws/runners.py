"""Laws of what runs a handler: a runner's whole real path, and another profile, device or precision."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import pyarrow as pa

from parity import numerics
from parity.batch import Batch
from parity.codec import arrow
from parity.compare import Comparison, Tolerances
from parity.engine import Engine
from parity.errors import ConfigError, FingerprintError, RunnerError
from parity.laws.bench import Bench
from parity.laws.explanation import Suspect
from parity.laws.forms import carried_rows, untold_answers
from parity.laws.law import NotApplicableError
from parity.laws.outcome import LawOutcome
from parity.laws.snippets import NO_FOLDER
from parity.laws.trials import Trial, judge, try_pair
from parity.laws.ways import Asked, Pair, Way, joined, together
from parity.profile import Profile
from parity.registry import Runner, replay_wires
from parity.result import ERROR_COLUMN
from parity.triage import Side
from parity.triage.sides import runner_side

_SHOWN_ROWS: Final = 16
_ASK_IT: Final = "the answers were given; ask the runner again to see them"
RUNNER_NOISE: Final = "other bits through a runner, which makes batches of its own"


class ThroughRunner:
    """The same rows in this process, and through runners in each of their wire forms."""

    name = "runner"
    sentence = "the answer for a row does not depend on the runner that asks for it"

    def check(self, bench: Bench) -> LawOutcome:
        """Compare what runners gave already, and send the rows through those that are to be asked.

        Raises:
            NotApplicableError: no runner and no answers of one were given, or the handler has no folder.
            RunnerError: a runner failed to start or crashed.
        """
        if not bench.runner_answers and not bench.runners:
            raise NotApplicableError("no runner was given")
        if bench.runners and not bench.loaded.ref and not bench.runner_answers:
            raise NotApplicableError(NO_FOLDER)

        def trials() -> Iterator[Trial]:
            for name, answers in bench.runner_answers.items():
                how = f"in this process, and through the runner {name}"
                pair = Pair(
                    together(bench.engine, "in this process"), Way(f"through {name}", _given(answers))
                )
                yield Trial(
                    how,
                    replace(pair, why_no_snippet=_ASK_IT, varied={"runner": name}),
                    bench.golden,
                    (bench.golden_scale, answers),
                    lambda _: iter(()),
                )
            crashed: list[str] = []
            for runner in bench.runners if bench.loaded.ref else ():
                try:
                    yield from _replayed(bench, runner)
                except RunnerError as exc:
                    crashed.append(str(exc))
            if crashed:  # told once the others were heard
                raise RunnerError("; ".join(crashed))

        return judge(self.name, self.sentence, bench, trials(), RUNNER_NOISE)


def _replayed(bench: Bench, runner: Runner) -> Iterator[Trial]:
    """The rows through a runner, in each of its wire forms."""
    carried = carried_rows(bench)
    result = bench.engine.run(bench.batch(carried))
    here, untold = result.to_table(), untold_answers(result)
    batch, profile = bench.batch(carried), bench.engine.profile
    replayed = replay_wires(runner, bench.loaded.ref, batch.to_table(), profile, app_dir=bench.loaded.app_dir)
    for wire, obtained in replayed:
        answers = obtained.to_table()
        if answers.num_rows != len(carried):
            name = f"runner {runner.name} ({wire})"
            raise RunnerError(f"{name}: {answers.num_rows} answers came back for {len(carried)} rows")
        kept = _told(answers, untold)
        positions = [carried[place] for place in kept]
        pair = through(bench, runner, wire)
        how = f"in this process, and through the {runner.name} runner as {wire}"
        taken = here.take(kept), answers.take(kept)
        yield Trial(how, pair, positions, taken, _through(bench, pair, positions))


class Device:
    """The golden rows under this profile, and under others that were named."""

    name = "device"
    sentence = "the answer for a row does not depend, beyond tolerance, on device, precision or backend"

    def check(self, bench: Bench) -> LawOutcome:
        """Ask the golden rows under each profile, judged by the rules for the pair.

        Raises:
            NotApplicableError: no other profile was named.
        """
        here = bench.engine.profile
        others = [profile for profile in bench.profiles if profile != here]
        if not others:
            raise NotApplicableError("no other profile was named to compare with")
        missing: list[str] = []
        outcomes: list[LawOutcome] = []
        for profile in others:
            try:
                outcomes.append(self._under(bench, profile))
            except (ConfigError, FingerprintError) as exc:
                missing.append(str(exc))
        # A profile that was named and cannot run here is no agreement.
        outcomes += [LawOutcome(self.name, self.sentence, "unable", 0, detail=text) for text in missing]
        order = ("holds", "noise", "nothing", "unable", "broken")
        worst = max(outcomes, key=lambda outcome: order.index(outcome.verdict))
        pairs = sum(outcome.pairs for outcome in outcomes)
        executed = tuple(text for outcome in outcomes for text in outcome.executed)
        detail = "; ".join(outcome.detail for outcome in outcomes)
        return replace(worst, detail=detail, pairs=pairs, executed=executed)

    def _under(self, bench: Bench, profile: Profile) -> LawOutcome:
        here = bench.engine.profile
        # Exact mode promises bits under one profile; between two, what handler.toml says counts.
        declared = Tolerances.from_mapping(bench.loaded.manifest.tolerance)
        rules = (declared if here.exact else bench.tolerances).for_pair(pair_side(here), pair_side(profile))
        pair = Pair(
            together(bench.engine, f"under profile {here.name}"),
            under(bench, profile),
            {"profile": profile.name, "device": profile.device, "precision": profile.precision},
        )
        with _numerics_kept(bench), Engine(bench.loaded, profile):
            pass  # refuses here when the device is not there

        def trials() -> Iterator[Trial]:
            yield try_pair(bench, bench.golden, pair, bench.golden_scale)

        return judge(
            self.name, self.sentence, bench.judging_by(rules), trials(), "other bits under another profile"
        )


def under(bench: Bench, profile: Profile) -> Way:
    """All rows as one batch under another profile."""

    def ask(batch: Batch, stages: bool) -> Asked:
        with _numerics_kept(bench), Engine(bench.loaded, profile) as engine:
            found = joined([(batch, engine.run(batch, stages=stages))], stages)
            return replace(found, fingerprint=engine.fingerprint())

    known = bench.loaded.manifest.profiles.get(profile.name) == profile
    source = f"loaded.profile({profile.name!r})"
    if not known:
        source = f"loaded.profile().with_settings({profile.to_settings()!r})"
    code = f"with Engine(loaded, {source}) as other_engine:\n    ANSWERS = other_engine.run(rows).to_table()"
    return Way(f"under profile {profile.name}", ask, code)


@contextmanager
def _numerics_kept(bench: Bench) -> Generator[None]:
    """Set this process's numerics back to the bench's profile afterwards; another engine changes them."""
    try:
        yield
    finally:
        numerics.apply(bench.engine.profile)


def pair_side(profile: Profile) -> str:
    """A profile as one side of `Tolerances.for_pair`."""
    return f"{profile.device}:{profile.precision}"


def _through(bench: Bench, pair: Pair, carried: list[int]) -> Callable[[Comparison], Iterator[Suspect]]:
    """Suspect all rows, as they were asked: a runner starts a process, so there is no shrinking by trials."""

    def suspects(comparison: Comparison) -> Iterator[Suspect]:
        failing = [carried[row] for row in comparison.failing_rows.tolist()]
        yield Suspect(bench.candidate(failing[:_SHOWN_ROWS]), pair, shrinkable=False)
        yield Suspect(bench.candidate(carried), pair, shrinkable=False)

    return suspects


def _told(answers: pa.Table, untold: Mapping[int, str | None]) -> list[int]:
    """The places of the answers to judge: all but those that the wire form refused, as JSON refuses NaN."""
    errors = answers.column(ERROR_COLUMN).to_pylist()
    return [
        place
        for place, error in enumerate(errors)
        if error is None or place not in untold or error["field"] != untold[place]
    ]


def _given(answers: pa.Table) -> Callable[[Batch, bool], Asked]:
    def ask(batch: Batch, stages: bool) -> Asked:
        del batch, stages
        return Asked(answers)

    return ask


def through(bench: Bench, runner: Runner, wire: str) -> Pair:
    """Rows in this process, and through a runner in one wire form."""
    name = f"through the {runner.name} runner as {wire}"
    engine, loaded = bench.engine, bench.loaded

    def ask(batch: Batch, stages: bool) -> Asked:
        table = batch.to_table()
        if not stages:
            result = runner.replay(loaded.ref, table, engine.profile, app_dir=loaded.app_dir, wire=wire)
            return Asked(result.to_table())
        side = runner_side(runner, wire, engine, table)
        return Asked(side.answers, side.traces, None, (), side.fingerprint)

    def again(rows: pa.Table) -> Side:
        return runner_side(runner, wire, engine, arrow.decode_table(loaded.inputs, rows).batch.to_table())

    app_dir = f", app_dir={loaded.app_dir!r}" if loaded.app_dir else ""
    code = (
        f"replayed = find_runner({runner.name!r}).replay(\n"
        f"    {loaded.ref!r}, rows.to_table(), profile{app_dir}, wire={wire!r}\n"
        ")\n"
        "ANSWERS = replayed.to_table()"
    )
    way = Way(name, ask, code, ("from parity.registry import find_runner",), again=again)
    return Pair(together(engine, "in this process"), way, {"runner": f"{runner.name} {wire}"})
