"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

HandlerRef = Annotated[
    str, typer.Argument(metavar="HANDLER", help="A folder, file.py:Class or package.module:Class.")
]
RowsFile = Annotated[
    str,
    typer.Argument(
        metavar="ROWS", help="A .json, .jsonl or .parquet file, or - for JSON from standard input."
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


def colour() -> bool:
    """Whether standard output is a terminal that wants colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def say(line: str) -> None:
    """Print a line of progress on standard error."""
    typer.echo(f"… {line}", err=True)
