"""The whole check as one table: a row for each runner, a column for each golden case and each law.

A law is tried in this process, so its cell stands in the row of "engine". Entries of one case that differ in
the same way are one divergence, seen by several runners.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from parity.report.model import CheckReport, Entry

ENGINE = "engine"
"""What reports call the handler run in this process, without a runner."""

CheckKind = Literal["case", "law"]

_GRAVITY = ("identical", "holds", "within", "noise", "skipped", "nothing", "refused", "divergent", "broken")


@dataclass(frozen=True)
class Cell:
    """What came of one check in one runner.

    Attributes:
        verdict: an entry's verdict or a law's.
        compared: the rows, or pairs of answers, compared.
        differing: how many of them have other bits.
        outside: how many of them are beyond tolerance; None where that was not counted.
    """

    verdict: str
    compared: int
    differing: int = 0
    outside: int | None = None

    def worse(self, other: Cell) -> Cell:
        """The graver of the two verdicts, with the counts of both."""
        graver = max((self, other), key=lambda cell: _gravity(cell.verdict))
        outside = None
        if self.outside is not None or other.outside is not None:
            outside = (self.outside or 0) + (other.outside or 0)
        compared = self.compared + other.compared
        return Cell(graver.verdict, compared, self.differing + other.differing, outside)


@dataclass(frozen=True)
class Matrix:
    """Cells by runner, kind of check and name of case or law; no cell where that was not run.

    Attributes:
        runners: the rows, in the order of the report, "engine" first where laws were tried.
        checks: the columns: kind and name, golden cases before laws.
        cells: by (runner, kind, name).
    """

    runners: tuple[str, ...]
    checks: tuple[tuple[CheckKind, str], ...]
    cells: Mapping[tuple[str, CheckKind, str], Cell]

    def row(self, runner: str) -> list[Cell | None]:
        """The cells of a runner, one for each check."""
        return [self.cells.get((runner, kind, name)) for kind, name in self.checks]

    def to_dict(self) -> dict[str, object]:
        """The matrix as JSON-ready data: names, and a list of cells for each runner."""
        return {
            "checks": [{"kind": kind, "name": name} for kind, name in self.checks],
            "runners": [
                {
                    "runner": runner,
                    "cells": [None if cell is None else dict(vars(cell)) for cell in self.row(runner)],
                }
                for runner in self.runners
            ],
        }


def matrix(report: CheckReport) -> Matrix:
    """The report as a table of runners and checks."""
    cells: dict[tuple[str, CheckKind, str], Cell] = {}

    def put(runner: str, kind: CheckKind, name: str, cell: Cell) -> None:
        key = (runner, kind, name)
        cells[key] = cells[key].worse(cell) if key in cells else cell

    for entry in report.entries:
        put(entry.name, "case", entry.case, _entry_cell(entry))
    for law in report.laws:
        put(ENGINE, "law", law.law, Cell(law.verdict, law.pairs, law.differing))
    runners = report.runners()
    if report.laws:
        runners = [ENGINE, *(name for name in runners if name != ENGINE)]
    cases: list[tuple[CheckKind, str]] = [("case", name) for name in report.cases()]
    laws: list[tuple[CheckKind, str]] = [
        ("law", name) for name in dict.fromkeys(law.law for law in report.laws)
    ]
    return Matrix(tuple(runners), (*cases, *laws), cells)


def divergences(report: CheckReport) -> list[tuple[Entry, ...]]:
    """The entries that are not fine, those of a case that failed in the same way together."""
    groups: dict[object, list[Entry]] = {}
    for entry in report.failures():
        groups.setdefault(_signature(entry), []).append(entry)
    return [tuple(group) for group in groups.values()]


def _entry_cell(entry: Entry) -> Cell:
    found = entry.comparison
    if found is None:
        return Cell(entry.verdict, 0)
    return Cell(entry.verdict, found.rows, len(found.differing_rows), len(found.failing_rows))


def _gravity(verdict: str) -> int:
    return _GRAVITY.index(verdict) if verdict in _GRAVITY else len(_GRAVITY)


def _signature(entry: Entry) -> object:
    """Equal for entries whose reports would be the same."""
    found = entry.comparison
    if found is None:
        return entry.case, entry.verdict, entry.error
    columns = tuple(
        (column.name, column.failing_rows.tobytes(), repr([(row.row, row.obtained) for row in column.worst]))
        for column in found.divergent()
    )
    return entry.case, columns, found.findings
