"""What depends on the rows beside a row: their values, their number, their order."""

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
from parity.triage.dependence import Dependence, equal, fails, with_own, with_values
from parity.triage.watching import short_stage

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
    from parity.triage.causes.dtypes import null_promotes_dtype

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
        if equal(value, company.alone) and (isinstance(shown, Explained) or _typed_by_null(company, name)):
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
                f"gets alone, and any other value of {name!r} beside it gives the other one"
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
    if not pat.is_string(kind) or company.columns != [name]:
        return False
    return company.copies_are_alone


# Numbers of rows.


def squeezed_axis(case: Case) -> Finding:
    """A batch of one gets another value than any larger one."""
    company = case.company
    if company is None:
        return None
    sizes = [company.copies(count) for count in (2, 3, 5)]
    if any(values is None for values in sizes):
        return None
    values = [value for found in sizes if found is not None for value in found]
    same = all(equal(value, values[0]) for value in values)
    if same and not equal(values[0], company.alone) and equal(values[0], company.together):
        how = "the row fails alone, and" if fails(company.alone) else "alone it gets another value;"
        return Explained(f"{how} in batches of 2, 3 and 5 copies, and in its batch, it gets one and the same")
    return Refuted("larger batches do not all give one value")


def batch_length(case: Case) -> Finding:
    """The value follows the number of rows, whatever they are."""
    company = case.company
    if company is None:
        return None
    values = company.copies(company.size)
    if values is None or not company.copies_are_equal or not company.copies_are_together:
        return Refuted("copies of the row in place of its neighbours give another value")
    strangers = company.beside(lambda rows: _replaced(rows, company))
    if not equal(strangers, company.together):
        return Refuted("other rows in place of its neighbours give another value")
    more = [company.copies(count) for count in (2, 3, 5, 8)]
    firsts = [found[0] for found in more if found is not None]
    distinct = sum(not any(equal(value, other) for other in firsts[:at]) for at, value in enumerate(firsts))
    if distinct > 1:
        return Explained(
            "copies of the row get one value at every place, the one that it gets in its batch of "
            f"{company.size}; in batches of 2, 3, 5 and 8 copies it gets {distinct} others"
        )
    if not equal(firsts[0], company.together) and equal(firsts[0], company.alone):
        return Explained(
            f"{company.size} copies of the row get the value that it gets in its batch of {company.size}, "
            "and 2 to 8 copies the one that it gets alone: the number of rows decides"
        )
    return Refuted("the value does not follow the number of rows")


def ragged_last_batch(case: Case) -> Finding:
    """Copies of the row in batches of many sizes: the last rows of sizes that are no multiple go wrong."""
    company = case.company
    if company is None:
        return None
    largest = max(17, company.size)
    sizes = list(range(1, min(largest, 40) + 1))
    found: dict[int, Sequence[Value | None]] = {}
    for size in sizes:
        values = company.copies(size)
        if values is None:
            return None
        found[size] = values
    if company.copies_are_alone and company.copies_are_equal:
        return Refuted("copies of the row get its value in batches of every size")
    for chunk in (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32):
        if chunk > sizes[-1]:
            break
        right = found[chunk][0]
        if fails(right) or right is None:
            continue
        whole = all(equal(value, right) for size in sizes if size % chunk == 0 for value in found[size])
        if not whole:
            continue
        ragged = [size for size in sizes if size % chunk]
        tails = all(
            all(equal(value, right) for value in found[size][: size - size % chunk])
            and not any(equal(value, right) for value in found[size][size - size % chunk :])
            for size in ragged
        )
        failing = all(any(fails(value) for value in found[size]) for size in ragged)
        doubled = company.copies(2 * chunk) if 2 * chunk > sizes[-1] else found[2 * chunk]
        if (tails or failing) and doubled is not None and all(equal(value, right) for value in doubled):
            short = short_stage(company.trials, company.mates.row.take(pa.array([0] * (chunk + 1))))
            what = (
                "rows behind the last multiple get no answer"
                if failing
                else "rows behind the last multiple differ"
            )
            return Explained(
                f"copies of the row get its value in batches of {chunk} and its multiples; in other sizes "
                f"{what}",
                f"rows are taken {chunk} at a time, and what is left over is dropped or never written",
                None if short is None else short[0],
            )
    return Refuted("the sizes that go wrong are not those beyond a multiple")


