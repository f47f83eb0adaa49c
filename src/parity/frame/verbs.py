"""The verbs that frames and series have: what each gives and whether it mixes rows. Read where no torch is.

A test holds this table to the classes; the reference page and the check of a handler's source read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from parity.errors import did_you_mean
from parity.frame.errors import UnknownVerbError

Owner = Literal["Frame", "Series", "Series.str", "Series.dt", "Series.list", "GroupBy"]


@dataclass(frozen=True)
class Verb:
    """One public name of a class.

    Attributes:
        gives: the class of what it gives, "" for anything else.
        mixes: whether a row's result depends on other rows; refused on a batch until `across_rows()`.
    """

    gives: str = ""
    mixes: bool = False


def _verbs(text: str, gives: str = "", *, mixes: bool = False) -> dict[str, Verb]:
    return {name: Verb(gives, mixes) for name in text.split()}


VERBS: Final[dict[str, dict[str, Verb]]] = {
    "Frame": {
        **_verbs(
            "select assign rename drop filter fillna astype normalize merge across_rows to of_columns",
            "Frame",
        ),
        **_verbs("head sort_values drop_duplicates", "Frame", mixes=True),
        **_verbs("groupby", "GroupBy", mixes=True),
        **_verbs(
            "columns dtypes num_rows device of_batch from_arrow "
            "to_numpy to_torch to_arrow to_pandas to_polars"
        ),
    },
    "Series": {
        **_verbs(
            "isna notna isnan fillna where abs clip sqrt exp log log1p round floor ceil normalize cut bucket "
            "isin map astype take to like like_arrow like_native of_tensor",
            "Series",
        ),
        "str": Verb("Series.str"),
        "dt": Verb("Series.dt"),
        "list": Verb("Series.list"),
        **_verbs("sum mean min max count", mixes=True),
        **_verbs(
            "dtype kind device of_batch valid valid_mask tensor native is_text "
            "to_torch to_numpy to_arrow to_pylist"
        ),
    },
    "Series.str": _verbs("lower upper strip len contains startswith endswith replace slice", "Series"),
    "Series.dt": _verbs("year month day hour minute second weekday tz_convert epoch", "Series"),
    "Series.list": _verbs("len sum mean min max", "Series"),
    "GroupBy": _verbs("agg", "Frame"),
}

INSTEAD: Final[dict[str, str]] = {
    "apply": "a function of Python for each row runs on the host only; build it from verbs",
    "applymap": "a function of Python for each value runs on the host only; build it from verbs",
    "pipe": "call the function on the frame",
    "values": "use .to_numpy() or .to_torch()",
    "loc": "there is no index; use frame[mask] and frame[['a', 'b']]",
    "iloc": "there is no index; rows keep the batch's order",
    "index": "there is no index; rows keep the batch's order",
    "reset_index": "there is no index",
    "set_index": "there is no index",
    "isnull": "use .isna()",
    "notnull": "use .notna()",
    "is_null": "use .isna()",
    "fill_null": "use .fillna(value)",
    "fill_nan": "use .where(~x.isnan(), value)",
    "dropna": "use frame[frame['x'].notna()]",
    "with_columns": "use .assign(...)",
    "query": "use frame[mask]",
    "get_dummies": "compare with each value of a list made offline, or .map to codes",
    "value_counts": "counts over a batch depend on the neighbours; compute them offline",
    "qcut": "quantiles of a batch depend on the neighbours; use .cut with edges computed offline",
    "rank": "ranks within a batch depend on the neighbours; use .bucket with edges computed offline",
    "std": "compute it offline and use .normalize(mean, std)",
    "var": "compute it offline and use .normalize(mean, std)",
    "median": "compute it offline",
    "quantile": "compute it offline and use .bucket",
    "rolling": "windows over a batch depend on the neighbours; compute history features upstream",
    "shift": "a row's predecessor in a batch is an accident; compute history features upstream",
    "diff": "a row's predecessor in a batch is an accident; compute history features upstream",
    "cumsum": "a running sum over a batch depends on the neighbours; compute history features upstream",
    "sample": "draw rows before they are scored",
    "dayofweek": "use .dt.weekday (Monday 0)",
    "day_of_week": "use .dt.weekday (Monday 0)",
    "inplace": "frames are immutable; assign the result",
    "copy": "frames are immutable; there is nothing to copy",
}
"""Verbs of other libraries that are left out, and what to do instead."""


def unknown_verb(owner: str, name: str) -> UnknownVerbError:
    """The error for a name that a class does not have, with what was probably meant."""
    return UnknownVerbError(f"{owner} has no verb {name!r}; {hint(owner, name)}")


def hint(owner: str, name: str) -> str:
    """What to use in place of a name that a class does not have."""
    if name in INSTEAD:
        return INSTEAD[name]
    elsewhere = [other for other, verbs in VERBS.items() if name in verbs and other.startswith("Series.")]
    if owner == "Series" and elsewhere:
        return f"did you mean {elsewhere[0].removeprefix('Series')}.{name}?"
    if owner == "Frame" and name in VERBS["Series"]:
        return f"it is a verb of one column: frame['x'].{name}"
    near = did_you_mean(name, VERBS[owner]) or f"it has {', '.join(sorted(VERBS[owner]))}"
    column = f", or frame[{name!r}] for a column of that name" if owner == "Frame" else ""
    return f"{near}{column}"
