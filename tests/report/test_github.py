"""What GitHub Actions gets: annotations that say what they should, and a summary that stays itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parity.report import CheckReport
from parity.report.github import (
    MAX_ANNOTATIONS,
    MAX_BYTES,
    command,
    commands,
    handler_file,
    summary,
    write_summary,
)

from .reports import agreeing, diagnosed, differing, divergent, entry, hostile, law, report, same

COMMAND = re.compile(r"::error (?:file=[^:,\n]*,)?title=[^:,\n]*::[^\n\r]*")


@pytest.mark.parametrize("found", [differing(), diagnosed(), hostile(), report()])
def test_every_annotation_is_one_command_on_one_line(found: CheckReport):
    lines = commands(found)
    assert lines
    for line in lines:
        assert COMMAND.fullmatch(line)


def test_what_a_command_is_made_of_is_escaped():
    assert (
        command("error", "50 % a:b,c\nnext\r", file="a,b:c.py", title="100 %\n::error::x", other="")
        == "::error file=a%2Cb%3Ac.py,title=100 %25%0A%3A%3Aerror%3A%3Ax::50 %25 a:b,c%0Anext\\u000d"
    )
    assert command("notice", "hello") == "::notice::hello"


def test_agreement_says_nothing():
    assert commands(agreeing()) == []


def test_annotations_name_law_case_cause_and_crash():
    lines = "\n".join(commands(differing()))
    assert "title=law neighbours broken::" in lines
    assert "title=online json divergent on case sample::" in lines
    assert "title=online v2 crashed on case sample::the server ended with status 1" in lines
    assert "channel-order: the channels of an image" in "\n".join(commands(diagnosed()))


def test_annotations_are_no_more_than_github_shows():
    found = report(*(entry(divergent(), case=f"case {place}") for place in range(30)))
    assert len(commands(found)) == MAX_ANNOTATIONS


def test_nothing_compared_is_an_error_too():
    assert commands(report())[0].startswith("::error title=nothing compared::Record a golden case")


def test_annotations_stand_at_the_handlers_file(tmp_path: Path):
    folder = tmp_path / "handlers" / "fashion"
    folder.mkdir(parents=True)
    (folder / "handler.py").write_text("", encoding="utf-8")
    assert handler_file("handlers/fashion", tmp_path) == "handlers/fashion/handler.py"
    assert handler_file("handlers/fashion/handler.py:Fashion", tmp_path) == "handlers/fashion/handler.py"
    assert handler_file(str(folder), tmp_path) == "handlers/fashion/handler.py"
    assert handler_file("package.module:Class", tmp_path) == ""
    assert handler_file("", tmp_path) == ""
    assert commands(diagnosed(), tmp_path)[0].startswith("::error file=handlers/fashion/handler.py,title=")


def test_the_summary_tells_verdict_matrix_cause_and_what_to_do():
    text = summary(diagnosed())
    assert text.startswith("## ❌ fashion 1.0 diverges")
    assert "| sample |  | ❌ divergent 64 of 64 |" in text
    assert "**Cause, channel-order**" in text
    assert "```python\nimport parity\n" in text
    assert "1. channel-order: decode to RGB on both sides" in text
    assert summary(agreeing()).startswith("## ✅ fashion 1.0 agrees")


@pytest.mark.parametrize("found", [hostile(), diagnosed("\n| x | `y` **z** [a](b) @team #1 <b>\u202e")])
def test_nothing_in_the_summary_breaks_out_of_its_place(found: CheckReport):
    text = re.sub(r"(?ms)^```python$.*?^```$", "", summary(found))
    assert "```" not in text
    assert "<script" not in text
    assert "<b>" not in text
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "@team" not in text
    assert "](b)" not in text.replace("\\](b)", "")
    tables = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
    assert len(tables) == 2
    for lines in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_the_summary_is_appended_and_small(tmp_path: Path):
    file = tmp_path / "summary.md"
    file.write_text("before\n", encoding="utf-8")
    laws = tuple(law("broken", f"law {place}", "y" * 100_000) for place in range(20))
    write_summary(report(entry(same()), laws=laws), file)
    text = file.read_text(encoding="utf-8")
    assert text.startswith("before\n## ")
    assert len(text.encode()) < 2 * MAX_BYTES


def test_code_in_the_summary_cannot_end_its_block():
    from parity.report.github import _block

    assert _block("a\n````\nb", "python")[0] == "`````python"