# Places.


def position(case: Case) -> Finding:
    """Copies of one row get different values at different places."""
    company = case.company
    if company is None:
        return None
    size = max(company.size, 4)
    values = company.copies(size)
    if values is None or all(equal(value, values[0]) for value in values):
        return Refuted(f"{size} copies of the row get one value at every place")
    distinct = sum(not any(equal(value, other) for other in values[:at]) for at, value in enumerate(values))
    first = next(place for place, value in enumerate(values) if not equal(value, values[0]))
    return Explained(
        f"{size} copies of the row get {distinct} different values in one batch, by place: place {first} is "
        "the first that differs from place 0"
    )


def first_row(case: Case) -> Finding:
    """What the first row of the batch holds decides for all."""
    company = case.company
    if company is None:
        return None
    wide, place = company.wide.rows, company.wide.place
    others = [other for other in range(wide.num_rows) if other != place]
    if len(others) < 2:
        return None

    def asked(order: Sequence[int]) -> Value | None:
        values = company.values(wide.take(pa.array(list(order))))
        return None if values is None else values[list(order).index(place)]

    leader = next((other for other in others if not equal(asked([other, place]), company.alone)), None)
    if leader is None:
        return Refuted("no other row in first place makes a difference")
    rest = [other for other in others if other != leader]
    led = asked([leader, place])
    same = (
        equal(asked([place, leader, *rest]), company.alone)
        and equal(asked([leader, *rest, place]), led)
        and equal(asked([leader, place, *rest]), led)
    )
    if same:
        names = [
            name
            for name in wide.column_names
            if equal(
                _value_of(company, with_own(wide.take(pa.array([leader, place])), [name], 1), 1),
                company.alone,
            )
        ]
        whose = f"its {' and '.join(map(repr, names[:3]))}" if names else "what it holds"
        return Explained(
            "in first place the row gets the value that it gets alone, whoever follows; behind another row "
            f"it gets one value, whatever stands between: {whose} decides"
        )
    return Refuted("not only the first row makes a difference")


def previous_row(case: Case) -> Finding:
    """The row right before decides."""
    company = case.company
    if company is None:
        return None
    wide, place = company.wide.rows, company.wide.place
    others = [other for other in range(wide.num_rows) if other != place]
    if len(others) < 2:
        return None

    def asked(order: Sequence[int]) -> Value | None:
        values = company.values(wide.take(pa.array(list(order))))
        return None if values is None else values[list(order).index(place)]

    for direction in ("before", "behind"):
        seen: list[bool] = []
        for one in others[:3]:
            far = [other for other in others if other != one][:2]
            pair = [one, place] if direction == "before" else [place, one]
            more = [*far, one, place] if direction == "before" else [place, one, *far]
            seen.append(equal(asked(pair), asked(more)))
        pairs = [asked([one, place] if direction == "before" else [place, one]) for one in others[:3]]
        varied = any(not equal(value, company.alone) for value in pairs)
        first = asked([place, *others] if direction == "before" else [*others, place])
        if all(seen) and varied and equal(first, company.alone):
            return Explained(
                f"the row's value follows the row right {direction} it, whatever lies further away; with "
                f"none {direction} it, it is the one that the row gets alone"
            )
    return Refuted("rows further away make a difference too")


def _value_of(company: Dependence, rows: pa.Table, place: int) -> Value | None:
    values = company.values(rows)
    return None if values is None else values[place]


# Broadcasting.


