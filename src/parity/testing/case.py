"""ParityCase, what a test function gets as `parity_case`: one runner on one golden case, or one law."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from parity.report import CheckReport
    from parity.testing.plan import Test
    from parity.testing.runs import Runs


class ParityCase:
    """One test of a handler, run when it is first looked at.

    Attributes:
        handler: the handler as the marker or `--parity` names it.
        name: the test's name, such as "online-rows::sample" or "law::batch-size".
        runner: the runner's name; empty for a law.
        wire: the wire form, where the runner has several.
        case: the golden case's name; empty for a law.
        law: the law's name; empty for a golden case.
        checked: whether `check` was called.
    """

    def __init__(self, test: Test, runs: Runs, item: pytest.Item) -> None:
        self.handler = test.target.reference
        self.name = test.name
        self.runner, self.wire, self.case, self.law = test.runner, test.wire, test.case, test.law
        self.checked = False
        self._test = test
        self._runs = runs
        self._item = item
        self._report: CheckReport | None = None

    def __repr__(self) -> str:
        return f"<ParityCase {self.handler}::{self.name}>"

    @property
    def report(self) -> CheckReport:
        """All that was found: one entry, or one law.

        Raises:
            ParityError: the test could not be run, because of a stale golden for instance.
        """
        if self._report is None:
            self._report = self._runs.report(self._test)
        return self._report

    @property
    def verdict(self) -> str:
        """The verdict of the entry or law, such as "identical", "divergent", "holds" or "broken"."""
        report = self.report
        return report.laws[0].verdict if report.laws else report.entries[0].verdict

    def check(self) -> None:
        """Pass where the answers agree or the law holds; fail with a report of about 20 lines.

        A law that does not apply to the handler, and a runner that is not installed, are skipped.
        """
        from parity.errors import ParityError

        self.checked = True
        if self._test.kind == "missing":
            pytest.skip(self._test.message)
        error: ParityError | None = None
        try:
            _ = self.report
        except ParityError as exc:
            error = exc
        if error is not None:  # failed outside of `except`, or pytest would show the error twice
            self._tell(f"error: {type(error).__name__}")
            pytest.fail(f"{self.handler}::{self.name}: {error}", pytrace=False)
        report = self.report
        self._tell(self.verdict)
        if self.verdict == "skipped":
            pytest.skip(report.laws[0].detail or "the law does not apply to this handler")
        if report.exit_code:
            from parity.report import terminal

            told = f"{self.handler}::{self.name}: {self._summary(report)}"
            advice = f"\n  next: if the new answers are right: parity golden update {self.handler}"
            text = f"{told}\n\n{terminal.render(report).rstrip()}{advice if self.case else ''}"
            pytest.fail(text, pytrace=False)

    def warn_of_orphans(self) -> None:
        """Warn when there are golden cases that nobody looks at."""
        from parity.testing.plugin import OrphanGoldenWarning

        if self._test.kind == "case":
            found = self._runs.orphans(self._test.target)
            if found:
                warnings.warn(OrphanGoldenWarning(found), stacklevel=2)

    def _tell(self, verdict: str) -> None:
        """Put the facts into the test's properties, which JUnit files carry."""
        wire = {"wire": self.wire} if self.wire else {}
        facts = {"runner": self.runner, **wire, "case": self.case, "law": self.law}
        told = {"handler": self.handler, **{name: value for name, value in facts.items() if value}}
        self._item.user_properties.extend({**told, "verdict": verdict}.items())

    def _summary(self, report: CheckReport) -> str:
        if report.laws:
            law = report.laws[0]
            return f"law {law.law} is {law.verdict}: {law.detail or law.sentence}"
        entry = report.entries[0]
        if entry.comparison is None:
            return (
                f"runner {entry.name} {entry.verdict}: {entry.error.splitlines()[0] if entry.error else ''}"
            )
        return f"{entry.verdict}: {entry.comparison.summary()}"
