"""How the process of a command ends: without taking torch apart, which takes most of a second."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any, NoReturn, cast

from parity.cli.application import app

_UNFLUSHED = 120
"""What Python exits with when standard output cannot be flushed."""


def main() -> NoReturn:
    """Run the command line and end the process with its code.

    All that Python promises of an end is kept: threads are waited for, what was registered with `atexit` is
    run, output is flushed. The memory of modules is left to the operating system.

    Raises:
        SystemExit: torch was not imported, and the interpreter ends as it always does.
    """
    try:
        app(prog_name="parity")
    except SystemExit as exc:
        if "torch" not in sys.modules or not isinstance(exc.code, int | None):
            raise
        end(exc.code or 0)
    end(0)


def end(code: int) -> NoReturn:
    """End the process as `sys.exit(code)` would, at once."""
    cast("Any", threading)._shutdown()
    cast("Any", atexit)._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            code = code or _UNFLUSHED
    os._exit(code)
