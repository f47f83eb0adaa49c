"""Compare two tables of answers: structure first, then rows paired, then every column by its rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from parity.compare.alignment import align
from parity.compare.columns import Side, compare_column, skip_column
from parity.compare.comparison import ColumnComparison, Comparison, Finding, WorstRow
from parity.compare.dtypes import FLOATS, leaf_dtypes, nullability_finding, type_findings, without_views
from parity.compare.floats import column_scale, narrower
from parity.compare.leaves import float_values
from parity.compare.lists import list_items
from parity.compare.rules import TopK
from parity.compare.tolerances import ERROR_COLUMN, Tolerances
from parity.compare.values import one_array, shown_value
from parity.errors import ConfigError, did_you_mean

Positions = npt.NDArray[np.int64]


def compare(
    expected: pa.Table,
    obtained: pa.Table,
    tolerances: Tolerances | None = None,
    *,
    key: str | None = None,
    inputs: pa.Table | None = None,
    scale_from: pa.Table | None = None,
) -> Comparison:
    """Compare two tables row by row; the result is true when they agree and at least one row was compared.

    Rows pair by `key`, else by position. `inputs` has one row for each expected row, and is shown beside
    the worst rows. `scale_from` holds more rows of the same columns to take the column scale from, for when
    `expected` is a few rows only. The `_error` column is compared by which rows failed and the kind; texts
    may differ, and are noted. A row that failed on one side only is a finding of `_error`, and its values
    are left out.

    Raises ConfigError for a tolerance that names no column or does not suit its type, an unknown key, or
    `inputs` of another length.
    """
    tolerances = tolerances or Tolerances()
    if inputs is not None and inputs.num_rows != expected.num_rows:
        raise ConfigError(
            f"inputs has {inputs.num_rows} rows and expected {expected.num_rows}; give one input for each"
        )
    expected, obtained = _without_views(expected), _without_views(obtained)
    tolerances.check_names(_known_names(expected, obtained))
    _check_companions(tolerances, expected)
    alignment = align(expected, obtained, key)
    findings = [*_column_findings(expected, obtained), *alignment.findings]
    one, other = _side(expected, alignment.expected), _side(obtained, alignment.obtained)
    rows = one.table.num_rows
    judged = _rows_with_answers(one.table, other.table)

    columns: list[ColumnComparison] = []
    for name in (name for name in expected.column_names if name in obtained.column_names):
        ours, theirs = expected.schema.field(name), obtained.schema.field(name)
        found = list(type_findings(ours, theirs))
        note = nullability_finding(ours, theirs)
        findings += [*found, *([note] if note else [])]
        keep = None if name == ERROR_COLUMN else judged
        column = _compare_one(name, one, other, tolerances, found, keep, scale_from)
        if name == ERROR_COLUMN:
            findings += _error_texts(one.table.column(name), other.table.column(name))
        columns.append(column)
    complete = _completer(expected, obtained, key, inputs)
    columns = [
        replace(column, worst=tuple(complete(row, column.name) for row in column.worst)) for column in columns
    ]
    return Comparison(
        expected_rows=expected.num_rows,
        obtained_rows=obtained.num_rows,
        rows=rows,
        columns=tuple(columns),
        findings=tuple(findings),
        errors_expected=_count_errors(expected),
        errors_obtained=_count_errors(obtained),
        failing_rows=_union([column.failing_rows for column in columns], expected.num_rows),
        differing_rows=_union([column.differing_rows for column in columns], expected.num_rows),
    )


def _compare_one(
    name: str,
    one: Side,
    other: Side,
    tolerances: Tolerances,
    found: list[Finding],
    keep: Positions | None,
    scale_from: pa.Table | None,
) -> ColumnComparison:
    fails = any(finding.fails for finding in found)
    if (
        name == ERROR_COLUMN
        and _holds_kinds(one.table.column(name))
        and _holds_kinds(other.table.column(name))
    ):
        kinds = Side(_kinds_only(one.table), one.rows), Side(_kinds_only(other.table), other.rows)
        return replace(compare_column(name, *kinds, Tolerances(), {name: "string"}), structure_fails=fails)
    rule = tolerances.for_column(name)
    if rule is not None and rule.kind == "ignore":
        return replace(skip_column(name, one, rule), structure_fails=fails)
    if keep is not None:
        one, other = one.take(keep), other.take(keep)
    ours, theirs = (leaf_dtypes(side.table.schema.field(name)) for side in (one, other))
    dtypes = {path: _measured_in(dtype, theirs.get(path, dtype)) for path, dtype in ours.items()}
    scales = _scales(scale_from, name)
    return replace(compare_column(name, one, other, tolerances, dtypes, scales), structure_fails=fails)


def _measured_in(one: str, other: str) -> str:
    return narrower(one, other) if one in FLOATS and other in FLOATS else one


def _scales(table: pa.Table | None, name: str) -> dict[str, float]:
    """The column scale of a plain float column of another table, for `scale_from`."""
    if table is None or name not in table.column_names or not pat.is_floating(table.column(name).type):
        return {}
    return {name: column_scale(float_values(one_array(table.column(name).drop_null())))}


def _without_views(table: pa.Table) -> pa.Table:
    fields = [column.with_type(without_views(column.type)) for column in table.schema]
    return table if fields == list(table.schema) else table.cast(pa.schema(fields))


def _side(table: pa.Table, rows: Positions | None) -> Side:
    return Side(table, np.arange(table.num_rows, dtype=np.int64)).take(rows)


def _column_findings(expected: pa.Table, obtained: pa.Table) -> list[Finding]:
    ours, theirs = expected.column_names, obtained.column_names
    for side, names in (("expected", ours), ("obtained", theirs)):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ConfigError(
                f"the {side} table has several columns called {twice[0]!r}; give each its own name"
            )
    missing = [name for name in ours if name not in theirs]
    extra = [name for name in theirs if name not in ours]
    found = [
        Finding(
            "missing_column",
            f"column {name!r} is missing from obtained",
            name,
            str(expected.schema.field(name).type),
        )
        for name in missing
    ]
    found += [
        Finding(
            "extra_column",
            f"column {name!r} is in obtained only",
            name,
            "",
            str(obtained.schema.field(name).type),
        )
        for name in extra
    ]
    if not found and ours != theirs:
        order = ", ".join(ours), ", ".join(theirs)
        message = f"columns come in another order: {order[0]}; obtained {order[1]}"
        found.append(Finding("column_order", message, "", *order, fails=False))
    return found


def _known_names(expected: pa.Table, obtained: pa.Table) -> list[str]:
    names: dict[str, None] = {}
    for table in (expected, obtained):
        for column in table.schema:
            names |= dict.fromkeys([column.name, *leaf_dtypes(column)])
    return list(names)


def _check_companions(tolerances: Tolerances, expected: pa.Table) -> None:
    for name, rule in tolerances.columns.items():
        if isinstance(rule, TopK) and rule.scores and rule.scores not in expected.column_names:
            near = did_you_mean(rule.scores, expected.column_names)
            raise ConfigError(f"[tolerance.{name}]: scores names an unknown column {rule.scores!r}; {near}")
        if isinstance(rule, TopK) and rule.scores:
            kind = expected.schema.field(rule.scores).type
            items = list_items(kind)
            if items is None or not pat.is_floating(items):
                raise ConfigError(
                    f"[tolerance.{name}]: scores {rule.scores!r} is {kind}; it takes lists of floats"
                )


def _holds_kinds(errors: pa.ChunkedArray[Any]) -> bool:
    kind = errors.type
    return pat.is_struct(kind) and "kind" in [kind.field(i).name for i in range(kind.num_fields)]


def _kinds(errors: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """The `kind` of each row's error, null where the row has an answer."""
    return cast("Any", pc.struct_field(cast("Any", errors), "kind")).cast(pa.string())


