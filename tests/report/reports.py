"""Reports to render: real comparisons of small tables."""

# pyright: reportArgumentType=false, reportCallIssue=false
# The pyarrow stubs refuse dicts of numpy arrays, which pyarrow takes.

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from parity.compare import Close, Comparison, Tolerances, compare
from parity.laws.noise import ColumnNoise
from parity.laws.outcome import Counterexample, LawOutcome
from parity.replay import DriftReport
from parity.replay.model import ColumnDrift, FailureDrift, LabelDrift, ScoreDrift, Slice, Traffic
from parity.replay.model import WorstRow as DriftedRow
from parity.report import CheckReport, Entry
from parity.triage import Cause, Diagnosis, RuledOut, StageCheck

HOSTILE = "<script>alert('x')</script>\x1b[2J\u202e"
FINGERPRINT = {"python": "3.11.9", "torch": "2.13.0", "cpu": "x86-64 AVX2", "threads": "1"}


def answers(rows: int = 64, noise: float = 0.0, name: str = "boot") -> pa.Table:
    random = np.random.default_rng(0)
    confidence = random.random(rows, np.float32)
    shift = np.random.default_rng(1).normal(size=rows).astype(np.float32) * np.float32(noise)
    return pa.table({"label": [name] * rows, "confidence": (confidence + shift).astype(np.float32)})


def same() -> Comparison:
    return compare(answers(), answers())


def within() -> Comparison:
    return compare(answers(), answers(noise=1e-7))


def divergent(text: str = "boot") -> Comparison:
    inputs = pa.table({"title": [text] * 64, "pixels": [[0] * 784] * 64})
    wrong = answers(noise=1e-3, name=text).append_column("extra" + text, [[1] * 64])
    return compare(answers(), wrong, inputs=inputs)


def failing() -> Comparison:
    """Give a comparison of rows that were recorded to fail, and do."""
    errors = pa.array([{"kind": "rejected", "stage": "preprocess", "field": None, "message": "no"}] * 4)
    table = pa.table({"label": pa.nulls(4, pa.string()), "_error": errors})
    return compare(table, table)


def entry(
    comparison: Comparison | None, runner: str = "batch", wire: str | None = None, **more: object
) -> Entry:
    return Entry(runner, more.pop("case", "sample"), wire, 64, comparison, 0.25, **more)  # pyright: ignore


SNIPPET = """import parity

with parity.Engine(parity.load_handler("handlers/fashion")) as engine:
    print(engine.run(rows))
"""


def law(verdict: str = "holds", name: str = "order", text: str = "", **more: Any) -> LawOutcome:
    found = None
    if verdict == "broken":
        rows = pa.table({"title": [text or "boot", "shoe"], "price": [1.5, float("nan")]})
        labels = ("row 5", f"neighbour: {text or 'nan'}")
        found = Counterexample(
            rows,
            labels,
            0,
            "confidence",
            0.5,
            float("nan"),
            "alone, and in this batch of 2",
            before=rows if more.pop("before", False) else None,
            snippet=more.pop("snippet", ""),
        )
    sentence = "The answer for a row does not depend on the order of rows."
    return LawOutcome(name, sentence, verdict, 128, detail=f"found {text}", counterexample=found, **more)  # pyright: ignore


def report(*entries: Entry, laws: tuple[LawOutcome, ...] = (), **more: str) -> CheckReport:
    names = {"handler": "fashion", "version": "1.0", "profile": "default (cpu, float32)", **more}
    return CheckReport(**names, fingerprint=FINGERPRINT, entries=entries, laws=laws)


def agreeing() -> CheckReport:
    entries = [entry(same(), "notebook"), entry(within(), "batch"), entry(within(), "online", "json")]
    return report(*entries, laws=(law(), law("noise", "batch-size", "float noise from batch shapes")))


def differing() -> CheckReport:
    recorded = {**FINGERPRINT, "torch": "2.12.1"}
    entries = [
        entry(same(), "notebook", recorded=recorded),
        entry(divergent(), "online", "json", recorded=recorded),
        entry(None, "online", "v2", error="the server ended with status 1 before it was ready"),
    ]
    return report(*entries, laws=(law(), law("broken", "neighbours")), reference="handlers/fashion")


