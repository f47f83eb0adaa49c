"""`parity replay`: recorded traffic through a runner, and how far the answers have drifted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from parity.cli import options
from parity.compare import read_tolerances
from parity.errors import ConfigError
from parity.replay import DEFAULT_RUNNER, Wanted, html, moment_ns, replay_capture, terminal
from parity.replay.goldens import traffic_as_golden


def replay(
    captured: Annotated[
        str, typer.Argument(metavar="CAPTURED", help="What was given to --capture: a folder or a URL.")
    ],
    runner: Annotated[str, typer.Option(help="The runner that answers now.")] = DEFAULT_RUNNER,
    wire: Annotated[str | None, typer.Option(help="Its wire form; its first by default.")] = None,
    handler: Annotated[
        str | None,
        typer.Option(metavar="HANDLER", help="The handler to ask; handlers/<recorded name> by default."),
    ] = None,
    version: Annotated[
        list[str] | None, typer.Option("--version", help="Only rows recorded by this version; repeatable.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only rows from this time on; UTC without a zone.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only rows before this time.")] = None,
    sample: Annotated[float, typer.Option(help="Only this share of the recorded requests.")] = 1.0,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many rows.")] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=JSON", help="A value for an input that was not recorded; repeatable."),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile of handler.toml to run with; the recorded one by default.")
    ] = None,
    set_: options.Settings = None,
    app_dir: options.AppDir = None,
    as_golden: Annotated[
        str | None,
        typer.Option(metavar="CASE", help="When all agrees, keep up to --limit (100) rows as a golden case."),
    ] = None,
    golden: options.GoldenDir = None,
    tolerance: Annotated[
        Path | None, typer.Option(help="A TOML file of tolerances; the handler's own by default.")
    ] = None,
    html_path: Annotated[Path | None, typer.Option("--html", help="Write an HTML report here, too.")] = None,
    as_json: options.AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Tell no progress.")] = False,
) -> None:
    """Ask recorded requests again, through a runner's whole real path, and report how the answers drifted.

    Exit codes: 0 all that was compared agrees; 1 drift; 2 usage, configuration or an unreadable capture; 4
    refused; 5 nothing compared; 6 the runner failed to start or crashed.
    """
    if html_path is not None and not html_path.absolute().parent.is_dir():
        raise typer.BadParameter(f"--html {html_path}: folder {html_path.parent} does not exist")
    wanted = Wanted(
        versions=tuple(version or ()),
        since_ns=None if since is None else moment_ns(since, "--since"),
        until_ns=None if until is None else moment_ns(until, "--until"),
        sample=sample,
        limit=limit,
    )
    assumed = dict(_assumption(text) for text in assume or ())
    progress = None if quiet or as_json else options.say
    report = replay_capture(
        captured,
        runner=runner,
        wire=wire,
        handler=handler,
        app_dir=app_dir,
        profile=profile,
        settings=set_ or [],
        wanted=wanted,
        assume=assumed,
        tolerances=None if tolerance is None else read_tolerances(tolerance),
        progress=progress,
    )
    if html_path is not None:
        html_path.write_text(html.render(report), encoding="utf-8")
    if as_json:
        options.emit(json.dumps(report.to_dict(), ensure_ascii=False))
    else:
        options.emit(terminal.render(report, colour=options.colour()), nl=False)
    if as_golden is not None:
        case = traffic_as_golden(
            report,
            as_golden,
            wanted=wanted,
            assume=assumed,
            profile=profile,
            settings=set_ or [],
            golden=golden,
            app_dir=app_dir,
        )
        said = f"recorded {case.path}: {case.meta.rows} rows; look at it, then commit it"
        typer.echo(said, err=True) if as_json else options.emit(said)
    raise typer.Exit(report.exit_code)


def _assumption(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--assume {text!r} is not of the form FIELD=JSON, such as name='\"Ada\"'")
    try:
        return name.strip(), json.loads(value)
    except ValueError as exc:
        raise ConfigError(
            f"--assume {name}: {value!r} is not JSON ({exc}); text goes in double quotes"
        ) from None
