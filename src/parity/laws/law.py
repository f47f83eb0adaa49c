"""What a law is, and what keeps one from being tried."""

from __future__ import annotations

from typing import Protocol

from parity.laws.bench import Bench
from parity.laws.outcome import LawOutcome


class NotApplicableError(Exception):
    """The law does not apply here; the text says why."""


class Law(Protocol):
    """What an answer must not depend on, or what a handler must not do."""

    @property
    def name(self) -> str:
        """How reports and `--law` call it."""
        ...

    @property
    def sentence(self) -> str:
        """What it says."""
        ...

    def check(self, bench: Bench) -> LawOutcome:
        """Try the law; it holds only when answers were compared.

        Raises:
            NotApplicableError: there is nothing here that it could be tried on.
            RunnerError: a process or a runner failed to start or crashed.
        """
        ...
