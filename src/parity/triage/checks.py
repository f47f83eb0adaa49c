"""The five stages of both sides compared in order; the first that diverges is to blame.

A stage may differ by float noise of its dtype, which is not blamed; what grows out of such noise is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from parity.compare import Comparison, Tolerances, compare
from parity.result import ERROR_COLUMN
from parity.stages import Traces, Value
from parity.triage.alignment import aligned
from parity.triage.model import Divergence, Side, Stage, StageCheck, StageVerdict
from parity.triage.values import Pair, pairs, places_of

ORDER: Final[tuple[Stage, ...]] = ("decode", "preprocess", "inference", "postprocess", "encode")


@dataclass(frozen=True)
class StageFinding:
    """A stage's check, and the places where the two sides differ at all, worst first."""

    check: StageCheck
    pairs: tuple[Pair, ...] = ()

    @property
    def diverges(self) -> bool:
        """Whether the two sides differ by more than noise."""
        return self.check.verdict == "divergent"


@dataclass(frozen=True)
class Comparisons:
    """Every stage compared.

    Attributes:
        stages: each stage's finding, in order.
        answers: the final answers that differ, by place.
        expected: the traces of one side, aligned with the rows; None where not known.
        obtained: the traces of the other side.
        column: the output column that differs most.
        figures: distances of the final answers by name.
    """

    stages: Mapping[Stage, StageFinding]
    answers: tuple[Pair, ...]
    expected: Traces | None
    obtained: Traces | None
    column: str
    figures: Mapping[str, float]

    @property
    def first(self) -> StageFinding | None:
        """The first stage that diverges."""
        return next((self.stages[stage] for stage in ORDER if self.stages[stage].diverges), None)


def compare_stages(divergence: Divergence, tolerances: Tolerances) -> Comparisons:
    """Compare the two sides of a divergence stage by stage."""
    rows = divergence.rows
    sides = divergence.expected, divergence.obtained
    traces = [None if side.traces is None else aligned(side.traces, rows) for side in sides]
    one, other = traces
    failed = [_failures(side.answers) for side in sides]
    measured_in = _narrow_precision(sides)
    answers, worst_column, figures = _answers(divergence, tolerances)
    found: dict[Stage, StageFinding] = {
        "decode": _decode(rows, one, other, failed),
        "preprocess": _values("preprocess", one, other, failed, measured_in),
        "inference": _values("inference", one, other, failed, measured_in),
        "postprocess": _postprocess(one, other, tolerances, failed, divergence.scale_from),
    }
    found["encode"] = _encode(divergence, one, other, found["postprocess"], answers, failed)
    return Comparisons(_amplified(found), answers, one, other, worst_column, figures)


def _decode(
    rows: pa.Table, one: Traces | None, other: Traces | None, failed: Sequence[Mapping[int, str]]
) -> StageFinding:
    """What each side got, against the other's; a side that was not traced is taken to have got `rows`."""
    refused = _refused_by_one(failed, "decode")
    if one is None and other is None and not refused:
        return StageFinding(StageCheck("decode", "unknown", detail="the decoded rows were not kept"))
    inputs = [places_of(rows if side is None else side.inputs) for side in (one, other)]
    untold = {row for side in failed for row in side}
    untold |= {row for side in (one, other) if side is not None for row in _untraced(side)}
    found = _exact(_without(pairs(inputs[0], inputs[1], rows.num_rows), untold - refused))
    finding = _finding("decode", _with_refusals(found, refused, rows.num_rows))
    if finding.check.verdict == "identical" and (one is None or other is None):
        known = "expected" if other is None else "obtained"
        detail = f"the {known} side got the rows as they are; the other side's were not kept"
        return StageFinding(replace(finding.check, verdict="unknown", detail=detail))
    return finding