def _kinds_only(table: pa.Table) -> pa.Table:
    return pa.table([_kinds(table.column(ERROR_COLUMN))], names=[ERROR_COLUMN])


def _failed(table: pa.Table) -> npt.NDArray[np.bool_] | None:
    if ERROR_COLUMN not in table.column_names:
        return None
    return np.asarray(cast("Any", table.column(ERROR_COLUMN).is_valid()).to_numpy(), np.bool_)


def _count_errors(table: pa.Table) -> int:
    failed = _failed(table)
    return 0 if failed is None else int(np.count_nonzero(failed))


def _rows_with_answers(one: pa.Table, other: pa.Table) -> Positions | None:
    """The rows that did not fail on one side only; None when that is all of them."""
    ours, theirs = _failed(one), _failed(other)
    if ours is None or theirs is None or (ours == theirs).all():
        return None
    return np.flatnonzero(ours == theirs).astype(np.int64)


def _error_texts(ours: pa.ChunkedArray[Any], theirs: pa.ChunkedArray[Any]) -> list[Finding]:
    """A note when errors of one kind differ in stage, field or message."""
    if ours.type != theirs.type or not pat.is_struct(ours.type):
        return []
    rows = zip(cast("Any", ours).to_pylist(), cast("Any", theirs).to_pylist(), strict=True)
    both = [row for row in rows if row[0] and row[1]]
    notes: list[Finding] = []
    for part in (ours.type.field(i).name for i in range(ours.type.num_fields)):
        differ = [(one[part], other[part]) for one, other in both if one[part] != other[part]]
        if differ and part != "kind":
            sides = (str(differ[0][0])[:120], str(differ[0][1])[:120])
            message = (
                f"the {part} of {len(differ)} row errors differs, such as {sides[0]!r}; obtained {sides[1]!r}"
            )
            notes.append(Finding("error_text", message, ERROR_COLUMN, *sides, fails=False))
    return notes


def _completer(
    expected: pa.Table, obtained: pa.Table, key: str | None, inputs: pa.Table | None
) -> Callable[[WorstRow, str], WorstRow]:
    """A function that adds to a worst row its key, its input row and, for a row error, all of the error."""

    def complete(row: WorstRow, column: str) -> WorstRow:
        if inputs is not None:
            row = replace(row, input={name: _cell(inputs, name, row.row) for name in inputs.column_names})
        if key is not None:
            row = replace(row, key=_cell(expected, key, row.row))
        if column == ERROR_COLUMN:
            sides = _cell(expected, column, row.row), _cell(obtained, column, row.obtained_row)
            row = replace(row, expected=sides[0], obtained=sides[1])
        return row

    return complete


def _cell(table: pa.Table, name: str, row: int) -> object:
    one = table.column(name).slice(row, 1)
    return shown_value(cast("Any", next(chunk for chunk in one.chunks if len(chunk))), 0)


def _union(parts: list[Positions], count: int) -> Positions:
    found = np.zeros(count, np.bool_)
    for rows in parts:
        found[rows] = True
    return np.flatnonzero(found).astype(np.int64)
