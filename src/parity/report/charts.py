"""Plots of differences as inline SVG: sizes, expected against obtained, by position, by batch size.

Colours come from the page's style sheet, by class; what a colour tells, a shape tells too. Every plot has a
title and a description for readers who do not see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from parity.compare import Close, ColumnComparison
from parity.errors import counted
from parity.report.axes import Axis, Doubles, axis
from parity.report.markup import text
from parity.report.samples import BucketShare, ColumnSample
from parity.report.words import differ, number

WIDTH, HEIGHT = 360, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, WIDTH - 16, 14, HEIGHT - 38

MAX_POINTS = 600
MAX_BARS = 10
MAX_LABEL = 12
MIN_PAIRS = 5
"""Different points that make a scatter plot; fewer are better told by a table."""

_Mask = npt.NDArray[np.bool_]


def histogram(column: ColumnComparison) -> str:
    """Elements by distance in powers of two of an ulp, the allowed distance dashed; empty without floats."""
    if column.distances is None or not column.distances.histogram:
        return ""
    counts = dict(column.distances.histogram)
    allowed = column.rule.ulp if isinstance(column.rule, Close) else 0.0
    first, last = min(counts), max(counts) + 1
    if allowed:
        edge = math.log2(allowed)
        first, last = min(first, math.floor(edge)), max(last, math.ceil(edge) + 1)
    across = Axis(first, last, _LEFT, _RIGHT)
    up = Axis(0, max(counts.values()), _BOTTOM, _TOP + 8)
    parts = [*_left_axis(up, whole=True), _base()]
    for power, count in sorted(counts.items()):
        left, right = across.pixel(power), across.pixel(power + 1)
        top = min(up.pixel(count), _BOTTOM - 2)
        kind = "outside" if not allowed or power >= math.log2(allowed) else "within"
        told = f"{counted(count, 'element')} from {_ulp(power)} to {_ulp(power + 1)} ulp"
        parts.append(_bar(kind, left + 1, top, max(right - left - 2, 1), told))
    every = max(1, math.ceil((last - first + 1) / 7))
    parts += [_below(across.pixel(power), _ulp(power)) for power in range(first, last + 1, every)]
    if allowed:
        at = across.pixel(math.log2(allowed))
        parts.append(f'<line class="limit" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP - 6}" y2="{_BOTTOM}"/>')
        anchor, shift = ("end", -5) if at > (_LEFT + _RIGHT) / 2 else ("start", 5)
        parts.append(_label(at + shift, _TOP + 2, f"{number(allowed)} ulp allowed", anchor))
    parts.append(_across_title("distance in ulp"))
    told = differ(column.distances.differing, column.distances.elements, "element")
    return _figure("histogram", "How far apart", told, parts)


def scatter(sample: ColumnSample) -> str:
    """Expected against obtained, a point a row; on the dotted line they are equal. Empty for few values."""
    drawn = np.isfinite(sample.expected) & np.isfinite(sample.obtained)
    places = _chosen(sample, drawn)
    pairs = zip(sample.expected[places].tolist(), sample.obtained[places].tolist(), strict=True)
    if len(set(pairs)) < MIN_PAIRS:
        return ""
    ours, theirs = sample.expected[places], sample.obtained[places]
    both = np.concatenate([ours, theirs])
    across, up = axis(both, _LEFT, _RIGHT), axis(both, _BOTTOM, _TOP)
    parts = [
        *_left_axis(up),
        _base(),
        *(_below(across.pixel(at), word) for at, word in across.ticks()),
        f'<line class="equal" x1="{_LEFT}" y1="{_BOTTOM}" x2="{_RIGHT}" y2="{_TOP}"/>',
        *_points(across.at(ours), up.at(theirs), sample, places),
        _across_title("expected"),
        _up_title("obtained"),
    ]
    return _figure("scatter", "Expected against obtained", _told(sample, places, drawn), parts)


def by_position(sample: ColumnSample) -> str:
    """The distance of each row by its position; rows without difference lie on the base line."""
    errors = sample.errors
    drawn = np.isfinite(errors)
    places = _chosen(sample, drawn)
    if not len(places) or not errors[places].any():
        return ""
    shown = errors[places]
    up = axis(shown[shown > 0], _BOTTOM - 12, _TOP, log=None)
    if not up.log:
        up = Axis(0.0, up.high, _BOTTOM, _TOP)
    across = Axis(0, max(1, sample.of_rows - 1), _LEFT + 4, _RIGHT - 4)
    heights = np.full(len(shown), float(_BOTTOM))
    heights[shown > 0] = up.at(shown[shown > 0])
    parts = [
        *_left_axis(up),
        _base(),
        *(_below(across.pixel(at), word) for at, word in across.ticks()),
        *_points(across.at(sample.rows[places].astype(np.float64)), heights, sample, places),
        _across_title("row"),
        _up_title("|expected - obtained|"),
    ]
    return _figure("position", "Difference by position", _told(sample, places, drawn), parts)


def by_bucket(shares: Sequence[BucketShare]) -> str:
    """The share of rows that differ by the batch size that inference saw; empty unless there are several."""
    kept = sorted(sorted(shares, key=lambda share: -share.rows)[:MAX_BARS], key=lambda share: share.size)
    bars = [Bar(str(s.size), f"batches of {s.size}", s.rows, s.differing, s.outside) for s in kept]
    left_out = f", {len(shares) - len(kept)} rarer sizes left out" if len(shares) > len(kept) else ""
    return shares_of_rows("buckets", "By batch size", "rows that inference saw at once", bars, left_out)


@dataclass(frozen=True)
class Bar:
    """Some rows, how many of them have other bits, and how many are beyond tolerance; `label` is short."""

    label: str
    name: str
    rows: int
    differing: int
    outside: int


def shares_of_rows(kind: str, title: str, across: str, bars: Sequence[Bar], more: str = "") -> str:
    """The shares of rows that differ, a bar for each part of them; empty unless there are several parts."""
    if len(bars) < 2:
        return ""
    labels = [bar.label if len(bar.label) <= MAX_LABEL else f"{bar.label[: MAX_LABEL - 1]}…" for bar in bars]
    up = Axis(0, 100, _BOTTOM, _TOP + 8)
    step = (_RIGHT - _LEFT) / len(bars)
    width = min(step * 0.7, 46)
    every = math.ceil(len(bars) / max(1, int((_RIGHT - _LEFT) / (7 * max(map(len, labels)) + 8))))
    parts = [*_left_axis(up, " %"), _base()]
    for place, bar in enumerate(bars):
        middle = _LEFT + step * (place + 0.5)
        told = (
            f"{bar.name}: {bar.outside} of {counted(bar.rows, 'row')} beyond tolerance, "
            f"{bar.differing} with other bits"
        )
        for shade, count in (("within", bar.differing), ("outside", bar.outside)):
            top = up.pixel(100 * count / max(1, bar.rows))
            parts.append(_bar(shade, middle - width / 2, top, width, told))
        if len(bars) <= 6:
            most = up.pixel(100 * max(bar.differing, bar.outside) / max(1, bar.rows))
            parts.append(_label(middle, most - 4, f"{bar.outside}/{bar.rows}", "middle"))
        if place % every == 0:
            parts.append(_below(middle, labels[place]))
    parts.append(_across_title(across))
    told = f"rows beyond tolerance (solid) and with other bits (pale), in percent{more}"
    return _figure(kind, title, told, parts)


def _chosen(sample: ColumnSample, drawn: _Mask) -> npt.NDArray[np.int64]:
    """At most `MAX_POINTS` places of the sample: those beyond tolerance first, the others for the rest."""
    bad = np.flatnonzero(drawn & sample.outside)
    good = np.flatnonzero(drawn & ~sample.outside)
    bad = _spread(bad, MAX_POINTS - min(len(good), MAX_POINTS // 4))
    return np.concatenate([_spread(good, MAX_POINTS - len(bad)), bad])


def _spread(places: npt.NDArray[np.intp], most: int) -> npt.NDArray[np.int64]:
    if len(places) > most:
        places = places[np.linspace(0, len(places) - 1, most).round().astype(np.intp)]
    return places.astype(np.int64)


def _told(sample: ColumnSample, places: npt.NDArray[np.int64], drawn: _Mask) -> str:
    outside = int(np.count_nonzero(sample.outside[places]))
    told = f"{len(places)} of {counted(sample.of_rows, 'row')}, {outside} of them beyond tolerance (crosses)"
    lost = len(drawn) - int(np.count_nonzero(drawn))
    return f"{told}; {lost} with null, NaN or infinity are not drawn" if lost else told


def _points(
    across: Doubles, up: Doubles, sample: ColumnSample, places: npt.NDArray[np.int64]
) -> Iterator[str]:
    errors = sample.errors[places]
    rows = zip(across.tolist(), up.tolist(), sample.outside[places].tolist(), errors.tolist(), strict=True)
    for x, y, outside, error in rows:
        if outside:
            yield f'<path class="point outside" d="M{x - 3:.1f} {y - 3:.1f}l6 6m0-6l-6 6"/>'
        else:
            kind = "within" if error else "same"
            yield f'<circle class="point {kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>'


def _bar(kind: str, left: float, top: float, width: float, told: str) -> str:
    size = f'x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{max(_BOTTOM - top, 0):.1f}"'
    return f'<rect class="bar {kind}" {size}><title>{text(told)}</title></rect>'


def _left_axis(up: Axis, unit: str = "", *, whole: bool = False) -> Iterator[str]:
    """Grid lines with their values; `whole` leaves out those that are no whole number."""
    for value, word in up.ticks():
        if whole and value != round(value):
            continue
        y = up.pixel(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _label(_LEFT - 5, y + 4, (f"{value:.0f}" if whole else word) + unit, "end")


def _base() -> str:
    return f'<line class="axis" x1="{_LEFT}" x2="{_RIGHT}" y1="{_BOTTOM}" y2="{_BOTTOM}"/>'


def _below(x: float, word: str) -> str:
    return _label(x, _BOTTOM + 15, word, "middle")


def _label(x: float, y: float, word: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(word)}</text>'


def _across_title(word: str) -> str:
    return f'<text class="title" x="{_RIGHT}" y="{HEIGHT - 5}" text-anchor="end">{text(word)}</text>'


def _up_title(word: str) -> str:
    return f'<text class="title" x="{_LEFT + 4}" y="{_TOP - 3}">{text(word)}</text>'


def _figure(kind: str, title: str, told: str, parts: Sequence[str]) -> str:
    return (
        f'<figure class="chart {kind}"><figcaption><strong>{title}</strong><span>{text(told)}</span>'
        f'</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{title}</title>'
        f"<desc>{text(told)}</desc>{''.join(parts)}</svg></figure>"
    )


def _ulp(power: int) -> str:
    if 0 <= power <= 13:
        return str(1 << power)
    return f"1/{1 << -power}" if -6 <= power < 0 else f"2^{power}"
