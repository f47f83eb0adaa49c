"""One column against the other under its rule: two counts, the distances and the worst rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from parity.compare.comparison import ColumnComparison, WorstRow
from parity.compare.dtypes import FLOATS, type_findings
from parity.compare.floats import distances
from parity.compare.leaves import Difference, Walk
from parity.compare.lists import judge_lists, list_items
from parity.compare.rules import Close, Cosine, Exact, Label, Rule, SetLike, Text, TopK
from parity.compare.tolerances import Tolerances
from parity.compare.values import one_array, place_of_difference, shown_value
from parity.errors import ConfigError

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MAX_WORST = 5

_REASONS = ("null on one side", "lengths differ", "NaN or infinity on one side")


@dataclass(frozen=True)
class Side:
    """One of the tables, its rows paired with the other's; `rows` are their places in the original table."""

    table: pa.Table
    rows: Positions

    def take(self, positions: Positions | None) -> Side:
        """The rows at `positions`, all of them for None."""
        if positions is None:
            return self
        return Side(self.table.take(positions), self.rows[positions])

    def values(self, name: str) -> pa.Array[Any]:
        """The column `name` as one array."""
        return one_array(self.table.column(name))


def compare_column(
    name: str,
    expected: Side,
    obtained: Side,
    tolerances: Tolerances,
    dtypes: Mapping[str, str],
    scales: Mapping[str, float] | None = None,
) -> ColumnComparison:
    """Compare the column `name` of two sides of equal length.

    `dtypes` names the dtype to measure each leaf in. Raises ConfigError when the column's rule does not
    suit its type.
    """
    rule = tolerances.for_column(name)
    dtype = dtypes.get(name, "nested") if len(dtypes) == 1 else "nested"
    _check_rule(name, rule, expected.table.schema.field(name).type, dtypes)
    for path in dtypes:
        inner = tolerances.for_column(path)
        if inner is not rule:
            _check_leaf_rule(path, inner, dtypes[path])
    ours, theirs = expected.values(name), obtained.values(name)
    floats = [leaf for leaf in dtypes.values() if leaf in FLOATS]
    shown = rule or (tolerances.for_dtype(floats[0]) if floats else Exact())
    casted = _same_type(ours, theirs)
    count = len(expected.rows)
    if casted is None:
        rows = expected.rows
        return ColumnComparison(
            name,
            str(ours.type),
            shown,
            count,
            0,
            0,
            count,
            comparable=False,
            failing_rows=rows,
            differing_rows=rows,
        )

    def rule_for(path: str, leaf: str) -> Rule:
        declared = tolerances.for_column(path)
        if declared is None or (isinstance(declared, Close) and leaf not in FLOATS):
            return tolerances.for_dtype(leaf)
        return declared

    walk = Walk(rule_for, dict(dtypes), dict(scales or {}))
    walk.compare(ours, casted, np.arange(count, dtype=np.int64), name)
    differs, fails = _row_masks(walk.found, count)
    ties = 0
    if isinstance(rule, Label | TopK | Cosine | SetLike) and list_items(ours.type) is not None:
        fails, ties = _judge(rule, expected, obtained, name, differs)
    by_reason = {reason: _count(walk.found, reason, count) for reason in _REASONS}
    return ColumnComparison(
        name=name,
        dtype=dtype if dtype != "nested" else str(ours.type),
        rule=shown,
        rows=count,
        identical=count - int(np.count_nonzero(differs)),
        within=count - int(np.count_nonzero(fails)),
        failing=int(np.count_nonzero(fails)),
        allowed=math.floor(shown.rows * count),
        null_mismatches=by_reason["null on one side"],
        length_mismatches=by_reason["lengths differ"],
        non_finite_mismatches=by_reason["NaN or infinity on one side"],
        negative_zeros=sum(part.negative_zeros for part in walk.floats),
        nan_payloads=sum(part.nan_payloads for part in walk.floats),
        ties=ties,
        distances=distances(walk.floats, passable=_passable(walk, by_reason)) if walk.floats else None,
        worst=tuple(_worst(walk.found, fails, expected, obtained)),
        failing_rows=expected.rows[fails],
        differing_rows=expected.rows[differs],
    )


def skip_column(name: str, expected: Side, rule: Rule) -> ColumnComparison:
    """The entry of a column whose values are ignored."""
    count = len(expected.rows)
    return ColumnComparison(name, str(expected.table.schema.field(name).type), rule, count, 0, count, 0)


def _check_rule(name: str, rule: Rule | None, kind: pa.DataType, dtypes: Mapping[str, str]) -> None:
    items = list_items(kind)
    if isinstance(rule, Close) and not set(dtypes.values()) & set(FLOATS):
        raise ConfigError(
            f"[tolerance.{name}]: kind = 'close' on {kind}; only floats may differ, use 'exact'"
        )
    if isinstance(rule, Text) and "string" not in dtypes.values():
        raise ConfigError(f"[tolerance.{name}]: kind = 'text' on {kind}; it compares strings")
    if isinstance(rule, TopK | SetLike) and items is None:
        raise ConfigError(
            f"[tolerance.{name}]: kind = {rule.kind!r} on {kind}; it compares lists and tensors"
        )
    if isinstance(rule, Cosine) and not (items is not None and pat.is_floating(items)):
        raise ConfigError(
            f"[tolerance.{name}]: kind = 'cosine' on {kind}; it compares lists and tensors of floats"
        )
    if isinstance(rule, Label):
        if items is not None and not pat.is_floating(items):
            raise ConfigError(
                f"[tolerance.{name}]: kind = 'label' on {kind}; it takes the largest of float scores"
            )
        if items is None and set(dtypes.values()) & set(FLOATS):
            raise ConfigError(
                f"[tolerance.{name}]: kind = 'label' on {kind}; a float is no class, use 'close'"
            )


