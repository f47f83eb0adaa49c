"""A histogram of error sizes as inline SVG."""

from __future__ import annotations

import math

from parity.compare import Close, ColumnComparison
from parity.report.words import number

WIDTH, HEIGHT, BASE, TOP = 440, 170, 130, 22


def histogram(column: ColumnComparison) -> str:
    """Elements by distance in powers of two of an ulp, the allowed distance dashed; empty without floats."""
    if column.distances is None or not column.distances.histogram:
        return ""
    counts = dict(column.distances.histogram)
    allowed = column.rule.ulp if isinstance(column.rule, Close) else 0.0
    first, last = min(counts), max(counts)
    if allowed:
        edge = math.log2(allowed)
        first, last = min(first, math.floor(edge)), max(last, math.ceil(edge))
    step = WIDTH / (last - first + 1)
    tallest = max(counts.values())
    parts: list[str] = []
    for power in range(first, last + 1):
        left, count = (power - first) * step, counts.get(power, 0)
        if count:
            height = max(2.0, (BASE - TOP) * count / tallest)
            parts.append(
                f'<rect class="bar" x="{left + 1:.1f}" y="{BASE - height:.1f}" '
                f'width="{max(step - 2, 1):.1f}" height="{height:.1f}">'
                f"<title>{count} elements from {_ulp(power)} ulp</title></rect>"
            )
        if (power - first) % max(1, math.ceil((last - first + 1) / 7)) == 0:
            parts.append(f'<text x="{left:.1f}" y="{BASE + 15}">{_ulp(power)}</text>')
    parts.append(f'<line class="axis" x1="0" x2="{WIDTH}" y1="{BASE}" y2="{BASE}"/>')
    if allowed:
        at = (math.log2(allowed) - first) * step
        anchor = "end" if at > WIDTH / 2 else "start"
        parts.append(f'<line class="limit" x1="{at:.1f}" x2="{at:.1f}" y1="4" y2="{BASE}"/>')
        text = at - 5 if anchor == "end" else at + 5
        parts.append(
            f'<text x="{text:.1f}" y="12" text-anchor="{anchor}">{number(allowed)} ulp allowed</text>'
        )
    told = f"{column.distances.differing} of {column.distances.elements} elements differ, by distance in ulp"
    parts.append(f'<text x="0" y="{HEIGHT - 6}">{told}</text>')
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{told}">{"".join(parts)}</svg>'


def _ulp(power: int) -> str:
    return str(1 << power) if 0 <= power <= 13 else f"2^{power}"
