"""HTML for notebooks: tables and paragraphs out of plain text, all escaped, at home on light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

# Colours come from the page: borders and shades are half transparent, so that any theme shows through.
_STYLE = """<style>
.parity{font-size:13px;line-height:1.45;color:inherit;overflow-x:auto}
.parity table{font-size:inherit;border-collapse:collapse;margin:.3em 0 .9em;color:inherit;
background:transparent}
.parity caption{caption-side:top;text-align:left;font-weight:600;color:inherit;padding:.2em 0;
white-space:nowrap}
.parity th,.parity td{border:1px solid rgba(127,127,127,.4);padding:.15em .6em;text-align:left;
vertical-align:top;color:inherit;background:transparent}
.parity thead th{background:rgba(127,127,127,.15)}
.parity td{font-family:ui-monospace,Menlo,monospace;
white-space:pre-wrap;overflow-wrap:break-word;max-width:40em}
.parity p{margin:.3em 0}
.parity .lead{font-size:15px;font-weight:600}
.parity .bad{color:#d9534f}
</style>"""


def page(parts: Iterable[str]) -> str:
    """Parts made by the functions below as one output cell."""
    return f'{_STYLE}<div class="parity">{"".join(parts)}</div>'


def paragraph(text: str, style: str = "") -> str:
    """A paragraph; `style` is "", "lead" or "bad"."""
    return f'<p class="{escape(style)}">{escape(text)}</p>' if style else f"<p>{escape(text)}</p>"


def table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, bad: Iterable[int] = ()
) -> str:
    """A table of texts; the rows whose positions are in `bad` stand out. Empty when there is no row."""
    marked = set(bad)
    body: list[str] = []
    for position, row in enumerate(rows):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        body.append(f'<tr class="bad">{cells}</tr>' if position in marked else f"<tr>{cells}</tr>")
    if not body:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table>"
    )
