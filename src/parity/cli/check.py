"""`parity check`: the proof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from parity.check import run_check
from parity.cli import options
from parity.report import as_json as json_report
from parity.report import html as html_report
from parity.report import terminal


def check(
    handler: options.HandlerRef,
    runner: Annotated[
        list[str] | None, typer.Option("--runner", help="Only this runner; repeatable. All by default.")
    ] = None,
    case: options.Cases = None,
    law: Annotated[
        list[str] | None, typer.Option("--law", help="Only this law; repeatable. All by default.")
    ] = None,
    no_laws: Annotated[bool, typer.Option("--no-laws", help="Try no law.")] = False,
    profile: options.ProfileName = "default",
    set_: options.Settings = None,
    app_dir: options.AppDir = None,
    golden: options.GoldenDir = None,
    html: Annotated[Path | None, typer.Option(help="Write an HTML report here, too.")] = None,
    as_json: options.AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Tell no progress.")] = False,
) -> None:
    """Prove that every runner gives the recorded answers, and that the handler obeys the laws.

    Exit codes: 0 all agrees; 1 divergence; 2 usage or configuration; 3 golden missing, stale or orphaned;
    4 refused; 5 nothing compared; 6 a runner failed to start or crashed; 7 the handler is nondeterministic.
    """
    if no_laws and law:
        raise typer.BadParameter("--law and --no-laws exclude each other")
    if html is not None and not html.absolute().parent.is_dir():
        raise typer.BadParameter(f"--html {html}: folder {html.parent} does not exist")
    report = run_check(
        handler,
        app_dir=app_dir,
        profile=profile,
        settings=set_ or [],
        runners=runner,
        cases=case or [],
        golden=golden,
        laws=[] if no_laws else law,
        progress=None if quiet or as_json else options.say,
    )
    if html is not None:
        html.write_text(html_report.render(report), encoding="utf-8")
    if as_json:
        typer.echo(json_report.render(report), nl=False)
    else:
        typer.echo(terminal.render(report, colour=options.colour()), nl=False)
    raise typer.Exit(report.exit_code)
