"""`parity golden`: record, check, update, list, show and prune golden cases."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from parity import golden as goldens
from parity.check import check_goldens
from parity.cli import golden_text as text
from parity.cli import options
from parity.cli.row_files import read_rows, read_table
from parity.errors import ConfigError, GoldenError
from parity.golden import GoldenCase, InvalidRows, Sample
from parity.handler import LoadedHandler
from parity.registry import load_handler
from parity.report import as_json as json_report
from parity.report import terminal

app = typer.Typer(
    help="Golden cases: rows with the answers that somebody looked at and accepted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)

_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
_PROGRESS_ROWS = 1_000_000


@app.command("record")
def record(
    handler: options.HandlerRef,
    rows: Annotated[
        str,
        typer.Argument(
            metavar="ROWS",
            help="A .json, .jsonl or .parquet file, - for JSON from standard input; with --sample also a "
            "folder or glob of Parquet files.",
        ),
    ],
    case: Annotated[str, typer.Option(help="The new case's name.")],
    reason: Annotated[str | None, typer.Option(help="Why this case exists, for reviewers.")] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Take so many rows of a dataset of any size, rare kinds among them."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed samples other rows.")] = 0,
    invalid: Annotated[
        InvalidRows,
        typer.Option(
            help="Rows that do not fit the schema: refuse, skip (leave out) or keep (expected to fail)."
        ),
    ] = "refuse",
    profile: options.ProfileName = "default",
    set_: options.Settings = None,
    app_dir: options.AppDir = None,
    golden: options.GoldenDir = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many rows.")] = None,
    stages: Annotated[bool, typer.Option("--stages", help="Keep what the stages gave, too.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run the handler on rows and keep its answers as a new golden case. Never in CI."""
    if sample is not None and limit is not None:
        raise typer.BadParameter("--sample and --limit exclude each other")
    loaded = load_handler(handler, app_dir=app_dir)
    chosen = loaded.profile(profile).with_settings(set_ or [])
    goldens.check_recordable(loaded, case, "" if reason == "" else reason or "given", golden)
    taken: Sample | None = None
    sampled = ""
    if sample is None:
        given = _all_rows(loaded, rows, limit, invalid)
    else:
        taken, left_out = _sample(loaded, rows, sample, seed, invalid, quiet=as_json)
        given = taken.rows
        sampled = f"{given.num_rows} of {taken.total} rows, seed {seed}{left_out}"
    found = goldens.record(
        loaded,
        given,
        case,
        chosen,
        reason=reason or (f"a sample of {Path(rows).name}" if sampled else "first recording"),
        golden=golden,
        stages=stages,
        keep_invalid=invalid == "keep",
        sampled=sampled,
    )
    if as_json:
        told = {"sample": text.sample_dict(taken)} if taken is not None else {}
        options.emit(json.dumps({**text.case_dict(found, []), **told}))
        return
    if taken is not None:
        options.emit(f"sampled {sampled} of {rows}")
        for line in text.sample_lines(taken):
            options.emit(line)
    failed = f", {found.meta.errors} of them expected to fail" if found.meta.errors else ""
    options.emit(f"recorded {found.path}: {found.meta.rows} rows{failed}; look at it, then commit it")
    if found.answered == 0:
        typer.echo("warning: every row failed, so that this case compares no answer", err=True)


