"""How the process of a command ends: without taking torch apart, which takes most of a second."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
import threading
from typing import Any, NoReturn, cast

from parity.cli.application import app
from parity.standard_output import flush_c

_FILES = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
_UNFLUSHED = 120
"""What Python exits with when standard output cannot be flushed."""


def main() -> NoReturn:
    """Run the command line and end the process with its code.

    What an end is to do is done: threads are waited for, what was registered with `atexit` is run, files that
    are still open are flushed. The memory of modules is left to the operating system: a `__del__` of what a
    module holds is not called, which Python does not promise either.

    Raises:
        SystemExit: torch was not imported, or a profiler or a tracer looks on, and the interpreter ends as it
            always does.
    """
    try:
        app(prog_name="parity")
        code: object = 0
    except SystemExit as exc:
        code = exc.code or 0
    watched = sys.getprofile() is not None or sys.gettrace() is not None
    if watched or "torch" not in sys.modules or not isinstance(code, int):
        sys.exit(cast("Any", code))
    end(code)


def end(code: int) -> NoReturn:
    """End the process as `sys.exit(code)` would, at once."""
    cast("Any", threading)._shutdown()
    cast("Any", atexit)._run_exitfuncs()
    ours = (sys.stdout, sys.stderr)
    for stream in (*ours, *(item for item in gc.get_objects() if type(item) in _FILES)):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (OSError, ValueError):
            code = code or (_UNFLUSHED if stream in ours else 0)
    flush_c()
    os._exit(code)
