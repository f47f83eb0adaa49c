"""`parity compare`: two Parquet datasets of answers."""

from __future__ import annotations

import gc
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from parity.cli import options
from parity.compare import (
    Ignore,
    Suggestion,
    Tolerances,
    compare_datasets,
    read_tolerances,
    suggest_tolerance,
)
from parity.errors import ConfigError, DivergenceError, NothingComparedError
from parity.report import terminal

_EXIT_CODES = {"divergent": DivergenceError.exit_code, "nothing": NothingComparedError.exit_code}
_DATASET = "A Parquet file, a folder of them or a quoted glob."


def compare_files(
    expected: Annotated[str, typer.Argument(help=_DATASET)],
    obtained: Annotated[str, typer.Argument(help="The one to compare with it.")],
    key: Annotated[
        list[str] | None, typer.Option(help="Column that pairs the rows, by default their order; repeatable.")
    ] = None,
    tolerance: Annotated[
        Path | None,
        typer.Option(help="TOML file with [tolerance.<column>], [dtype.<float>], [default], [pair.<a|b>]."),
    ] = None,
    pair: Annotated[
        str | None,
        typer.Option(help='Profiles of the two, as "cpu:float32|cuda:float16", for [pair] rules.'),
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--columns", help="Compare only this column; repeatable.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", help="Do not compare this column's values; repeatable.")
    ] = None,
    suggest: Annotated[
        bool, typer.Option(help="Print the tightest tolerance that covers what differs, as TOML.")
    ] = False,
    temporary: Annotated[
        Path | None, typer.Option(help="Folder for temporary files, which rows in another order may need.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare two datasets of answers column by column; floats may differ by the default tolerance.

    The datasets may be larger than memory. With --suggest, standard output is the tolerance file alone.

    Exit codes: 0 they agree; 1 they differ; 2 usage or unreadable input; 5 nothing was compared.
    """
    rules = _rules(tolerance, pair, ignore or ())
    gc.freeze()  # what is imported stays: collections during a long comparison need not look through it
    found = compare_datasets(
        expected, obtained, rules, key=key or None, columns=columns or None, temporary=temporary
    )
    title = f"{expected} and {obtained}"
    suggestion = suggest_tolerance(found) if suggest and found.rows else Suggestion(())
    if as_json:
        data = {**found.to_dict(), **({"suggestion": suggestion.to_dict()} if suggest else {})}
        options.emit(json.dumps(data, ensure_ascii=False))
    elif suggest:
        typer.echo(terminal.render_comparison(found, title), nl=False, err=True)
        options.emit(suggestion.to_toml(), nl=False)
    else:
        options.emit(terminal.render_comparison(found, title, colour=options.colour()), nl=False)
    if found and found.rows == found.errors_expected:
        raise NothingComparedError(f"all {found.rows} rows failed on both sides: no answer was compared")
    raise typer.Exit(_EXIT_CODES.get(found.verdict, 0))


def _rules(path: Path | None, pair: str | None, ignore: Sequence[str]) -> Tolerances:
    rules = Tolerances() if path is None else read_tolerances(path)
    if pair is not None:
        if pair.count("|") != 1:
            raise ConfigError(
                f'--pair {pair!r} does not name two profiles; give such as "cpu:float32|cuda:float16"'
            )
        rules = rules.for_pair(*pair.split("|"))
    unread = Ignore(reason="--ignore on the command line")
    return replace(rules, columns=MappingProxyType({**rules.columns, **dict.fromkeys(ignore, unread)}))
