"""The order of rows, columns, labels and nulls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parity.stages import Value
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect, Values, numbers
from parity.triage.causes.scales import fit
from parity.triage.values import alike

Doubles = npt.NDArray[np.float64]


_ENOUGH_ROWS: Final = 3
"""Rows that one permutation of columns must fit before it says anything."""


# Rows.


def _row_values(case: Case) -> tuple[str, Values, Values] | None:
    """A place with each row's own value, and the value it got: in the batch, or among all the rows."""
    company = case.company
    if company is not None:
        both = company.wide_values
        return None if both is None else (company.place, *both)
    for item in case.values:
        if case.covers(item) and len(item.both) == len(item.expected) and len(item.both) > 2:
            return item.place, item.expected, item.obtained
    return None


def row_order(case: Case) -> Finding:
    """The rows' values in another order."""
    found = _row_values(case)
    if found is None:
        return None
    place, one, other = found
    order = _order(one, other)
    if order is None:
        return Refuted("the values are not each other's in another order")
    step = _shift(one, other)
    if step is not None and _shifts_again(case, step):
        return Refuted("the rows are shifted, and otherwise in order")
    moved = sum(at != source for at, source in enumerate(order))
    return Explained(
        f"{place} of the {len(one)} rows together is the rows' own values in another order, "
        f"{order[:8]}{' …' if len(order) > 8 else ''}: {moved} rows get another row's"
    )


def row_shift(case: Case) -> Finding:
    """The rows' values, each some places too late or too early."""
    found = _row_values(case)
    if found is None:
        return None
    place, one, other = found
    step = _shift(one, other)
    if step is None or not _shifts_again(case, step):
        return Refuted("the values are not each other's shifted by a few rows")
    way = "before" if step > 0 else "behind"
    return Explained(
        f"{place} of each row is the value of the row {abs(step)} place{'s' if abs(step) > 1 else ''} {way} "
        f"it, on {len(one) - abs(step)} of {len(one)} rows"
    )


def _shifts_again(case: Case, step: int) -> bool:
    """Whether the batch in another order is shifted by as many rows: sorted values may look so once."""
    company = case.company
    if company is None:
        return True
    found = company.values_of_wide(range(company.wide.rows.num_rows)[::-1])
    return found is not None and _shift(*found) == step


def _order(one: Values, other: Values) -> list[int] | None:
    """For each place, where its value came from; None where the values are no permutation, or all stay."""
    free = list(range(len(one)))
    order: list[int] = []
    for at, value in enumerate(other):
        if value is None:
            return None
        candidates = sorted(free, key=lambda source, at=at: source != at)
        found = next((place for place in candidates if _same(one[place], value)), None)
        if found is None:
            return None
        free.remove(found)
        order.append(found)
    return None if order == list(range(len(one))) else order


def _shift(one: Values, other: Values) -> int | None:
    rows = len(one)
    if rows < 3 or any(value is None for value in one):
        return None
    for step in [shift for size in range(1, min(9, rows - 1)) for shift in (size, -size)]:
        places = [at for at in range(rows) if 0 <= at - step < rows]
        if len(places) >= 2 and all(_same(one[at - step], other[at]) for at in places):
            distinct = any(not _same(one[at], other[at]) for at in places)
            if distinct:
                return step
    return None


def _same(one: Value | None, other: Value | None) -> bool:
    return one is not None and other is not None and alike(one, other)


# Columns.


def column_order(case: Case) -> Finding:
    """One permutation of the features of every row, also with a scale and offset of each."""
    tried = False
    for item in case.values:
        if not case.covers(item):
            continue
        rows = item.both[:256]
        one, other = numbers(item.expected, rows), numbers(item.obtained, rows)
        if one is None or other is None or one.ndim != 2 or one.shape != other.shape:
            continue
        if not 2 <= one.shape[1] <= 256 or len(rows) < _ENOUGH_ROWS:
            continue
        tried = True
        order = _column_permutation(one, other)
        if order is not None:
            return Explained(
                f"columns {order[:12]} of {item.place} on the expected side equal the obtained side on all "
                f"{len(rows)} rows"
            )
        order = _scaled_permutation(one, other)
        if order is not None:
            return Explained(
                f"columns {order[:12]} of {item.place} on the expected side, but for a scale and offset of "
                f"each, equal the obtained side on all {len(rows)} rows"
            )
    named = _swapped_places(case)
    if named is not None:
        return named
    swapped = _swapped_inputs(case)
    if swapped is not None:
        return swapped
    return Refuted("no permutation of the features of one side is the other") if tried else None