@app.command("check")
def check(
    handler: options.HandlerRef,
    case: options.Cases = None,
    profile: options.ProfileName = "default",
    set_: options.Settings = None,
    app_dir: options.AppDir = None,
    golden: options.GoldenDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare what the handler answers in this process with its golden cases. Orphans are exit code 3."""
    report = check_goldens(
        handler, app_dir=app_dir, profile=profile, settings=set_ or [], cases=case or [], golden=golden
    )
    if as_json:
        options.emit(json_report.render(report), nl=False)
    else:
        options.emit(terminal.render(report, colour=options.colour()), nl=False)
    if report.exit_code == 0 and not case:
        goldens.require_no_orphans(load_handler(handler, app_dir=app_dir), golden)
    raise typer.Exit(report.exit_code)


@app.command("update")
def update(
    handler: options.HandlerRef,
    case: options.Cases = None,
    reason: Annotated[
        str, typer.Option(help="Why the answers moved, for reviewers.")
    ] = "accepted new answers",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept without asking.")] = False,
    profile: options.ProfileName = "default",
    set_: options.Settings = None,
    app_dir: options.AppDir = None,
    golden: options.GoldenDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what moved in the golden cases, and accept it. Never in CI."""
    loaded = load_handler(handler, app_dir=app_dir)
    chosen = loaded.profile(profile).with_settings(set_ or [])
    proposals = goldens.propose(loaded, chosen, golden=golden, cases=case or [])
    changed = [proposal for proposal in proposals if proposal.changes]
    if not as_json:
        for proposal in proposals:
            options.emit(text.proposal_text(proposal, colour=options.colour()))
    accepted = bool(changed) and (yes or _confirmed(len(changed), as_json))
    if accepted:
        for proposal in changed:
            goldens.accept(proposal, reason=reason)
    if as_json:
        found = [text.proposal_dict(item, accepted=accepted and item.changes) for item in proposals]
        options.emit(json.dumps({"handler": loaded.name, "cases": found}))
    elif accepted:
        options.emit(f"updated {len(changed)} of {len(proposals)} cases")
    else:
        options.emit("nothing was written")


@app.command("list")
def list_cases(
    handler: options.HandlerRef,
    app_dir: options.AppDir = None,
    golden: options.GoldenDir = None,
    as_json: options.AsJson = False,
) -> None:
    """List a handler's golden cases, with what is wrong with them. Anything wrong is exit code 3."""
    loaded = load_handler(handler, app_dir=app_dir)
    folder = goldens.golden_folder(loaded, golden)
    cases: list[GoldenCase] = []
    problems: dict[str, str] = {}
    for path in goldens.case_folders(folder):
        try:
            cases.append(goldens.read_case(path, loaded))
        except GoldenError as exc:
            problems[str(path)] = str(exc)
    leftovers = goldens.find_leftovers(loaded, golden)
    for item in leftovers:
        if item.kind != "stray file" and item.kind != "temporary":
            problems.setdefault(str(item.path), f"{item.path}: {item.why}")
    if as_json:
        found = [text.case_dict(item, item.notes(loaded)) for item in cases]
        told = {"problems": problems, "leftovers": [item.to_dict() for item in leftovers]}
        options.emit(json.dumps({"handler": loaded.name, "folder": str(folder), "cases": found, **told}))
    else:
        options.emit(f"{loaded.name}: {len(cases)} golden case{'s' if len(cases) != 1 else ''} in {folder}")
        for item in cases:
            for line in text.case_lines(item, item.notes(loaded)):
                options.emit(line)
        if leftovers:
            options.emit(f"  {len(leftovers)} leftovers; `parity golden prune {handler}` lists them")
    if problems:
        raise GoldenError("\n  ".join(problems.values()))


@app.command("show")
def show(
    handler: options.HandlerRef,
    case: Annotated[str, typer.Argument(metavar="CASE", help="The case's name.")],
    rows: Annotated[int, typer.Option(min=0, help="How many rows to show.")] = 5,
    app_dir: options.AppDir = None,
    golden: options.GoldenDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what a golden case says: profile, fingerprint, tolerance, kinds of rows, first rows."""
    loaded = load_handler(handler, app_dir=app_dir)
    found = goldens.find_case(loaded, case, golden)
    pairs = goldens.first_rows(found, rows)
    strata = goldens.strata_of(loaded.inputs, found.inputs)
    notes = found.notes(loaded)
    if as_json:
        told = {**text.case_dict(found, notes), "strata": strata, "first_rows": pairs}
        options.emit(json.dumps(told))
        return
    for line in text.shown_case(found, notes, strata, pairs):
        options.emit(line)


@app.command("prune")
def prune(
    handler: options.HandlerRef,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete them.")] = False,
    app_dir: options.AppDir = None,
    golden: options.GoldenDir = None,
    as_json: options.AsJson = False,
) -> None:
    """List golden cases of no handler or of other schemas, and what killed recordings left; delete on --yes.

    Never in CI. Damaged cases stay: version control may have them whole.
    """
    loaded = load_handler(handler, app_dir=app_dir)
    leftovers = goldens.find_leftovers(loaded, golden)
    gone = goldens.prune(leftovers) if yes else []
    if as_json:
        told = [{**item.to_dict(), "deleted": item in gone} for item in leftovers]
        options.emit(json.dumps({"handler": loaded.name, "leftovers": told}))
        return
    for item in leftovers:
        options.emit(text.leftover_line(item))
    if not leftovers:
        options.emit(f"{loaded.name}: nothing to prune")
    elif yes:
        options.emit(f"deleted {len(gone)} of {len(leftovers)}")
    else:
        options.emit("nothing was deleted; --yes deletes them")


def _all_rows(loaded: LoadedHandler, rows: str, limit: int | None, invalid: InvalidRows) -> Any:
    """The rows of a file: a table where rows that do not fit are to be kept, else decoded."""
    path = Path(rows)
    if invalid == "keep" and rows != "-" and path.suffix.lower() not in _JSON_SUFFIXES and path.exists():
        table = read_table(path)
        return table if limit is None else table.slice(0, limit)
    decoded = read_rows(rows, loaded.inputs, limit)
    if invalid == "skip" and decoded.errors:
        first = decoded.errors[0]
        typer.echo(
            f"left out {len(decoded.errors)} of {decoded.num_rows} rows, which do not fit the schema; the "
            f"first is row {first.row}: {first.message}",
            err=True,
        )
        return decoded.batch.to_table()
    return decoded


def _sample(
    loaded: LoadedHandler, rows: str, count: int, seed: int, invalid: InvalidRows, *, quiet: bool
) -> tuple[Sample, str]:
    """A sample of a dataset, and what was left out, as the end of a sentence."""
    if rows == "-" or Path(rows).suffix.lower() in _JSON_SUFFIXES:
        sampler = goldens.Sampler(loaded.inputs, count, seed)
        decoded = read_rows(rows, loaded.inputs)
        if decoded.errors and invalid != "skip":
            raise goldens.misfits(decoded, loaded)
        sampler.add(decoded.batch.to_table())
        left_out = f", {len(decoded.errors)} left out" if decoded.errors else ""
        return sampler.finish(), left_out
    told = 0

    def progress(done: int) -> None:
        nonlocal told
        if done - told >= _PROGRESS_ROWS and not quiet:
            told = done
            options.say(f"{done} rows read")

    found = goldens.sample_dataset(rows, loaded.inputs, count, seed=seed, invalid=invalid, progress=progress)
    if not found.left_out:
        return found.sample, ""
    if not quiet:
        typer.echo(f"left out {found.left_out} rows; the first is {found.first_left_out}", err=True)
    return found.sample, f", {found.left_out} rows left out"


def _confirmed(count: int, as_json: bool) -> bool:
    if as_json or not sys.stdin.isatty():
        raise ConfigError("nobody is here to ask; --yes accepts what moved without asking")
    return typer.confirm(f"accept the new answers of {count} case{'s' if count != 1 else ''}?")
