"""The law of the wall clock: rows asked now, and with the clock moved by hours, days and years."""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final

from parity.batch import Batch
from parity.laws.bench import Bench
from parity.laws.outcome import LawOutcome
from parity.laws.state import loaded_anew
from parity.laws.trials import Trial, judge, try_pair
from parity.laws.ways import Asked, Pair, Way, joined

_MOVES: Final = {
    "7 hours later": datetime.timedelta(hours=7, minutes=13, seconds=21, microseconds=345_678),
    "47 days later": datetime.timedelta(days=47, hours=5, minutes=1, seconds=37, microseconds=1_234),
    "11 years later": datetime.timedelta(days=4021, hours=11, seconds=11, microseconds=987_001),
}
_MORE_MOVES: Final = {
    "3 days later": datetime.timedelta(days=3, seconds=43),
    "6 years earlier": datetime.timedelta(days=-2192, hours=-3, seconds=-7),
}
# None is a whole number of minutes or seconds: those of a clock that is stopped must move, too.


class Clock:
    """Rows asked with the wall clock moved, of this handler and of one loaded at that time."""

    name = "clock"
    sentence = "the answer for a row does not depend on when it is asked"

    def check(self, bench: Bench) -> LawOutcome:
        """Move the clock on by hours, days and years; ask this handler, and one loaded then."""
        golden = bench.golden
        # Where the answers do not even repeat while the clock runs, it is stopped on both sides.
        stopped = not _repeats(bench, running=True)
        now = datetime.datetime.now(datetime.UTC)

        def trials() -> Iterator[Trial]:
            batch = bench.batch(golden)
            ones = {then: moved(bench, now, stopped=stopped, loaded_then=then) for then in (False, True)}
            expected = {then: way.ask(batch, False).answers for then, way in ones.items()}
            for name, delta in {**_MOVES, **(_MORE_MOVES if bench.thorough else {})}.items():
                for loaded_then in (False, True):
                    suffix = ", by a handler loaded then" if loaded_then else ""
                    other = moved(bench, now + delta, name + suffix, stopped=stopped, loaded_then=loaded_then)
                    yield try_pair(
                        bench, golden, Pair(ones[loaded_then], other, {"clock": name}), expected[loaded_then]
                    )

        if stopped and not _repeats(bench, running=False):
            why = "the answers do not repeat even while the clock stands still"
            return LawOutcome(self.name, self.sentence, "nothing", 2 * len(golden), detail=why)
        return judge(self.name, self.sentence, bench, trials(), "other bits at another time")


@contextmanager
def travelled(when: datetime.datetime, *, stopped: bool = False) -> Generator[None]:
    """Have the wall clock of this process show `when` meanwhile, and run on, or stand still."""
    import time_machine

    with time_machine.travel(when, tick=not stopped):
        yield


def moved(
    bench: Bench,
    when: datetime.datetime,
    name: str = "now",
    *,
    stopped: bool = False,
    loaded_then: bool = False,
) -> Way:
    """All rows as one batch while the clock shows `when`."""

    def ask(batch: Batch, stages: bool) -> Asked:
        with travelled(when, stopped=stopped):
            if not loaded_then:
                return joined([(batch, bench.engine.run(batch, stages=stages))], stages)
            return loaded_anew(bench, batch, lambda engine: engine.run(batch, stages=stages), stages)

    destination = f'datetime.datetime.fromisoformat("{when.isoformat()}")'
    lines = [f"with time_machine.travel({destination}, tick={not stopped}):"]
    if loaded_then:
        lines += ["    with Engine(loaded, profile) as then:", "        ANSWERS = then.run(rows).to_table()"]
    else:
        lines.append("    ANSWERS = engine.run(rows).to_table()")
    return Way(name, ask, "\n".join(lines), ("import datetime", "import time_machine"))


def repeats_when_stopped(bench: Bench) -> bool:
    """Whether the golden rows get the same answers again while the clock stands still, and only then."""
    return not _repeats(bench, running=True) and _repeats(bench, running=False)


def _repeats(bench: Bench, *, running: bool) -> bool:
    batch = bench.batch(bench.golden)
    if running:
        answers = bench.ask(batch), bench.ask(batch)
    else:
        way = moved(bench, datetime.datetime.now(datetime.UTC), stopped=True)
        answers = way.ask(batch, False).answers, way.ask(batch, False).answers
    return bench.compare(bench.golden, answers).verdict != "divergent"
