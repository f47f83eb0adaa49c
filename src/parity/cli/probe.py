"""`parity probe`: which buckets give bit-identical rows here, and the certificate that says so."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from parity import exact, golden
from parity.batch import Batch
from parity.cli import options
from parity.cli.row_files import read_rows
from parity.codec import arrow
from parity.errors import GoldenError
from parity.exact import BucketFinding, Certificate, Probe
from parity.exact.conditions import conditions_of
from parity.exact.places import shown_path
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.registry import load_handler


def probe(
    handler: options.HandlerRef,
    rows: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Rows to probe with, as for `parity run`; else golden rows."),
    ] = None,
    buckets: Annotated[
        str | None,
        typer.Option(metavar="N,N", help="Batch sizes to try; by default 1,2,4,8,16,32,64,96,128."),
    ] = None,
    write: Annotated[
        bool | None,
        typer.Option(
            "--write/--dry-run", help="Write the certificate, or only tell. Written by default, not in CI."
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="File (.json) or folder for it; by default certificates/ beside the handler."),
    ] = None,
    profile: options.ProfileName = "default",
    set_: options.Settings = None,
    app_dir: options.AppDir = None,
    golden_dir: options.GoldenDir = None,
    as_json: options.AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Tell no progress.")] = False,
) -> None:
    """Find the batch sizes that give rows the same bits in any company here, and certify them.

    With `exact = true` in a profile every runner then uses these sizes only, and refuses to start where the
    certificate does not hold. Exit codes: 0 certified; 1 no size holds, or not the profile's own; 5 no row
    has an answer; 7 the handler differs from itself under identical conditions.
    """
    sizes = exact.DEFAULT_BUCKETS if buckets is None else options.batch_sizes(buckets)
    loaded = load_handler(handler, app_dir=app_dir)
    chosen = loaded.profile(profile).with_settings(set_ or [])
    if certificate is not None:
        chosen = replace(chosen, certificate=str(certificate.absolute()))
    say = _silent if quiet or as_json else options.say
    real, source = _rows(loaded, rows, golden_dir)
    if real is None or real.num_rows < exact.LEAST_ROWS:
        count = 0 if real is None else real.num_rows
        options.say(
            f"warning: {count} real rows; others are made from the schema, and prove less: record a golden "
            f"case of {exact.LEAST_ROWS} or more, or give --rows FILE"
        )
    found = exact.probe(
        loaded,
        chosen,
        real,
        source=source,
        buckets=sizes,
        elsewhere=exact.ask,
        progress=say,
    )
    path: Path | None = None
    if write if write is not None else not golden.in_ci():
        path = _keep(loaded, chosen, found)
    if as_json:
        options.emit(json.dumps(_as_dict(loaded, found, path)))
    else:
        for line in _lines(loaded, found, path):
            options.emit(line)
    raise typer.Exit(found.exit_code)


def _rows(loaded: LoadedHandler, file: str | None, golden_dir: Path | None) -> tuple[Batch | None, str]:
    """Real rows, and where they came from: the file, else all golden cases."""
    if file is not None:
        decoded = read_rows(file, loaded.inputs)
        if decoded.errors:
            options.say(
                f"warning: {len(decoded.errors)} rows of {file} do not fit the schema, and are left out"
            )
        return decoded.batch, f"rows of {Path(file).name}"
    try:
        cases = golden.find_cases(loaded, golden_dir)
    except GoldenError as exc:
        options.say(f"warning: golden rows cannot be used: {exc}")
        return None, ""
    if not cases:
        return None, ""
    return Batch.concat(
        [arrow.decode_table(loaded.inputs, case.inputs).batch for case in cases]
    ), "golden rows"


def _keep(loaded: LoadedHandler, profile: Profile, found: Probe) -> Path | None:
    """Write the certificate; where there is none, remove one that promised what does not hold any more."""
    place = exact.certificate_place(loaded, profile)
    if found.certificate is not None:
        path = exact.certificate_file(place, found.certificate.id)
        exact.write_certificate(found.certificate, path)
        return path
    stale = exact.certificate_file(place, conditions_of(loaded, profile, place).id)
    if stale.is_file():
        stale.unlink()
        options.say(f"removed {shown_path(stale)}: what it promised does not hold")
    return None


def _lines(loaded: LoadedHandler, found: Probe, path: Path | None) -> Iterator[str]:
    profile, certificate = found.profile, found.certificate
    processes = f", {certificate.processes} processes" if certificate is not None else ""
    yield (
        f"{loaded.name} {loaded.version}, profile {profile.name} ({profile.device}, {profile.precision}, "
        f"threads {profile.threads}): {found.source}{processes}"
    )
    yield from _table(found)
    if certificate is None:
        yield from _refusal(found)
        return
    names = [f"{_letter(number)} = {_numbers(held)}" for number, held in enumerate(certificate.classes)]
    yield f"classes, each with one and the same bits: {'; '.join(names)}"
    for threads, same in certificate.threads.items():
        holding = [finding.bucket for finding in found.findings if finding.holds]
        told = (
            "the same bits" if len(same) == len(holding) else f"the same bits at {_numbers(same) or 'none'}"
        )
        yield f"with threads = {threads}: {told}"
    yield from _lengths(found)
    yield from _refusal(found)
    if found.promised:
        yield f"exact mode takes the buckets {_numbers(found.promised)}"
        yield (
            f"wrote {shown_path(path)}" if path is not None else "not written; --write writes the certificate"
        )
        if path is not None and not profile.exact:
            yield f"next: exact = true in [profiles.{profile.name}] of handler.toml, or --set exact=true"


def _lengths(found: Probe) -> Iterator[str]:
    """What is known about inputs that the handler pads to the longest of their batch."""
    for finding in found.findings:
        groups = [" ".join(group) for group in finding.lengths]
        if len(groups) == 1:
            yield f"bucket {finding.bucket}: the same bits at all lengths seen: {groups[0]}"
        elif groups:
            told = " | ".join(groups)
            yield f"bucket {finding.bucket}: other bits by length, the same within each group: {told}"


def _table(found: Probe) -> Iterator[str]:
    head = ("bucket", "verdict", "class", "rows differing", "positions", "ulp", "ms/batch", "ms/row")
    lines = [head, *(_cells(finding, found.certificate) for finding in found.findings)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = [
            cell.ljust(width) if column in (1, 2) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _cells(finding: BucketFinding, certificate: Certificate | None) -> tuple[str, ...]:
    number = certificate.class_of((finding.bucket,)) if certificate is not None else None
    return (
        str(finding.bucket),
        finding.verdict,
        "-" if number is None else _letter(number),
        f"{finding.rows_differing} of {finding.rows}",
        str(finding.positions_differing),
        f"{finding.ulp:.3g}" if math.isfinite(finding.ulp) else "-",
        f"{finding.ms_per_batch:.3f}",
        f"{finding.ms_per_row:.4f}",
    )


def _refusal(found: Probe) -> Iterator[str]:
    """What does not hold, and what to do instead."""
    failed = [finding for finding in found.findings if not finding.holds]
    for finding in failed:
        yield finding.sentence()
    if found.is_nondeterministic:
        yield (
            "no bucket can be promised: the handler differs from itself under identical conditions; "
            "`parity check` looks for the cause (train mode, random numbers, state kept between batches)"
        )
        return
    holding = [finding.bucket for finding in found.findings if finding.holds]
    if not found.promised and holding and found.profile.buckets:
        yield f"the profile's buckets {_numbers(found.profile.buckets)} are not of one class"
    if not failed:
        return
    if any(finding.is_beyond_rounding and finding.verdict == "neighbours" for finding in failed):
        yield (
            "warning: that is no rounding: an answer depends on the other rows of its batch, whatever the "
            "bucket; `parity check --law neighbours` shows how"
        )
    if any(finding.verdict == "length" for finding in failed):
        yield "a length decides: pad in preprocess to lengths that no neighbour decides, and mask the padding"
    ideas = ["another multiple of 16 (--buckets 48,80,112)"]
    ideas.append("a batch of one (buckets = [1])" if 1 in holding else "a batch of one (--buckets 1)")
    ideas.append("no exact mode: answers are then compared by tolerance")
    yield f"where a bucket does not hold: {'; '.join(ideas)}"


def _as_dict(loaded: LoadedHandler, found: Probe, path: Path | None) -> dict[str, Any]:
    certificate = found.certificate
    return {
        "handler": loaded.name,
        "version": loaded.version,
        "profile": found.profile.name,
        "source": found.source,
        "promised": list(found.promised),
        "classes": [list(held) for held in certificate.classes] if certificate is not None else [],
        "threads": {str(key): list(held) for key, held in certificate.threads.items()} if certificate else {},
        "buckets": [
            {**finding.to_dict(), "ms_per_row": round(finding.ms_per_row, 5), "sentence": finding.sentence()}
            for finding in found.findings
        ],
        "certificate": str(path) if path is not None else None,
        "id": certificate.id if certificate is not None else None,
        "exit_code": found.exit_code,
    }


def _letter(number: int) -> str:
    return chr(ord("A") + number)


def _numbers(buckets: Sequence[int]) -> str:
    return ", ".join(map(str, buckets))


def _silent(line: str) -> None:
    del line
