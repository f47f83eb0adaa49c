"""A few rows of many: some of each stratum, the others drawn evenly. One pass, bounded memory, deterministic.

Which rows are taken depends on the rows, their order and the seed, and not on the batches that they come in.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from parity.errors import ConfigError
from parity.golden.marking import marks_of
from parity.golden.strata import MAX_CATEGORIES, Marks, Mask, are_categories, category
from parity.schema import Schema

CANDIDATES: Final = 4
"""Rows kept for each stratum, of which those are taken that belong to most strata."""

MISFIT: Final = "does not fit"

_MASK64 = 2**64 - 1


@dataclass(frozen=True)
class Coverage:
    """A stratum, and how many rows of it there are."""

    stratum: str
    in_dataset: int
    in_sample: int


@dataclass(frozen=True)
class Sample:
    """The rows taken.

    Attributes:
        rows: the rows in the dataset's order, in canonical types.
        positions: int64, the position of each in the dataset.
        total: the rows of the dataset.
        coverage: each stratum that the dataset has.
        needed: a sample of so many rows has one of each stratum.
    """

    rows: pa.Table
    positions: np.ndarray[Any, np.dtype[np.int64]]
    total: int
    coverage: tuple[Coverage, ...]
    needed: int

    @property
    def missing(self) -> list[str]:
        """The strata that the sample has no row of."""
        return [item.stratum for item in self.coverage if not item.in_sample]


@dataclass
class _Pool:
    """The candidates of one stratum: (priority, position), the lowest priorities of those seen."""

    count: int = 0
    best: Any = None
    kept: list[tuple[int, int]] | None = None

    def offer(self, positions: Any, priorities: Any, most: int) -> None:
        """Look at more rows of the stratum."""
        self.count += len(positions)
        few = np.argsort(priorities, kind="stable")[:most]
        fresh = [(int(priorities[at]), int(positions[at])) for at in few]
        self.kept = heapq.nsmallest(most, [*(self.kept or []), *fresh])


class Sampler:
    """Takes a sample of a stream of rows.

    Args:
        schema: the schema of the rows.
        rows: how many rows to take.
        seed: another seed takes other rows of the same strata.

    Raises:
        ConfigError: less than one row is asked for.
    """

    def __init__(self, schema: Schema, rows: int, seed: int = 0) -> None:
        if rows < 1:
            raise ConfigError(f"a sample of {rows} rows is none; take at least 1")
        self._schema = schema
        self._size = rows
        self._seed = seed
        self._total = 0
        self._pools: dict[str, _Pool] = {}
        self._categories: dict[str, dict[str, _Pool] | None] = {}
        self._declared: set[str] = set()
        self._even = _Pool()
        self._held: dict[int, pa.Table] = {}

    def add(self, rows: pa.Table, misfits: Mapping[int, str] | None = None) -> None:
        """Look at the next rows of the dataset.

        Args:
            rows: rows in canonical types.
            misfits: for each row that does not fit the schema, by position, the field at fault.
        """
        positions = np.arange(self._total, self._total + rows.num_rows, dtype=np.int64)
        priorities = _priorities(positions, self._seed)
        marks = marks_of(self._schema, rows)
        wrong = dict(misfits or {})
        if wrong:
            fit = np.ones(rows.num_rows, np.bool_)
            fit[list(wrong)] = False
            marks.restricted(fit)
            self._even.offer(positions[fit], priorities[fit], self._size)
        else:
            self._even.offer(positions, priorities, self._size)
        self._look(marks, positions, priorities)
        for row, name in wrong.items():
            pool = self._pools.setdefault(f"{name}: {MISFIT}", _Pool())
            pool.offer(positions[row : row + 1], priorities[row : row + 1], CANDIDATES)
        self._hold(rows)
        self._total += rows.num_rows

    def finish(self) -> Sample:
        """The sample of all rows seen.

        Raises:
            ConfigError: there were none.
        """
        if not self._total:
            raise ConfigError("no rows to sample")
        pools = dict(self._all_pools())
        chosen = _cover(pools)
        needed = len(chosen)
        taken = chosen[: self._size]
        for _, place in sorted(self._even.kept or []):
            if len(taken) >= self._size:
                break
            if place not in taken:
                taken.append(place)
        positions = np.asarray(sorted(taken), np.int64)
        held = [self._held[int(place)] for place in positions]
        rows = pa.concat_tables(held, promote_options="default").combine_chunks()
        coverage = sorted(self._coverage(pools, rows, positions), key=self._in_schema_order)
        return Sample(rows, positions, self._total, tuple(coverage), needed)

    def _in_schema_order(self, item: Coverage) -> tuple[int, int, str]:
        head = re.split(r"[.:\[ ]", item.stratum)[0]
        names = self._schema.names
        return names.index(head) if head in names else len(names), item.in_dataset, item.stratum

    def _look(self, marks: Marks, positions: Any, priorities: Any) -> None:
        for name, mask in marks.masks.items():
            self._offer(self._pools, name, mask, positions, priorities)
        for name, contest in marks.extremes.items():
            self._contend(name, contest.scores, contest.takes_part, positions, priorities)
        self._declared |= marks.declared
        for name, found in marks.categories.items():
            pools = self._categories.setdefault(name, {})
            if pools is None:
                continue
            for value, mask in (found or {}).items():
                self._offer(pools, value, mask, positions, priorities)
            too_many = len(pools) > MAX_CATEGORIES and name not in self._declared
            if found is None or too_many:
                self._categories[name] = None

    @staticmethod
    def _offer(pools: dict[str, _Pool], name: str, mask: Mask, positions: Any, priorities: Any) -> None:
        if mask.any():
            pools.setdefault(name, _Pool()).offer(positions[mask], priorities[mask], CANDIDATES)

    def _contend(self, name: str, scores: Any, takes_part: Mask, positions: Any, priorities: Any) -> None:
        if not takes_part.any():
            return
        best = scores[takes_part].max()
        pool = self._pools.setdefault(name, _Pool())
        if pool.best is not None and best < pool.best:
            return
        if pool.best is None or best > pool.best:
            pool.count, pool.best, pool.kept = 0, best, None
        mask = takes_part & (scores == best)
        pool.offer(positions[mask], priorities[mask], CANDIDATES)

    def _hold(self, rows: pa.Table) -> None:
        """Keep the rows that are candidates now, each with memory of its own, and let go of the others."""
        wanted = {place for _, pool in self._every_pool() for _, place in pool.kept or []}
        for place in [place for place in self._held if place not in wanted]:
            del self._held[place]
        fresh = sorted(place for place in wanted if place >= self._total)
        for place in fresh:
            self._held[place] = rows.take(cast("Any", [place - self._total]))

    def _every_pool(self) -> Iterator[tuple[str, _Pool]]:
        yield "", self._even
        yield from self._pools.items()
        for name, found in self._categories.items():
            for value, pool in (found or {}).items():
                yield category(name, value), pool

    def _all_pools(self) -> Iterator[tuple[str, _Pool]]:
        """The pools of strata; values that hardly ever come again are no categories."""
        yield from self._pools.items()
        for name, found in self._categories.items():
            counts = {value: pool.count for value, pool in (found or {}).items()}
            if found and are_categories(counts, declared=name in self._declared):
                for value, pool in found.items():
                    yield category(name, value), pool

    def _coverage(self, pools: Mapping[str, _Pool], rows: pa.Table, positions: Any) -> Iterator[Coverage]:
        """How many rows of the sample are in each stratum, looked up again in the rows themselves."""
        marks = marks_of(self._schema, rows)
        for name, pool in pools.items():
            if name in marks.masks:
                count = int(marks.masks[name].sum())
            elif name in marks.extremes:
                contest = marks.extremes[name]
                count = int((contest.takes_part & (contest.scores == pool.best)).sum())
            elif name.endswith(f": {MISFIT}"):
                count = len({place for _, place in pool.kept or []} & set(positions.tolist()))
            else:
                count = _count_of_category(marks, name)
            yield Coverage(name, pool.count, count)


def _cover(pools: Mapping[str, _Pool]) -> list[int]:
    """Few rows that have one of each stratum, the rarest strata first (greedy set cover)."""
    candidates = {name: [place for _, place in pool.kept or []] for name, pool in pools.items()}
    strata_of: dict[int, set[str]] = {}
    for name, places in candidates.items():
        for place in places:
            strata_of.setdefault(place, set()).add(name)
    open_strata = dict.fromkeys(sorted(candidates, key=lambda name: (pools[name].count, name)))
    chosen: list[int] = []
    while open_strata:
        rarest = next(iter(open_strata))
        best = max(candidates[rarest], key=lambda place: len(strata_of[place] & open_strata.keys()))
        chosen.append(best)
        for name in strata_of[best]:
            open_strata.pop(name, None)
    return chosen


def _count_of_category(marks: Marks, stratum: str) -> int:
    for name, found in marks.categories.items():
        for value, mask in (found or {}).items():
            if category(name, value) == stratum:
                return int(mask.sum())
    return 0


def _priorities(positions: Any, seed: int) -> Any:
    """A number for each row that looks random (splitmix64, Steele, Lea and Flood, 2014)."""
    with np.errstate(over="ignore"):
        state = positions.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15) & _MASK64)
        state = (state + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))
