"""The shell of an HTML report: one document that loads nothing, light or dark as the reader likes.

Its content security policy allows the style sheet and the script that are in it, by digest, and pictures that
are in it; nothing else runs, and nothing is fetched, whatever the names and values of a report are.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Sequence
from html import escape
from importlib import resources

from parity.report.markup import signs, text

MAX_BYTES = 2_600_000
"""The size up to which a report's parts are put in whole."""


class Room:
    """Bytes left for a page's parts; a part that does not fit is put in shorter, or left out and told."""

    def __init__(self, size_bytes: int = MAX_BYTES) -> None:
        self._left = size_bytes

    def take(self, *versions: str) -> str:
        """The first of the versions that fits, the longest first; the last one in any case."""
        for version in versions[:-1]:
            size = len(version.encode())
            if size <= self._left:
                self._left -= size
                return version
        self._left -= len(versions[-1].encode())
        return versions[-1]


def document(title: str, body: str, links: Sequence[tuple[str, str]] = ()) -> str:
    """A whole HTML document around `body`, which is markup; `links` are ids of its parts and their names."""
    style, script = _resource("report.css"), _resource("report.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    contents = "".join(f'<a href="#{escape(place)}">{text(name)}</a>' for place, name in links)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{signs()}\n"
        f'<div class="top"><nav aria-label="Parts of this report">{contents}</nav>'
        '<button type="button" id="fold">Open all</button>'
        '<button type="button" id="theme">Dark</button></div>\n'
        f'<main>\n{body}\n</main>\n<p id="told" class="unseen" role="status"></p>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


@functools.cache
def _resource(name: str) -> str:
    return resources.files("parity.report").joinpath(name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    """The digest that a content security policy names an inline style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")