def pairs_of_rows(case: Case) -> Finding:
    """The value is the mean, sum or extreme over rows mixed from this one and each of the others."""
    from parity.triage.causes.dtypes import broadcast

    shaped = broadcast(case)
    company = case.company
    if isinstance(shaped, Explained) or company is None:
        return shaped
    rows, place = company.wide.rows, company.wide.place
    if rows.num_rows > 16 or len(rows.column_names) < 2:
        return shaped
    target = _value_of(company, rows, place)
    if target is None or target.dtype.kind not in "iuf":
        return shaped
    for name in rows.column_names:
        mixed = [_value_of(company, _mixed(rows, place, other, [name]), 0) for other in range(rows.num_rows)]
        if any(
            value is None or value.shape != target.shape or value.dtype.kind not in "iuf" for value in mixed
        ):
            continue
        stacked = np.stack([value for value in mixed if value is not None]).astype(np.float64)
        if not np.isfinite(stacked).all() or np.ptp(stacked, axis=0).max() == 0:
            continue
        for how, function in _REDUCTIONS.items():
            if equal(function(stacked).astype(target.dtype), target):
                return Explained(
                    f"the row's value in the batch is the {how} of what it gets alone with each row's "
                    f"{name!r} in turn, over all {rows.num_rows} rows"
                )
    return shaped or Refuted("the value is no mean or sum over rows mixed from this one and the others")


_REDUCTIONS: Final[dict[str, Callable[[Doubles], Any]]] = {
    "mean": lambda values: values.mean(axis=0),
    "sum": lambda values: values.sum(axis=0),
}


def _mixed(rows: pa.Table, place: int, other: int, names: Sequence[str]) -> pa.Table:
    row = rows.slice(place, 1)
    for name in names:
        index = rows.schema.get_field_index(name)
        row = row.set_column(index, rows.schema.field(index), rows.column(name).slice(other, 1))
    return row


# Statistics.


def batch_statistics(case: Case) -> Finding:
    """The neighbours' values count, wherever they stand; a known statistic of the batch where one fits."""
    company = case.company
    if company is None:
        return None
    strangers = company.beside(lambda rows: _replaced(rows, company))
    if company.copies_are_together and equal(strangers, company.together):
        return Refuted("copies of the row and other rows in place of its neighbours give the same value")
    known = _known_statistic(company)
    if known:
        return Explained(known)
    moved = [place for place in range(company.size) if place != company.mates.place][:4]
    order = list(range(company.size))
    mirrored = company.at(order[::-1])
    rotated = company.at([*moved, *[place for place in order if place not in moved]])
    if not equal(mirrored, company.together) or not equal(rotated, company.together):
        return Refuted("where the neighbours stand makes a difference too")
    columns = company.columns
    which = (
        f"their {' and '.join(map(repr, columns[:3]))}"
        if len(columns) < len(company.mates.rows.column_names)
        else ("their values")
    )
    if company.copies_are_alone:
        return Explained(
            f"beside {company.size - 1} copies of itself the row gets the value that it gets alone, beside "
            f"its neighbours another one, wherever they stand: {which} count"
        )
    if strangers is not None and not equal(strangers, company.together):
        return Explained(
            "beside copies of itself, its neighbours and other rows the row gets different values, wherever "
            f"they stand: {which} count"
        )
    return Refuted("other neighbours give the same value")


def _replaced(rows: pa.Table, company: Dependence) -> pa.Table:
    strangers = company.strangers.cast(rows.schema)
    picked = [at % strangers.num_rows for at in range(rows.num_rows)]
    return strangers.take(pa.array(picked))


def _known_statistic(company: Dependence) -> str:
    """The value is a well-known function over the batch of an earlier value, on all rows."""
    run = company.together_run
    if run is None or company.size < 2:
        return ""
    target = numbers(company.of(run), range(company.size))
    if target is None:
        return ""
    sources = {**{f"preprocess's {name}": values for name, values in run.traces.preprocess.items()}}
    if company.stage == "preprocess":
        sources = {}
    if company.stage in (None, "postprocess", "encode"):
        sources |= {f"inference's {name}": values for name, values in run.traces.inference.items()}
    sources |= {f"input {name!r}": run.at("decode", name) for name in run.traces.inputs.column_names}
    for name, values in sources.items():
        source = numbers(values, range(company.size))
        if source is None:
            continue
        for words, function in _STATISTICS.items():
            with np.errstate(all="ignore"):
                made = function(source)
            if made.shape == target.shape and np.allclose(made, target, rtol=1e-4, atol=1e-6, equal_nan=True):
                return f"{company.place} is {name} {words}, on all {company.size} rows of the batch"
    if target.size > company.size and np.allclose(target.sum(axis=0), 1, atol=1e-4) and (target >= 0).all():
        return f"each number of {company.place} adds up to 1 over the {company.size} rows of the batch"
    if target.ndim == 1 and abs(float(target.sum()) - 1) < 1e-4 and (target >= 0).all():
        return f"{company.place} adds up to 1 over the {company.size} rows of the batch"
    return ""