def _column_permutation(one: Doubles, other: Doubles) -> list[int] | None:
    free = list(range(one.shape[1]))
    order: list[int] = []
    for column in range(one.shape[1]):
        target = other[:, column]
        candidates = sorted(free, key=lambda source, column=column: source != column)
        found = next((at for at in candidates if alike(one[:, at], target)), None)
        if found is None:
            return None
        free.remove(found)
        order.append(found)
    return None if order == list(range(one.shape[1])) else order


def _scaled_permutation(one: Doubles, other: Doubles) -> list[int] | None:
    if len(one) < 8 or one.shape[1] > 64:
        return None
    order: list[int] = []
    for column in range(one.shape[1]):
        fitting = [at for at in range(one.shape[1]) if fit(one[:, at], other[:, column]) is not None]
        if len(fitting) != 1:
            return None
        order.append(fitting[0])
    identity = list(range(one.shape[1]))
    return order if sorted(order) == identity and order != identity else None


def _swapped_places(case: Case) -> Explained | None:
    """Two or more places of a stage's value that hold each other's values."""
    items = [item for item in case.values if case.covers(item)]
    if len(items) < 2:
        return None
    sources: list[str] = []
    for item in items:
        rows = case.rows_of(item)
        source = next(
            (
                other.place
                for other in items
                if other is not item and all(_same(other.expected[row], item.obtained[row]) for row in rows)
            ),
            None,
        )
        if source is None:
            return None
        sources.append(source)
    if sorted(sources) != sorted(item.place for item in items):
        return None
    moved = ", ".join(f"{source} to {item.place}" for source, item in zip(sources, items, strict=True))
    return Explained(f"the values of one side stand at other places on the other: {moved}")


def _swapped_inputs(case: Case) -> Explained | None:
    """Two inputs of one type given in each other's place give the other side's values."""
    schema = case.divergence.rows.schema
    names = [field.name for field in schema if pa.types.is_primitive(field.type)]
    pairs = [
        (one, other)
        for at, one in enumerate(names)
        for other in names[at + 1 :]
        if schema.field(one).type == schema.field(other).type
    ]
    for one, other in pairs[:28]:

        def swapped(rows: pa.Table, one: str = one, other: str = other) -> pa.Table:
            first, second = rows.schema.get_field_index(one), rows.schema.get_field_index(other)
            columns = rows.column(one), rows.column(other)
            rows = rows.set_column(first, rows.schema.field(first), columns[1])
            return rows.set_column(second, rows.schema.field(second), columns[0])

        count = case.given(swapped)
        if count is not None and count > 1:
            return Explained(
                f"with {one!r} and {other!r} given in each other's place, this handler gives the other "
                f"side's values on all {count} differing rows",
                f"the features {one!r} and {other!r} are swapped",
            )
    return None


# Labels.


def label_map(case: Case) -> Finding:
    """Each label of one side stands for one label of the other."""
    for item in case.values:
        if not case.covers(item):
            continue
        pairs = [(_label(item.expected[row]), _label(item.obtained[row])) for row in item.both]
        if len(pairs) < 6 or any(one is None or other is None for one, other in pairs):
            continue
        there: dict[str, set[str]] = {}
        back: dict[str, set[str]] = {}
        for one, other in pairs:
            there.setdefault(str(one), set()).add(str(other))
            back.setdefault(str(other), set()).add(str(one))
        one_to_one = all(len(found) == 1 for found in (*there.values(), *back.values()))
        if one_to_one and 2 <= len(there) <= len(pairs) // 3:
            shown = ", ".join(f"{one!r} for {next(iter(other))!r}" for one, other in list(there.items())[:6])
            return Explained(
                f"each of {len(there)} labels of {item.place} stands for one label of the other side on all "
                f"{len(pairs)} rows: {shown}"
            )
        return Refuted("one label of one side goes with several of the other")
    return None