def diagnosis(text: str = "") -> Diagnosis:
    """Give a diagnosis such as triage makes of exchanged channels, with `text` in every place."""
    return Diagnosis(
        stage="preprocess",
        place=f"value['pixels']{text}",
        column=f"confidence{text}",
        rows=tuple(row for row in range(64) if row % 6),
        cause=Cause(
            f"channel-order{text}",
            f"the channels of an image come in another order{text}",
            f"the permutation [2, 1, 0] of axis 0 makes all 53 differing rows equal{text}",
            f"decode to RGB on both sides; OpenCV gives BGR{text}",
        ),
        also=(Cause(f"transpose{text}", f"two axes are exchanged{text}", f"3 rows become equal{text}"),),
        ruled_out=(
            RuledOut(f"row-order{text}", f"no permutation of the rows makes them equal{text}"),
            RuledOut("affine-scale", "the best line leaves a difference of 0.31"),
            RuledOut("weights", "the digests of the artifacts are equal"),
        ),
        stages=(
            StageCheck("decode", "identical"),
            StageCheck(
                "preprocess", "divergent", f"value['pixels']{text}", (1, 2, 3), 0.71, f"53 rows{text}"
            ),
            StageCheck("inference", "divergent", "value", (1, 2, 3), 1.42, "53 of 64 rows differ"),
            StageCheck("postprocess", "divergent", "confidence", (1, 2, 3), 0.5, "53 of 64 rows differ"),
            StageCheck("encode", "unknown"),
        ),
        figures={f"max abs{text}": 1.42, "rows differing": 53.0},
    )


def diagnosed(text: str = "") -> CheckReport:
    """Give a report of a divergence and of a broken law of which the causes were found."""
    found = entry(divergent(), "online", "json", diagnosis=diagnosis(text))
    noise = (ColumnNoise(f"confidence{text}", "float32", 128, 12, 3.0, 1e-7, 1e-7),)
    laws = (
        law("broken", "neighbours", text, diagnosis=diagnosis(text), snippet=SNIPPET + text, before=True),
        law("broken", "order", follows="neighbours"),
        law("noise", "batch-size", noise=noise, executed=("in batches of 1", f"in batches of 7{text}")),
    )
    return report(found, laws=laws, reference="handlers/fashion")


def hostile() -> CheckReport:
    entries = [
        entry(
            divergent(HOSTILE),
            HOSTILE,
            HOSTILE,
            case=HOSTILE,
            recorded={HOSTILE: HOSTILE},
            diagnosis=diagnosis(HOSTILE),
        ),
        entry(None, HOSTILE, error=HOSTILE),
    ]
    return report(
        *entries,
        laws=(law("broken", HOSTILE, HOSTILE), *diagnosed(HOSTILE).laws),
        handler=HOSTILE,
        version=HOSTILE,
        profile=HOSTILE,
    )


def drift() -> DriftReport:
    """Give a report of replayed traffic of three days, in which answers drift from the second on."""
    hours = tuple(
        Slice(f"2026-11-{27 + hour // 24} {hour % 24:02}:00", 100, hour, max(0, hour - 24), hour % 5, 0)
        for hour in range(72)
    )
    long = f"1.0.0-{'x' * 200}"
    found = divergent(HOSTILE)
    columns = tuple(
        ColumnDrift(
            c.name, c.dtype, c.rule, c.rows, c.identical, c.within, c.failing, largest_ulp=c.worst_ulp
        )
        for c in found.columns
    )
    worst = tuple(
        DriftedRow(HOSTILE, row.row, "2026-11-27T10:00:00", long, "x", row.where, 1.5, 2.5, row.reason, True)
        for row in found.columns[1].worst
    )
    return DriftReport(
        "fashion",
        "2.0",
        "handlers/fashion",
        "batch",
        "parquet",
        Traffic(
            "captured",
            3,
            7200,
            first="2026-11-27T00:00:00",
            last="2026-11-29T23:59:59",
            handlers={long: 7200},
        ),
        7200,
        columns=columns,
        notes=(HOSTILE,),
        labels=(LabelDrift("label", False, 7200, 12, ((HOSTILE, "boot", 9), ("shoe", "boot", 3))),),
        scores=(
            ScoreDrift("x", 72, 40, 32, 0.5, 0.6, 0.1, 0.1, ((0.5, 0.1),), 0.4, 0.99, 0.9, ((10, 0.9),), 72),
        ),
        failures=FailureDrift(1, 2, 3, ((HOSTILE, 2),)),
        hours=hours,
        versions=(Slice(long, 7000, 100, 50, 3, 1), Slice("2.0", 200, 100, 50, 3, 1)),
        worst=worst,
    )


def loose() -> Comparison:
    return compare(answers(), answers(noise=1e-3), Tolerances({"confidence": Close(atol=0.01)}))
