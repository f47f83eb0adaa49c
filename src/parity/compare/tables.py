"""Compare two tables of answers: structure first, then rows paired, then every column by its rule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parity.compare.alignment import KeyFindings, check_key, key_types, key_values, pair_keys
from parity.compare.comparison import Comparison, Finding
from parity.compare.dtypes import without_views
from parity.compare.pieces import pieces
from parity.compare.plan import make_plan
from parity.compare.row_errors import count_errors
from parity.compare.running import RunningComparison
from parity.compare.scales import Arrays, Scales
from parity.compare.sides import Side
from parity.compare.tolerances import Tolerances
from parity.errors import ConfigError

Positions = npt.NDArray[np.int64]


def compare(
    expected: pa.Table,
    obtained: pa.Table,
    tolerances: Tolerances | None = None,
    *,
    key: str | Sequence[str] | None = None,
    inputs: pa.Table | None = None,
    scale_from: pa.Table | None = None,
) -> Comparison:
    """Compare two tables row by row; the result is true when they agree and at least one row was compared.

    Rows pair by `key`, one column or several, else by position. `inputs` has one row for each expected row,
    and is shown beside the worst rows. `scale_from` holds more rows of the same columns to take the column
    scale from, for when `expected` is a few rows only. The `_error` column is compared by which rows failed
    and the kind; texts may differ, and are noted. A row that failed on one side only is a finding of
    `_error`, and its values are left out. For datasets on disk see `compare_datasets`.

    Raises:
        ConfigError: a tolerance names no column or does not suit its type, a key is unknown or cannot
            identify rows, or `inputs` is of another length.
    """
    if inputs is not None and inputs.num_rows != expected.num_rows:
        raise ConfigError(
            f"inputs has {inputs.num_rows} rows and expected {expected.num_rows}; give one input for each"
        )
    expected, obtained = _without_views(expected), _without_views(obtained)
    plan = make_plan(expected.schema, obtained.schema, tolerances or Tolerances())
    names = key_names(key)
    running = RunningComparison(plan, _scales(scale_from, expected), key=names)
    findings = compare_rows(expected, obtained, names, running)
    return running.finish(
        expected_rows=expected.num_rows,
        obtained_rows=obtained.num_rows,
        errors=(count_errors(expected), count_errors(obtained)),
        findings=findings,
        inputs=inputs,
    )


def compare_rows(
    expected: pa.Table, obtained: pa.Table, key: Sequence[str], running: RunningComparison
) -> list[Finding]:
    """Pair the rows of two tables and compare them piece by piece; what was found about the pairing."""
    if key:
        check_key(key, expected.schema, obtained.schema)
        kinds = key_types(key, expected.schema, obtained.schema)
        ours, theirs = key_values(expected, key, kinds), key_values(obtained, key, kinds)
        pairing = pair_keys(ours, theirs)
        found = KeyFindings(key, expected.num_rows)
        places = _all_rows(expected), _all_rows(obtained)
        found.add(pairing, ours, theirs, places)
        compare_pairs(
            Side(expected, places[0]), Side(obtained, places[1]), running, pairing.expected, pairing.obtained
        )
        return found.findings()
    count = min(expected.num_rows, obtained.num_rows)
    for rows in pieces(count, expected, obtained):
        sides = [Side(table.slice(rows[0], len(rows)), rows) for table in (expected, obtained)]
        running.add(sides[0], sides[1])
    return row_count_findings(expected.num_rows, obtained.num_rows)


def compare_pairs(
    expected: Side, obtained: Side, running: RunningComparison, ours: Positions, theirs: Positions
) -> None:
    """Compare the rows at positions `ours` with those at `theirs`, piece by piece."""
    for rows in pieces(len(ours), expected.table, obtained.table):
        running.add(_picked(expected, ours, rows), _picked(obtained, theirs, rows))


def _picked(side: Side, positions: Positions, rows: Positions) -> Side:
    """The rows of a side at some of the positions; a view where they follow each other."""
    some = positions[rows[0] : rows[-1] + 1]
    if some[-1] - some[0] == len(some) - 1 and (np.diff(some) == 1).all():
        first, count = int(some[0]), len(some)
        return Side(side.table.slice(first, count), side.rows[first : first + count])
    return side.take(some)


def row_count_findings(ours: int, theirs: int) -> list[Finding]:
    """The finding that two tables compared in order are of different length."""
    if ours == theirs:
        return []
    message = f"{ours} rows expected, {theirs} obtained; the first {min(ours, theirs)} are compared in order"
    return [Finding("row_count", message, "", str(ours), str(theirs))]


def key_names(key: str | Sequence[str] | None) -> tuple[str, ...]:
    """The key's columns: none for None, one for a text."""
    return () if key is None else (key,) if isinstance(key, str) else tuple(key)


def _scales(*tables: pa.Table | None) -> Scales:
    def source(table: pa.Table) -> Arrays:
        return lambda name: table.column(name).chunks if name in table.column_names else ()

    return Scales(*(source(table) for table in tables if table is not None))


def _all_rows(table: pa.Table) -> Positions:
    return np.arange(table.num_rows, dtype=np.int64)


def _without_views(table: pa.Table) -> pa.Table:
    fields = [column.with_type(without_views(column.type)) for column in table.schema]
    return table if fields == list(table.schema) else table.cast(pa.schema(fields))
