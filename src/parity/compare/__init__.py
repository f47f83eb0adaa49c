"""Do two tables of answers agree, column by column and row by row? The result is data; nothing here prints.

The modules, from what a user names to what the result is:

    rules        what counts as the same value
    tolerances   which rule judges which column
    tables       compare(expected, obtained, tolerances) -> Comparison
    alignment    which rows belong together
    dtypes       declared types, before any value
    columns      one column: counts, distances, worst rows
    leaves       nested values, walked down together
    floats       distances in ulp at column scale
    lists        label, topk, cosine, set
    values       Arrow values as short plain ones
    comparison   the result
"""

from parity.compare.comparison import (
    ColumnComparison,
    ColumnVerdict,
    Comparison,
    Distances,
    Finding,
    Spread,
    Verdict,
    WorstRow,
)
from parity.compare.rules import Close, Cosine, Exact, Ignore, Label, Rule, SetLike, Text, TopK
from parity.compare.tables import compare
from parity.compare.tolerances import ERROR_COLUMN, PairRules, Tolerances

__all__ = [
    "ERROR_COLUMN",
    "Close",
    "ColumnComparison",
    "ColumnVerdict",
    "Comparison",
    "Cosine",
    "Distances",
    "Exact",
    "Finding",
    "Ignore",
    "Label",
    "PairRules",
    "Rule",
    "SetLike",
    "Spread",
    "Text",
    "Tolerances",
    "TopK",
    "Verdict",
    "WorstRow",
    "compare",
]
