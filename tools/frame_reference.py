"""Write docs/reference/frame.md: the verbs, and what pandas, Polars and cuDF say of the same values.

Run as `python tools/frame_reference.py`. Every cell of parity, pandas and Polars in the table of differences is
what the library answered just now. cuDF needs a GPU: its cells are what its documentation says, and empty where
it says nothing.
"""

from __future__ import annotations

import datetime
import inspect
import math
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import torch

from parity.frame import Frame, FrameError, Series
from parity.frame.cudf_engine import questions
from parity.frame.grouping import GroupBy
from parity.frame.lists import Lists
from parity.frame.texts import Texts
from parity.frame.times import Times
from parity.frame.verbs import INSTEAD, VERBS

PATH = Path(__file__).resolve().parent.parent / "docs" / "reference" / "frame.md"

NAN = math.nan
GREATEST = 2**63 - 1

CLASSES = {
    "Frame": Frame,
    "Series": Series,
    "Series.str": Texts,
    "Series.dt": Times,
    "Series.list": Lists,
    "GroupBy": GroupBy,
}

INTERNAL = set(
    "of_columns take like like_arrow like_native of_tensor native is_text valid valid_mask tensor kind".split()
)
"""Names that the modules of parity.frame share; no verbs."""


UNSAID = "—"


@dataclass(frozen=True)
class Case:
    """The same values asked of three libraries, and what a fourth one's documentation says of them."""

    what: str
    ours: Callable[[], Any]
    pandas: Callable[[], Any]
    polars: Callable[[], Any]
    cudf: str = UNSAID


def ours(values: list[Any], dtype: pa.DataType | None = None) -> Series:
    """A column of ours."""
    return Series(pa.array(values, dtype))


def both(
    what: str,
    values: list[Any],
    verb: Callable[[Any], Any],
    *,
    dtype: Any = None,
    polars: Any = None,
    cudf: str = UNSAID,
) -> Case:
    """One verb, spelled alike here and in pandas, and in Polars too where `polars` is None."""
    arrow, plain, other = dtype or (None, None, None)
    return Case(
        what,
        lambda: verb(ours(values, arrow)),
        lambda: verb(pd.Series(values, dtype=plain)),
        lambda: (polars or verb)(pl.Series("x", values, other)),
        cudf,
    )


INT = (pa.int64(), "int64", pl.Int64)
FLOAT = (pa.float64(), "float64", pl.Float64)
INT8 = (pa.int8(), "int8", pl.Int8)
NOON = datetime.datetime(2038, 7, 1, 12, tzinfo=datetime.UTC)
KEYS = {"k": [1, None], "x": [10, 20]}
TWICE = {"k": [1, 1], "y": [7, 8]}
NULL_KEY = {"k": [None, 1], "y": [7, 8]}


def joined(right: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]:
    """A left join of KEYS with a table, in each library: the column y."""
    return (
        lambda: Frame(KEYS).merge(Frame(right), on="k")["y"],
        lambda: pd.DataFrame(KEYS).merge(pd.DataFrame(right), on="k", how="left")["y"],
        lambda: pl.DataFrame(KEYS).join(pl.DataFrame(right), on="k", how="left")["y"],
    )


GROUPS = {"k": ["b", None, "a"], "x": [1, 2, 3]}

