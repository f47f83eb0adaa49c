"""Integers that went through floats, nulls that promote, missing values taken for others, broadcasting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from parity.result import ERROR_COLUMN
from parity.stages import Value
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect
from parity.triage.causes.texts import texts_of
from parity.triage.values import Pair, alike, kind_of

_EXACT: Final = {"float64": 2**53, "float32": 2**24}


# Integers through floats.


def integer_through_float(case: Case) -> Finding:
    """Large integers that are the other side's after a float; or only rows with such integers differ."""
    tried = False
    for item in case.values:
        if not case.covers(item):
            continue
        pairs = [_integers(item.expected[row], item.obtained[row]) for row in case.rows_of(item)]
        if not pairs or any(pair is None for pair in pairs):
            continue
        tried = True
        for dtype in _EXACT:
            for side in (0, 1):
                if all(
                    _through(pair[side], dtype) == pair[1 - side] and pair[0] != pair[1]
                    for pair in pairs
                    if pair is not None
                ):
                    example = next(pair for pair in pairs if pair is not None)
                    number = next(a for a, b in zip(*example, strict=True) if a != b)
                    return Explained(
                        f"{item.place} on one side, taken through {dtype}, equals the other side on "
                        f"{len(pairs)} of {len(pairs)} differing rows, such as {number}",
                        f"integers beyond 2^{_EXACT[dtype].bit_length() - 1} go through {dtype} on one side",
                    )
    found = _large_inputs(case)
    if found is not None:
        return found
    return Refuted("the integers differ by more than a float's rounding") if tried else None


def _integers(one: Value | None, other: Value | None) -> tuple[list[int], list[int]] | None:
    found: list[list[int]] = []
    for value in (one, other):
        if value is None:
            return None
        if value.dtype.kind in "iu" or (
            value.dtype.kind == "f" and np.isfinite(value).all() and (np.round(value) == value).all()
        ):
            found.append([int(item) for item in value.ravel().tolist()])
        else:
            texts = texts_of(value)
            digits = [_only_digits(text) for text in texts or []]
            if not digits or any(digit is None for digit in digits):
                return None
            found.append([digit for digit in digits if digit is not None])
    return (found[0], found[1]) if len(found[0]) == len(found[1]) else None


def _only_digits(text: str) -> int | None:
    head = text.removesuffix(".0").lstrip("-")
    return int(text.removesuffix(".0")) if head.isascii() and head.isdigit() and len(head) < 40 else None


def _through(values: list[int], dtype: str) -> list[int]:
    try:
        return [int(np.dtype(dtype).type(value)) for value in values]
    except (OverflowError, ValueError):
        return []


def _large_inputs(case: Case) -> Explained | None:
    failing = set(case.failing)
    schema = case.divergence.rows.schema
    for field in schema:
        if not pat.is_int64(field.type) and not pat.is_uint64(field.type):
            continue
        values: list[Any] = case.divergence.rows.column(field.name).to_pylist()
        for dtype, limit in _EXACT.items():
            lossy = {
                row
                for row, value in enumerate(values)
                if value is not None and _through([value], dtype) != [value]
            }
            if not failing or not failing <= lossy:
                continue

            def rounded(rows: pa.Table, name: str = field.name, dtype: str = dtype) -> pa.Table:
                place = rows.schema.get_field_index(name)
                kind = rows.schema.field(place)
                numbers = [
                    None if x is None else (_through([x], dtype) or [x])[0]
                    for x in rows.column(name).to_pylist()
                ]
                return rows.set_column(place, kind, pa.array(numbers, kind.type))

            count = case.given(rounded)
            if count is not None:
                return Explained(
                    f"only rows differ whose {field.name!r} is no whole number of {dtype}; taken through it, "
                    f"this handler gives the other side's values on all {count} of them",
                    f"integers beyond 2^{limit.bit_length() - 1} go through {dtype} on one side",
                )
            same = case.indifferent(rounded)
            if same is not None:
                return Explained(
                    f"only rows differ whose {field.name!r} is no whole number of {dtype}, and this handler "
                    f"does not tell them from what {dtype} makes of them, on all {same}; the other side does",
                    f"integers beyond 2^{limit.bit_length() - 1} go through {dtype} on one side",
                )
            if case.trials is None and failing == lossy and len(values) - len(lossy) >= 3:
                return Explained(
                    f"exactly the {len(lossy)} rows differ whose {field.name!r} is no whole number of "
                    f"{dtype}",
                    f"integers beyond 2^{limit.bit_length() - 1} go through {dtype} on one side",
                )
    return None


# Nulls that promote.


