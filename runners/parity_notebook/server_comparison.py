"""What came out of comparing a session with a running server, for people to look at and for code to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from parity.compare import ColumnComparison, Comparison, Verdict
from parity.report.words import remarks, value, worst_of_column
from parity_notebook import markup

_HEADER = ("column", "verdict", "rule", "rows", "identical", "within", "failing", "worst", "notes")
_WORST_HEADER = ("row", "column", "this session", "the server", "reason")
_WORST_SHOWN = 5


@dataclass(frozen=True)
class ServerComparison:
    """Whether a server's answers agree with a session's; true when they do and a row was compared.

    Attributes:
        handler: name and version.
        url: where the server was asked.
        comparison: columns, findings, distances and worst rows; "expected" is the session.
        expected: the session's answers, one row for each input row, with `_error`.
        obtained: the server's answers.
    """

    handler: str
    url: str
    comparison: Comparison
    expected: pa.Table
    obtained: pa.Table

    def __bool__(self) -> bool:
        return bool(self.comparison)

    @property
    def verdict(self) -> Verdict:
        """Identical, within (tolerance), divergent or nothing (compared)."""
        return self.comparison.verdict

    def summary(self) -> str:
        """The verdict in one line."""
        return self.comparison.summary()

    def __repr__(self) -> str:
        lines = [self._title(), *(f"  {finding.message}" for finding in self.comparison.findings)]
        lines += [f"  {', '.join(row)}" for row in self._worst()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        columns = self.comparison.columns
        bad = [place for place, column in enumerate(columns) if column.verdict == "divergent"]
        parts = [markup.paragraph(self._title(), "lead")]
        parts += [
            markup.paragraph(finding.message, "bad" if finding.fails else "")
            for finding in self.comparison.findings
        ]
        parts.append(markup.table("columns", _HEADER, [_column_row(column) for column in columns], bad=bad))
        parts.append(markup.table("rows that differ most", _WORST_HEADER, list(self._worst())))
        return markup.page(parts)

    def _title(self) -> str:
        return f"{self.handler} against {self.url}: {self.verdict}; {self.summary()}"

    def _worst(self) -> Iterator[tuple[str, ...]]:
        for column in self.comparison.columns:
            for worst in column.worst[:_WORST_SHOWN]:
                where = worst.where or column.name
                yield str(worst.row), where, value(worst.expected), value(worst.obtained), worst.reason


def _column_row(column: ColumnComparison) -> tuple[str, ...]:
    counts = (column.rows, column.identical, column.within, column.failing)
    notes = "; ".join(remarks(column))
    return column.name, column.verdict, str(column.rule), *map(str, counts), worst_of_column(column), notes
