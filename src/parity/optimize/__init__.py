"""Profiles that are faster, accepted only with proof.

searching   `optimize`: each candidate profile proved, then measured beside the profile it is to replace
pacing      two calls measured in turns, until it is clear which is faster
findings    what came of a candidate, and of all
writing     the winner's profile in handler.toml, and its proof beside it
"""

from parity.optimize.findings import Optimization, Tried
from parity.optimize.pacing import Pace, measure
from parity.optimize.searching import Wanted, candidates, optimize
from parity.optimize.writing import require_free, write_profile

__all__ = [
    "Optimization",
    "Pace",
    "Tried",
    "Wanted",
    "candidates",
    "measure",
    "optimize",
    "require_free",
    "write_profile",
]
