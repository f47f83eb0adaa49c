"""The tightest tolerance that a measured noise floor supports, column by column, with the reason for it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from parity.compare.comparison import ColumnComparison, Comparison
from parity.compare.floats import significand_bits
from parity.compare.rules import Bits, Close, Exact, Ignore, Rule
from parity.compare.tolerances import ERROR_COLUMN, Tolerances
from parity.errors import ConfigError

HEADROOM = 2.0
"""What the worst distance seen is multiplied by: the worst of all rows is worse than the worst of some."""

_STORY = 1_000
"""A worst row so many times worse than 99 % of the elements has a cause of its own."""


@dataclass(frozen=True)
class ColumnSuggestion:
    """The rule that one column's noise supports, None where what differs is no noise, and why.

    `ulp` is the worst distance seen; None for columns without floats.
    """

    column: str
    rule: Rule | None
    reason: str
    ulp: float | None = None


@dataclass(frozen=True)
class Suggestion:
    """What to declare, column by column."""

    columns: tuple[ColumnSuggestion, ...]

    def tolerances(self) -> Tolerances:
        """The suggested rules; a column without one is judged by the defaults."""
        return Tolerances({one.column: one.rule for one in self.columns if one.rule is not None})

    def to_toml(self) -> str:
        """The rules as they go into a tolerance file or handler.toml; what has no rule as comments."""
        blocks: list[str] = []
        for one in self.columns:
            if one.rule is None:
                blocks.append(f"# {one.column}: {one.reason}\n".replace("\r", " "))
                continue
            lines = [f"[tolerance.{_key(one.column)}]"]
            lines += [f"{name} = {_value(value)}" for name, value in one.rule.to_dict().items()]
            blocks.append("\n".join(lines) + "\n")
        return "\n".join(blocks)

    def to_dict(self) -> dict[str, object]:
        """The suggestion as JSON-ready data."""
        return {
            one.column: {
                "rule": None if one.rule is None else one.rule.to_dict(),
                "reason": one.reason,
                "worst_ulp": None if one.ulp is None or math.isinf(one.ulp) else one.ulp,
            }
            for one in self.columns
        }


def suggest_tolerance(noise: Comparison | Iterable[Comparison], *, headroom: float = HEADROOM) -> Suggestion:
    """The tightest rule for each column that the noise in these comparisons supports.

    Args:
        noise: comparisons of answers that should be the same, such as repeated executions, or natural batches
            of several sizes; of several the worst of each column counts.
        headroom: what the worst distance is multiplied by.

    Returns:
        For a float column that was always bit-identical `exact`; for one that differs `close` in whole ulp,
        with the figures as its reason. No rule where a value is null, NaN or missing on one side, where
        something other than a float differs, or where the distance is beyond rounding. Other columns that
        agree need no rule and are left out.

    Raises:
        ConfigError: `headroom` is below 1, or nothing was compared.
    """
    comparisons = [noise] if isinstance(noise, Comparison) else list(noise)
    if not headroom >= 1:
        raise ConfigError(f"headroom = {headroom} is below 1, which would refuse what was measured")
    if not any(comparison.rows for comparison in comparisons):
        raise ConfigError("no row was compared, so there is no noise to suggest a tolerance from")
    columns: dict[str, list[ColumnComparison]] = {}
    for comparison in comparisons:
        for column in comparison.columns:
            columns.setdefault(column.name, []).append(column)
    found = (_suggest(name, seen, headroom) for name, seen in columns.items() if name != ERROR_COLUMN)
    return Suggestion(tuple(one for one in found if one is not None))


def _suggest(name: str, seen: list[ColumnComparison], headroom: float) -> ColumnSuggestion | None:
    rule = seen[0].rule
    if isinstance(rule, Ignore):
        return ColumnSuggestion(name, rule, rule.reason)
    refusal = next((text for column in seen if (text := _no_noise(column))), "")
    if refusal:
        return ColumnSuggestion(name, None, refusal, _worst(seen))
    floats = [column.distances for column in seen if column.distances is not None]
    if not floats:
        return None
    rows = sum(column.rows for column in seen)
    elements = sum(distances.elements for distances in floats)
    if not isinstance(rule, Close | Exact | Bits):
        return ColumnSuggestion(name, rule, rule.reason or "judged by a rule of its own, which passes")
    measured = f"{elements:,} values of {rows:,} rows"
    worst = max(distances.ulp.largest for distances in floats)
    if not any(distances.differing for distances in floats):
        reason = f"{measured} were bit-identical"
        return ColumnSuggestion(name, Exact(reason=reason), reason, 0.0)
    limit = _rounding_limit(seen[0].float_dtypes)
    if worst > limit:
        reason = (
            f"the worst distance is {worst:.3g} ulp, beyond {limit:g}, where rounding ends; "
            "look for a cause, not for a tolerance"
        )
        return ColumnSuggestion(name, None, reason, worst)
    typical = max(distances.ulp.q99 for distances in floats)
    story = ""
    if typical and worst > _STORY * typical:
        story = f"; 99 % are within {typical:.3g}, so look at the worst row first"
    allowed = math.ceil(worst * headroom)
    reason = f"noise floor {worst:.3g} ulp over {measured}, times {headroom:g}{story}"
    return ColumnSuggestion(name, Close(ulp=float(allowed), reason=reason), reason, worst)


def _no_noise(column: ColumnComparison) -> str:
    """Why what differs in a column is no rounding noise; empty when it may be."""
    if not column.comparable:
        return "the types are too different to be compared"
    if column.structure_fails:
        return "the column is declared differently on the two sides"
    counts = {
        "null on one side": column.null_mismatches,
        "lists of other lengths": column.length_mismatches,
        "NaN or infinity on one side": column.non_finite_mismatches,
    }
    for what, count in counts.items():
        if count:
            return f"{count} rows with {what}, which no tolerance covers; look for a cause"
    judged = isinstance(column.rule, Close | Exact | Bits)
    exact = column.distances is None or column.distances.needed_ulp is None or not judged
    if column.failing and exact:
        return f"{column.failing} of {column.rows} rows differ in more than rounding; look for a cause"
    return ""


def _worst(seen: Iterable[ColumnComparison]) -> float | None:
    return max((column.worst_ulp for column in seen if column.worst_ulp is not None), default=None)


def _rounding_limit(dtypes: Iterable[str]) -> float:
    """The distance at which half of the significant bits are gone: no rounding noise is larger."""
    return 2.0 ** (min(map(significand_bits, dtypes)) // 2)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, cast('list[object]', value)))}]"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)


def _text(text: str) -> str:
    """A TOML string, whose escapes are JSON's."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
