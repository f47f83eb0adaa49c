"""What differs, as HTML: a column's figures and plots, values side by side, images, a counterexample."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from parity.compare import ColumnComparison, Comparison, Spread, WorstRow
from parity.errors import counted
from parity.report import charts
from parity.report.imagery import Pictured, pictured_inputs
from parity.report.markup import folded, pairs, shown, sides, table, text, verdict
from parity.report.pictures import Picture
from parity.report.samples import Change, Samples
from parity.report.words import differ, number, percent, remarks, ulps, worst_of_column

if TYPE_CHECKING:
    from parity.laws import Counterexample

MAX_FIELDS = 12
"""Fields of a row that are shown unfolded."""
MAX_FOLDED = 60
MAX_COLUMNS = 200
MAX_ROWS = 12
OPENED_ROWS = 3
"""Rows side by side that are shown unfolded."""


def findings(comparison: Comparison) -> str:
    """Differences of structure, and notes."""
    lines = (
        f'<li class="{"bad" if finding.fails else "quiet"}">{"" if finding.fails else "note: "}'
        f"{text(finding.message)}</li>"
        for finding in comparison.findings
    )
    told = "".join(lines)
    return f'<ul class="plain">{told}</ul>' if told else ""


def columns(found: Iterable[ColumnComparison]) -> str:
    """A table of columns: rule, verdict, shares, largest distance."""
    rows = [
        [
            f'<b class="name">{text(column.name)}</b>',
            verdict(column.verdict),
            percent(column.identical, column.rows),
            percent(column.within, column.rows),
            worst_of_column(column),
            f'<span class="wrap">{text(str(column.rule))}</span>',
            f'<span class="quiet">{text("; ".join(remarks(column)))}</span>',
        ]
        for column in itertools.islice(found, MAX_COLUMNS)
    ]
    return table(["column", "verdict", "#identical", "#within", "#worst", "rule", ""], rows)


def failing(found: ColumnComparison) -> str:
    """How many rows of a column are beyond its rule, in words."""
    rows = counted(found.rows, "row")
    if not found.comparable:
        return f"values of {rows} cannot be compared"
    if not found.failing:
        return "its type differs"
    if found.rule.kind == "exact":
        return differ(found.failing, found.rows, "row")
    return f"{found.failing} of {rows} {'is' if found.failing == 1 else 'are'} beyond {text(str(found.rule))}"


def column(
    found: ColumnComparison, kept: Samples | None, drawn: str, pictures: dict[int, list[Pictured]]
) -> str:
    """A divergent column: its figures, its plots, and the rows that differ most with both values.

    Args:
        found: the column.
        kept: values of the comparison, for the most frequent changes.
        drawn: its plots.
        pictures: images by row; those of the rows that are shown are taken out of it.
    """
    shares = f"{percent(found.identical, found.rows)} bit-identical"
    if found.within != found.identical:
        shares += f", {percent(found.within, found.rows)} within tolerance"
    notes = "".join(f"<li>{text(remark)}</li>" for remark in remarks(found))
    changes = kept.changes.get(found.name, ()) if kept is not None else ()
    parts = [
        f'<h4 class="column">{text(found.name)} <span class="quiet small">{text(found.dtype)}</span></h4>',
        f'<p><b class="bad">{failing(found)}</b>, <span class="quiet">{shares}</span></p>',
        f'<ul class="small quiet">{notes}</ul>' if notes else "",
        drawn,
        _changes(changes),
        worst(found.worst, pictures),
        folded("Distances in figures", _spreads(found)),
    ]
    return "".join(parts)


def plots(found: ColumnComparison, kept: Samples | None) -> str:
    """The plots of a column that there are values for; empty where there are none."""
    sample = kept.column(found.name) if kept is not None else None
    drawn = charts.histogram(found)
    return drawn if sample is None else drawn + charts.scatter(sample) + charts.by_position(sample)


def chart_row(drawn: str) -> str:
    """Plots side by side, as many as the page is wide."""
    return f'<div class="charts">{drawn}</div>' if drawn else ""


def worst(rows: Sequence[WorstRow], pictures: dict[int, list[Pictured]]) -> str:
    """The rows that differ most: both values side by side, with what only one has marked, and the input."""
    listed = [_pair(row, pictures.pop(row.row, [])) for row in rows]
    first, rest = listed[:OPENED_ROWS], listed[OPENED_ROWS:]
    more = folded(counted(len(rest), "more row"), "".join(rest))
    return f"<h4>Values side by side, worst rows first</h4>{''.join(first)}{more}" if listed else ""


def pictured(items: Sequence[Pictured]) -> str:
    """Images: those of inputs in a line, two sides with the map of their difference for the others."""
    single = "".join(
        f"<figure>{_img(item.expected, f'{item.where} of row {item.row}')}"
        f"<figcaption>{text(item.where)}</figcaption></figure>"
        for item in items
        if item.obtained is None and item.expected is not None
    )
    parts = [f'<div class="pictures">{single}</div>'] if single else []
    parts += [_compared(item) for item in items if item.obtained is not None]
    return f'<div class="gallery">{"".join(parts)}</div>' if parts else ""


def counterexample(found: Counterexample, pictures: Sequence[Pictured] = ()) -> str:
    """The fewest rows that show a difference, with the two answers of the one that differs."""
    told = found.to_dict()
    rows = cast("list[Mapping[str, object]]", told["rows"])
    count = len(found.labels)
    cards = [
        _case(label, row, found, place)
        for place, (label, row) in enumerate(zip(found.labels, rows, strict=False))
    ]
    left = len(cards) - MAX_ROWS
    kept = cards[:MAX_ROWS]
    if found.row >= MAX_ROWS:
        kept[-1] = cards[found.row]
    more = f'<p class="small quiet">and {counted(left, "more row")}</p>' if left > 0 else ""
    values = side_by_side(told["expected"], told["obtained"], "one way", "the other way")
    return (
        f"<h4>Smallest counterexample: {counted(count, 'row')}, asked {text(found.how)}</h4>"
        f'<div class="pair"><div class="head"><b>{text(found.column)}</b>'
        f"<span>of {text(found.labels[found.row])}</span></div>{values}{pictured(pictures)}</div>"
        f'<div class="rows">{"".join(kept)}</div>{more}{_before(told.get("before"))}'
    )


def _before(rows: object) -> str:
    """The rows that were asked before, in a batch of their own."""
    if not rows:
        return ""
    found = cast("list[Mapping[str, object]]", rows)
    cards = "".join(f'<div class="case">{fields(row)}</div>' for row in found[:MAX_ROWS])
    count = counted(len(found), "row")
    return folded(f"Asked before, in a batch of their own: {count}", f'<div class="rows">{cards}</div>')


def _case(label: str, row: Mapping[str, object], found: Counterexample, place: int) -> str:
    asked = place == found.row
    images = pictured([*pictured_inputs(found.rows, place)][:2]) if place < MAX_ROWS or asked else ""
    note = ' <span class="small bad">its answer differs</span>' if asked and len(found.labels) > 1 else ""
    return (
        f'<div class="case{" asked" if asked else ""}"><p class="label">{text(label)}{note}</p>'
        f"{images}{fields(row)}</div>"
    )


def fields(row: Mapping[str, object]) -> str:
    """A row's fields; all but the first few are folded."""
    items = list(row.items())
    first = pairs(dict(items[:MAX_FIELDS]), "fields")
    rest = items[MAX_FIELDS:MAX_FOLDED]
    told = counted(len(items) - MAX_FIELDS, "more field")
    if len(items) > MAX_FOLDED:
        told += f", the first {len(rest)} of them"
    return first + (folded(told, pairs(dict(rest), "fields")) if rest else "")