def _values(
    stage: Stage,
    one: Traces | None,
    other: Traces | None,
    failed: Sequence[Mapping[int, str]],
    measured_in: str | None,
) -> StageFinding:
    refused = _refused_by_one(failed, stage)
    if (one is None or other is None) and not refused:
        return StageFinding(StageCheck(stage, "unknown", detail=_not_kept(one, other)))
    found: list[Pair] = []
    count = 0
    if one is not None and other is not None:
        count = one.num_rows
        untold = {row for side in failed for row, where in side.items() if where}
        untold |= {row for side in (one, other) for row in _untraced(side)}
        lengths = _lengths(one.inputs)
        whole = pairs(one.stage(stage), other.stage(stage), count, measured_in)
        found = [_but_for_padding(item, lengths) for item in _without(whole, untold)]
    return _finding(stage, _with_refusals(found, refused, count))


def _postprocess(
    one: Traces | None,
    other: Traces | None,
    tolerances: Tolerances,
    failed: Sequence[Mapping[int, str]],
    scale_from: pa.Table | None,
) -> StageFinding:
    refused = _refused_by_one(failed, "postprocess")
    if (one is None or other is None) and not refused:
        return StageFinding(StageCheck("postprocess", "unknown", detail=_not_kept(one, other)))
    if one is None or other is None:
        return _finding("postprocess", _with_refusals([], refused, 0))
    found = _judged(one.outputs, other.outputs, tolerances, scale_from)
    untold = {row for side in failed for row, where in side.items() if where in ("decode", *ORDER[1:3])}
    untold |= {row for side in (one, other) for row in _untraced(side)}
    return _finding("postprocess", _without(found, untold - refused))


def _encode(
    divergence: Divergence,
    one: Traces | None,
    other: Traces | None,
    postprocess: StageFinding,
    answers: tuple[Pair, ...],
    failed: Sequence[Mapping[int, str]],
) -> StageFinding:
    """Each side's answers against what its postprocess gave: what differs there, encoding changed."""
    if one is None and other is None:
        return StageFinding(StageCheck("encode", "unknown", detail=_not_kept(one, other)))
    altered: list[list[Pair]] = []
    for side, traces, failures in zip(
        (divergence.expected, divergence.obtained), (one, other), failed, strict=True
    ):
        if traces is None:
            altered.append([])
            continue
        untold = {*failures, *_untraced(traces)}
        whole = pairs(_answer_places(traces.outputs), _answer_places(side.answers), side.answers.num_rows)
        altered.append(_exact(_without(whole, untold)))
    both_known = one is not None and other is not None
    if both_known and not postprocess.diverges:
        rows = {row for side in altered for item in side for row in item.differing}
        apart = [
            replace(item, failing=item.differing) for item in answers if rows.intersection(item.differing)
        ]
        return _finding("encode", apart)
    changed = [item for side in altered for item in side]
    if changed or both_known:
        return _finding("encode", changed)
    known = "expected" if other is None else "obtained"
    detail = f"the {known} side sent the answers as they were; the other side's were not kept"
    return StageFinding(StageCheck("encode", "unknown", detail=detail))


def _answers(
    divergence: Divergence, tolerances: Tolerances
) -> tuple[tuple[Pair, ...], str, Mapping[str, float]]:
    """The final answers that differ, the column that differs most, and how far apart they are."""
    one, other = divergence.expected.answers, divergence.obtained.answers
    found = _judged(one, other, tolerances, divergence.scale_from)
    compared = compare(one, other, tolerances, scale_from=divergence.scale_from)
    ranked = sorted(
        found, key=lambda item: (item.place == ERROR_COLUMN, -len(item.failing), -len(item.differing))
    )
    return tuple(ranked), _worst_column(compared, ranked), figures_of(compared)


def figures_of(compared: Comparison) -> dict[str, float]:
    """Counts and distances of two tables of answers by name, such as "max abs"."""
    figures: dict[str, float] = {
        "rows": float(compared.rows),
        "rows differing": float(len(compared.differing_rows)),
        "rows beyond tolerance": float(len(compared.failing_rows)),
    }
    for column in compared.columns:
        if column.distances is not None:
            for name, spread in (("abs", column.distances.abs), ("rel", column.distances.rel)):
                figures[f"max {name}"] = max(figures.get(f"max {name}", 0.0), spread.largest)
    if compared.worst_ulp is not None:
        figures["max ulp"] = compared.worst_ulp
    return figures


