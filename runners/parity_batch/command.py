"""`parity batch`: parses, calls, prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from parity.batch_engines import LOCAL
from parity.cli import options
from parity.durable import write_text
from parity.errors import ConfigError
from parity.output_form import OutputForm
from parity.registry import load_handler
from parity_batch.job import score
from parity_batch.page import page
from parity_batch.pipe import StdoutError, score_pipe
from parity_batch.preview import preview
from parity_batch.settings import Settings
from parity_batch.status import status


def batch(
    handler: Annotated[
        str, typer.Argument(metavar="HANDLER", help="A folder, file.py:Class or module:Class.")
    ],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="Files (Parquet, Arrow, CSV, JSON lines), folders (with all below), tables, globs, URLs.",
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Argument(
            metavar="OUTPUT",
            help="A new or empty folder or URL, or one to continue.",
            show_default=False,
        ),
    ] = "",
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Columns to pass through, unchanged; repeatable."),
    ] = None,
    profile: Annotated[str, typer.Option(help="Profile of handler.toml to run with.")] = "default",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a profile setting; repeatable."),
    ] = None,
    buckets: Annotated[
        str | None,
        typer.Option(metavar="N,N", help="Sizes that inference is padded to; --set buckets=[N,N]."),
    ] = None,
    batch_rows: Annotated[
        str | None,
        typer.Option(
            metavar="ROWS|auto",
            help="Rows scored at once; auto measures it first (1024, or what fills the largest bucket).",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Units scored at once, each with its own model (one a CPU core; 1 on a GPU)."),
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="What spreads the work: local, or an installed engine.")
    ] = "local",
    engine_option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of an installed engine; repeatable."),
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="FIELD=COLUMN", help="Read a field from another column; repeatable."),
    ] = None,
    where: Annotated[
        str,
        typer.Option(metavar="CONDITION", help='Score only rows for which, say, "shop == 3".'),
    ] = "",
    input_format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="parquet, arrow, csv, tsv or jsonl (what the files' names tell)."),
    ] = None,
    input_version: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Version of a Delta Lake table, snapshot of an Iceberg one (current)."
        ),
    ] = None,
    delimiter: Annotated[
        str, typer.Option(metavar="CHAR", help="What stands between the cells of CSV (a comma).")
    ] = "",
    types: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=TYPE", help="What a column of CSV or JSON lines holds (text); repeatable."
        ),
    ] = None,
    output_format: Annotated[
        str, typer.Option(metavar="NAME", help="Of standard output: jsonl, csv or arrow.")
    ] = "jsonl",
    tensor_type: Annotated[
        str,
        typer.Option(metavar="list|arrow", help="How tensors are written: flat lists, or an extension type."),
    ] = "list",
    spark_compatible: Annotated[
        bool, typer.Option("--spark-compatible", help="Narrow types that Spark does not read, by rule.")
    ] = False,
    preprocess_workers: Annotated[
        int | None, typer.Option(help="Threads that preprocess for each worker, its stages overlapped.")
    ] = None,
    preprocess_processes: Annotated[
        int | None,
        typer.Option(help="Processes that preprocess for each worker, for preprocessing that keeps the GIL."),
    ] = None,
    max_errors: Annotated[
        str | None,
        typer.Option(metavar="N|P%", help="Stop when more rows than this fail (any number may, but all)."),
    ] = None,
    max_row_mb: Annotated[
        float, typer.Option(help="A row whose inputs take more is a row error; nothing else is lost.")
    ] = 64,
    on_file_error: Annotated[
        str, typer.Option(metavar="stop|skip", help="What a file that cannot be read does to the job.")
    ] = "stop",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue what is in OUTPUT: the default, whether said or not.")
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Remove what an earlier job left in OUTPUT and begin anew.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan and an estimate from a sample; write nothing.")
    ] = False,
    app_dir: Annotated[str | None, typer.Option(help="Folder to import module:Class from.")] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the summary as a page of its own, too.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    log_failures: Annotated[
        bool | None,
        typer.Option(
            help="Tell the texts of failed rows, which may quote them, on standard error (on a terminal)."
        ),
    ] = None,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Show no progress line.")] = False,
) -> None:
    """Score Parquet, Arrow, CSV and JSON lines into Parquet parts; killed and started again, it continues.

    Rows keep their order: part-00003-u00000.parquet is the first unit of input file 3. A row that fails stays
    in place with null outputs and the reason in `_error`, and is kept with its inputs in OUTPUT/_errors.
    `parity batch status OUTPUT` shows how far a job is.
    """
    if not inputs:
        if handler != "status" or not output:
            raise ConfigError("give HANDLER, at least one INPUT and OUTPUT, or `status` and OUTPUT")
        found = status(output)
        options.emit(json.dumps(found.to_dict()) if as_json else found.describe())
        return
    if resume and restart:
        raise ConfigError("--resume continues what is in OUTPUT and --restart removes it; give one")
    loaded = load_handler(handler, app_dir=app_dir)
    settings = Settings(
        profile=loaded.profile(profile).with_settings([*(set_ or []), *_buckets(buckets, set_)]),
        batch_rows=_rows(batch_rows),
        workers=workers,
        preprocess_workers=preprocess_workers,
        preprocess_processes=preprocess_processes,
        max_errors=max_errors,
        max_row_bytes=round(max_row_mb * 1024 * 1024),
        on_file_error=cast("Any", on_file_error),
        restart=restart,
        input_format=input_format,
        input_version=input_version,
        delimiter=delimiter,
        types=_pairs("--types", types),
        renames=_pairs("--map", map_),
        where=where,
        form=OutputForm(cast("Any", tensor_type), spark_compatible),
        log_failures=sys.stderr.isatty() if log_failures is None else log_failures,
        engine=engine,
        engine_options=_pairs("--engine-option", engine_option),
    )
    names = [name.strip() for text in columns or [] for name in text.split(",") if name.strip()]
    if inputs == ["-"] or output == "-":
        if inputs != ["-"] or output != "-":
            raise ConfigError("rows are piped in and out, `- -`, or neither: name files and a folder")
        if (
            dry_run
            or restart
            or resume
            or html is not None
            or as_json
            or engine != LOCAL
            or workers
            or input_version
        ):
            raise ConfigError("a pipe is scored at once by this process: leave the options of folders out")
        try:
            score_pipe(sys.stdin.buffer, _emitted, loaded, names, settings, output_format, _told)
        except (BrokenPipeError, StdoutError) as exc:  # what is held back cannot be written either
            options.drop_results()
            if isinstance(exc, StdoutError):
                raise
        return
    if dry_run:
        planned = preview(inputs, loaded, columns=names, settings=settings)
        options.emit(json.dumps(planned.to_dict()) if as_json else planned.describe())
        return
    summary = score(inputs, output, loaded, columns=names, settings=settings, progress=not no_progress)
    if html is not None:
        write_text(html, page(summary))
    options.emit(json.dumps(summary.to_dict()) if as_json else summary.describe())


def _emitted(data: bytes) -> None:
    options.emit(data, nl=False)


def _told(line: str) -> None:
    typer.echo(line, err=True)


def _rows(text: str | None) -> Any:
    """A number of rows, where the text is one; `Settings` refuses what is none and not "auto"."""
    return int(text) if text and text.removeprefix("-").isdecimal() else text


def _buckets(text: str | None, given: list[str] | None) -> list[str]:
    """The profile's setting for `--buckets`."""
    if text is None:
        return []
    sizes = options.batch_sizes(text)
    if any(setting.partition("=")[0].strip() == "buckets" for setting in given or []):
        raise ConfigError("--buckets and --set buckets= say the same; give one")
    return [f"buckets={list(sizes)}"]


def _pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or []:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise ConfigError(f"{option} {text!r} is not of the form NAME=VALUE")
        if key in found:
            raise ConfigError(f"{option} names {key!r} twice")
        found[key] = value
    return found
