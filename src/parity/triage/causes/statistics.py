"""Statistics over the batch, and arrays of all pairs of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parity.triage.case import Case, Explained, Finding, Refuted, Suspect, numbers
from parity.triage.causes.dtypes import broadcast
from parity.triage.dependence import Dependence, equal

Doubles = npt.NDArray[np.float64]

# Broadcasting.


def pairs_of_rows(case: Case) -> Finding:
    """The value is the mean, sum or extreme over rows mixed from this one and each of the others."""
    shaped = broadcast(case)
    company = case.company
    if isinstance(shaped, Explained) or company is None:
        return shaped
    rows, place = company.wide.rows, company.wide.place
    if rows.num_rows > 16 or len(rows.column_names) < 2:
        return shaped
    target = company.value_of(rows, place)
    if target is None or target.dtype.kind not in "iuf":
        return shaped
    for name in rows.column_names:
        mixed = [company.value_of(_mixed(rows, place, other, [name]), 0) for other in range(rows.num_rows)]
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
    strangers = company.beside_strangers
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
        "broadcast",
        "arrays of shape (n, 1) and (n,) are combined to (n, n)",
        "an axis of a row's value that is as long as the batch; values that are means or sums over rows "
        "mixed of this one and each other one",
        "bring both to one shape first: x.reshape(-1) or y[:, None]",
        pairs_of_rows,
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
