"""A small typed table of a batch's columns, with verbs spelled as pandas users expect and one meaning each.

No index, Arrow types, null is null and NaN is a value, rows keep their order. Numeric verbs are torch, and so
the same on the host and on a GPU; text and dates are pyarrow's, on the host, or cuDF's where it passes a
self-test. A verb that mixes rows is refused on a batch unless `across_rows()` says it is meant.

    frame = batch.frame()
    age = frame["age"].fillna(38).clip(0, 100).normalize(mean=38.2, std=14.1)
    city = frame["city"].str.strip().str.lower().map(self.cities, default=0)
    return frame.assign(age=age, city=city)[["age", "city"]].to_torch("float32")

docs/reference/frame.md tells what each verb means, and where pandas and Polars mean something else. The names
are imported when they are asked for: the table of verbs is read where no torch is.

frame       Frame, the table                    grouping    groupby and its aggregates
series      Series, one column                  keys        equal keys, order, lookups
numeric     arithmetic, comparison, functions   engine      what text, dates and keys ask of a library
casting     astype                              arrow_engine, cudf_engine   the two that answer
texts       .str    times  .dt    lists  .list  verbs, static   which there are, found in source
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parity.frame.errors import FrameError, UnknownVerbError
    from parity.frame.frame import Frame, concat
    from parity.frame.series import Series

__all__ = ["Frame", "FrameError", "Series", "UnknownVerbError", "concat"]

_HOME = {
    "Frame": "frame",
    "FrameError": "errors",
    "Series": "series",
    "UnknownVerbError": "errors",
    "concat": "frame",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
