"""The sides of a divergence, with their stage values: a recorded case, this process, a runner's process."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

from parity.codec.arrow import decode_table
from parity.engine import Engine
from parity.golden import GoldenCase
from parity.registry import Runner
from parity.result import Result
from parity.stages import Traces, read_tap, read_tap_fingerprint, tapped, traces
from parity.triage.model import Side
from parity.work import merge


def recorded_side(case: GoldenCase) -> Side:
    """What a golden case says, with its stage values where it was recorded with them."""
    meta = case.meta
    fingerprint = {
        **meta.fingerprint,
        **{f"digest.{kind}": meta.digests[kind] for kind in ("source", "artifacts") if kind in meta.digests},
        "handler": f"{meta.handler}@{meta.version}",
    }
    found = case.traces
    if found is not None and found.num_rows != case.inputs.num_rows:
        found = _on(case.inputs, found)  # rows that do not fit the schema never got to a stage
    return Side(f"as recorded in case {case.name}", case.expected, found, fingerprint)


def engine_side(engine: Engine, rows: pa.Table, name: str = "in this process") -> Side:
    """The answers of an entered engine to rows of the canonical types, asked as one batch."""
    decoded = decode_table(engine.loaded.inputs, rows)
    engine_result = engine.run(decoded.batch, stages=True)
    result = merge(decoded, engine_result)
    found = traces(decoded.batch, engine_result)
    if decoded.errors:
        place = {int(row): offset for offset, row in enumerate(decoded.index)}
        found = Traces.concat(
            [
                found.take([place[row]]) if row in place else found.missing(1)
                for row in range(decoded.num_rows)
            ]
        )
    return Side(name, result.to_table(), found, engine.fingerprint())


def runner_side(runner: Runner, wire: str, engine: Engine, rows: pa.Table) -> Side:
    """The answers through a runner's whole real path once more, this time with what its stages gave.

    Raises:
        RunnerError: the runner failed to start or crashed.
    """
    loaded = engine.loaded
    with tempfile.TemporaryDirectory(prefix="parity-tap-") as folder:
        with tapped(Path(folder)):
            result: Result = runner.replay(
                loaded.ref, rows, engine.profile, app_dir=loaded.app_dir, wire=wire
            )
        tap = read_tap(Path(folder))
        fingerprint = read_tap_fingerprint(Path(folder))
    form = f" as {wire}" if len(runner.wire_forms) > 1 else ""
    name = f"through the {runner.name} runner{form}"
    return Side(name, result.to_table(), None if tap is None else _on(rows, tap), fingerprint)


def _on(rows: pa.Table, tap: Traces) -> Traces:
    """The traces of `rows`: found by content, and where decoding changed a row, by what is left over.

    A row that reached the handler changed is none of those sent. As many such rows as were sent and not
    found are paired in the order in which they came, which is a guess only where several rows changed and
    requests overtook each other. A row that the runner refused has nulls.
    """
    found, known, strangers = tap.aligned(rows)
    lost = [position for position in range(rows.num_rows) if position not in set(known)]
    if not lost:
        return found
    guessed = dict(zip(lost, strangers, strict=False))
    place = {position: offset for offset, position in enumerate(known)}
    parts = [
        found.take([place[position]])
        if position in place
        else tap.take([guessed[position]])
        if position in guessed
        else tap.missing(1)
        for position in range(rows.num_rows)
    ]
    return Traces.concat(parts)
