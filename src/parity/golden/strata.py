"""Strata: kinds of rows, by name, and which rows are of which. Telling them is marking's business.

A stratum is named "field: kind", such as "title: longest", "spend: null", "photo: orientation 6" or
"plan: 'pro'". Nested places are "box.x" (a struct's member) and "tags[]" (a list's items).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Values = np.ndarray[Any, Any]

MAX_CATEGORIES: Final = 32
"""A field with more distinct values than this is no category but free text."""

_ROWS_A_CATEGORY = 3


@dataclass(frozen=True)
class Extreme:
    """How a row stands in a contest, such as for the longest text: the greatest score wins.

    `scores` are numbers, `takes_part` says which rows have one.
    """

    scores: Values
    takes_part: Mask


@dataclass
class Marks:
    """What is known of some rows.

    Attributes:
        rows: how many rows.
        masks: for each stratum that a row is in or not, which rows are.
        extremes: for each stratum that only the first in a contest is in, the contest.
        categories: for each field with distinct values, which rows have which; None where there are too many.
        declared: the fields among them whose values the schema lists.
    """

    rows: int
    masks: dict[str, Mask] = field(default_factory=dict[str, Mask])
    extremes: dict[str, Extreme] = field(default_factory=dict[str, Extreme])
    categories: dict[str, dict[str, Mask] | None] = field(default_factory=dict[str, "dict[str, Mask] | None"])
    declared: set[str] = field(default_factory=set[str])

    def restricted(self, rows: Mask) -> None:
        """Take the rows that are not in the mask out of every stratum."""
        for mask in self.masks.values():
            mask &= rows
        for contest in self.extremes.values():
            contest.takes_part.__iand__(rows)
        for found in self.categories.values():
            for mask in (found or {}).values():
                mask &= rows


def members(marks: Marks) -> Iterator[tuple[str, Mask]]:
    """Each stratum and the rows in it; a contest is won by all who share the greatest score."""
    yield from marks.masks.items()
    for name, contest in marks.extremes.items():
        if contest.takes_part.any():
            best = contest.scores[contest.takes_part].max()
            yield name, contest.takes_part & (contest.scores == best)
    for name, found in marks.categories.items():
        counts = {value: int(mask.sum()) for value, mask in (found or {}).items()}
        if found and are_categories(counts, declared=name in marks.declared):
            for value, mask in found.items():
                yield category(name, value), mask


def are_categories(counts: Mapping[str, int], *, declared: bool) -> bool:
    """Whether the values of a field, with the number of rows that have each, are few and come again."""
    few = 0 < len(counts) <= MAX_CATEGORIES
    return declared or (few and sum(counts.values()) >= _ROWS_A_CATEGORY * len(counts))


def category(name: str, value: str) -> str:
    """The stratum of a category."""
    return f"{name}: {value}"
