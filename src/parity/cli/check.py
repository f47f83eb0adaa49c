"""`parity check`: the proof."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from parity.check import run_check
from parity.cli import options
from parity.durable import write_text
from parity.report import CheckReport, github, junit, terminal
from parity.report import as_json as json_report
from parity.report import html as html_report

_DEVICE = "device"
"""The law that compares profiles."""


def check(
    handler: options.HandlerRef,
    runner: Annotated[
        list[str] | None,
        typer.Option(
            "--runner",
            help="Only this runner; repeatable. All by default; those that start slowly with --thorough.",
        ),
    ] = None,
    case: options.Cases = None,
    law: Annotated[
        list[str] | None, typer.Option("--law", help="Only this law; repeatable. All by default.")
    ] = None,
    no_laws: Annotated[bool, typer.Option("--no-laws", help="Try no law.")] = False,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Try the laws on more rows and in more ways; takes longer.")
    ] = False,
    profile: options.ProfileName = "default",
    profiles: Annotated[
        list[str] | None,
        typer.Option(
            "--profiles",
            metavar="NAME,NAME",
            help="Other profiles that must give the same answers (device, precision, backend); repeatable.",
        ),
    ] = None,
    set_: options.Settings = None,
    app_dir: options.AppDir = None,
    golden: options.GoldenDir = None,
    html: Annotated[Path | None, typer.Option(help="Write an HTML report here, too.")] = None,
    junit_file: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML here, too.")
    ] = None,
    github_: Annotated[
        bool,
        typer.Option(
            "--github", help="For GitHub Actions: print annotations, and write the job's summary, too."
        ),
    ] = False,
    as_json: options.AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Tell no progress.")] = False,
) -> None:
    """Prove that every runner gives the recorded answers, and that the handler obeys the laws.

    Exit codes: 0 all agrees; 1 divergence; 2 usage or configuration; 3 golden missing, stale or orphaned;
    4 refused; 5 nothing compared, over all or by a law; 6 a runner failed to start or crashed, or a law
    could not be tried; 7 the handler is nondeterministic.
    """
    if no_laws and law:
        raise typer.BadParameter("--law and --no-laws exclude each other")
    if profiles and (no_laws or (law and _DEVICE not in law)):
        raise typer.BadParameter(
            f"--profiles is for the law {_DEVICE}, which is left out here; add --law {_DEVICE}"
        )
    for name, file in (("--html", html), ("--junit", junit_file)):
        if file is not None and not file.absolute().parent.is_dir():
            raise typer.BadParameter(f"{name} {file}: folder {file.parent} does not exist")
    others = [name for text in profiles or [] for name in text.split(",") if name]
    report = run_check(
        handler,
        app_dir=app_dir,
        profile=profile,
        settings=set_ or [],
        runners=runner,
        cases=case or [],
        golden=golden,
        laws=[] if no_laws else law,
        profiles=others,
        thorough=thorough,
        progress=None if quiet or as_json else options.say,
    )
    if html is not None:
        write_text(html, html_report.render(report))
    if junit_file is not None:
        write_text(junit_file, junit.render(report))
    if as_json:
        options.emit(json_report.render(report), nl=False)
    else:
        options.emit(terminal.render(report, colour=options.colour()), nl=False)
    if github_:
        _tell_github(report, to_stderr=as_json)
    raise typer.Exit(report.exit_code)


def _tell_github(report: CheckReport, *, to_stderr: bool) -> None:
    """Print annotations, on standard error where standard output is JSON; and write the job's summary."""
    for line in github.commands(report):
        typer.echo(line, err=True) if to_stderr else options.emit(line)
    summary = os.environ.get(github.SUMMARY_VARIABLE)
    if summary:
        github.write_summary(report, summary)