CASES = [
    Case(
        "type of [1, null]",
        lambda: str(ours([1, None]).dtype),
        lambda: str(pd.Series([1, None]).dtype),
        lambda: str(pl.Series([1, None]).dtype),
        "`int64`",
    ),
    both(
        "[NaN, null] isna",
        [NAN, None],
        lambda s: s.isna(),
        dtype=FLOAT,
        polars=lambda s: s.is_null(),
        cudf="`[true, true]`",
    ),
    both(
        "[NaN, null] fillna(0)",
        [NAN, None],
        lambda s: s.fillna(0),
        dtype=FLOAT,
        polars=lambda s: s.fill_null(0),
        cudf="`[0.0, 0.0]`",
    ),
    both("[1.5, null] == 1.5", [1.5, None], lambda s: s == 1.5, cudf="`[true, null]`"),
    both("[NaN] == [NaN]", [NAN], lambda s: s == s, cudf="`[false]`"),
    both("[NaN] > 1", [NAN], lambda s: s > 1),
    both("[2**53 + 1] == 2.0**53", [2**53 + 1], lambda s: s == 2.0**53),
    both("[greatest int64] + 1", [GREATEST], lambda s: s + 1, dtype=INT),
    both("[-128] int8, abs", [-128], lambda s: s.abs(), dtype=INT8),
    both("[7, -7] // 0", [7, -7], lambda s: s // 0, dtype=INT),
    both("[7] % 0", [7], lambda s: s % 0, dtype=INT),
    both("[7, -7] // 2", [7, -7], lambda s: s // 2, dtype=INT),
    both("[7, -7] % 3", [7, -7], lambda s: s % 3, dtype=INT),
    both("[1, 0] / 0", [1, 0], lambda s: s / 0, dtype=INT),
    Case(
        "type of int8 / int8",
        lambda: str(ours([1], pa.int8()).__truediv__(ours([2], pa.int8())).to_numpy().dtype),
        lambda: str((pd.Series([1], dtype="int8") / pd.Series([2], dtype="int8")).dtype),
        lambda: str((pl.Series([1], dtype=pl.Int8) / pl.Series([2], dtype=pl.Int8)).dtype),
    ),
    Case(
        "type of int64 + float32",
        lambda: str((ours([1]) + ours([1.0], pa.float32())).to_numpy().dtype),
        lambda: str((pd.Series([1]) + pd.Series([1.0], dtype="float32")).dtype),
        lambda: str((pl.Series([1]) + pl.Series([1.0], dtype=pl.Float32)).dtype),
    ),
    both("[true] + [true]", [True], lambda s: s + s),
    both("[0.5, 1.5, 2.5] round", [0.5, 1.5, 2.5], lambda s: s.round(0), cudf="`[0.0, 2.0, 2.0]`"),
    both("[-1.5, NaN, 9] clip(0, 1)", [-1.5, NAN, 9.0], lambda s: s.clip(0, 1)),
    both("[1.5] to int64", [1.5], lambda s: s.astype("int64"), polars=lambda s: s.cast(pl.Int64)),
    both("[NaN] to int64", [NAN], lambda s: s.astype("int64"), polars=lambda s: s.cast(pl.Int64)),
    both("[300] to int8", [300], lambda s: s.astype("int8"), polars=lambda s: s.cast(pl.Int8)),
    both("[1.0] to text", [1.0], lambda s: s.astype(str), polars=lambda s: s.cast(pl.String)),
    both("[1, null] isin([1])", [1, None], lambda s: s.isin([1]), polars=lambda s: s.is_in([1])),
    both(
        "['a', 'b'] map({'a': 1})",
        ["a", "b"],
        lambda s: s.map({"a": 1}),
        polars=lambda s: s.replace_strict({"a": 1}, default=None),
        cudf="`[1, null]`",
    ),
    Case(
        "where, the condition null",
        lambda: ours([1]).where(ours([None], pa.bool_()), 9),
        lambda: pd.Series([1]).where(pd.Series([None], dtype="boolean"), 9),
        lambda: pl.select(pl.when(pl.Series([None], dtype=pl.Boolean)).then(1).otherwise(9)).to_series(),
    ),
    Case(
        "[0, 5] cut([0, 1])",
        lambda: ours([0, 5]).cut([0, 1]),
        lambda: pd.cut(pd.Series([0, 5]), [0, 1], labels=False),
        lambda: pl.Series([0, 5]).cut([0, 1]).to_physical(),  # pyright: ignore[reportDeprecated]
    ),
    Case(
        "['a', null] contains 'a'",
        lambda: ours(["a", None]).str.contains("a"),
        lambda: pd.Series(["a", None]).str.contains("a"),
        lambda: pl.Series(["a", None]).str.contains("a"),
        "`[true, false]` for type str",
    ),
    Case(
        "['a.b'] replace('.', '-')",
        lambda: ours(["a.b"]).str.replace(".", "-"),
        lambda: pd.Series(["a.b"]).str.replace(".", "-"),
        lambda: pl.Series(["a.b"]).str.replace_all(".", "-"),
        "`[---]`",
    ),
    Case(
        "['ß', 'ﬁ'] upper",
        lambda: ours(["ß", "ﬁ"]).str.upper(),
        lambda: pd.Series(["ß", "ﬁ"]).str.upper(),
        lambda: pl.Series(["ß", "ﬁ"]).str.to_uppercase(),
        "`SS` for `ß`",
    ),
    Case(
        "['👍🏽'] length",
        lambda: ours(["👍🏽"]).str.len(),
        lambda: pd.Series(["👍🏽"]).str.len(),
        lambda: pl.Series(["👍🏽"]).str.len_bytes(),
    ),
    Case(
        "weekday of a Monday",
        lambda: ours([datetime.date(2026, 11, 30)]).dt.weekday,
        lambda: pd.Series([pd.Timestamp(2026, 11, 30)]).dt.day_of_week,
        lambda: pl.Series([datetime.date(2026, 11, 30)]).dt.weekday(),
        "`[0]`",
    ),
    Case(
        "hour of 2038-07-01 12:00 UTC in Berlin",
        lambda: ours([NOON], pa.timestamp("us", "UTC")).dt.tz_convert("Europe/Berlin").dt.hour,
        lambda: pd.Series([NOON]).dt.tz_convert("Europe/Berlin").dt.hour,
        lambda: pl.Series([NOON]).dt.convert_time_zone("Europe/Berlin").dt.hour(),
    ),
    both("[1.0, NaN] sum", [1.0, NAN], lambda s: s.sum()),
    both("[1.0, NaN] max", [1.0, NAN], lambda s: s.max()),
    both("[null] sum of floats", [None], lambda s: s.sum(), dtype=FLOAT, cudf="`0.0`"),
    both("[greatest, 1] sum of int64", [GREATEST, 1], lambda s: s.sum(), dtype=INT),
    Case(
        "groups of keys ['b', null, 'a']",
        lambda: Frame(GROUPS).groupby("k").agg(n=("x", "sum"))["k"],
        lambda: pd.DataFrame(GROUPS).groupby("k").agg(n=("x", "sum")).index.to_series(),
        lambda: pl.DataFrame(GROUPS).group_by("k", maintain_order=True).agg(pl.col("x").sum())["k"],
        "`a` and `b`, in no order",
    ),
    Case(
        "[2.0, null, NaN, 1.0] sorted",
        lambda: Frame({"x": ours([2.0, None, NAN, 1.0])}).sort_values("x")["x"],
        lambda: pd.Series([2.0, None, NAN, 1.0]).sort_values(),
        lambda: pl.Series([2.0, None, NAN, 1.0]).sort(),
        "null last",
    ),
    Case("left join, a key twice on the right", *joined(TWICE), "as SQL's left join, in no order"),
    Case("left join, null keys on both sides", *joined(NULL_KEY)),
]


@dataclass(frozen=True)
class Asked:
    """One question that is put to cuDF where numbers are on a CUDA device.

    Attributes:
        verbs: what asks it.
        calls: cuDF's methods, as the signatures that the tests hold them to have them.
        documented: what cuDF's documentation says that differs from our meaning, empty where it tells nothing.
        done: what is done about it, beside the self-test.
    """

    verbs: str
    calls: tuple[str, ...]
    documented: str = ""
    done: str = ""


ASKED = {
    "from_arrow": Asked("every text column", ("Series.from_arrow", "Series.to_arrow")),
    "valid": Asked(
        "`isna`, `notna` of text",
        ("Series.notna",),
        "NaN of floats counts as missing",
        "asked of text alone; of numbers torch holds what is null",
    ),
    "take": Asked(
        "`filter`, `head`, `merge`, `sort_values`",
        ("Series.take", "Series.reset_index", "Series.where"),
        "",
        "rows without a match are made null afterwards",
    ),
    "concat": Asked("`concat`", ("concat",)),
    "lower": Asked(
        "`str.lower`",
        ("StringMethods.lower",),
        "only code points up to 65535; one may become several",
        "`İ` is in the self-test",
    ),
    "upper": Asked(
        "`str.upper`",
        ("StringMethods.upper",),
        "only code points up to 65535; `ß` becomes `SS`",
        "`ß` is in the self-test, so that Arrow answers where cuDF does so",
    ),
    "strip": Asked("`str.strip`", ("StringMethods.strip",), "", "no-break and em space are in the self-test"),
    "length": Asked(
        "`str.len`", ("StringMethods.len", "Series.fillna", "Series.astype"), "int32", "cast to int64"
    ),
    "contains": Asked(
        "`str.contains`",
        ("StringMethods.contains",),
        "an expression by default, whose classes such as `\\w` know code points up to 65535; null becomes "
        "false for type str",
        "called with `regex=False`; expressions are Arrow's; what is null is asked apart",
    ),
    "starts": Asked("`str.startswith`", ("StringMethods.startswith",), "", "what is null is asked apart"),
    "ends": Asked("`str.endswith`", ("StringMethods.endswith",), "", "what is null is asked apart"),
    "replace": Asked(
        "`str.replace`",
        ("StringMethods.replace",),
        "an expression by default; an error for an empty pattern",
        "called with `regex=False`; expressions and the empty pattern are Arrow's",
    ),
    "slice": Asked("`str.slice`", ("StringMethods.slice",)),
    "lookup": Asked(
        "`isin`, `map` of text",
        ("DataFrame.merge", "DataFrame.sort_values"),
        "joined rows come in no order",
        "rows carry their number and are sorted by it",
    ),
    "codes": Asked(
        "`groupby`, `merge`, `drop_duplicates` by text",
        ("Series.dropna", "Series.drop_duplicates", "DataFrame.merge", "DataFrame.sort_values"),
        "groups and joined rows come in no order, null is no group",
        "cuDF only numbers the texts: groups are torch's, in order of appearance, null one of them",
    ),
    "ranks": Asked(
        "`sort_values` by text",
        ("Series.dropna", "Series.drop_duplicates", "Series.sort_values"),
        "",
        "cuDF only ranks the texts: sorting is torch's, stable, null last",
    ),
    "local_ticks": Asked(
        "`dt` of a zoned column",
        ("Series.astype", "DatetimeProperties.tz_localize", "DatetimeProperties.tz_convert"),
        "",
        "instants before 1970, after 2037 and at changes of the clock are in the self-test",
    ),
    "date_part": Asked(
        "`dt.year` to `dt.weekday`",
        tuple(
            f"DatetimeProperties.{part}"
            for part in ("year", "month", "day", "hour", "minute", "second", "weekday")
        ),
        "`weekday` is int16",
        "cast to int64",
    ),
}
"""By the question's name in the engine; a question without a line here breaks the page."""


def shown(answer: Callable[[], Any]) -> str:
    """What a library answered, in a few characters."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = answer()
    except FrameError:
        return "error, names the rows or the remedy"
    except Exception as exc:  # noqa: BLE001 - what they raise is what the page tells
        return f"error {type(exc).__name__}"
    if isinstance(found, Series):
        found = found.to_pylist()
    elif isinstance(found, pd.Series):
        found = [None if value is None or value is pd.NA else value for value in found.tolist()]
    elif isinstance(found, pl.Series):
        found = found.to_list()
    return f"`{_text(found)}`"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_text(item) for item in value)}]"
    if value is None:
        return "null"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating):
        return "NaN" if math.isnan(value) else repr(float(value))
    return str(value)


def differences() -> list[tuple[str, str, str, str, str]]:
    """Each case: what was asked, what we, pandas and Polars answered, and what cuDF's documentation says."""
    return [
        (case.what, shown(case.ours), shown(case.pandas), shown(case.polars), case.cudf) for case in CASES
    ]


def asked_of_cudf() -> list[str]:
    """The lines of the table of the questions, in the engine's order."""
    lines = [
        "| verbs | cuDF's call | its documentation | what is done about it |",
        "| --- | --- | --- | --- |",
    ]
    for name in questions():
        asked = ASKED[name]
        calls = ", ".join(f"`{call}`" for call in asked.calls)
        lines.append(f"| {asked.verbs} | {calls} | {asked.documented or UNSAID} | {asked.done or UNSAID} |")
    return lines


def verbs(owner: str) -> list[str]:
    """The lines of the table of one class."""
    lines = ["| verb | what it gives |", "| --- | --- |"]
    for name, verb in VERBS[owner].items():
        static = inspect.getattr_static(CLASSES[owner], name)
        if name in INTERNAL or inspect.ismemberdescriptor(static):
            continue
        value = static.fget if isinstance(static, property) else getattr(CLASSES[owner], name)
        doc = inspect.getdoc(value) or ""
        first = " ".join(doc.partition("\n\n")[0].split()).replace("|", "\\|")
        told = "" if isinstance(static, property) else _signature(value)
        mixes = "**Mixes rows.** " if verb.mixes else ""
        lines.append(f"| `{name}{told}` | {mixes}{first.replace(' Mixes rows.', '')} |")
    return lines


def _signature(function: Any) -> str:
    given = [
        parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if name not in ("self", "cls")
    ]
    parameters = [str(parameter.replace(annotation=inspect.Parameter.empty)) for parameter in given]
    named = [
        place for place, parameter in enumerate(given) if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    if named:
        parameters.insert(named[0], "*")
    return f"({', '.join(parameters)})"


def version(library: Any) -> str:
    """The release, without its patch."""
    return ".".join(re.findall(r"\d+", library.__version__)[:2])


def page() -> str:
    """The whole page."""
    table = ["| asked | parity | pandas | Polars | cuDF, not run |", "| --- | --- | --- | --- | --- |"]
    table += [f"| {' | '.join(cells)} |" for cells in differences()]
    instead = ["| not there | use |", "| --- | --- |"]
    instead += [f"| `{name}` | {hint} |" for name, hint in INSTEAD.items() if name not in ("inplace", "copy")]
    return TEMPLATE.format(
        **{f"{owner.replace('.', '_')}_verbs": "\n".join(verbs(owner)) for owner in VERBS},
        pandas=version(pd),
        polars=version(pl),
        torch=version(torch),
        arrow=version(pa),
        differences="\n".join(table),
        asked_of_cudf="\n".join(asked_of_cudf()),
        instead="\n".join(instead),
        unsaid=UNSAID,
    )


TEMPLATE = """\
# Frame

<!-- Written by tools/frame_reference.py; a test keeps it fresh. -->

`batch.frame()` gives the columns of a batch as a small typed table: no index, Arrow types, null is null and NaN is a
value, rows keep their order. [A how-to](../how-to/features-with-frames.md) shows a handler. `parity.frame.Frame(columns)`
makes one of constants, `parity.frame.concat(frames)` puts several one after the other.

## Rules for all verbs

- **Null in, null out**, except of `isna`, `notna`, `fillna`, `where`, and of `&` and `|` where null cannot change the
  answer. NaN is a value like another: it is not null, and equal to nothing.
- **A row never depends on its neighbours.** Verbs that do mix rows are refused on the rows of a batch until
  `frame.across_rows()` says that it is meant. The tests hold every other verb to the same bits for a row alone, in pieces
  and in the whole.
- **Integers are exact.** A result outside its type's range is an error that names the rows, which then fail alone; it
  never wraps. Division by the integer 0 is null. `//` rounds down and `%` has the divisor's sign, as in Python.
- **Floats are IEEE 754.** Integers beside floats are compared and computed as floats. `x / 0` is an infinity or NaN.
  `round` takes ties to the even neighbour. `+ - * /`, `sqrt`, `round`, `floor` and `ceil` are IEEE operations and so equal everywhere; `exp`, `log` and `log1p` are torch's, within
  two units of the last place of numpy's, and may differ in the last bits between kinds of machine.
- **Types are numpy's**: int64 and float32 make float64, int32 and uint32 make int64. A Python number takes the column's
  type and must fit it. Bools are not numbers. uint64, decimals, bytes, structs and tensors are carried along and have no
  arithmetic; bfloat16 comes as float32.
- **Text** is Unicode code points, case is changed one code point at a time, patterns are RE2's; no locale is asked.
- **Times** have the zone of their column, never the process's. Parts are for years -32767 to 32767.
- **Keys** are equal when they are the same value: for `groupby`, null is a key and NaN one key; in `merge`, null matches
  nothing. `sort_values` is stable, with NaN after all numbers and null last. Floats are added in float64, row after row.

## Frame

{Frame_verbs}

## Series

`+ - * / // %` and the comparisons with a column or a number, unary `-`; `& | ~` for bools; `==` and `!=` for text, all
comparisons for times.

{Series_verbs}

## Series.str

{Series_str_verbs}

## Series.dt

{Series_dt_verbs}

## Series.list

{Series_list_verbs}

## groupby(...)

{GroupBy_verbs}

## Where pandas, Polars and cuDF say something else

Each cell is what the library answered when this page was written: pandas {pandas} with its default types, Polars {polars}.
The cells of cuDF are from its documentation (API reference and user guide, releases 26.08 to 26.10 where a page of
theirs was found, else the newest that was), not run; {unsaid} stands where that does not say.

{differences}

## What cuDF is asked, and what is done about it

On a CUDA device cuDF is asked only what stands here. Numbers, sums, groups, joins and sorting are torch's on every device:
cuDF's documentation says that its float sums may differ from run to run, and that groups and joined rows come in no
order. Each question is put to cuDF and to Arrow about hostile values before the first use, and where the answers differ
it is Arrow's from then on, whatever the documentation says.

{asked_of_cudf}

## What is left out

{instead}

## What has run where

On the host, in every run of the tests: all of the above, with torch {torch} and pyarrow {arrow}. Numbers are held on the
profile's device, and every numeric verb is torch; nothing has run on a GPU yet.

Text, times and keys are Arrow's, on the host. Where numbers are on a CUDA device and cuDF is installed
(`pip install "parity[frame-gpu]"`), cuDF answers each question for which it gives Arrow's answers in a self-test on that
machine, and Arrow the others; the log says which (`frame_engine=cudf off=...`). Regular expressions are always Arrow's.
The calls are held to the recorded signatures of cuDF 26.10 by a fake that stands for it; real cuDF has not run yet.
"""


if __name__ == "__main__":
    PATH.write_text(page(), encoding="utf-8")
    print(f"wrote {PATH}")
