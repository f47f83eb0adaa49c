"""Compare two datasets on disk, of any size, in bounded memory.

By order, the two are read side by side. By key, they are read side by side too where the keys come in the
same order and none twice; else both are cut by a hash of the key into parts that fit in memory
(`partitions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parity.compare.alignment import check_key, key_types
from parity.compare.beside import read_beside
from parity.compare.comparison import MAX_ROWS, Comparison, Finding
from parity.compare.datasets import ParquetDataset
from parity.compare.dtypes import leaf_dtypes
from parity.compare.partitions import compare_parts, in_step
from parity.compare.pieces import piece_rows
from parity.compare.plan import Plan, make_plan
from parity.compare.row_errors import count_errors
from parity.compare.running import RunningComparison
from parity.compare.scales import Scales
from parity.compare.sides import Side
from parity.compare.tables import key_names, row_count_findings
from parity.compare.tolerances import ERROR_COLUMN, Tolerances
from parity.errors import ConfigError, did_you_mean

Positions = npt.NDArray[np.int64]


def compare_datasets(
    expected: str | Path,
    obtained: str | Path,
    tolerances: Tolerances | None = None,
    *,
    key: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    temporary: str | Path | None = None,
    part_bytes: int = 64 << 20,
) -> Comparison:
    """Compare two Parquet files, folders or globs row by row, as `compare` does two tables.

    Args:
        expected: the dataset to measure by.
        obtained: the dataset to judge.
        tolerances: what counts as the same.
        key: the columns that pair the rows; by default their order.
        columns: compare only these and the key; by default all.
        temporary: folder for temporary files, which rows in another order need; the system's by default.
        part_bytes: how much of a dataset may be in memory at once for pairing by key.

    Returns:
        What `compare` would have found with both in memory. Of row numbers the first `MAX_ROWS` are kept.

    Raises:
        DatasetError: a dataset cannot be read, or the temporary folder cannot be written.
        ConfigError: a tolerance, key or column names nothing, or does not suit its type.
    """
    one, other = ParquetDataset(expected), ParquetDataset(obtained)
    names, rules = key_names(key), tolerances or Tolerances()
    rules.check_used({**_leaves(other.schema), **_leaves(one.schema)})
    check_key(names, one.schema, other.schema)
    chosen = _chosen(columns, names, one.schema, other.schema)
    schemas = [pa.schema([field for field in d.schema if field.name in chosen]) for d in (one, other)]
    plan = make_plan(schemas[0], schemas[1], rules.only(chosen))
    everything = dict.fromkeys([*one.schema.names, *other.schema.names])
    left_out = [name for name in everything if name not in chosen]
    if left_out:
        message = f"not compared, as was asked for: {', '.join(left_out)}"
        plan = replace(plan, findings=(*plan.findings, Finding("left_out", message, fails=False)))
    comparison = _Datasets(one, other, plan, names)
    if not names:
        return comparison.in_order()
    kinds = key_types(names, *schemas)
    small = max(dataset.num_rows * dataset.row_bytes for dataset in (one, other)) <= part_bytes
    if not small and in_step(one, other, names, kinds):
        return comparison.in_order()
    running = comparison.running(ordered=False)
    parts = 1 if small else comparison.parts(part_bytes)
    found = compare_parts(one, other, comparison.columns, names, kinds, running, parts, temporary)
    return comparison.finish(running, found.findings, found.errors)


class _Datasets:
    """Two datasets and what is compared of them."""

    def __init__(
        self, expected: ParquetDataset, obtained: ParquetDataset, plan: Plan, key: Sequence[str]
    ) -> None:
        self._expected, self._obtained = expected, obtained
        self._plan, self._key = plan, key
        read = [column for column in plan.columns if column.way != "ignored"]
        names = [*key, *(name for column in read for name in (column.name, *column.companions()))]
        self.columns = list(dict.fromkeys(names)) or [*expected.schema.names[:1]]

    def running(self, *, ordered: bool) -> RunningComparison:
        """A comparison in which nothing has been compared yet."""

        def arrays(name: str) -> Any:
            return (batch.column(0) for batch in self._expected.batches([name]))

        return RunningComparison(
            self._plan, Scales(arrays), key=self._key, ordered=ordered, keep_rows=MAX_ROWS
        )

    def parts(self, part_bytes: int) -> int:
        """How many parts to cut the datasets into."""
        largest = max(side.num_rows * side.row_bytes for side in (self._expected, self._obtained))
        return -(-largest // part_bytes)

    def in_order(self) -> Comparison:
        """Compare row by row as they come."""
        running, start = self.running(ordered=True), 0
        errors = [0, 0]
        rows = piece_rows(max(self._expected.row_bytes, self._obtained.row_bytes))
        with ThreadPoolExecutor(2, "parity-compare-read") as pool:
            both = read_beside(self._expected, self._obtained, self.columns, rows, pool, self._needed())
            with closing(both):
                for pair in both:
                    tables = [
                        None if batch is None else pa.Table.from_batches([batch])
                        for batch in (pair.expected, pair.obtained)
                    ]
                    for place, table in enumerate(tables):
                        errors[place] += 0 if table is None else count_errors(table)
                    if tables[0] is not None and tables[1] is not None:
                        numbers = np.arange(start, start + tables[0].num_rows)
                        sides = [Side(table, numbers) for table in tables if table is not None]
                        running.add(sides[0], sides[1], pair.same)
                        start += len(numbers)
                    elif ERROR_COLUMN not in self.columns:
                        break
        findings = row_count_findings(self._expected.num_rows, self._obtained.num_rows)
        return self.finish(running, findings, (errors[0], errors[1]))

    def _needed(self) -> set[str]:
        """The columns to read even where they are the same: what is shown, looked up or counted."""
        if ERROR_COLUMN in self.columns:
            return set(self.columns)
        return {*self._key, *(name for column in self._plan.columns for name in column.companions())}

    def finish(
        self, running: RunningComparison, findings: Sequence[Finding], errors: tuple[int, int]
    ) -> Comparison:
        """What was found, with the rows of both datasets counted."""
        return running.finish(
            expected_rows=self._expected.num_rows,
            obtained_rows=self._obtained.num_rows,
            errors=errors,
            findings=findings,
        )


def _leaves(schema: pa.Schema) -> dict[str, str]:
    return {path: dtype for field in schema for path, dtype in leaf_dtypes(field).items()}


def _chosen(columns: Sequence[str] | None, key: Sequence[str], *schemas: pa.Schema) -> set[str]:
    """The columns to compare: all, or those asked for and the key."""
    known = {name for schema in schemas for name in schema.names}
    if columns is None:
        return known
    for name in columns:
        if name not in known:
            raise ConfigError(f"--columns {name!r}: there is no such column; {did_you_mean(name, known)}")
    return {*columns, *key}
