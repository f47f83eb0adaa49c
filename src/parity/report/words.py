"""Words and numbers as reports show them, shared by the renderings."""

from __future__ import annotations

import json
import math

from parity.compare import ColumnComparison, Comparison
from parity.errors import counted


def number(value: float | None) -> str:
    """Three digits, as people read them: 0, 1.25, 16777216, 3.2e+09; a dash for None."""
    if value is None:
        return "-"
    if math.isinf(value) or math.isnan(value):
        return "NaN/inf" if value > 0 or math.isnan(value) else "-inf"
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:.3g}"


def differ(part: int, whole: int, one: str, many: str = "") -> str:
    """How many of all differ, with the verb that suits them: "1 of 64 rows differs"."""
    return f"{part:,} of {counted(whole, one, many)} {'differs' if part == 1 else 'differ'}"


def ulps(value: float | None) -> str:
    """A distance in ulp, with its thousands set apart; a dash for None."""
    if value is None or not math.isfinite(value):
        return "-" if value is None else "NaN/inf"
    return f"{value:,.0f} ulp" if 1e4 <= value < 1e12 else f"{number(value)} ulp"


def percent(part: int, whole: int) -> str:
    """A share that says 100 % only when it is all, and 0 % only when it is none."""
    if whole == 0:
        return "-"
    share = 100 * part / whole
    if part != whole and share > 99.9:
        return ">99.9 %"
    if part and share < 0.1:
        return "<0.1 %"
    return f"{share:.0f} %" if share in (0, 100) else f"{share:.1f} %"


def worst(comparison: Comparison) -> str:
    """The largest distance over all columns, in ulp; how many rows differ where no column holds floats."""
    if not any(column.failing and column.distances is None for column in comparison.columns):
        return "-" if comparison.worst_ulp is None else f"{number(comparison.worst_ulp)} ulp"
    return counted(len(comparison.failing_rows), "row differs", "rows differ")


def worst_of_column(column: ColumnComparison) -> str:
    """The column's largest distance in ulp, or a dash."""
    return "-" if column.worst_ulp is None else f"{number(column.worst_ulp)} ulp"


def value(item: object, limit: int = 60) -> str:
    """A value on one line: text in quotes with control characters escaped, null as null, NaN as NaN."""
    text = json.dumps(item, ensure_ascii=False, default=repr)
    text = clean(text)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def clean(text: str) -> str:
    """The text without characters that would move a cursor, hide or reorder text."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def remarks(column: ColumnComparison) -> list[str]:
    """What a passing verdict must not hide: budgets used, ties, negative zeros, NaN payloads, nulls."""
    counts = (
        (column.null_mismatches, "row", " with null on one side"),
        (column.length_mismatches, "row", " with lists of other lengths"),
        (column.non_finite_mismatches, "row", " with NaN or infinity on one side"),
        (column.negative_zeros, "value", " with -0.0 against 0.0"),
        (column.nan_payloads, "NaN", " of another payload"),
        (column.ties, "near tie", ""),
    )
    found = [f"{counted(count, noun)}{which}" for count, noun, which in counts if count]
    if column.allowed and column.failing:
        found.append(
            f"{counted(column.failing, 'failing row')} of {column.allowed} allowed: {column.rule.reason}"
        )
    if not column.comparable:
        found.append("values not comparable")
    if column.rule.kind == "ignore":
        found.append(str(column.rule))
    return found
