"""Why a golden case cannot be used: stale, damaged or orphaned. Each is a GoldenError, exit code 3."""

from __future__ import annotations

from parity.errors import GoldenError


class StaleCaseError(GoldenError):
    """The case was recorded under schemas that are no longer the handler's.

    Attributes:
        updatable: whether the rows are still good, so that an update can give the case new answers.
    """

    def __init__(self, message: str, *, updatable: bool = False) -> None:
        super().__init__(message)
        self.updatable = updatable


class DamagedCaseError(GoldenError):
    """A file of the case is missing, truncated, garbled, or not the one that was recorded."""


class OrphanedCaseError(GoldenError):
    """The case belongs to no handler, or is no case at all."""
