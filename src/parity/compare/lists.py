"""Rules that judge a whole list at once: label, topk, cosine, set, pixels. Only unequal rows come here.

Each takes two list arrays of one length, without nulls at the top, and says which rows pass. A null inside
a list, a length that differs where the rule pairs elements, or another shape of a tensor does not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from parity.compare.dtypes import plain_type
from parity.compare.leaves import list_lengths, list_values, unequal_values
from parity.compare.rules import Cosine, Label, Pixels, Rule, SetLike, TopK
from parity.errors import ConfigError

Mask = npt.NDArray[np.bool_]
Matrix = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Judged:
    """Which of the judged rows pass, and how many of those only as ties."""

    passes: Mask
    ties: int = 0


def judge_lists(
    rule: Rule,
    expected: pa.Array[Any],
    obtained: pa.Array[Any],
    scores: Callable[[str], tuple[pa.Array[Any], pa.Array[Any]] | None],
) -> Judged:
    """Judge each pair of lists by `rule`; `scores` gives both sides of a `TopK`'s column, if it can."""
    shapes = _same_shapes(expected, obtained)
    expected, obtained = _without_shape(expected), _without_shape(obtained)
    if isinstance(rule, SetLike):
        return Judged(_same_members(expected, obtained, rule.multiset) & shapes)
    if isinstance(rule, TopK) and not _is_float(expected):
        judged = _same_labels(expected, obtained, rule, scores)
        return Judged(judged.passes & shapes, judged.ties)
    passes, ties = np.zeros(len(expected), np.bool_), 0
    for rows, (one, other) in _matrices(_numbers(expected), _numbers(obtained)):
        if isinstance(rule, Label):
            passes[rows], tied = _same_largest(one, other, rule.tie)
        elif isinstance(rule, TopK):
            passes[rows], tied = _same_ranking(one, other, rule)
        elif isinstance(rule, Pixels):
            passes[rows], tied = _same_pixels(one, other, rule), 0
        else:
            passes[rows], tied = _same_direction(one, other, cast("Cosine", rule)), 0
        ties += tied
    return Judged(passes & shapes, ties)


def _same_largest(one: Matrix, other: Matrix, tie: float) -> tuple[Mask, int]:
    if not one.shape[1]:
        return np.ones(len(one), np.bool_), 0
    first, second = one.argmax(1), other.argmax(1)
    rows = np.arange(len(one))
    with np.errstate(invalid="ignore"):
        near = np.abs(one[rows, first] - one[rows, second]) <= tie
    odd = (np.isnan(one) != np.isnan(other)).any(1)
    passes = ((first == second) | near) & ~odd
    return passes, int(np.count_nonzero(passes & (first != second)))


def _same_ranking(one: Matrix, other: Matrix, rule: TopK) -> tuple[Mask, int]:
    first = np.argsort(-one, axis=1, kind="stable")[:, : rule.k]
    second = np.argsort(-other, axis=1, kind="stable")[:, : rule.k]
    with np.errstate(invalid="ignore"):
        gap = np.abs(np.take_along_axis(one, first, 1) - np.take_along_axis(one, second, 1))
    moved = first != second
    odd = (np.isnan(one) != np.isnan(other)).any(1)
    passes = (~moved | (gap <= rule.tie)).all(1) & ~odd
    return passes, int(np.count_nonzero(passes & moved.any(1)))


def _same_direction(one: Matrix, other: Matrix, rule: Cosine) -> Mask:
    with np.errstate(all="ignore"):
        norms, theirs = np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1)
        cosine = (one * other).sum(1) / (norms * theirs)
        as_long = np.abs(norms - theirs) <= rule.norm_rtol * np.maximum(norms, theirs)
    both_zero = (norms == 0) & (theirs == 0)
    return ((cosine >= rule.least) & as_long) | both_zero


def _same_pixels(one: Matrix, other: Matrix, rule: Pixels) -> Mask:
    if not one.shape[1]:
        return np.ones(len(one), np.bool_)
    apart = np.abs(one - other)
    passes = (apart <= rule.lsb).all(1)
    with np.errstate(divide="ignore"):
        return passes & (10 * np.log10(255.0**2 / np.square(apart).mean(1)) >= rule.psnr)


def _same_labels(
    expected: pa.Array[Any],
    obtained: pa.Array[Any],
    rule: TopK,
    scores: Callable[[str], tuple[pa.Array[Any], pa.Array[Any]] | None],
) -> Judged:
    ours, theirs = _codes(expected, obtained)
    pair = scores(rule.scores) if rule.scores else None
    weights = None if pair is None else [_numbers(_without_shape(side)) for side in pair]
    passes, ties = np.zeros(len(expected), np.bool_), 0
    for rows, (one, other) in _matrices(ours, theirs, same_length=False):
        k = min(rule.k, one.shape[1])
        if min(rule.k, other.shape[1]) != k:
            continue
        matches = other[:, :k, None] == one[:, None, :]
        found, at = matches.any(2), matches.argmax(2) if one.shape[1] else np.zeros((len(rows), k), np.int64)
        moved = ~found | (at != np.arange(k))
        allowed = ~moved
        if weights is not None and k:
            allowed |= _tied(rows, (one.shape[1], other.shape[1]), found, at, weights, rule.tie)
        repeats = (np.diff(np.sort(other[:, :k], axis=1), axis=1) == 0).any(1)
        passes[rows] = allowed.all(1) & ~(repeats & moved.any(1))
        ties += int(np.count_nonzero(passes[rows] & moved.any(1)))
    return Judged(passes, ties)


