"""`parity run`: rows in, answers out, in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from parity.cli import options
from parity.cli.row_files import answers_of, check_output, read_rows, write_answers
from parity.codec import rows as json_rows
from parity.engine import Engine
from parity.errors import ParityError
from parity.failures import few_of_a_kind
from parity.registry import load_handler
from parity.result import ERROR_COLUMN, Result
from parity.work import merge

_BATCH_ROWS = 1024


def run(
    handler: options.HandlerRef,
    rows: options.RowsFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the answers here: .jsonl, .json or .parquet.")
    ] = None,
    profile: options.ProfileName = "default",
    set_: options.Settings = None,
    app_dir: options.AppDir = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many rows.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with all answers.")] = False,
) -> None:
    """Run a handler on some rows, in this process.

    Prints one JSON object for each row, in order; a row without an answer is {"_error": ...}, and is told on
    standard error. Exit code 2 when a row has no answer.
    """
    if output is not None:
        check_output(output)
    loaded = load_handler(handler, app_dir=app_dir)
    decoded = read_rows(rows, loaded.inputs, limit)
    with few_of_a_kind(), Engine(loaded, loaded.profile(profile).with_settings(set_ or [])) as engine:
        pieces = [engine.run(piece) for piece in decoded.batch.split(_BATCH_ROWS)]
    result = merge(decoded, Result.concat(pieces, loaded.outputs))
    # Parquet holds NaN and infinities, which JSON may refuse: only what is told as JSON fails for them.
    as_text = as_json or output is None or output.suffix.lower() != ".parquet"
    answers = list(answers_of(result)) if as_text else []
    errors = (
        _errors_in(answers)
        if as_text
        else [(error.row, error.kind, error.message) for error in result.errors]
    )
    failed = [f"row {row} ({kind}): {message}" for row, kind, message in errors]
    if output is not None:
        write_answers(result, output)
    elif not as_json:
        for answer in answers:
            options.emit(json_rows.dumps(answer))
    if as_json:
        summary = {
            "handler": loaded.name,
            "version": loaded.version,
            "profile": profile,
            "rows": result.num_rows,
            "failed": len(failed),
            "seconds": dict(result.timings),
            "answers": answers,
        }
        options.emit(json_rows.dumps(summary))
    for line in failed:
        typer.echo(line, err=True)
    if failed:
        typer.echo(f"{len(failed)} of {result.num_rows} rows have no answer", err=True)
        raise typer.Exit(ParityError.exit_code)


def _errors_in(answers: Sequence[Mapping[str, Any]]) -> list[tuple[int, str, str]]:
    """Row, kind and message of the answers that are errors."""
    found = [(row, answer.get(ERROR_COLUMN)) for row, answer in enumerate(answers)]
    return [(row, error["kind"], error["message"]) for row, error in found if error is not None]
