"""Check what no other tool checks in the documents: links, commands, and words that belong to one machine.

Run as `python tools/check_docs.py` from anywhere; prints one line per finding and exits 1 when there is any.
It checks

- that every relative link in a Markdown file leads to a file of the repository, its `#anchor` to a heading;
- that every `parity ...` command shown in a code block or in inline code exists in the command line;
- that no tracked text file names a path of somebody's machine, or the host of a package registry.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent

FENCE = re.compile(r"^\s*(```+|~~~+)")
INLINE_CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\s{0,3}\[[^\]]+\]:\s+<?([^\s>]+)>?")
HEADING = re.compile(r"^\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
HTML_ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
EXTERNAL = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
COMMAND = re.compile(r"^(?:\$\s+)?(?:\.venv/bin/)?parity((?:\s+[a-z][a-z0-9-]*)+)(?=\s|$|[;|&>#)\\])")

# Written so that this file does not match itself.
MACHINE_WORDS = (
    (re.compile(r"(?<![\w./-])/(?:work|root)/"), "a path of one machine; name it relative to the repository"),
    (
        re.compile(r"\b(?:pypi|files\.pythonhosted|registry\.npmjs|deb\.debian)\.(?:org|com|net)\b"),
        "the host of a package registry; name the package only",
    ),
)


@dataclass(frozen=True)
class Finding:
    """One thing to mend, with the place where it stands."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass
class Page:
    """A Markdown file split into what is prose (link targets, anchors) and what is code (commands)."""

    path: Path
    links: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    commands: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    anchors: set[str] = field(default_factory=set[str])


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading: lower case, punctuation dropped, spaces as hyphens."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def read_page(path: Path, text: str) -> Page:
    """The links, commands and anchors of one Markdown text."""
    page = Page(path)
    fence = ""
    seen: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        mark = FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            continue
        if fence:
            page.commands.append((number, line.strip()))
            continue
        page.commands.extend((number, code.strip()) for code in INLINE_CODE.findall(line))
        prose = INLINE_CODE.sub("", line)
        page.links.extend((number, target) for target in LINK.findall(INLINE_CODE.sub("code", line)))
        page.links.extend((number, target) for target in REFERENCE.findall(prose))
        page.anchors.update(HTML_ANCHOR.findall(line))
        heading = HEADING.match(line)
        if heading:
            name = slug(heading[2])
            count = seen.get(name, 0)
            seen[name] = count + 1
            page.anchors.add(f"{name}-{count}" if count else name)
    return page


def check_links(pages: dict[Path, Page], tracked: set[Path]) -> Iterator[Finding]:
    """Relative links that lead nowhere. `tracked` holds the files of the repository, relative to its root."""
    folders = {parent for path in tracked for parent in path.parents}
    for page in pages.values():
        for number, target in page.links:
            if EXTERNAL.match(target):
                continue
            name, _, anchor = unquote(target).partition("#")
            goal = page.path if not name else _normal(page.path.parent / name)
            if goal is None or (goal not in tracked and goal not in folders):
                yield Finding(page.path, number, f"link to {target}: no such file in the repository")
            elif anchor and goal in pages and anchor not in pages[goal].anchors:
                yield Finding(page.path, number, f"link to {target}: {goal} has no heading with that anchor")


def check_commands(pages: dict[Path, Page], tree: dict[str, object]) -> Iterator[Finding]:
    """Commands shown in the documents that the command line lacks; `tree` maps a name to its subcommands."""
    for page in pages.values():
        for number, line in page.commands:
            shown = COMMAND.match(line)
            if not shown:
                continue
            level = tree
            words: list[str] = []
            for word in shown[1].split():
                words.append(word)
                below = level.get(word)
                if not isinstance(below, dict):
                    known = ", ".join(sorted(level))
                    yield Finding(
                        page.path, number, f"`parity {' '.join(words)}`: no such command (there are {known})"
                    )
                    break
                if not below:
                    break
                level = below


def check_words(path: Path, text: str) -> Iterator[Finding]:
    """Words of one machine in a text file."""
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, message in MACHINE_WORDS:
            found = pattern.search(line)
            if found:
                yield Finding(path, number, f"{found[0]!r} is {message}")


def command_tree() -> dict[str, object]:
    """The subcommands of `parity`, read from the command line itself."""
    import typer
    import typer.main

    from parity.cli import app

    def below(command: object, context: typer.Context) -> dict[str, object]:
        names = getattr(command, "list_commands", None)
        child_of = getattr(command, "get_command", None)
        if names is None or child_of is None:
            return {}
        return {str(name): below(child_of(context, name), context) for name in names(context)}

    root = typer.main.get_command(app)
    return below(root, typer.Context(root))


def tracked_texts() -> dict[Path, str | None]:
    """Every file that git tracks or would add, relative to the root; its text, or None where it is binary."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    texts: dict[Path, str | None] = {}
    for name in sorted(set(listing.decode().split("\0")) - {""}):
        path = ROOT / name
        if path.is_file():
            content = path.read_bytes()
            texts[Path(name)] = None if b"\0" in content[:8192] else content.decode(errors="replace")
    return texts


def main() -> int:
    """Print the findings; 1 when there are any."""
    texts = tracked_texts()
    pages = {
        path: read_page(path, text)
        for path, text in texts.items()
        if path.suffix == ".md" and text is not None
    }
    findings = list(check_links(pages, set(texts)))
    for path, text in texts.items():
        if text is not None and path != Path("LICENSE"):
            findings += check_words(path, text)
    if any(COMMAND.match(line) for page in pages.values() for _, line in page.commands):
        findings += check_commands(pages, command_tree())
    for finding in findings:
        print(finding)
    print(f"docs: {len(pages)} pages, {len(texts)} files, {len(findings)} findings")
    return 1 if findings else 0


def _normal(path: Path) -> Path | None:
    """`path` without `.` and `..`; None where it climbs out of the repository."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part != ".":
            parts.append(part)
    return Path(*parts)


if __name__ == "__main__":
    sys.exit(main())
