"""Do two tables of answers agree, column by column and row by row? The result is data; nothing here prints.

The modules, from what a user names to what the result is:

    rules            what counts as the same value
    tolerances       which rule judges which column; tolerance_files reads them from TOML
    tables           compare(expected, obtained, tolerances) -> Comparison
    streams          compare_datasets(...), the same for Parquet of any size
    datasets         Parquet files as streams of batches; files finds them
    beside           two of them read together; chunks tells what is the same on disk
    partitions       pairing by key in bounded memory, by hashing
    suggestions      the tightest tolerance that measured noise supports
    plan             what is compared with what, from the schemas
    alignment        which rows belong together
    dtypes           declared types, before any value
    running          the comparison piece by piece: pieces, columns, row_errors, rows, worst, sides
    bitwise          the same bits, at the speed of memory
    leaves           nested values, walked down together; places tells where they lie
    floats           distances in ulp at column scale; scales, distances and sketch sum them up
    texts            normalisation, edits, where two texts part
    lists            label, topk, cosine, set, pixels
    values           Arrow values as short plain ones
    comparison       the result
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
from parity.compare.rules import (
    Bits,
    Close,
    Cosine,
    Exact,
    Ignore,
    Label,
    Pixels,
    Rule,
    SetLike,
    Text,
    TopK,
)
from parity.compare.streams import compare_datasets
from parity.compare.suggestions import ColumnSuggestion, Suggestion, suggest_tolerance
from parity.compare.tables import compare
from parity.compare.tolerance_files import read_tolerances
from parity.compare.tolerances import ERROR_COLUMN, PairRules, Tolerances

__all__ = [
    "ERROR_COLUMN",
    "Bits",
    "Close",
    "ColumnComparison",
    "ColumnSuggestion",
    "ColumnVerdict",
    "Comparison",
    "Cosine",
    "Distances",
    "Exact",
    "Finding",
    "Ignore",
    "Label",
    "PairRules",
    "Pixels",
    "Rule",
    "SetLike",
    "Spread",
    "Suggestion",
    "Text",
    "Tolerances",
    "TopK",
    "Verdict",
    "WorstRow",
    "compare",
    "compare_datasets",
    "read_tolerances",
    "suggest_tolerance",
]