def null_promotes_dtype(case: Case) -> Finding:
    """Integers or truths on one side, floats or objects on the other; "7" against "7.0"."""
    if not _has_nulls(case):
        return None
    tried = False
    for item in case.values:
        rows = [row for row in item.both if row in item.failing]
        if not rows:
            continue
        tried = True
        whole = all(_promoted(item.expected[row], item.obtained[row]) for row in rows)
        if whole and case.covers(item):
            kinds = sorted({_kind(side[rows[0]]) for side in (item.expected, item.obtained)})
            what = " and ".join(kinds) if len(kinds) > 1 else "texts with and without '.0'"
            return Explained(
                f"{item.place} holds the same values as {what} on {len(rows)} of {len(rows)} differing rows, "
                "and a row beside them is null",
                "a null in the batch turns a column of integers or truths into floats or objects",
            )
    return Refuted("the two sides are not the same values in other types") if tried else None


def _has_nulls(case: Case) -> bool:
    tables = [case.divergence.rows, *(side.company for side in case.sides if side.company is not None)]
    return any(column.null_count for table in tables for column in table.columns)


def _kind(value: Value | None) -> str:
    return "nothing" if value is None else ("text" if value.dtype.kind in "US" else str(value.dtype))


def _promoted(one: Value | None, other: Value | None) -> bool:
    if one is None or other is None:
        return False
    texts = texts_of(one), texts_of(other)
    if texts[0] is not None and texts[1] is not None:
        pairs = list(zip(texts[0], texts[1], strict=False))
        return len(texts[0]) == len(texts[1]) and all(
            _without_point(a) == _without_point(b) for a, b in pairs
        )
    kinds = {kind_of(one), kind_of(other)}
    if one.shape != other.shape:
        return False
    if kinds <= {"integer", "float"} and len(kinds) == 2:
        return np.array_equal(one.astype(np.float64), other.astype(np.float64))
    if "truth" in kinds and kinds <= {"truth", "integer", "float"} and len(kinds) == 2:
        numbers = one.astype(np.float64), other.astype(np.float64)
        # ~True is -2 and ~False is -1 once truths are objects or integers
        return np.array_equal(*numbers) or any(
            np.array_equal(a, -2 + b) or np.array_equal(a, -1 - b) or np.array_equal(a, -2 + (1 - b))
            for a, b in (numbers, numbers[::-1])
        )
    return False


def _without_point(text: str) -> str:
    """A text with every "12.0" in it written "12", and truths as digits."""
    import re

    text = re.sub(r"(?<![\d.])(-?\d+)\.0(?!\d)", r"\1", text)
    return re.sub(r"\b(True|False|true|false)\b", lambda found: str(int(found[0].lower() == "true")), text)


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


# Broadcasting.


def broadcast(case: Case) -> Finding:
    """A row's value has an axis as long as the batch."""
    counts = [_batch_rows(case, side) for side in (0, 1)]
    tried = False
    for item in _shaped(case):
        for row in item.both:
            one, other = item.expected[row], item.obtained[row]
            if one is None or other is None or one.shape == other.shape:
                continue
            tried = True
            if _follows(one.shape, other.shape, counts):
                return Explained(
                    f"row {row} of {item.place} has shape {one.shape} in a batch of {counts[0]} and "
                    f"{other.shape} in a batch of {counts[1]}",
                    "arrays of shape (n, 1) and (n,) are combined to (n, n)",
                )
    return Refuted("no axis of a row's value is as long as the batch") if tried else None


def _shaped(case: Case) -> list[Pair]:
    found = [item for item in case.values if item.place != ERROR_COLUMN]
    for stage in ("preprocess", "inference"):
        found += list(case.compared.stages[stage].pairs)
    return found


def _batch_rows(case: Case, side: int) -> int:
    company = case.sides[side].company
    if company is not None:
        return company.num_rows
    return 1 if case.group == "company" and side == 0 else case.divergence.rows.num_rows


def _follows(one: tuple[int, ...], other: tuple[int, ...], counts: list[int]) -> bool:
    if len(one) != len(other) or counts[0] == counts[1]:
        return False
    axes = [axis for axis, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    return len(axes) == 1 and (one[axes[0]], other[axes[0]]) == (counts[0], counts[1])


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "integer-through-float",
        "large integers go through a float on one side and come back as their neighbours",
        "integers of one side taken through float64 and float32; whether only rows differ whose integers a "
        "float cannot hold; these taken through one, asked again",
        "keep ids as Int64 or String all the way; never join or store them as floats",
        integer_through_float,
        ("path", "company", "process"),
    )
    yield Suspect(
        "null-nan-missing",
        "null, NaN and a missing value are three things on one side and one on the other",
        "kinds of missing value where the sides differ; rows with missing values filled, asked again",
        "decide in preprocess what null means, and fill it there: batch['name'].fill_null(...)",
        null_nan_missing,
        ("path", "company"),
    )


SUSPECTS: Final = tuple(_suspects())
