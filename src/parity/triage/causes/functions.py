"""Functions that one side leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from parity.stages import Value
from parity.triage.case import Case, Change, Explained, Finding, Refuted, Suspect, number_pairs


def _softmax(value: Value) -> Value | None:
    if value.dtype.kind != "f" or value.ndim == 0 or value.shape[-1] < 2:
        return None
    with np.errstate(all="ignore"):
        powers = np.exp(value - value.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)


def _log_softmax(value: Value) -> Value | None:
    found = _softmax(value)
    with np.errstate(all="ignore"):
        return None if found is None else np.log(found)


def _sigmoid(value: Value) -> Value | None:
    if value.dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        return (1 / (1 + np.exp(-value.astype(np.float64)))).astype(value.dtype)


def _exp(value: Value) -> Value | None:
    with np.errstate(all="ignore"):
        return np.exp(value) if value.dtype.kind == "f" else None


def _log1p(value: Value) -> Value | None:
    with np.errstate(all="ignore"):
        return np.log1p(value.astype(np.float64)) if value.dtype.kind in "iuf" else None


def _relu(value: Value) -> Value | None:
    return np.maximum(value, 0) if value.dtype.kind == "f" else None


_FUNCTIONS: Final[dict[str, Change]] = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "sigmoid": _sigmoid,
    "exp": _exp,
    "log1p": _log1p,
    "max(x, 0)": _relu,
}


def softmax_missing(case: Case) -> Finding:
    """A function's result on one side, its argument on the other."""
    if not number_pairs(case):
        return None
    for name, function in _FUNCTIONS.items():
        found = case.removed_by(function)
        if found is not None:
            return Explained(
                f"{name} {found.words}",
                f"one side leaves out {name}: the other side's values are {name} of its values",
            )
    return Refuted("no softmax, sigmoid, exponential or logarithm of one side is the other")


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "softmax-missing",
        "one side gives scores before the last function, the other after it",
        "softmax, log-softmax, sigmoid, exp, log1p and max(x, 0) of one side against the other",
        "apply the function on both sides, best inside the model",
        softmax_missing,
    )


SUSPECTS: Final = tuple(_suspects())
