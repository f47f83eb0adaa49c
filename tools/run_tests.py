"""The whole test suite as two pytest processes side by side: most tests wait for processes of their own.

With arguments it is a single `pytest ARGUMENTS`. The output of the second process comes after that of the
first, then both closing lines; the exit code is the first one that is not 0.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"

SECOND = (
    "batch", "capture", "cli", "compare", "docs", "frame", "online", "optimize", "replay", "report", "skew",
)  # fmt: skip
"""The folders of the second process, which takes about as long as the first with everything else."""

_CLOSING = re.compile(r"\d+ (?:passed|failed|error).* in [\d.]+s")
_COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|deselected|warnings?)\b")


def main(arguments: list[str]) -> int:
    """Run the tests; the exit code."""
    pytest = [sys.executable, "-m", "pytest"]
    if arguments:
        return subprocess.run([*pytest, *arguments], cwd=ROOT, check=False).returncode
    first, second = halves()
    started = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        other = subprocess.Popen([*pytest, *second], cwd=ROOT, stdout=said, stderr=said)
        try:
            own = subprocess.Popen([*pytest, *first], cwd=ROOT, stdout=subprocess.PIPE, text=True)
            assert own.stdout is not None
            closing = ""
            for line in own.stdout:
                print(line, end="", flush=True)
                closing = line if _CLOSING.search(line) else closing
            codes = [own.wait(), other.wait()]
        except BaseException:
            other.terminate()
            other.wait()
            raise
        said.seek(0)
        text = said.read()
    print(text, end="")
    closings = [closing, *_CLOSING.findall(text)[-1:]]
    print(f"both together: {total(closings)} in {time.monotonic() - started:.0f} s", flush=True)
    return next((code for code in codes if code), 0)


def halves() -> tuple[list[str], list[str]]:
    """The folders and files of tests of the first process and of the second; together they are all."""
    found = sorted(
        path
        for path in TESTS.iterdir()
        if path.name.startswith("test_") or (path.is_dir() and any(path.rglob("test_*.py")))
    )
    first = [path.relative_to(ROOT).as_posix() for path in found if path.name not in SECOND]
    return first, [f"tests/{name}" for name in SECOND]


def total(closings: list[str]) -> str:
    """The counts of several closing lines of pytest, added up."""
    counts: dict[str, int] = {}
    for line in closings:
        for number, what in _COUNT.findall(line):
            counts[what] = counts.get(what, 0) + int(number)
    return ", ".join(f"{number} {what}" for what, number in counts.items()) or "no test ran"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
