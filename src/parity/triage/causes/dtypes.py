"""Integers that went through floats, nulls that promote, arrays that are broadcast."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from parity.result import ERROR_COLUMN
from parity.stages import Value
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect
from parity.triage.causes.texts import texts_of
from parity.triage.values import Pair, kind_of

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
    text = re.sub(r"(?<![\d.])(-?\d+)\.0(?!\d)", r"\1", text)
    return re.sub(r"\b(True|False|true|false)\b", lambda found: str(int(found[0].lower() == "true")), text)


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


SUSPECTS: Final = tuple(_suspects())
