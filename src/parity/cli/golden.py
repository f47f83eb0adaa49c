"""`parity golden`: record, check, update, list and show golden cases."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from parity import golden as goldens
from parity.check import check_goldens
from parity.cli import options
from parity.cli.row_files import read_rows
from parity.errors import ConfigError
from parity.golden import GoldenCase, Proposal
from parity.registry import load_handler
from parity.report import as_json as json_report
from parity.report import terminal

app = typer.Typer(
    help="Golden cases: rows with the answers that somebody looked at and accepted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command("record")
def record(
    handler: options.HandlerRef,
    rows: options.RowsFile,
    case: Annotated[str, typer.Option(help="The new case's name.")],
    reason: Annotated[str, typer.Option(help="Why this case exists, for reviewers.")] = "first recording",
    profile: options.ProfileName = "default",
    set_: options.Settings = None,
    app_dir: options.AppDir = None,
    golden: options.GoldenDir = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many rows.")] = None,
    stages: Annotated[bool, typer.Option("--stages", help="Keep what the stages returned, too.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Run the handler on rows and keep its answers as a new golden case. Never in CI."""
    loaded = load_handler(handler, app_dir=app_dir)
    chosen = loaded.profile(profile).with_settings(set_ or [])
    decoded = read_rows(rows, loaded.inputs, limit)
    found = goldens.record(loaded, decoded, case, chosen, reason=reason, golden=golden, stages=stages)
    if as_json:
        typer.echo(json.dumps(_case_dict(found, [])))
    else:
        failed = f", {found.meta.errors} of them expected to fail" if found.meta.errors else ""
        typer.echo(f"recorded {found.path}: {found.meta.rows} rows{failed}; look at it, then commit it")


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
    """Compare what the handler answers in this process with its golden cases."""
    report = check_goldens(
        handler, app_dir=app_dir, profile=profile, settings=set_ or [], cases=case or [], golden=golden
    )
    if as_json:
        typer.echo(json_report.render(report), nl=False)
    else:
        typer.echo(terminal.render(report, colour=options.colour()), nl=False)
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
            typer.echo(_proposal_text(proposal))
    accepted = bool(changed) and (yes or _confirmed(len(changed), as_json))
    if accepted:
        for proposal in changed:
            goldens.accept(proposal, reason=reason)
    if as_json:
        found = [_proposal_dict(proposal, accepted and proposal.changes) for proposal in proposals]
        typer.echo(json.dumps({"handler": loaded.name, "cases": found}))
    elif accepted:
        typer.echo(f"updated {len(changed)} of {len(proposals)} cases")
    else:
        typer.echo("nothing was written")


@app.command("list")
def list_cases(
    handler: options.HandlerRef,
    app_dir: options.AppDir = None,
    golden: options.GoldenDir = None,
    as_json: options.AsJson = False,
) -> None:
    """List a handler's golden cases."""
    loaded = load_handler(handler, app_dir=app_dir)
    cases = goldens.find_cases(loaded, golden)
    folder = goldens.golden_folder(loaded, golden)
    if as_json:
        found = [_case_dict(item, item.notes(loaded)) for item in cases]
        typer.echo(json.dumps({"handler": loaded.name, "folder": str(folder), "cases": found}))
        return
    typer.echo(f"{loaded.name}: {len(cases)} golden case{'s' if len(cases) != 1 else ''} in {folder}")
    for item in cases:
        meta = item.meta
        typer.echo(f"  {item.name}  {meta.rows} rows  version {meta.version}  {meta.created}  {meta.reason}")
        for note in item.notes(loaded):
            typer.echo(f"    note: {note}")


@app.command("show")
def show(
    handler: options.HandlerRef,
    case: Annotated[str, typer.Argument(metavar="CASE", help="The case's name.")],
    rows: Annotated[int, typer.Option(min=0, help="How many rows to show.")] = 5,
    app_dir: options.AppDir = None,
    golden: options.GoldenDir = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what a golden case says, and its first rows with their answers."""
    loaded = load_handler(handler, app_dir=app_dir)
    found = goldens.find_case(loaded, case, golden)
    pairs = goldens.first_rows(found, rows)
    if as_json:
        typer.echo(json.dumps({**_case_dict(found, found.notes(loaded)), "first_rows": pairs}))
        return
    meta = found.meta
    typer.echo(f"{meta.handler} {meta.version}, case {found.name}: {meta.rows} rows, {meta.errors} failing")
    typer.echo(f"recorded {meta.created} under profile {meta.profile.get('name')}: {meta.reason}")
    for note in found.notes(loaded):
        typer.echo(f"note: {note}")
    for row, pair in enumerate(pairs):
        typer.echo(f"row {row}: {json.dumps(pair['input'], ensure_ascii=False)}")
        typer.echo(f"    -> {json.dumps(pair['expected'], ensure_ascii=False)}")


def _confirmed(count: int, as_json: bool) -> bool:
    if as_json or not sys.stdin.isatty():
        raise ConfigError("nobody is here to ask; --yes accepts what moved without asking")
    return typer.confirm(f"accept the new answers of {count} case{'s' if count != 1 else ''}?")


def _proposal_text(proposal: Proposal) -> str:
    notes = "".join(f"\n  note: {note}" for note in proposal.notes)
    if proposal.comparison is None:
        return f"case {proposal.name}: not compared with the old answers: {proposal.why_not_compared}{notes}"
    if not proposal.moved:
        return f"case {proposal.name}: no answer moved{notes}"
    title = f"case {proposal.name}"
    shown = terminal.render_comparison(proposal.comparison, title, colour=options.colour())
    return f"{shown.rstrip()}{notes}"


def _proposal_dict(proposal: Proposal, accepted: bool) -> dict[str, Any]:
    comparison = proposal.comparison
    return {
        "case": proposal.name,
        "moved": proposal.moved,
        "accepted": accepted,
        "notes": list(proposal.notes),
        "not_compared": proposal.why_not_compared,
        "comparison": comparison.to_dict() if comparison is not None else None,
    }


def _case_dict(case: GoldenCase, notes: list[str]) -> dict[str, Any]:
    return {"case": case.name, "path": str(case.path), **case.meta.to_dict(), "notes": notes}