def _softmax(x: Doubles) -> Doubles:
    powers = np.exp(x - x.max(axis=0))
    return powers / powers.sum(axis=0)


_STATISTICS: Final[dict[str, Callable[[Doubles], Doubles]]] = {
    "less its mean over the batch": lambda x: x - x.mean(axis=0),
    "standardised over the batch": lambda x: (x - x.mean(axis=0)) / x.std(axis=0),
    "standardised over the batch (n - 1)": lambda x: (x - x.mean(axis=0)) / x.std(axis=0, ddof=1),
    "scaled between its least and greatest in the batch": lambda x: (
        (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0))
    ),
    "divided by its largest in the batch": lambda x: x / x.max(axis=0),
    "divided by its largest magnitude in the batch": lambda x: x / np.abs(x).max(axis=0),
    "divided by its sum over the batch": lambda x: x / x.sum(axis=0),
    "divided by its length over the batch": lambda x: x / np.sqrt((x * x).sum(axis=0)),
    "after softmax over the batch": _softmax,
    "less its median in the batch": lambda x: x - np.median(x, axis=0),
    "with NaN replaced by the mean of the batch": lambda x: np.where(np.isnan(x), np.nanmean(x, axis=0), x),
}


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
    yield Suspect(
        "broadcast",
        "arrays of shape (n, 1) and (n,) are combined to (n, n)",
        "an axis of a row's value that is as long as the batch; values that are means or sums over rows "
        "mixed of this one and each other one",
        "bring both to one shape first: x.reshape(-1) or y[:, None]",
        pairs_of_rows,
        ("company",),
    )
    yield Suspect(
        "ragged-last-batch",
        "rows are taken some at a time, and the last ragged piece is dropped or never written",
        "copies of the row in batches of 1 to 40: which sizes, and which places in them, go wrong",
        "drop_last=False, and write every piece: out[start:start + len(piece)]",
        ragged_last_batch,
        ("company",),
    )
    yield Suspect(
        "squeezed-axis",
        "a batch of one loses its batch axis",
        "copies of the row in batches of 2, 3 and 5 against the row alone",
        "name the axis: squeeze(-1), never squeeze()",
        squeezed_axis,
        ("company",),
    )
    yield Suspect(
        "batch-length",
        "the number of rows in the batch goes into the answer",
        "copies of the row in batches of several sizes",
        "take means over a row's own axes; seed and size nothing by len(batch)",
        batch_length,
        ("company",),
    )
    yield Suspect(
        "first-row",
        "what the first row of a batch holds is taken for all",
        "the row in first place and behind others, with and without rows between",
        "use each row's own value: batch['name'].numpy(), not [0]",
        first_row,
        ("company",),
    )
    yield Suspect(
        "previous-row",
        "a row's value is made of the row before it in the batch",
        "the row behind each of three others, with and without rows in front of these",
        "a batch is no time series: give each row what it needs from before as an input",
        previous_row,
        ("company",),
    )
    yield Suspect(
        "position",
        "the place in the batch goes into the answer",
        "copies of the row in one batch",
        "compute rows independently of their index; add positions along the sequence, not along the batch",
        position,
        ("company",),
    )
    yield Suspect(
        "batch-statistics",
        "a statistic over the batch goes into the answer",
        "copies of the row in place of its neighbours; the neighbours in another order; eleven well-known "
        "statistics",
        "take statistics over training data, once, or over a row's own axes: axis=-1 and not axis=0",
        batch_statistics,
        ("company",),
    )


SUSPECTS: Final = tuple(_suspects())
