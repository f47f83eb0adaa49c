"""Write docs/reference/cli.md from the command line itself; run as `python tools/cli_reference.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PATH = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
HEAD = "<!-- Written by `python tools/cli_reference.py`; change the help texts instead. -->\n\n"


def reference() -> str:
    """The reference as Markdown."""
    command = [sys.executable, "-m", "typer", "parity.cli", "utils", "docs", "--name", "parity"]
    environment = {**os.environ, "COLUMNS": "100", "TERM": "dumb"}
    found = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return HEAD + found.stdout.rstrip() + "\n"


if __name__ == "__main__":
    PATH.write_text(reference(), encoding="utf-8")
