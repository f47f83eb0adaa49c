"""Null, NaN, zero and nothing taken for each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from parity.result import ERROR_COLUMN
from parity.stages import Value
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect
from parity.triage.values import alike

_EXACT: Final = {"float64": 2**53, "float32": 2**24}


# Missing values.


def null_nan_missing(case: Case) -> Finding:
    """Missing values told apart on one side: null, NaN, zero, empty text."""
    failing = set(case.failing)
    missing = {
        name: {row for row, value in enumerate(values) if _is_missing(value)}
        for name, values in case.inputs.items()
    }
    total = case.divergence.rows.num_rows
    for item in case.pairs:
        if item.place == ERROR_COLUMN:
            continue
        rows = item.failing or item.differing
        if not set(rows) >= failing:
            continue
        names = [_missing_names(item.expected[row], item.obtained[row]) for row in rows]
        if names and all(name is not None for name in names):
            what = sorted({word for name in names if name is not None for word in name})
            return Explained(
                f"wherever {item.place} differs, on {len(rows)} rows, each side holds a kind of missing "
                f"value: {', '.join(what)}",
            )
    for name, rows in missing.items():
        if failing and failing <= rows:
            found = _filled(case, name)
            if found is not None:
                return found
            if failing == rows and total - len(rows) >= 3:
                return Explained(
                    f"exactly the {len(rows)} rows differ whose {name!r} is missing; the {total - len(rows)} "
                    "others do not"
                )
    taken = _taken_for_missing(case)
    if taken is not None:
        return taken
    return Refuted("rows differ that have no missing value") if any(missing.values()) else None


def _taken_for_missing(case: Case) -> Explained | None:
    """Rows with a zero or empty value differ, and asked again this handler does not tell it from null."""
    trials, rows = case.trials, list(case.failing)
    if trials is None or not rows or case.side_of_engine is None:
        return None
    table = case.divergence.rows
    for field in table.schema:
        if not field.nullable:
            continue
        values: list[Any] = table.column(field.name).to_pylist()
        failing = [values[row] for row in rows]
        if any(not _is_blank(value) for value in failing):
            continue
        picked = table.take(pa.array(rows))
        place = picked.schema.get_field_index(field.name)
        nulls = picked.set_column(place, field, pa.nulls(len(rows), field.type))
        one, other = trials.run(picked), trials.run(nulls)
        if one is None or other is None:
            return None
        place_of = case.pairs[0].place
        both = zip(one.at(case.stage, place_of), other.at(case.stage, place_of), strict=True)
        if all(a is not None and b is not None and alike(a, b) for a, b in both):
            return Explained(
                f"the {len(rows)} differing rows have {failing[0]!r} for {field.name!r}, and this handler "
                "gives the same values for null; the other side does not",
                f"{failing[0]!r} is taken for missing on one side",
            )
    return None


def _is_blank(value: Any) -> bool:
    return value is not None and (value != value or value == 0 or value == "" or value == [])


_BLANKS: Final = {
    "": "empty text",
    "nan": "the text 'nan'",
    "None": "the text 'None'",
    "null": "null",
    "NaN": "NaN",
    "<NA>": "the text '<NA>'",
}


def _missing_name(value: Value | None) -> str | None:
    if value is None:
        return "null"
    if value.size == 0:
        return "nothing"
    if value.dtype.kind == "f" and np.isnan(value).all():
        return "NaN"
    if value.dtype.kind in "mM" and np.isnat(value).all():
        return "NaT"
    if value.ndim == 0 and value.dtype.kind in "US":
        return _BLANKS.get(str(value[()]))
    if value.ndim == 0 and value.dtype.kind in "iufb" and value[()] in (0, -1, -999):
        return str(value[()])
    return None


def _missing_names(one: Value | None, other: Value | None) -> tuple[str, str] | None:
    """The kinds of missing value where two values differ; one of them must be a real one, not a zero."""
    if one is not None and other is not None and one.ndim and one.shape == other.shape:
        return _missing_elements(one, other)
    first, second = _missing_name(one), _missing_name(other)
    if first is None or second is None or not {first, second} & {"null", "NaN", "NaT", *_BLANKS.values()}:
        return None
    return first, second


def _missing_elements(one: Value, other: Value) -> tuple[str, str] | None:
    if one.dtype.kind != "f" or other.dtype.kind != "f":
        return None
    differs = (one != other) & ~(np.isnan(one) & np.isnan(other))
    if not differs.any():
        return None
    for first, second in ((one, other), (other, one)):
        filling = np.unique(second[differs])
        if np.isnan(first[differs]).all() and len(filling) == 1:
            return ("NaN", f"{filling[0]:g}")
    return None


def _is_missing(value: Value | None) -> bool:
    return value is None or (value.dtype.kind == "f" and value.size > 0 and bool(np.isnan(value).any()))


def _filled(case: Case, name: str) -> Explained | None:
    """The missing values of a column filled, and asked again."""
    field = case.divergence.rows.schema.field(name)
    fillings: list[tuple[str, Any]] = []
    if pat.is_floating(field.type):
        fillings = [("NaN", float("nan")), ("0", 0.0), ("-1", -1.0)]
    elif pat.is_integer(field.type):
        fillings = [("0", 0), ("-1", -1)] if not pat.is_unsigned_integer(field.type) else [("0", 0)]
    elif pat.is_string(field.type):
        fillings = [("the empty text", ""), ("'nan'", "nan"), ("'None'", "None")]
    elif pat.is_boolean(field.type):
        fillings = [("false", False), ("true", True)]
    if field.nullable:
        fillings.append(("null", None))
    for words, filling in fillings:

        def filled(rows: pa.Table, filling: Any = filling) -> pa.Table:
            place = rows.schema.get_field_index(name)
            values = [filling if x is None or x != x else x for x in rows.column(name).to_pylist()]
            return rows.set_column(place, rows.schema.field(place), pa.array(values, field.type))

        count = case.given(filled)
        if count is not None:
            return Explained(
                f"only rows differ whose {name!r} is missing; with {words} in its place, this handler gives "
                f"the other side's values on all {count} of them"
            )
    return None


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "null-nan-missing",
        "null, NaN and a missing value are three things on one side and one on the other",
        "kinds of missing value where the sides differ; rows with missing values filled, asked again",
        "decide in preprocess what null means, and fill it there: batch['name'].fill_null(...)",
        null_nan_missing,
        ("path", "company"),
    )


SUSPECTS: Final = tuple(_suspects())
