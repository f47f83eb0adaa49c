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
runners       runners, and other profiles
honesty       inputs left alone, outputs as declared
modes         eval mode of torch modules
access        files, network and programs; audit hears them

explanation   from a divergence to the fewest and simplest rows, and a diagnosis; candidates, shrink, simpler
snippets      a counterexample as Python source
strategies    Hypothesis strategies for fields
noise         float noise, measured
outcome       what came of a law
"""

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
