"""Recorded traffic asked again: drift between what was answered then and what a runner answers now.

selection   which rows, and in which portions
fitting     from recorded columns to rows that a handler can be asked again
replaying   the portions through a runner, compared
tally       the comparisons added up
labels      labels that flip
scores      numbers that shift
ranks       what that does to the order of the rows
model       the report, as data
terminal    the report as text
html        the report as a page
"""

from parity.replay.model import (
    ColumnDrift,
    DriftReport,
    FailureDrift,
    LabelDrift,
    NotReplayable,
    ScoreDrift,
    Slice,
    Traffic,
    WorstRow,
)
from parity.replay.replaying import DEFAULT_RUNNER, find_handler, replay_capture
from parity.replay.selection import Portion, Wanted, moment_ns, portions

__all__ = [
    "DEFAULT_RUNNER",
    "ColumnDrift",
    "DriftReport",
    "FailureDrift",
    "LabelDrift",
    "NotReplayable",
    "Portion",
    "ScoreDrift",
    "Slice",
    "Traffic",
    "Wanted",
    "WorstRow",
    "find_handler",
    "moment_ns",
    "portions",
    "replay_capture",
]
