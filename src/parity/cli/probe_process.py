"""The second process of `parity probe`; run as `python -m parity.cli.probe_process FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from parity.exact import answer
from parity.registry import load_handler

if __name__ == "__main__":
    answer(Path(sys.argv[1]), lambda ref, app_dir: load_handler(ref, app_dir=app_dir))
