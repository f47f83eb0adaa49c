"""Labels that flip: which columns are labels, and which value became which."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from parity.compare import Label, Rule, TopK
from parity.replay.model import LabelDrift
from parity.schema import Bool, Field, Floating, Integer, List, String, Tensor

Mask = np.ndarray[Any, np.dtype[np.bool_]]

_MOST_PAIRS = 12
_KNOWN_PAIRS = 10_000
_MOST_CLASSES = 1000
_TEXT = 60


def label_form(field: Field, rule: Rule | None = None) -> str:
    """Whether a column is one of labels: "value", or "scores" whose largest is the label; else empty.

    Booleans and text are, and integers of few values, by their choices or range; a fixed vector of two or
    more floats is one of scores. A rule for labels or top k makes labels of other integers and lists, too.
    """
    if isinstance(field, Bool | String):
        return "value"
    if isinstance(field, Integer):
        low, high = field.limits
        few = field.choices is not None or high - low < _MOST_CLASSES
        return "value" if few or isinstance(rule, Label) else ""
    if isinstance(field, Tensor) and field.numpy_dtype.kind not in "biu" and len(field.shape) == 1:
        size = field.shape[0]
        return "scores" if (size or 0) > 1 or isinstance(rule, Label | TopK) else ""
    if isinstance(field, List) and isinstance(field.of, Floating) and isinstance(rule, Label | TopK):
        return "scores"
    return ""


class LabelTally:
    """Counts the flips of one column.

    Args:
        column: its name.
        of_scores: whether the label is the place of the largest score.
    """

    def __init__(self, column: str, *, of_scores: bool) -> None:
        self._column = column
        self._of_scores = of_scores
        self._rows = 0
        self._flips = 0
        self._pairs: Counter[tuple[str, str]] = Counter()

    def add(self, recorded: pa.Array[Any], replayed: pa.Array[Any]) -> Mask:
        """Look at more rows, and say which of them have another label."""
        if self._of_scores:
            recorded, replayed = _largest(recorded), _largest(replayed)
        null = np.asarray(pc.xor(recorded.is_null(), replayed.is_null()))
        unequal = pc.fill_null(pc.not_equal(recorded, cast("Any", replayed)), cast("Any", False))
        flips: Mask = null | np.asarray(unequal)
        self._rows += len(flips)
        self._flips += int(np.count_nonzero(flips))
        if flips.any():
            mask = pa.array(flips)
            sides = recorded.filter(mask).to_pylist(), replayed.filter(mask).to_pylist()
            for one, other in zip(*sides, strict=True):
                pair = _shown(one), _shown(other)
                if pair in self._pairs or len(self._pairs) < _KNOWN_PAIRS:
                    self._pairs[pair] += 1
        return flips

    def drift(self) -> LabelDrift:
        """What was found."""
        ordered = sorted(self._pairs.items(), key=lambda item: (-item[1], item[0]))[:_MOST_PAIRS]
        pairs = tuple((one, other, rows) for (one, other), rows in ordered)
        other = self._flips - sum(rows for _, _, rows in pairs)
        return LabelDrift(self._column, self._of_scores, self._rows, self._flips, pairs, other)


def _largest(scores: Any) -> pa.Array[Any]:
    """The place of each row's largest score, the first of equals; null where there is none."""
    found: list[int | None] = []
    if pat.is_fixed_size_list(scores.type) and not scores.null_count:
        width = scores.type.list_size
        values = np.asarray(scores.flatten().to_numpy(zero_copy_only=False), np.float64)
        return pa.array(values.reshape(-1, width).argmax(axis=1), pa.int64())
    for row in scores.to_pylist():
        values = np.asarray(row if row is not None else [], np.float64)
        found.append(int(values.argmax()) if values.size else None)
    return pa.array(found, pa.int64())


def _shown(value: object) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"
