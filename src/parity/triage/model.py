"""What triage is given and what it finds, as frozen data. Nothing here looks for a cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from parity.stages import Traces

Stage = Literal["decode", "preprocess", "inference", "postprocess", "encode"]
StageVerdict = Literal["identical", "within", "divergent", "unknown"]


def _nothing() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Side:
    """One of the two ways in which rows were asked.

    Attributes:
        name: the way in words, such as "in this process" or "through the online runner as rows".
        answers: the rows' answers, a row each, with `_error`; see `Result.to_table`.
        traces: what each stage gave for each row, best aligned with the rows; traces of other rows, in
            another order or of altered rows are matched with the rows by content. None where not known.
        fingerprint: the environment, artifacts and source that answered; see `Engine.fingerprint`.
        company: the whole batch that the rows were asked in, where it is known.
        places: the place in `company` of each row; empty to find them by content.
    """

    name: str
    answers: pa.Table
    traces: Traces | None = None
    fingerprint: Mapping[str, str] = field(default_factory=_nothing)
    company: pa.Table | None = None
    places: tuple[int, ...] = ()


@dataclass(frozen=True)
class Divergence:
    """Rows that get other answers when asked in two ways.

    Attributes:
        law: the law that this breaks, or "golden" where one side was recorded.
        rows: the rows, in the handler's canonical types.
        expected: the answers one way, aligned with `rows`.
        obtained: the answers the other way, aligned with `rows`.
        varied: what was varied between the two ways, by name, such as {"TZ": "Asia/Tokyo"}. Best the one
            variable that is responsible, where that was found out.
        history: the batches that the obtained side had been asked before, oldest first, where that is known.
        scale_from: more answers to take the scale of a column from; see `compare`.
        ask: asks some rows, of the schema of `rows`, in the obtained way again; for ways that the engine of
            this process cannot go by itself, such as another process or a runner.
    """

    law: str
    rows: pa.Table
    expected: Side
    obtained: Side
    varied: Mapping[str, str] = field(default_factory=_nothing)
    history: tuple[pa.Table, ...] = ()
    scale_from: pa.Table | None = None
    ask: Callable[[pa.Table], Side] | None = None


@dataclass(frozen=True)
class StageCheck:
    """How far one stage's values lie apart.

    Attributes:
        stage: the stage.
        verdict: "unknown" where one side's values were not kept.
        place: the leaf that differs most, or the column.
        rows: positions of the rows whose values differ.
        worst: the largest absolute difference of numbers; None where there are none.
        detail: the difference in words.
    """

    stage: Stage
    verdict: StageVerdict
    place: str = ""
    rows: tuple[int, ...] = ()
    worst: float | None = None
    detail: str = ""


@dataclass(frozen=True)
class Cause:
    """A cause that explains the difference, with the evidence that it does.

    Attributes:
        name: its name in the catalogue, such as "channel-order".
        sentence: what it is, in words for the user.
        evidence: what was tried, and what came of it.
        remedy: what to do.
    """

    name: str
    sentence: str
    evidence: str
    remedy: str = ""


@dataclass(frozen=True)
class RuledOut:
    """A cause that was tried and does not explain the difference."""

    name: str
    why: str


@dataclass(frozen=True)
class Diagnosis:
    """Where two executions part, and why.

    Attributes:
        stage: the first stage whose values diverge; None where that cannot be told.
        place: the place in that stage's value, or the column.
        column: the output column that differs most.
        rows: positions of the rows that differ.
        cause: the cause, where one explains the difference.
        also: other causes that explain it, less likely ones later.
        ruled_out: causes that were tried and do not.
        stages: every stage, in order.
        figures: distances by name, such as "max abs".
    """

    stage: Stage | None
    place: str = ""
    column: str = ""
    rows: tuple[int, ...] = ()
    cause: Cause | None = None
    also: tuple[Cause, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()
    stages: tuple[StageCheck, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict[str, float])

    def summary(self) -> str:
        """The diagnosis in a sentence or two."""
        where = f"first differs in {self.stage}" if self.stage else "the first differing stage is unknown"
        if self.place:
            where += f" at {self.place}"
        if self.cause is not None:
            return f"{where}; {self.cause.name}: {self.cause.sentence} ({self.cause.evidence})"
        tried = ", ".join(item.name for item in self.ruled_out)
        return f"{where}; no known cause explains it" + (f" (ruled out: {tried})" if tried else "")

    def to_dict(self) -> dict[str, object]:
        """The diagnosis as JSON-ready data."""
        return {
            "stage": self.stage,
            "place": self.place,
            "column": self.column,
            "rows": list(self.rows),
            "cause": None if self.cause is None else vars(self.cause),
            "also": [vars(item) for item in self.also],
            "ruled_out": [vars(item) for item in self.ruled_out],
            "stages": [
                {**vars(check), "rows": list(check.rows), "worst": _plain(check.worst)}
                for check in self.stages
            ],
            "figures": {name: _plain(value) for name, value in self.figures.items()},
        }


def _plain(value: float | None) -> float | str | None:
    """A number for JSON, which has none for NaN and infinities."""
    if value is None or abs(value) < float("inf"):
        return value
    return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")