def _worst_column(compared: Comparison, ranked: Sequence[Pair]) -> str:
    """The column with the most failing rows; a row that fails on one side only counts for `_error`."""
    failing = [column for column in compared.columns if column.failing]
    if failing:
        return max(failing, key=lambda column: column.failing).name
    missing = [finding.column for finding in compared.findings if finding.fails and finding.column]
    return missing[0] if missing else (ranked[0].place.partition(".")[0] if ranked else "")


def _judged(
    one: pa.Table, other: pa.Table, tolerances: Tolerances, scale_from: pa.Table | None
) -> list[Pair]:
    """Answers by place; which rows fail, the declared rules say."""
    compared = compare(one, other, tolerances, scale_from=scale_from)
    failing = {column.name: set(column.failing_rows.tolist()) for column in compared.columns}
    for finding in compared.findings:
        if finding.fails and finding.column:
            failing[finding.column.partition(".")[0]] = set(range(one.num_rows))
    found: list[Pair] = []
    for item in pairs(_answer_places(one), _answer_places(other), one.num_rows):
        column = item.place.partition(".")[0]
        fails = tuple(row for row in item.differing if row in failing.get(column, item.differing))
        if item.differing:
            found.append(replace(item, failing=fails))
    return found


def _answer_places(table: pa.Table) -> dict[str, list[Value | None]]:
    """A table of answers by place, `_error` by its kind."""
    found = places_of(table.drop_columns([ERROR_COLUMN]) if ERROR_COLUMN in table.column_names else table)
    errors = _errors(table)
    if errors is not None:
        found = {**found, ERROR_COLUMN: [None if item is None else _text(item["kind"]) for item in errors]}
    return found


def _text(value: object) -> Value:
    return np.asarray(str(value))


def _errors(table: pa.Table) -> list[dict[str, Any] | None] | None:
    if ERROR_COLUMN not in table.column_names:
        return None
    return cast("list[dict[str, Any] | None]", table.column(ERROR_COLUMN).to_pylist())


def _failures(answers: pa.Table) -> dict[int, str]:
    """The stage in which each row without an answer failed; empty text where that is not known."""
    found: dict[int, str] = {}
    for row, error in enumerate(_errors(answers) or []):
        if error is not None:
            found[row] = "decode" if error.get("kind") == "invalid" else str(error.get("stage") or "")
    return found


def _refused_by_one(failed: Sequence[Mapping[int, str]], stage: Stage) -> set[int]:
    """The rows that failed in this stage on one side only."""
    one, other = ({row for row, where in side.items() if where == stage} for side in failed)
    return one ^ other


def _with_refusals(found: list[Pair], refused: set[int], rows: int) -> list[Pair]:
    if not refused:
        return found
    which = tuple(sorted(refused))
    nothing: list[Value | None] = [None] * rows
    return [*found, Pair(ERROR_COLUMN, nothing, nothing, which, which, None, "the row fails one way only")]


def _untraced(traces: Traces) -> set[int]:
    """The rows that these traces hold nothing about: aligned without a partner."""
    if not traces.inputs.num_columns or not traces.num_rows:
        return set()
    empty = [column.is_null().to_pylist() for column in cast("Any", traces.inputs.columns)]
    bare = {row for row in range(traces.num_rows) if all(column[row] for column in empty)}
    held = {
        row
        for stage in (traces.preprocess, traces.inference)
        for values in stage.values()
        for row in bare
        if values[row] is not None
    }
    return bare - held


def _without(found: Sequence[Pair], rows: set[int]) -> list[Pair]:
    """The pairs with nothing said about `rows`; those that then do not differ are left out."""
    kept = (
        replace(
            item,
            differing=tuple(row for row in item.differing if row not in rows),
            failing=tuple(row for row in item.failing if row not in rows),
        )
        for item in found
    )
    return [item for item in kept if item.differing]


