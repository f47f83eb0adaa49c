"""The laws: what a row's answer must not depend on, and what a handler must not do, tried on real rows.

A law is a small class with a name, a sentence and a way to try it: rows asked in two ways, and compared.

bench         the rows under test, the answers that several laws need, and how two answers are compared
ways          ways to ask rows, and pairs of them
trials        pairs of answers, judged
catalogue     all laws in their order, and trying them

composition   alone, order, neighbours, batch size
failures      rows that fail, and batches of no rows
state         repetition, and what was asked before
concurrency   batches under way at the same time
clock         the wall clock
process       hash seed, time zone, locale, working folder, threads; worker and workers are its processes
forms         wire forms
twins         rows that are nearly the same, for history
runners       runners, and other profiles
honesty       inputs left alone, outputs as declared
modes         eval mode of torch modules
access        files, network and programs; audit hears them

explanation   from a divergence to the fewest and simplest rows, and a diagnosis; candidates, shrink, simpler
snippets      a counterexample as Python source
strategies    Hypothesis strategies for fields
noise         float noise, measured; natural tells it from dependence beyond the tolerance
outcome       what came of a law

The names are imported when they are asked for: the processes that laws start need next to none of this.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parity.laws.bench import Bench, chosen_rows, law_rows, noise_floor
    from parity.laws.catalogue import LAWS, check_bench, check_laws, laws_named
    from parity.laws.law import Law
    from parity.laws.noise import ColumnNoise, NoiseFloor
    from parity.laws.outcome import Counterexample, LawOutcome, LawVerdict

__all__ = [
    "LAWS",
    "Bench",
    "ColumnNoise",
    "Counterexample",
    "Law",
    "LawOutcome",
    "LawVerdict",
    "NoiseFloor",
    "check_bench",
    "check_laws",
    "chosen_rows",
    "law_rows",
    "laws_named",
    "noise_floor",
]

_HOMES = {
    "bench": ("Bench", "chosen_rows", "law_rows", "noise_floor"),
    "catalogue": ("LAWS", "check_bench", "check_laws", "laws_named"),
    "law": ("Law",),
    "noise": ("ColumnNoise", "NoiseFloor"),
    "outcome": ("Counterexample", "LawOutcome", "LawVerdict"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"parity.laws.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