def _check_leaf_rule(path: str, rule: Rule | None, dtype: str) -> None:
    if isinstance(rule, Close) and dtype not in FLOATS:
        raise ConfigError(f"[tolerance.{path!r}]: kind = 'close' on {dtype}; only floats may differ")
    if isinstance(rule, Text) and dtype != "string":
        raise ConfigError(f"[tolerance.{path!r}]: kind = 'text' on {dtype}; it compares strings")
    if rule is not None and rule.rows:
        raise ConfigError(
            f"[tolerance.{path!r}]: a row budget belongs to the column, not to a field of a struct"
        )
    if rule is not None and not isinstance(rule, Close | Exact | Text):
        raise ConfigError(
            f"[tolerance.{path!r}]: kind = {rule.kind!r} judges whole columns, not fields of a struct"
        )


def _same_type(expected: pa.Array[Any], obtained: pa.Array[Any]) -> pa.Array[Any] | None:
    """The obtained values, cast where the types differ and a cast loses nothing, else None."""
    one, other = pa.field("x", expected.type), pa.field("x", obtained.type)
    if all(finding.kind == "timezone" for finding in type_findings(one, other)):
        return obtained
    try:
        return obtained.cast(expected.type)
    except pa.ArrowException:
        return None


def _row_masks(found: list[Difference], count: int) -> tuple[Mask, Mask]:
    differs, fails = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    for part in found:
        differs[part.rows] = True
        fails[part.rows[part.fails]] = True
    return differs, fails


def _judge(rule: Rule, expected: Side, obtained: Side, name: str, differs: Mask) -> tuple[Mask, int]:
    """The rows that fail a rule for whole lists; only rows that differ are looked at."""
    fails = differs.copy()
    rows = np.flatnonzero(differs)
    sides = [side.take(rows) for side in (expected, obtained)]
    both = np.ones(len(rows), np.bool_)
    for side in sides:
        both &= cast("Any", side.values(name).is_valid()).to_numpy(zero_copy_only=False)
    pair = [side.take(np.flatnonzero(both)) for side in sides]

    def scores(column: str) -> tuple[pa.Array[Any], pa.Array[Any]] | None:
        kinds = [
            list_items(s.table.schema.field(column).type) for s in pair if column in s.table.column_names
        ]
        if len(kinds) < 2 or not all(kind is not None and pat.is_floating(kind) for kind in kinds):
            return None
        return pair[0].values(column), pair[1].values(column)

    judged = judge_lists(rule, pair[0].values(name), pair[1].values(name), scores)
    fails[rows[both]] = ~judged.passes
    return fails, judged.ties


def _count(found: list[Difference], reason: str, count: int) -> int:
    rows = np.zeros(count, np.bool_)
    for part in found:
        if part.reason == reason:
            rows[part.rows] = True
    return int(np.count_nonzero(rows))


def _passable(walk: Walk, by_reason: Mapping[str, int]) -> bool:
    exact = any(
        part.reason == "values differ" and part.ulp is None and part.fails.any() for part in walk.found
    )
    return not exact and not any(by_reason.values())


def _worst(found: list[Difference], fails: Mask, expected: Side, obtained: Side) -> list[WorstRow]:
    """Up to five rows, failing ones first, each with the most severe of its differences."""
    severity = np.full(len(fails), -1.0)
    for part in found:
        starts = np.flatnonzero(np.diff(part.rows, prepend=-1))
        if len(starts):
            rows = part.rows[starts]
            severity[rows] = np.maximum(severity[rows], np.maximum.reduceat(part.severity, starts))
    rows = _largest(severity, np.flatnonzero(fails))
    rows += _largest(severity, np.flatnonzero((severity >= 0) & ~fails))
    return [_describe(found, row, bool(fails[row]), expected, obtained) for row in rows[:MAX_WORST]]


def _largest(severity: npt.NDArray[np.float64], pool: npt.NDArray[np.intp]) -> list[int]:
    """The rows of `pool` with the largest severity, the first of equals."""
    values = severity[pool]
    if len(pool) > MAX_WORST:
        least = -np.partition(-values, MAX_WORST - 1)[MAX_WORST - 1]
        pool = np.concatenate([pool[values > least], pool[values == least][:MAX_WORST]])
    return pool[np.lexsort((pool, -severity[pool]))][:MAX_WORST].tolist()


def _describe(found: list[Difference], row: int, fails: bool, expected: Side, obtained: Side) -> WorstRow:
    spans: list[tuple[Difference, int, int]] = []
    for part in found:
        begin, end = np.searchsorted(part.rows, [row, row + 1]).tolist()
        if end > begin:
            spans.append((part, begin, end))
    part, start, stop = max(spans, key=lambda span: float(span[0].severity[span[1] : span[2]].max()))
    index = start + int(part.severity[start:stop].argmax())
    at = int(part.positions[index])
    place = "" if part.elements is None else f"[{int(part.elements[index])}]"
    one, other = shown_value(part.expected, at), shown_value(part.obtained, at)
    return WorstRow(
        row=int(expected.rows[row]),
        obtained_row=int(obtained.rows[row]),
        where=f"{part.path}{place}",
        expected=one,
        obtained=other,
        reason=part.reason + (place_of_difference(one, other) if part.reason == "values differ" else ""),
        fails=fails,
        ulp=None if part.ulp is None else float(part.ulp[index]),
    )
