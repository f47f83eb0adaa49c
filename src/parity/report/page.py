"""The shell of an HTML report: one document that loads nothing, light or dark as the reader's system is."""

from __future__ import annotations

from html import escape

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --panel: #f5f6f8; --line: #d5d9e0; --text: #1a1d23;
  --quiet: #5a6270; --good: #146c36; --note: #8a5a00; --bad: #b3261e; --bar: #4a6fa5; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171c; --panel: #1e2229; --line: #363c47;
  --text: #e6e8ec; --quiet: #a3abb8; --good: #6fcf8e; --note: #e3b341; --bad: #ff8a80; --bar: #7ba3dd; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.35rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; } p { margin: .25rem 0; }
h1, h2, h3, p, li, dd, dt { overflow-wrap: anywhere; }
.quiet { color: var(--quiet); } .small { font-size: .875rem; }
.word { white-space: nowrap; }
.good { color: var(--good); } .note { color: var(--note); } .bad { color: var(--bad); }
.verdict { border: 1px solid var(--line); border-left: .4rem solid currentColor; border-radius: .4rem;
  padding: .75rem 1rem; margin: 1rem 0; background: var(--panel); }
.verdict strong { font-size: 1.25rem; } .verdict p, .verdict li { color: var(--text); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .75rem .35rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; font-size: .875rem; color: var(--quiet); } td.number, th.number { text-align: right; }
td.path, td.free { overflow-wrap: anywhere; min-width: 8rem; }
details { margin: .5rem 0; } summary { cursor: pointer; }
.panel { border: 1px solid var(--line); border-radius: .4rem; padding: .25rem 1rem 1rem; margin: 1rem 0; }
.row { border-top: 1px solid var(--line); padding: .5rem 0; } .row h3 { margin-top: 0; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: .25rem 1rem; }
.sides > div { min-width: 0; }
code { font: .875rem/1.4 ui-monospace, SFMono-Regular, Menlo, monospace; overflow-wrap: anywhere;
  white-space: pre-wrap; }
dl { display: grid; grid-template-columns: minmax(5rem, max-content) 1fr; gap: 0 1rem; margin: .25rem 0; }
dl > * { min-width: 0; } dt { color: var(--quiet); font-size: .875rem; max-width: 40vw; } dd { margin: 0; }
ul { margin: .25rem 0; padding-left: 1.25rem; }
svg { display: block; width: 100%; max-width: 34rem; height: auto; }
svg text { font-size: 13px; fill: var(--quiet); } svg .bar { fill: var(--bar); }
svg .limit { stroke: var(--bad); stroke-dasharray: 4 3; } svg .axis { stroke: var(--line); }
"""


def document(title: str, body: str) -> str:
    """A whole HTML document around `body`, which is markup."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )
