"""`parity new`: a handler to start from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from parity.cli import options
from parity.scaffold import create


def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The handler's name, or a path that ends with it.")
    ],
    dir_: Annotated[
        Path | None, typer.Option("--dir", help="Folder to make it in; handlers/ by default.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a handler folder with a golden case and a test, both of which pass at once."""
    made = create(name, dir_)
    if as_json:
        told = {"handler": made.name, "folder": str(made.folder), "files": list(made.files)}
        options.emit(json.dumps(told))
        return
    options.emit(f"made {made.folder}:")
    for file in made.files:
        options.emit(f"  {file}")
    options.emit(f"next: parity check {made.folder}; pytest {made.folder}")
