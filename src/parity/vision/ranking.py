"""Scores as shares, the largest and where they are; of equal ones the lowest index comes first."""

from __future__ import annotations

import torch

from parity.errors import ConfigError
from parity.vision.arguments import kind, whole
from parity.vision.meanings import note_use

_WIDER = (torch.uint16, torch.uint32)


def topk(scores: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k largest along the last axis, descending, and their indexes; NaN counts as the largest.

    Args:
        scores: (..., n) numbers.
        k: how many, at most n.

    Returns:
        Values (..., k) of the scores' dtype and indexes (..., k) int64.

    Raises:
        ConfigError: there are fewer than k, or scores are no tensor of numbers, or of floats of 8 bits.
    """
    scores = _scores("topk", scores)
    k = whole("topk", "k", k, least=0, most=scores.shape[-1])
    values, indexes = scores.sort(dim=-1, descending=True, stable=True)
    return values[..., :k], indexes[..., :k]


def argmax(scores: torch.Tensor) -> torch.Tensor:
    """The index of the largest along the last axis, (...) int64; of the first NaN where there is one.

    Args:
        scores: (..., n) numbers, n of 1 or more.

    Raises:
        ConfigError: there is none, or scores are no tensor of numbers, or of floats of 8 bits.
    """
    scores = _compared(_scores("argmax", scores))
    count = scores.shape[-1]
    if count == 0:
        raise ConfigError(f"argmax: scores is {kind(scores)}; expected one or more along the last axis")
    found = (scores == scores.amax(dim=-1, keepdim=True)) | (scores != scores)
    return torch.where(found, torch.arange(count, device=scores.device), count).amin(dim=-1)


def softmax(scores: torch.Tensor) -> torch.Tensor:
    """Each score's share of 1 along the last axis: exp(score - largest) over the sum of all of them.

    The largest is taken off first, so that no finite score is too large. -inf has no share; a row with NaN
    or +inf, or of -inf alone, is NaN.

    Args:
        scores: (..., n) floats of 16 bits or more.

    Returns:
        (..., n) of the scores' dtype, contiguous; floats of 16 bits are computed in float32 and rounded once.

    Raises:
        ConfigError: scores are no tensor of floats, or of floats of 8 bits.
    """
    scores = _scores("softmax", scores)
    if not scores.is_floating_point():
        raise ConfigError(f"softmax: scores is {kind(scores)}; expected floats: scores.float()")
    return _shares(scores.contiguous())


def _shares(scores: torch.Tensor) -> torch.Tensor:
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return wide.softmax(-1).to(scores.dtype)


def _scores(operation: str, scores: object) -> torch.Tensor:
    note_use(operation)
    if (
        not isinstance(scores, torch.Tensor)
        or scores.ndim == 0
        or scores.dtype == torch.bool
        or scores.is_complex()
    ):
        raise ConfigError(f"{operation}: scores is {kind(scores)}; expected a tensor of numbers (..., n)")
    if scores.is_floating_point() and scores.dtype.itemsize < 2:
        raise ConfigError(
            f"{operation}: scores is {kind(scores)}; expected floats of 16 bits or more: scores.float()"
        )
    return scores


def _compared(scores: torch.Tensor) -> torch.Tensor:
    """Numbers in the same order, of a dtype whose maximum torch knows: of wide unsigned ones it does not."""
    if scores.dtype in _WIDER:
        return scores.to(torch.int64)
    if scores.dtype == torch.uint64:
        return scores.view(torch.int64) ^ torch.iinfo(torch.int64).min
    return scores
