"""The column of row errors: which rows failed, of what kind, and where only the words differ."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from parity.compare.comparison import Finding
from parity.compare.tolerances import ERROR_COLUMN
from parity.compare.values import one_array

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


def failed_rows(table: pa.Table) -> Mask | None:
    """Which rows hold an error; None when the table has no column of errors."""
    if ERROR_COLUMN not in table.column_names:
        return None
    return np.asarray(cast("Any", table.column(ERROR_COLUMN).is_valid()).to_numpy(), np.bool_)


def count_errors(table: pa.Table) -> int:
    """How many rows hold an error."""
    failed = failed_rows(table)
    return 0 if failed is None else int(np.count_nonzero(failed))


def rows_with_answers(one: pa.Table, other: pa.Table) -> Positions | None:
    """The rows that did not fail on one side only; None when that is all of them."""
    ours, theirs = failed_rows(one), failed_rows(other)
    if ours is None or theirs is None or (ours == theirs).all():
        return None
    return np.flatnonzero(ours == theirs)


def error_kinds(table: pa.Table) -> pa.Array[Any]:
    """The kind of each row's error; null where the row has an answer."""
    kinds = pc.struct_field(cast("Any", table.column(ERROR_COLUMN)), "kind")
    return one_array(cast("Any", kinds).cast(pa.string()))


class ErrorTexts:
    """What row errors of one kind differ in beside it: how often, and the first example."""

    def __init__(self) -> None:
        self._differ: dict[str, tuple[int, int, str, str]] = {}

    def add(self, ours: pa.ChunkedArray[Any], theirs: pa.ChunkedArray[Any], rows: Positions) -> None:
        """Take in the errors of some more rows; `rows` are their numbers."""
        if ours.type != theirs.type or not pat.is_struct(ours.type):
            return
        both = cast("Any", pc.and_)(ours.is_valid(), theirs.is_valid()).to_numpy(zero_copy_only=False)
        places = np.flatnonzero(both)
        if not len(places):
            return
        one, other = (cast("Any", side).take(places).to_pylist() for side in (ours, theirs))
        for part in (ours.type.field(i).name for i in range(ours.type.num_fields)):
            if part == "kind":
                continue
            differ = [place for place, pair in enumerate(zip(one, other, strict=True)) if _unlike(pair, part)]
            if not differ:
                continue
            first = differ[0]
            row = int(rows[places[first]])
            count, known, *sides = self._differ.get(part, (0, row + 1, "", ""))
            if row < known:
                known, sides = row, [str(one[first][part])[:120], str(other[first][part])[:120]]
            self._differ[part] = (count + len(differ), known, sides[0], sides[1])

    def findings(self) -> list[Finding]:
        """A note for each part of the errors that differs."""
        return [
            Finding(
                "error_text",
                f"the {part} of {count} row errors differs, such as {ours!r}; obtained {theirs!r}",
                ERROR_COLUMN,
                ours,
                theirs,
                fails=False,
            )
            for part, (count, _, ours, theirs) in self._differ.items()
        ]


def _unlike(pair: tuple[dict[str, Any], dict[str, Any]], part: str) -> bool:
    return pair[0][part] != pair[1][part]
