"""`make test` runs two pytest processes: together they run every test once."""

from __future__ import annotations

import re
from pathlib import Path

from tools.run_tests import halves, total

TESTS = Path(__file__).parent.parent


def test_the_two_halves_are_all_tests_each_once() -> None:
    first, second = halves()
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")}
    assert sorted([*first, *second]) == sorted(f"tests/{name}" for name in folders)


def test_counts_are_added() -> None:
    lines = [
        "1 failed, 20 passed, 3 skipped in 2.10s",
        "===== 300 passed, 1 skipped, 2 deselected in 5.01s (0:00:05) =====",
    ]
    assert total(lines) == "1 failed, 320 passed, 4 skipped, 2 deselected"
    assert re.fullmatch("no test ran", total([]))
