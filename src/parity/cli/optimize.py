"""`parity optimize`: a faster profile, accepted only with proof."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, get_args

import typer

from parity.cli import options
from parity.errors import ConfigError
from parity.optimize import Optimization, Tried, Wanted, require_free, write_profile
from parity.optimize import optimize as search
from parity.optimize.writing import as_json as findings_json
from parity.profile import ModelBackend, Precision
from parity.registry import load_handler


def optimize(
    handler: options.HandlerRef,
    target: Annotated[
        Literal["latency", "throughput"],
        typer.Option(help="latency: batches of one row; throughput: of the largest bucket, or 32 rows."),
    ] = "latency",
    sla_p99: Annotated[
        str | None,
        typer.Option("--sla-p99", metavar="TIME", help="Accept no batch time above it at p99, such as 50ms."),
    ] = None,
    least_speedup: Annotated[
        float, typer.Option("--least-speedup", help="Accept nothing that is not so many times as fast.")
    ] = 1.1,
    backends: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="Model backends to try; by default those that run here."),
    ] = None,
    precisions: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="Precisions to try; by default the profile's own."),
    ] = None,
    buckets: Annotated[
        str | None, typer.Option(metavar="N,N", help="Buckets to try beside the profile's own.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long a candidate's speed is measured at most.")] = 8.0,
    write: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Write the winner to handler.toml as this profile, and its proof."),
    ] = None,
    profile: options.ProfileName = "default",
    set_: options.Settings = None,
    app_dir: options.AppDir = None,
    golden: options.GoldenDir = None,
    as_json: options.AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Tell no progress.")] = False,
) -> None:
    """Try model backends, precisions and buckets; accept what is faster and keeps goldens and laws.

    A candidate is measured only after its golden answers were within tolerance and the laws of batches held.
    Exit codes: 0 one was accepted; 1 none was; 3 there are no goldens to prove anything by; 5 none could be
    tried.
    """
    if not least_speedup > 0 or not seconds > 0:
        raise typer.BadParameter("--least-speedup and --seconds are numbers above 0")
    wanted = Wanted(
        target=target,
        goal=least_speedup,
        p99_ms=None if sla_p99 is None else _milliseconds(sla_p99),
        backends=_names("--backends", backends, get_args(ModelBackend)),
        precisions=_names("--precisions", precisions, get_args(Precision)),
        buckets=() if buckets is None else options.batch_sizes(buckets),
        seconds=seconds,
    )
    if write is not None:
        require_free(load_handler(handler, app_dir=app_dir), write)
    found = search(
        handler,
        wanted,
        profile=profile,
        settings=set_ or [],
        app_dir=app_dir,
        golden_dir=golden,
        progress=_silent if quiet or as_json else options.say,
    )
    if as_json:
        options.emit(findings_json(found))
    else:
        for line in _lines(found):
            options.emit(line)
    if write is not None and found.winner is not None:
        toml, proof = write_profile(load_handler(handler, app_dir=app_dir), found, write)
        options.say(f"wrote [profiles.{write}] to {toml.name}, and {proof.parent.name}/{proof.name}")
    raise typer.Exit(found.exit_code)


def _lines(found: Optimization) -> Iterator[str]:
    base = found.base
    memory = f", {found.base_memory_mb:.0f} MB" if found.base_memory_mb is not None else ""
    rows = "1 row" if found.batch_rows == 1 else f"{found.batch_rows} rows"
    yield f"{found.handler} {found.version}, in place of profile {base.name}: batches of {rows}{memory}"
    head = ("candidate", "speed-up", "95 %", "ms", "p99 ms", "MB", "worst", "flips", "verdict")
    lines = [head, *(_cells(item) for item in found.tried)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = [
            cell.ljust(width) if column in (0, len(head) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
    for item in found.tried:
        if item.reason:
            yield f"{item.name}: {item.reason}"
    winner = found.winner
    if winner is None:
        yield f"no candidate is accepted; profile {base.name} stays the fastest that is proved"
    else:
        pace = winner.pace
        assert pace is not None, "an accepted candidate was measured"
        yield f"best: {winner.name}, {pace.ratio:.2f} times as fast; --write NAME keeps it, with its proof"


def _cells(item: Tried) -> tuple[str, ...]:
    pace = item.pace
    known = item.proof is not None
    return (
        item.name,
        "-" if pace is None else f"{pace.ratio:.2f}",
        "-" if pace is None else f"{pace.low:.2f}..{pace.high:.2f}",
        "-" if pace is None else f"{pace.ms:.3g}",
        "-" if pace is None else f"{pace.p99_ms:.3g}",
        "-" if item.memory_mb is None else f"{item.memory_mb:.0f}",
        "-" if item.worst_ulp is None else f"{item.worst_ulp:.3g} ulp",
        f"{item.flips} of {item.rows}" if known else "-",
        item.verdict,
    )


def _milliseconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|)", text.strip())
    if match is None or float(match[1]) <= 0:
        raise ConfigError(f"--sla-p99 {text} is not a time such as 50ms or 0.05s")
    return float(match[1]) * (1000 if match[2] == "s" else 1)


def _names(option: str, text: str | None, known: Sequence[str]) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        raise ConfigError(
            f"{option} {text}: {', '.join(wrong) or 'nothing'} is not one of {', '.join(known)}"
        )
    return names


def _silent(line: str) -> None:
    del line
