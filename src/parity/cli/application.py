"""The typer application: our commands, the installed runners' commands, and how errors are shown.

A command's module is imported when it is asked for, or to list all: what one command needs costs no other
one its start, and a batch job or a server is started often.
"""

from __future__ import annotations

import importlib
import sysconfig
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from parity import __version__
from parity.cli import options
from parity.errors import ConfigError, ParityError, StageError
from parity.registry import command_without, find_runner, runner_names

OWN: Final[Mapping[str, str]] = {
    "run": "parity.cli.run:run",
    "golden": "parity.cli.golden:app",
    "check": "parity.cli.check:check",
    "compare": "parity.cli.compare:compare_files",
    "probe": "parity.cli.probe:probe",
    "optimize": "parity.cli.optimize:optimize",
    "replay": "parity.cli.replay:replay",
    "new": "parity.cli.new:new",
    "pack": "parity.cli.pack:pack",
    "doctor": "parity.cli.doctor:doctor",
}
"""Our commands in the order in which they are listed: a function, or the typer application of several."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells give it."""


class Commands(TyperGroup):
    """Our commands, and one for each installed runner; errors become a message and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Our commands in order, then the runners'."""
        del ctx
        return [*OWN, *(name for name in _runner_commands() if name not in OWN)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command called `cmd_name`, imported and made now."""
        del ctx
        if cmd_name in OWN:
            return _own_command(cmd_name)
        runner = cmd_name if _is_command_of_its_runner(cmd_name) else _runner_commands().get(cmd_name)
        return None if runner is None else _command_of(cmd_name, runner)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; show what goes wrong and turn it into an exit code."""
        try:
            return super().invoke(ctx)
        except ParityError as exc:
            show_error(exc)
            raise typer.Exit(exc.exit_code) from exc
        except KeyboardInterrupt as exc:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from exc
        except Exception as exc:
            if isinstance(exc, BrokenPipeError) or _is_of_command_line(exc):
                raise
            if isinstance(exc, OSError) and exc.filename is not None and not _is_users(exc):
                typer.echo(
                    f"error: {exc.filename}: {exc.strerror}; look at the path and who may use it", err=True
                )
                raise typer.Exit(ConfigError.exit_code) from exc
            # A user's own exception, from the import of their module for instance: shown as Python shows it.
            traceback.print_exception(exc.with_traceback(_from_user(exc)))
            raise typer.Exit(ConfigError.exit_code) from exc


def _from_user(exc: Exception) -> TracebackType | None:
    """The traceback from the first frame of the user's own code on, or all of it where there is none."""
    frame = exc.__traceback__
    while frame is not None and _is_plumbing(frame.tb_frame.f_globals.get("__name__", "")):
        frame = frame.tb_next
    # A syntax error has no frame in the file it is in; its message shows the place.
    return frame if frame is not None or isinstance(exc, SyntaxError) else exc.__traceback__


def _is_users(exc: Exception) -> bool:
    """Whether an exception came through a user's code, and not only through ours and libraries."""
    paths = sysconfig.get_paths()
    libraries = ("<frozen", *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")))
    return any(
        not _is_plumbing(frame.f_globals.get("__name__", ""))
        and not frame.f_code.co_filename.startswith(libraries)
        for frame, _ in traceback.walk_tb(exc.__traceback__)
    )


def _is_plumbing(module: str) -> bool:
    top = module.partition(".")[0]
    return top in (
        "parity",
        "typer",
        "click",
        "contextlib",
        "importlib",
        *(f"parity_{name}" for name in runner_names()),
    )


def show_error(exc: ParityError) -> None:
    """Print an error's message; for a stage that raised, the user's own traceback first."""
    cause = exc.__cause__
    if isinstance(exc, StageError) and isinstance(cause, Exception) and not isinstance(cause, ParityError):
        traceback.print_exception(cause)
    typer.echo(f"error: {exc}", err=True)


def _runner_commands() -> dict[str, str]:
    """The command names of the installed runners, and which runner each belongs to.

    A runner that cannot be imported keeps its own name as a command, which says what is missing, unless it
    has none.
    """
    found: dict[str, str] = {}
    for name in runner_names():
        try:
            command_name = find_runner(name).command_name
        except ConfigError:
            command_name = command_without(name)
        if command_name:
            found[command_name] = name
    return found


def _is_command_of_its_runner(name: str) -> bool:
    """Whether a runner called `name` has that command: then no other runner is imported to find it."""
    try:
        return name in runner_names() and find_runner(name).command_name == name
    except ConfigError:
        return False


def _own_command(name: str) -> Any:
    module, _, attribute = OWN[name].partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if isinstance(found, typer.Typer):
        command = get_command(found)
        command.name = name
    else:
        alone = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=False)
        alone.command(name)(found)
        command = get_command(alone)
    _keep_results_alone(command)
    return command


def _keep_results_alone(command: Any) -> None:
    """Let a command have standard output for its result alone, whatever handlers print."""
    for each in getattr(command, "commands", {}).values():
        _keep_results_alone(each)
    if command.callback is not None:
        command.callback = options.results_alone()(command.callback)


def _command_of(command_name: str, runner_name: str) -> Any:
    alone = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=False)
    try:
        runner = find_runner(runner_name)
        alone.command(command_name)(runner.command)
    except ConfigError as exc:
        _add_broken_command(alone, command_name, exc)
        return get_command(alone)
    command = get_command(alone)
    if getattr(runner, "prints_results", False):
        _keep_results_alone(command)
    return command


def _add_broken_command(group: typer.Typer, name: str, error: ConfigError) -> None:
    def fail(arguments: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
        del arguments
        raise error

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    group.command(name, help=f"Not usable here: {error}", context_settings=anything)(fail)


def _is_of_command_line(exc: Exception) -> bool:
    """Whether an exception is the command line library's own: a usage error, an exit, an abort."""
    return any(cls.__module__.partition(".")[0] in ("click", "typer") for cls in type(exc).__mro__)


app = typer.Typer(
    name="parity",
    cls=Commands,
    help="Write one Handler, run it in a notebook, over Parquet and online, and prove that all three agree.",
    invoke_without_command=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _main(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"parity {__version__}")
        raise typer.Exit
