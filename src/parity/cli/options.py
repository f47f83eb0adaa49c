"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

from parity import standard_output
from parity.errors import ConfigError

if TYPE_CHECKING:
    from parity.under_way import UnderWay

HandlerRef = Annotated[
    str, typer.Argument(metavar="HANDLER", help="A folder, file.py:Class, archive or package.module:Class.")
]
RowsFile = Annotated[
    str,
    typer.Argument(
        metavar="ROWS",
        help="A .json, .jsonl or .parquet file, - for JSON from standard input, or a picture: one row.",
    ),
]
ProfileName = Annotated[str, typer.Option(help="Profile of handler.toml to run with.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a profile setting; repeatable."),
]
AppDir = Annotated[str | None, typer.Option(help="Folder to import package.module from.")]
GoldenDir = Annotated[
    Path | None,
    typer.Option("--golden", help="Folder of golden cases; by default found near the handler."),
]
Cases = Annotated[list[str] | None, typer.Option("--case", help="Only this golden case; repeatable.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_BATCH_SIZE = re.compile(r"0*[1-9][0-9]{0,8}")

SLOW_S: Final = 20.0
"""Seconds after which a stage under way is told."""

_results: list[TextIO] = []
"""Standard output, while what others print there goes to standard error; innermost last."""


@contextlib.contextmanager
def results_alone() -> Generator[None]:
    """Keep standard output for `emit`: what a handler writes there meanwhile goes to standard error.

    A stage that takes very long is told there, too.
    """
    ended = threading.Event()
    threading.Thread(target=_tell_slow_stages, args=(ended,), daemon=True).start()
    try:
        with standard_output.reserved() as results:
            _results.append(results)
            try:
                yield
            finally:
                _results.pop()
    finally:
        ended.set()


def _tell_slow_stages(ended: threading.Event) -> None:
    """Say every so often which stage of a handler is still under way, until `ended`."""
    wait = SLOW_S
    while not ended.wait(wait):
        stages = sys.modules.get("parity.under_way")
        found: list[UnderWay] = [] if stages is None else stages.under_way()
        if not found or time.monotonic() - found[0].since < SLOW_S:
            wait = SLOW_S
            continue
        slow, seconds = found[0], time.monotonic() - found[0].since
        rows = f" with {slow.rows} rows" if slow.rows else ""
        say(f"still in {slow.stage} of {slow.handler}{rows}, for {seconds:.0f} s; Ctrl-C ends it")
        wait = seconds


def batch_sizes(text: str) -> tuple[int, ...]:
    """The numbers of `--buckets N,N`, in their order.

    Raises:
        ConfigError: a part is no whole number of 1 to 999,999,999.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(_BATCH_SIZE.fullmatch(part) for part in parts):
        raise ConfigError(f"--buckets {text} is not a list of positive batch sizes, such as 16,64")
    return tuple(int(part) for part in parts)


def emit(text: str | bytes, *, nl: bool = True) -> None:
    """Print a command's result on standard output."""
    typer.echo(text, nl=nl, file=_results[-1] if _results else None)


def drop_results() -> None:
    """Send what `emit` still holds back nowhere, after an error in writing it."""
    standard_output.discard(_results[-1] if _results else sys.stdout)


def colour() -> bool:
    """Whether standard output is a terminal that wants colours."""
    return (_results[-1] if _results else sys.stdout).isatty() and "NO_COLOR" not in os.environ


def say(line: str) -> None:
    """Print a line of progress on standard error."""
    typer.echo(f"… {line}", err=True)
