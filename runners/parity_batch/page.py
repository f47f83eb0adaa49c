"""A job's summary as one page that loads nothing: no script, no font, no image from elsewhere."""

from __future__ import annotations

from html import escape

from parity.errors import counted
from parity_batch.progress import duration, size
from parity_batch.summary import Summary

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --bar: #3b7dd8; --bad: #c0392b; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin-bottom: .2rem; } h2 { font-size: 1.05rem; margin-top: 1.8rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .25rem .6rem .25rem 0; }
tr { border-bottom: 1px solid var(--line); } td.n { text-align: right; font-variant-numeric: tabular-nums; }
.bar { background: var(--bar); height: .7rem; min-width: 1px; } .bad { color: var(--bad); }
td.wide { width: 50%; }
"""


def page(summary: Summary) -> str:
    """The page, in HTML."""
    facts = [
        ("rows", f"{summary.rows:,}"),
        ("failed rows", f"{summary.failed_rows:,}"),
        ("files", f"{summary.files:,}"),
        ("parts", f"{summary.parts:,}, {summary.resumed_parts:,} of them from an earlier run"),
        ("rows of this run", f"{summary.scored_rows:,}"),
        ("rows/s", f"{summary.rows_per_s:,.0f}"),
        ("rows in a micro-batch", f"{summary.batch_rows:,}"),
        ("time", duration(summary.seconds)),
        ("peak memory", size(summary.peak_rss_bytes)),
        ("engine", summary.engine),
        ("output", summary.output),
    ]
    sections = [_section("What was done", "".join(_row(name, value) for name, value in facts))]
    steps = summary.shares
    if steps:
        rows = "".join(
            f'<tr><th>{escape(step)}</th><td class="n">{summary.step_seconds[step]:,.2f} s</td>'
            f'<td class="n">{share:.0%}</td><td class="wide">'
            f'<div class="bar" style="width:{share:.1%}"></div></td></tr>'
            for step, share in steps.items()
        )
        sections.append(_section("Time of the workers, by step", rows, summary.bottleneck))
    if summary.sizing is not None:
        timings = summary.sizing.timings
        rows = "".join(_row(f"{item.rows:,}", f"{item.rows_per_s:,.0f} rows/s") for item in timings)
        said = f"{summary.sizing.rows:,} rows: {summary.sizing.reason}"
        sections.append(_section("Micro-batches that were tried", rows, said))
    if summary.row_errors:
        rows = "".join(_row(kind, f"{count:,}") for kind, count in summary.row_errors.items())
        where = f"Each failed row, with its reason and its inputs: {summary.output}/_errors"
        sections.append(_section("Failed rows, by kind", rows, where))
    if summary.skipped_files:
        rows = "".join(_row(name, problem) for name, problem in summary.skipped_files.items())
        sections.append(_section("Files that were left out", rows))
    if summary.notes:
        sections.append(_section("Notes", "".join(_row("", note) for note in summary.notes)))
    found = {"row": (summary.failed_rows, "failed"), "file": (len(summary.skipped_files), "left out")}
    verdict = "".join(
        f' <span class="bad">{counted(count, noun)} {what}</span>'
        for noun, (count, what) in found.items()
        if count
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(summary.handler)}: batch job</title><style>{_STYLE}</style></head><body>"
        f"<h1>{summary.rows:,} rows scored by {escape(summary.handler)}</h1>{verdict}"
        f"{''.join(sections)}</body></html>\n"
    )


def _section(title: str, rows: str, said: str = "") -> str:
    return f"<h2>{escape(title)}</h2>{f'<p>{escape(said)}</p>' if said else ''}<table>{rows}</table>"


def _row(name: str, value: str) -> str:
    return f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