def _label(value: Value | None) -> str | None:
    if value is None or value.ndim or value.dtype.kind not in "USiub":
        return None
    return str(value[()])


# Nulls.


def null_order(case: Case) -> Finding:
    """Sequences of the same items, whose nulls or NaN stand elsewhere."""
    tried = False
    for item in case.values:
        if not case.covers(item):
            continue
        rows = case.rows_of(item)
        both = [(_items(item.expected[row]), _items(item.obtained[row])) for row in rows]
        if not both or any(one is None or other is None for one, other in both):
            continue
        pairs = [(one, other) for one, other in both if one is not None and other is not None]
        if not any(None in one or None in other for one, other in pairs):
            continue
        tried = True
        if all(_but_for_nulls(one, other) for one, other in pairs):
            ends = {_end(one) for one, _ in pairs}, {_end(other) for _, other in pairs}
            how = "" if not all(len(end) == 1 for end in ends) else f", {ends[0].pop()} and {ends[1].pop()}"
            return Explained(
                f"{item.place} holds the same items in the same order, but for where its nulls stand{how}, "
                f"on {len(pairs)} of {len(pairs)} differing rows"
            )
    nulls = {
        name: {row for row, value in enumerate(values) if None in (_items(value) or [])}
        for name, values in case.inputs.items()
    }
    for name, rows in nulls.items():
        if rows and set(case.failing) == rows and len(rows) < case.divergence.rows.num_rows - 2:
            return Explained(
                f"exactly the {len(rows)} rows differ whose {name!r} holds nulls among other values, and its "
                "order decides"
            )
    return Refuted("the items differ in more than where nulls stand") if tried else None


def _items(value: Value | None) -> list[Any] | None:
    if value is None:
        return None
    if value.ndim == 1 and value.dtype.kind in "fiu":
        return [None if item != item else item for item in value.tolist()]
    if value.ndim == 0 and value.dtype.kind == "U" and str(value[()]).startswith("["):
        try:
            data = json.loads(str(value[()]))
        except ValueError:
            return None
        return cast("list[Any]", data) if isinstance(data, list) else None
    return None


def _but_for_nulls(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two sequences hold the same items in the same order, and nulls at other places."""
    kept = [item for item in one if item is not None], [item for item in other if item is not None]
    shorter = min(len(kept[0]), len(kept[1]))
    if one == other or not shorter:
        return False
    if len(one) == len(other) and kept[0] == kept[1]:
        return True
    return (None in one or None in other) and kept[0][:shorter] == kept[1][:shorter]


def _end(items: Sequence[Any]) -> str:
    if items and items[0] is None:
        return "nulls first"
    return "nulls last" if items and items[-1] is None else "nulls in between"


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "row-shift",
        "each row gets the value of a row some places before or behind it",
        "shifts by up to 8 rows of the values that the rows get alone, or on the other side",
        "give answers in the order of the batch; drop or add no row in between",
        row_shift,
        ("company", "path"),
    )
    yield Suspect(
        "row-order",
        "answers come in another order than the rows",
        "whether the values in the batch are the rows' own in another order",
        "put answers back in the order of the batch: out[order] = sorted_answers",
        row_order,
        ("company", "path"),
    )
    yield Suspect(
        "column-order",
        "features stand in another order than the model expects",
        "one permutation of the features for all rows, also with a scale and offset of each; places of a "
        "stage's value swapped; inputs of one type swapped and asked again",
        "build the matrix by name, in the order that is kept beside the weights",
        column_order,
    )
    yield Suspect(
        "null-order",
        "nulls are sorted to the front on one side and to the end on the other",
        "sequences of the same items whose nulls stand elsewhere",
        "say where nulls go: pandas na_position, Polars nulls_last, pyarrow null_placement",
        null_order,
        ("path", "company"),
    )
    yield Suspect(
        "label-map",
        "the names of the classes stand in another order on one side",
        "whether each label of one side goes with one label of the other, on all rows",
        "keep the list of labels beside the weights, and check its length and order when loading",
        label_map,
    )


SUSPECTS: Final = tuple(_suspects())
