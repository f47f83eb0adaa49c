"""Float noise, measured: how far answers lie apart that nothing but the shape of a batch tells apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from parity.compare import ERROR_COLUMN, Comparison


@dataclass(frozen=True)
class ColumnNoise:
    """How far the answers of one column lie apart, over the pairs of answers compared.

    Attributes:
        column: the output column.
        dtype: its type.
        pairs: the pairs of answers compared.
        differing: how many of them are not bit-identical.
        ulp: the largest distance in units in the last place, at the column's scale; None without floats.
        rel: the largest distance over the column's scale.
        abs: the largest distance.
    """

    column: str
    dtype: str
    pairs: int
    differing: int
    ulp: float | None = None
    rel: float = 0.0
    abs: float = 0.0

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON-ready data."""
        return {**vars(self), "ulp": _plain(self.ulp), "rel": _plain(self.rel), "abs": _plain(self.abs)}


@dataclass(frozen=True)
class NoiseFloor:
    """What no tolerance can be tighter than, by where it comes from.

    Attributes:
        batch_shape: the same rows in batches of other sizes, for each column.
        run_to_run: the identical call again; anything here comes from threads or from a generator.
        neighbours: batches of the same shape whose other rows hold other values. Rows that differ here
            depend on their neighbours, however little.
        calls: how many batches were asked.
    """

    batch_shape: tuple[ColumnNoise, ...]
    run_to_run: tuple[ColumnNoise, ...]
    neighbours: tuple[ColumnNoise, ...]
    calls: int

    @property
    def natural(self) -> bool:
        """Whether all that differs is float noise: a row does not feel the values of its neighbours."""
        return not any(item.differing for item in self.neighbours)

    def largest(self) -> Mapping[str, ColumnNoise]:
        """For each column the larger of the noise of batch shapes and of the identical call."""
        found: dict[str, ColumnNoise] = {}
        for item in (*self.batch_shape, *self.run_to_run):
            known = found.get(item.column)
            if known is None or (item.ulp or 0.0, item.differing) > (known.ulp or 0.0, known.differing):
                found[item.column] = item
        return found

    def summary(self) -> str:
        """The floor in one sentence, a part for each source that shows."""
        parts: list[str] = []
        for name, items in (
            ("run-to-run noise", self.run_to_run),
            ("batch-shape noise", self.batch_shape),
            ("dependence on the values of neighbours", self.neighbours),
        ):
            noisy = [f"{item.column} {size(item)}" for item in items if item.differing]
            if noisy:
                parts.append(f"{name}: {', '.join(noisy)}")
        return "; ".join(parts) or "every answer bit-identical in every batch"

    def to_dict(self) -> dict[str, object]:
        """The floor as JSON-ready data."""
        return {
            "batch_shape": [item.to_dict() for item in self.batch_shape],
            "run_to_run": [item.to_dict() for item in self.run_to_run],
            "neighbours": [item.to_dict() for item in self.neighbours],
            "natural": self.natural,
            "calls": self.calls,
        }


def column_noise(comparisons: Iterable[Comparison]) -> tuple[ColumnNoise, ...]:
    """The worst of some comparisons, column by column, `_error` left out."""
    found: dict[str, ColumnNoise] = {}
    for comparison in comparisons:
        for column in comparison.columns:
            if column.name == ERROR_COLUMN:
                continue
            known = found.get(column.name, ColumnNoise(column.name, column.dtype, 0, 0))
            ulp, rel, distance = known.ulp, known.rel, known.abs
            if column.distances is not None:
                ulp = max(ulp or 0.0, column.worst_ulp or 0.0)
                rel = max(rel, column.distances.rel.largest)
                distance = max(distance, column.distances.abs.largest)
            found[column.name] = ColumnNoise(
                column.name,
                column.dtype,
                known.pairs + column.rows,
                known.differing + column.rows - column.identical,
                ulp,
                rel,
                distance,
            )
    return tuple(found.values())


def size(item: ColumnNoise) -> str:
    """How large a column's noise is, in words."""
    if item.ulp is None:
        return f"{item.differing} of {item.pairs} pairs"
    if math.isinf(item.ulp):
        return "NaN or infinity on one side"
    return f"at most {item.ulp:.3g} ulp ({item.rel:.2g} of its scale)"


def worst_noise(items: Sequence[ColumnNoise]) -> ColumnNoise | None:
    """The column that differs most; None where none does."""
    differing = [item for item in items if item.differing]
    return max(differing, key=lambda item: (item.ulp or 0.0, item.differing), default=None)


def _plain(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
