"""The laws: what a row's answer must not depend on, tried on golden rows and on edge rows.

outcome    what came of a law, with the smallest counterexample
shrink     fewest rows that still break a law
bench      the rows under test, and running and comparing them
trials     pairs of ways to ask, judged
wires      the forms that rows are sent in
catalogue  the laws
"""

from parity.laws.bench import Bench, law_rows
from parity.laws.catalogue import LAWS, Law, check_laws, laws_named
from parity.laws.outcome import Counterexample, LawOutcome, LawVerdict

__all__ = [
    "LAWS",
    "Bench",
    "Counterexample",
    "Law",
    "LawOutcome",
    "LawVerdict",
    "check_laws",
    "law_rows",
    "laws_named",
]
