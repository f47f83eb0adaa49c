"""What the rows beside a row hold: NaN, nulls, longer sequences, other categories."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

from parity.stages import Value
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect, numbers
from parity.triage.causes.dtypes import null_promotes_dtype
from parity.triage.dependence import Dependence, equal, with_values

Doubles = npt.NDArray[np.float64]

# A neighbour's NaN.


def non_finite_neighbour(case: Case) -> Finding:
    """The neighbours' NaN and infinities made finite numbers: the difference is gone."""
    company = case.company
    if company is None:
        return None
    columns = [name for name in company.mates.rows.column_names if _holds_non_finite(company, name)]
    if not columns:
        return None
    for filling in (1.0, 0.0, -2.5):
        for names in [*([name] for name in columns if len(columns) > 1), columns]:
            if equal(company.beside(_made_finite(names, filling)), company.alone):
                return _non_finite_in(names, filling)
    return Refuted("with finite numbers in place of the neighbours' NaN and infinities the row still differs")


def _non_finite_in(names: Sequence[str], filling: float) -> Explained:
    return Explained(
        f"a neighbour's {' and '.join(map(repr, names))} is NaN or infinite; with {filling:g} in its place "
        "the row gets the value that it gets alone"
    )


def _made_finite(names: Sequence[str], filling: float) -> Callable[[pa.Table], pa.Table | None]:
    def change(rows: pa.Table) -> pa.Table | None:
        for name in names:
            changed = _finite(rows, name, filling)
            if changed is None:
                return None
            rows = changed
        return rows

    return change


def _holds_non_finite(company: Dependence, name: str) -> bool:
    values: list[Any] = company.mates.rows.column(name).to_pylist()
    return any(_non_finite(values[place]) for place in company.mates.others)


def _non_finite(value: Any) -> bool:
    if isinstance(value, float):
        return not np.isfinite(value)
    if isinstance(value, list):
        return any(map(_non_finite, value))
    return any(map(_non_finite, value.values())) if isinstance(value, dict) else False


def _finite(rows: pa.Table, name: str, filling: float) -> pa.Table | None:
    def made(value: Any) -> Any:
        if isinstance(value, float):
            return value if np.isfinite(value) else filling
        if isinstance(value, list):
            return [made(item) for item in value]
        return {key: made(item) for key, item in value.items()} if isinstance(value, dict) else value

    return with_values(rows, name, made)


# A neighbour's null.


def null_neighbour(case: Case) -> Finding:
    """The neighbours' nulls filled: the difference is gone, and with it other types or '.0' in texts."""
    company = case.company
    shown = null_promotes_dtype(case)
    if company is None:
        return shown
    rows = company.mates.rows
    for name in company.columns:
        values: list[Any] = rows.column(name).to_pylist()
        if not any(values[place] is None for place in company.mates.others):
            continue
        fillings = [value for value in values if value is not None] + _plain_values(
            rows.schema.field(name).type
        )
        filling = fillings[0] if fillings else None
        if filling is None or values[company.mates.place] is None:
            continue
        value = company.beside(
            lambda rows, name=name, filling=filling: with_values(
                rows, name, lambda x: filling if x is None else x
            )
        )
        typed = _typed_by_null(company, name) and not _counted(company, name)
        if equal(value, company.alone) and (typed or isinstance(shown, Explained)):
            seen = f"; {shown.evidence}" if isinstance(shown, Explained) else ""
            return Explained(
                f"a neighbour's {name!r} is null; with {filling!r} in its place the row gets the value that "
                f"it gets alone{seen}"
            )
    return shown


def _plain_values(kind: pa.DataType) -> list[Any]:
    if pat.is_boolean(kind):
        return [True]
    if pat.is_integer(kind) or pat.is_floating(kind):
        return [1]
    return ["a"] if pat.is_string(kind) else []


def _counted(company: Dependence, name: str) -> bool:
    """Whether it makes a difference how many nulls there are, which it does not to a column's type."""
    values: list[Any] = company.mates.rows.column(name).to_pylist()
    nulls = [place for place in company.mates.others if values[place] is None]
    return not equal(company.at([*range(company.size), *nulls]), company.together)


def _typed_by_null(company: Dependence, name: str) -> bool:
    """Whether the column is of a type that a frame library promotes for a null: integers and truths."""
    kind = company.mates.rows.schema.field(name).type
    return pat.is_integer(kind) or pat.is_boolean(kind)


# The longest neighbour.


def padding_without_mask(case: Case) -> Finding:
    """The value changes with the longest neighbour's length, and not with what it holds."""
    company = case.company
    if company is None:
        return None
    tried = False
    for name in company.columns:
        field = company.mates.rows.schema.field(name)
        lengths = [_length(value) for value in company.mates.rows.column(name).to_pylist()]
        own = lengths[company.mates.place]
        longest = max((lengths[place] for place in company.mates.others), default=0)
        if longest <= own or own < 0:
            continue
        tried = True
        others = company.beside(lambda rows, name=name: with_values(rows, name, _other_content))
        shorter = company.beside(lambda rows, name=name, own=own: with_values(rows, name, _cutter(own)))
        if equal(others, company.together) and equal(shorter, company.alone):
            what = "characters" if pat.is_string(field.type) else "items"
            return Explained(
                f"with other content of the same length in the neighbours' {name!r} the value stays; with "
                f"theirs cut to the row's own {own} {what} it is the one that the row gets alone"
            )
    return Refuted("the neighbours' length alone does not explain it") if tried else None