def _tied(
    rows: Codes,
    sizes: tuple[int, int],
    found: Mask,
    at: Codes,
    weights: list[tuple[Matrix, Codes]],
    tie: float,
) -> Mask:
    """Where the label at a place has a score within `tie` of the score that stood there."""
    (ours, our_lengths), (theirs, their_lengths) = weights
    paired = (our_lengths[rows] == sizes[0]) & (their_lengths[rows] == sizes[1])
    tied = np.zeros(found.shape, np.bool_)
    if not paired.any():
        return tied
    k = found.shape[1]
    one = _gather(ours, our_lengths, rows[paired], sizes[0])
    other = _gather(theirs, their_lengths, rows[paired], sizes[1])
    inside = np.abs(np.take_along_axis(one, at[paired], 1) - one[:, :k]) <= tie
    at_the_cut = np.abs(other[:, :k] - one[:, k - 1 : k]) <= tie
    tied[paired] = np.where(found[paired], inside, at_the_cut)
    return tied


def _same_members(expected: pa.Array[Any], obtained: pa.Array[Any], multiset: bool) -> Mask:
    (ours, lengths), (theirs, their_lengths) = _codes(expected, obtained)
    passes = np.ones(len(lengths), np.bool_)
    span = int(max(ours.max(initial=0), theirs.max(initial=0))) + 1
    one = np.repeat(np.arange(len(lengths)), lengths) * span + ours
    other = np.repeat(np.arange(len(lengths)), their_lengths) * span + theirs
    if not multiset:
        passes[np.setxor1d(one, other) // span] = False
        return passes
    passes &= lengths == their_lengths
    one, other = (
        np.sort(side[np.repeat(passes, size)]) for side, size in ((one, lengths), (other, their_lengths))
    )
    passes[one[one != other] // span] = False
    return passes


def _matrices(
    ours: tuple[npt.NDArray[Any], Codes], theirs: tuple[npt.NDArray[Any], Codes], *, same_length: bool = True
) -> Iterator[tuple[Codes, tuple[npt.NDArray[Any], npt.NDArray[Any]]]]:
    """Rows grouped by the lengths of both sides, each group as two matrices of values."""
    pairs, group = np.unique(np.stack([ours[1], theirs[1]], 1), axis=0, return_inverse=True)
    for index, (size, other) in enumerate(pairs.tolist()):
        if size == other or not same_length:
            rows = np.flatnonzero(group.reshape(-1) == index).astype(np.int64)
            yield rows, (_gather(*ours, rows, size), _gather(*theirs, rows, other))


def _gather(values: npt.NDArray[Any], lengths: Codes, rows: Codes, size: int) -> npt.NDArray[Any]:
    starts = (np.cumsum(lengths) - lengths)[rows]
    return values[starts[:, None] + np.arange(size)]


def _numbers(lists: pa.Array[Any]) -> tuple[Matrix, Codes]:
    """All elements as float64, null as NaN, and the length of each list."""
    values = cast("Any", list_values(lists))
    return np.asarray(values.to_numpy(zero_copy_only=False), np.float64), list_lengths(lists)


def _codes(
    expected: pa.Array[Any], obtained: pa.Array[Any]
) -> tuple[tuple[Codes, Codes], tuple[Codes, Codes]]:
    """All elements of both sides as numbers, equal where the elements are, and the length of each list."""
    ours, theirs = list_values(expected), list_values(obtained)
    if pat.is_nested(plain_type(ours.type)):
        raise ConfigError(f"a set or topk rule needs lists of plain values, these hold {ours.type}")
    if pat.is_floating(ours.type):
        ours, theirs = (
            pa.array(cast("Any", side).to_numpy(zero_copy_only=False) + 0.0) for side in (ours, theirs)
        )
    plain = plain_type(ours.type)
    both = pa.chunked_array([ours.cast(plain), theirs.cast(plain)])
    coded = cast("Any", pc.dictionary_encode(both, null_encoding="encode")).combine_chunks()
    codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), np.int64)
    return (codes[: len(ours)], list_lengths(expected)), (codes[len(ours) :], list_lengths(obtained))


def _same_shapes(expected: pa.Array[Any], obtained: pa.Array[Any]) -> Mask:
    """Where two tensors of several free dimensions have one shape; everywhere for plain lists."""
    same = np.ones(len(expected), np.bool_)
    if not (pat.is_struct(expected.type) and pat.is_struct(obtained.type)) or not len(expected):
        return same
    ours, theirs = (cast("Any", side).field("shape") for side in (expected, obtained))
    lengths = list_lengths(ours)
    same &= lengths == list_lengths(theirs)
    rows = np.flatnonzero(same & (lengths > 0))
    one, other = list_values(ours.take(rows)), list_values(theirs.take(rows))
    if one.null_count or other.null_count:
        same[rows] = [x.as_py() == y.as_py() for x, y in zip(ours.take(rows), theirs.take(rows), strict=True)]
        return same
    wrong = unequal_values(one, other)
    same[np.repeat(rows, lengths[rows])[wrong]] = False
    return same


def _without_shape(lists: pa.Array[Any]) -> pa.Array[Any]:
    return cast("Any", lists).field("data") if pat.is_struct(lists.type) else lists


def _is_float(lists: pa.Array[Any]) -> bool:
    return pat.is_floating(plain_type(lists.type.value_type))