def _lengths(inputs: pa.Table) -> list[set[int]]:
    """For each row the lengths of its texts, in characters and words, and of its lists."""
    lengths: list[set[int]] = [set() for _ in range(inputs.num_rows)]
    for values in places_of(inputs).values():
        for row, value in enumerate(values):
            if value is None:
                continue
            if value.ndim:
                lengths[row].update(value.shape)
            elif value.dtype.kind == "U":
                lengths[row].update((len(str(value)), len(str(value).split())))
    return lengths


def _but_for_padding(item: Pair, lengths: Sequence[set[int]]) -> Pair:
    """The pair without rows whose two values are the same sequence, padded to other lengths."""
    padded = {row for row in item.failing if _padded(item.expected[row], item.obtained[row], lengths[row])}
    if not padded:
        return item
    failing = tuple(row for row in item.failing if row not in padded)
    detail = item.detail if failing else "the same sequence, padded to another length"
    return replace(item, failing=failing, detail=detail)


def _padded(one: Value | None, other: Value | None, lengths: set[int]) -> bool:
    """Whether two values differ in filling only, behind a length that the row's own input has."""
    if one is None or other is None or one.ndim != other.ndim or one.dtype.kind != other.dtype.kind:
        return False
    axes = [axis for axis in range(one.ndim) if one.shape[axis] != other.shape[axis]]
    if len(axes) != 1:
        return False
    axis = axes[0]
    short, long = (one, other) if one.shape[axis] < other.shape[axis] else (other, one)
    length = short.shape[axis]
    own = [size for size in lengths if size <= length]
    if not own:
        return False
    kept, filling = np.split(long, [length], axis=axis)
    if filling.size == 0 or kept.shape != short.shape or not np.array_equal(kept, short):
        return False
    beyond = np.split(long, [max(own)], axis=axis)[1]
    return bool((beyond == beyond.ravel()[0]).all())


def _exact(found: Sequence[Pair]) -> list[Pair]:
    """Where nothing is computed there is no noise: whatever differs fails."""
    return [replace(item, failing=item.differing) for item in found]


def _finding(stage: Stage, found: Sequence[Pair]) -> StageFinding:
    if not found:
        return StageFinding(StageCheck(stage, "identical"))
    ranked = sorted(found, key=lambda item: (-len(item.failing), -(item.worst or 0.0)))
    worst = ranked[0]
    verdict: StageVerdict = "divergent" if worst.failing else "within"
    which = {row for item in found for row in (item.failing if worst.failing else item.differing)}
    check = StageCheck(stage, verdict, worst.place, tuple(sorted(which)), worst.worst, worst.detail)
    return StageFinding(check, tuple(ranked))


def _amplified(found: dict[Stage, StageFinding]) -> dict[Stage, StageFinding]:
    """Say of noise in an early stage how much larger the difference is in the first that diverges."""
    first: Stage | None = next((stage for stage in ORDER if found[stage].diverges), None)
    if first is None:
        return found
    for stage in ORDER[: ORDER.index(first)]:
        early, late = found[stage].check, found[first].check
        if early.verdict != "within" or not early.worst or late.worst is None:
            continue
        quiet = sorted(set(late.rows) - set(early.rows))
        note = f"float noise of {early.worst:.3g}; {first} differs by {late.worst:.3g}"
        if quiet:
            note += f", also on {len(quiet)} of {len(late.rows)} rows without that noise"
        else:
            note += f", {late.worst / early.worst:.3g} times as much"
        found[stage] = replace(found[stage], check=replace(early, detail=note))
    return found


def _narrow_precision(sides: Sequence[Side]) -> str | None:
    """The dtype of half precision that a side's model computes in, to measure its noise in."""
    for side in sides:
        precision = side.fingerprint.get("profile.precision", "").strip('"')
        if precision in ("bfloat16", "float16"):
            return precision
    return None


def _not_kept(one: Traces | None, other: Traces | None) -> str:
    if one is None and other is None:
        return "neither side's values were kept"
    return f"the {'expected' if one is None else 'obtained'} side's values were not kept"