def _length(value: Any) -> int:
    if isinstance(value, dict) and "data" in value:
        value = value["data"]
    return len(value) if isinstance(value, str | list | bytes) else -1


def _other_content(value: Any) -> Any:
    """As long, and other: the words of a text and the items of a list, each changed."""
    if isinstance(value, str):
        return re.sub(
            r"[A-Za-z]", lambda found: chr(ord(found[0]) ^ 1) if found[0] not in "@`" else "b", value
        )
    if isinstance(value, list):
        if all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
            return value[1:] + value[:1]
        return list(reversed([_other_content(item) for item in value]))
    return value


def _cutter(length: int) -> Callable[[Any], Any]:
    return lambda value: value[:length] if isinstance(value, str | list | bytes) else value


# Categories.


def categories_per_batch(case: Case) -> Finding:
    """Codes that are positions among the batch's distinct values; or as many columns as there are of them."""
    company = case.company
    if company is None or company.together_run is None:
        return None
    rows = company.mates.rows
    run = company.together_run
    looked_at = {company.place: run.at(company.stage, company.place), **run.traces.preprocess}
    tried = False
    for name in rows.column_names:
        kind = rows.schema.field(name).type
        if not (pat.is_string(kind) or pat.is_integer(kind) or pat.is_boolean(kind)):
            continue
        column: list[Any] = rows.column(name).to_pylist()
        if None in column or len(set(column)) < 2:
            continue
        tried = True
        for place, values in looked_at.items():
            how = _codes(values, column)
            if how is not None:
                return Explained(
                    f"{place} of all {len(column)} rows of the batch is {how} {len(set(column))} values of "
                    f"{name!r}"
                )
            distinct = len(set(column))
            shapes = {value.shape for value in values if value is not None}
            alone = company.alone
            if (
                len(shapes) == 1
                and next(iter(shapes))[-1:] == (distinct,)
                and alone is not None
                and alone.shape[-1:] == (1,)
            ):
                return Explained(
                    f"{place} has as many columns as {name!r} has values in the batch: {distinct}, and 1 "
                    "alone"
                )
        if _only_company_of_values(company, name):
            return Explained(
                f"with the neighbours' {name!r} replaced by the row's own the row gets the value that it "
                f"gets alone; in which order and how often the others stand beside it makes no difference"
            )
    return Refuted("no value is a position among the batch's distinct values") if tried else None


def _codes(values: Sequence[Value | None], column: Sequence[Any]) -> str | None:
    found = numbers(values, range(len(values)))
    if found is None:
        return None
    columns = (
        [found]
        if found.ndim == 1
        else [found[:, at] for at in range(found.shape[1])]
        if found.ndim == 2
        else []
    )
    ordered = {value: place for place, value in enumerate(sorted(set(column)))}
    seen = {value: place for place, value in enumerate(dict.fromkeys(column))}
    for codes in columns:
        for name, known in (
            ("the position among the sorted", ordered),
            ("the position by appearance among the", seen),
        ):
            wanted = [known[value] for value in column]
            if np.array_equal(codes, wanted) or np.array_equal(codes, np.asarray(wanted) + 1):
                return name
    return None


def _only_company_of_values(company: Dependence, name: str) -> bool:
    """Whether a text column alone is responsible, whatever the neighbours' lengths are."""
    kind = company.mates.rows.schema.field(name).type
    if not pat.is_string(kind) or company.columns != [name] or not company.copies_are_alone:
        return False
    order = list(range(company.size))
    twice = [*order, *company.mates.others]
    return all(equal(company.at(places), company.together) for places in (order[::-1], twice))


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "non-finite-neighbour",
        "a NaN or infinity in one row spoils the others of its batch",
        "the neighbours' NaN and infinities replaced by finite numbers, asked again",
        "pick rows with np.where, not by multiplying with a mask; reject unfit rows one by one with "
        "batch.reject",
        non_finite_neighbour,
        ("company",),
    )
    yield Suspect(
        "null-promotes-dtype",
        "a null in the batch turns a column of integers or truths into floats or objects",
        "the same values in another dtype, or in texts with '.0', where a row of the batch is null; the "
        "neighbours' nulls filled, asked again",
        "fill nulls first: batch['name'].fill_null(...); with pandas use Int64 and boolean, not the default",
        null_neighbour,
        ("company", "path"),
    )
    yield Suspect(
        "padding-without-mask",
        "padding to the longest row of the batch is counted",
        "the neighbours' content changed at the same length, and cut to the row's own length, asked again",
        "mask the padding in every mean, sum, softmax and attention, or pack the sequences",
        padding_without_mask,
        ("company",),
    )
    yield Suspect(
        "categories-per-batch",
        "codes or columns of categories are made from the categories that the batch happens to have",
        "values against the positions among the batch's distinct values, sorted or by appearance; the "
        "number of columns against the number of distinct values",
        "fix the categories when the model is trained, and keep them beside the weights",
        categories_per_batch,
        ("company",),
    )


SUSPECTS: Final = tuple(_suspects())
