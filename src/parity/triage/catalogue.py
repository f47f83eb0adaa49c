"""The catalogue of causes, in the order in which they are preferred: what is more specific comes first."""

from __future__ import annotations

from typing import Final

from parity.errors import did_you_mean
from parity.triage.case import Suspect
from parity.triage.causes import (
    buffers,
    contracts,
    dtypes,
    environment,
    failures,
    formats,
    functions,
    images,
    missing,
    neighbours,
    order,
    places,
    randomness,
    resizing,
    rounding,
    scales,
    state,
    statistics,
    texts,
    times,
    widths,
)
from parity.triage.model import Cause

_PREFERRED: Final[tuple[str, ...]] = tuple(
    """
input-mutated undeclared-read undeclared-write undeclared-output empty-batch
wall-clock hash-seed timezone-of-process locale working-directory thread-count
train-mode
null-promotes-dtype non-finite-neighbour
channel-order alpha bit-depth transpose orientation pixel-shift resize-antialias
integer-through-float wrap softmax-missing denormals recast rounding ddof byte-order
number-format date-order timezone-shift text-normalisation text-encoding truncation
generator-consumed stale-buffer shared-state
row-shift row-order null-order column-order
affine-scale gamma clipping
global-rng unseeded-rng state-kept
padding-without-mask categories-per-batch broadcast ragged-last-batch row-count raises
squeezed-axis batch-length
first-row previous-row position batch-statistics
null-nan-missing label-map
precision device weights operation-version environment source
""".split()
)

_THEMES: Final = (
    buffers,
    contracts,
    dtypes,
    environment,
    failures,
    formats,
    functions,
    images,
    missing,
    neighbours,
    order,
    places,
    randomness,
    resizing,
    rounding,
    scales,
    state,
    statistics,
    texts,
    times,
    widths,
)


def _place_of(suspect: Suspect) -> int:
    return _PREFERRED.index(suspect.name)


CATALOGUE: Final[tuple[Suspect, ...]] = tuple(
    sorted(
        (suspect for theme in _THEMES for suspect in theme.SUSPECTS),
        key=_place_of,
    )
)


def suspect_named(name: str) -> Suspect:
    """The catalogue's entry; raises KeyError with near names."""
    for suspect in CATALOGUE:
        if suspect.name == name:
            return suspect
    known = [suspect.name for suspect in CATALOGUE]
    raise KeyError(f"no cause {name!r} in the catalogue; {did_you_mean(name, known)}")


def cause_named(name: str, evidence: str) -> Cause:
    """A cause of the catalogue with evidence that was gathered elsewhere, as by a law that sees a breach."""
    suspect = suspect_named(name)
    return Cause(name, suspect.sentence, evidence, suspect.remedy)
