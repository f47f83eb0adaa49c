"""Text and values as HTML, escaped where they enter the markup; and the marks that verdicts wear."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Literal

from parity.report.words import clean, value

MAX_TEXT = 1500
"""Characters of a name, message or sentence that are shown."""

MAX_CODE = 20_000

Tone = Literal["good", "note", "bad", "calm"]

_TONES: Mapping[str, Tone] = {
    "identical": "good",
    "within": "good",
    "agrees": "good",
    "holds": "good",
    "noise": "good",
    "nothing": "note",
    "nothing compared": "note",
    "refused": "note",
    "unknown": "calm",
    "skipped": "calm",
    "ignored": "calm",
}

_SIGNS: Mapping[str, str] = {
    "good": "M3 8.4l3.4 3.4L13 4.8",
    "near": "M2.5 6.3q2.8-2.6 5.5-.6t5.5-.6M2.5 11.1q2.8-2.6 5.5-.6t5.5-.6",
    "bad": "M4 4l8 8M12 4l-8 8",
    "note": "M8 3v6.2M8 12.3v.4",
    "calm": "M4 8h8",
    "crash": "M9 1.8L3.8 9H8l-1 5.2L12.2 7H8z",
    "stop": "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 1 0 0-11M4.2 4.2l7.6 7.6",
}

_OWN_SIGNS = {
    "within": "near",
    "noise": "near",
    "crashed": "crash",
    "runner crashed": "crash",
    "unable": "crash",
    "law unable": "crash",
    "law without rows": "note",
    "refused": "stop",
}


def signs() -> str:
    """The drawings of all marks, once for a page."""
    drawn = (
        f'<symbol id="mark-{name}" viewBox="0 0 16 16"><path d="{path}"/></symbol>'
        for name, path in _SIGNS.items()
    )
    return f'<svg class="signs" aria-hidden="true">{"".join(drawn)}</svg>'


def tone(word: str) -> Tone:
    """Whether a verdict is good news, worth a note, bad, or of no matter."""
    return _TONES.get(word, "bad")


def mark(word: str) -> str:
    """The sign of a verdict, which tells it without colour."""
    name = _OWN_SIGNS.get(word, tone(word))
    return f'<svg class="mark" aria-hidden="true"><use href="#mark-{name}"/></svg>'


def text(item: str, limit: int = MAX_TEXT) -> str:
    """Text as markup: escaped, cut, and with nothing in it that reorders or hides the text around it."""
    return escape(clean(item if len(item) <= limit else f"{item[: limit - 1]}…"))


def shown(item: object, limit: int = 400) -> str:
    """A value as markup, on one line, cut at `limit` characters."""
    return text(value(item, limit))


def verdict(word: str) -> str:
    """A verdict's mark and word."""
    return f'<span class="word {tone(word)}">{mark(word)}{text(word)}</span>'


def hero(
    word: str, subject: str, sentence: str, lead: str, figures: Mapping[str, str], following: str = ""
) -> str:
    """The head of a page: the verdict in large type, what it is about, and the figures that matter.

    Args:
        word: the verdict, for its mark and colour.
        subject: what was looked at, as markup.
        sentence: the verdict in a sentence.
        lead: what was found, as markup.
        figures: names and short values; those without a value are left out.
        following: what to do next and other lists under their `<h2>`, as markup.
    """
    told = "".join(
        f"<div><dt>{text(name)}</dt><dd>{text(item)}</dd></div>" for name, item in figures.items() if item
    )
    return (
        f'<header class="hero {tone(word)}"><p class="subject">{subject}</p>'
        f'<h1><span class="seal">{mark(word)}</span><span>{text(sentence)}</span></h1>'
        f'<p class="lead">{lead}</p><dl class="figures">{told}</dl>'
        f"{f'<div class=next>{following}</div>' if following else ''}</header>"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table of cells that are markup already, in a frame that scrolls by itself; empty without rows.

    A head that begins with "#" stands over numbers, which are set to the right.
    """
    right = [title.startswith("#") for title in head]
    body = "".join(
        "<tr>" + "".join(f"{_cell(place, right)}{cell}</td>" for place, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    if not body:
        return ""
    told = [title.lstrip("#") for title in head if title.strip("#")]
    titles = "".join(
        f'<th scope="col"{" class=number" if right[place] else ""}>{text(title.lstrip("#"))}</th>'
        for place, title in enumerate(head)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(", ".join(told))}">'
        f'<table class="{kind}"><thead><tr>{titles}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def pairs(values: Mapping[str, object], kind: str = "") -> str:
    """Names with their values."""
    lines = (f"<dt>{text(name)}</dt><dd><code>{shown(item)}</code></dd>" for name, item in values.items())
    return f'<dl class="{kind}">{"".join(lines)}</dl>'


def sides(expected: object, obtained: object) -> tuple[str, str]:
    """Two values as markup, with what only one of them has marked: a common start and end are left plain."""
    one, other = value(expected, 400), value(obtained, 400)
    if one == other:
        return escape(one), escape(other)
    shortest = min(len(one), len(other))
    start = next((place for place in range(shortest) if one[place] != other[place]), shortest)
    rest = shortest - start
    end = next((place for place in range(rest) if one[-1 - place] != other[-1 - place]), rest)
    return _marked(one, start, end), _marked(other, start, end)


def folded(summary: str, body: str, *, opened: bool = False, kind: str = "") -> str:
    """Markup under a line that opens and closes it; both are markup. Empty without a body."""
    if not body:
        return ""
    return (
        f'<details class="{kind}"{" open" if opened else ""}><summary>{summary}</summary>'
        f'<div class="inside">{body}</div></details>'
    )


def snippet(code: str, name: str) -> str:
    """Code with a button that copies it; what is too long to read is told."""
    if len(code) > MAX_CODE:
        return f'<p class="quiet">{text(name)}: {len(code)} characters, see the JSON report</p>'
    lines = "\n".join(escape(clean(line)) for line in code.rstrip("\n").split("\n"))
    return (
        f'<div class="snippet"><div class="bar"><span>{text(name)}</span>'
        '<button type="button" class="copy">Copy</button></div>'
        f'<pre tabindex="0"><code>{lines}</code></pre></div>'
    )


def _marked(item: str, start: int, end: int) -> str:
    stop = len(item) - end
    middle = escape(item[start:stop])
    return f"{escape(item[:start])}{f'<mark>{middle}</mark>' if middle else ''}{escape(item[stop:])}"


def _cell(place: int, right: Sequence[bool]) -> str:
    return '<td class="number">' if place < len(right) and right[place] else "<td>"
