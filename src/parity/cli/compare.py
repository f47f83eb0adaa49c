"""`parity compare`: two Parquet tables of answers."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from parity.cli import options
from parity.cli.row_files import read_table
from parity.compare import Tolerances, compare
from parity.errors import ConfigError, DivergenceError, NothingComparedError, did_you_mean
from parity.report import terminal

_EXIT_CODES = {"divergent": DivergenceError.exit_code, "nothing": NothingComparedError.exit_code}
_TABLES = ("tolerance", "dtype", "pair")


def compare_files(
    expected: Annotated[Path, typer.Argument(help="A Parquet file, or a folder of them.")],
    obtained: Annotated[Path, typer.Argument(help="The one to compare with it.")],
    key: Annotated[
        str | None, typer.Option(help="Column that pairs the rows; by default their order.")
    ] = None,
    tolerance: Annotated[
        Path | None, typer.Option(help="TOML file with [tolerance.<column>] and [dtype.<float>] tables.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare two tables of answers column by column; floats may differ by the default tolerance.

    Exit codes: 0 they agree; 1 they differ; 2 usage or unreadable input; 5 nothing was compared.
    """
    rules = Tolerances() if tolerance is None else _tolerances(tolerance)
    found = compare(read_table(expected), read_table(obtained), rules, key=key)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        title = f"{expected} and {obtained}"
        typer.echo(terminal.render_comparison(found, title, colour=options.colour()), nl=False)
    raise typer.Exit(_EXIT_CODES.get(found.verdict, 0))


def _tolerances(path: Path) -> Tolerances:
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise ConfigError(f"--tolerance {path}: {exc}") from exc
    known = (*_TABLES, *_OTHERS)
    for name, table in data.items():
        if name not in known:
            raise ConfigError(f"--tolerance {path}: {name!r} is not known; {did_you_mean(name, _TABLES)}")
        if name in _TABLES and not isinstance(table, dict):
            raise ConfigError(f"--tolerance {path}: {name} is no table; write [{name}.<name>]")
    return Tolerances.from_mapping(
        data.get("tolerance", {}), dtypes=data.get("dtype", {}), pairs=data.get("pair", {})
    )


_OTHERS = ("name", "version", "description", "handler", "profiles", "online", "batch", "config")
"""What else a handler.toml holds: it can be given as it is."""