def _pair(row: WorstRow, pictures: Sequence[Pictured]) -> str:
    key = "" if row.key is None else f"<span>key {shown(row.key)}</span>"
    far = "" if row.ulp is None else f"<span>{ulps(row.ulp)} apart</span>"
    head = (
        f"<b>row {row.row}</b>{key}<code>{text(row.where)}</code>{far}"
        f'<span class="{"bad" if row.fails else "quiet"}">{text(row.reason)}</span>'
    )
    seen = {item.where for item in pictures if item.source == "input"}
    asked = "" if row.input is None else given(row.input, seen)
    return (
        f'<div class="pair"><div class="head">{head}</div>{side_by_side(row.expected, row.obtained)}'
        f"{pictured(pictures)}{asked}</div>"
    )


def side_by_side(expected: object, obtained: object, one: str = "expected", other: str = "obtained") -> str:
    """Two values with what only one of them has marked; `one` and `other` name the sides."""
    ours, theirs = sides(expected, obtained)
    return (
        f'<div class="sides"><div><span class="label">{one}</span><code>{ours}</code></div>'
        f'<div><span class="label">{other}</span><code>{theirs}</code></div></div>'
    )


def given(row: Mapping[str, object], seen: Collection[str] = ()) -> str:
    """The first fields on a line; all of them under a fold where there are more, or where one is long."""
    items = [(name, item) for name, item in row.items() if name not in seen]
    line = "".join(f"<span>{text(name)} <code>{shown(item, 48)}</code></span>" for name, item in items[:5])
    long = len(items) > 5 or any(len(repr(item)) > 48 for _, item in items)
    if not long:
        return f'<p class="input">{line}</p>' if line else ""
    return folded(line, fields(row), kind="input")


def _compared(item: Pictured) -> str:
    named = [("expected", item.expected), ("obtained", item.obtained), ("difference", item.difference)]
    figures = "".join(
        f"<figure>{_img(side, f'{word}: {item.where} of row {item.row}')}"
        f"<figcaption>{word}</figcaption></figure>"
        for word, side in named
        if side is not None
    )
    return (
        f'<div class="pictured"><p class="small"><b>{text(item.where)}</b> '
        f'<span class="quiet">{text(item.source)} of row {item.row}: {text(item.note)}</span></p>'
        f'<div class="pictures compared">{figures}</div></div>'
    )


def _img(item: Picture | None, told: str) -> str:
    if item is None:
        return ""
    size = f' width="{item.width}" height="{item.height}"' if item.width else ""
    return f'<img src="{item.uri()}" alt="{text(told)}"{size}>'


def _changes(changes: Sequence[Change]) -> str:
    if len(changes) < 2 and not (changes and changes[0].rows > 1):
        return ""
    rows = [
        [f"<code>{shown(c.expected, 80)}</code>", f"<code>{shown(c.obtained, 80)}</code>", str(c.rows)]
        for c in changes
    ]
    return f"<h4>Most frequent changes</h4>{table(['expected', 'obtained', '#rows'], rows)}"


def _spreads(found: ColumnComparison) -> str:
    if found.distances is None or not found.distances.differing:
        return ""
    far = found.distances
    spreads: list[tuple[str, Spread]] = [("ulp", far.ulp), ("absolute", far.abs), ("relative", far.rel)]
    rows = [[name, *(number(v) for v in (s.q50, s.q90, s.q99, s.largest, s.mean))] for name, s in spreads]
    needs = (
        "No ulp would pass."
        if far.needed_ulp is None
        else f"The least ulp that would pass: {far.needed_ulp}."
    )
    head = ["distance", "#50 %", "#90 %", "#99 %", "#max", "#mean"]
    return f'{table(head, rows)}<p class="small quiet">{needs}</p>'
