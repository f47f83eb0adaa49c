from __future__ import annotations

import html.parser

from parity_notebook import markup

HOSTILE = "<script>alert(1)</script>&\"'"


class Reader(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def test_hostile_text_stays_text_everywhere() -> None:
    table = markup.table(HOSTILE, [HOSTILE], [[HOSTILE]], bad=[0])
    page = read(markup.page([markup.paragraph(HOSTILE), markup.paragraph(HOSTILE, "bad"), table]))
    assert "script" not in page.seen
    assert page.text.count(HOSTILE) == 5


def test_no_rows_make_no_table() -> None:
    assert markup.table("empty", ["a"], []) == ""


def test_only_the_bad_rows_stand_out() -> None:
    assert markup.table("t", ["a"], [["1"], ["2"]], bad=[1]).count('<tr class="bad">') == 1


def test_no_colour_is_set_that_a_dark_page_would_swallow() -> None:
    page = markup.page([])
    assert "background:transparent" in page
    assert "color:inherit" in page
    assert "#fff" not in page
    assert "black" not in page
