"""Batches that have run, as a server has them at hand; which of their rows are kept; kept rows as one table.

Rows are kept as the engine gave them and made into Arrow in bulk: Arrow lets other threads run meanwhile,
where Python code for every row would hold them up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.capture.format import ERROR_FIELD, INPUT, OUTPUT, OWN, TIME_TYPE, Source
from parity.capture.privacy import Privacy
from parity.capture.sampling import in_sample
from parity.result import ERROR_COLUMN, Result
from parity.schema import Schema

Rows = np.ndarray[Any, np.dtype[np.int64]]

_OWN_BYTES = 64
"""About what the columns that tell where a row came from take."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The request that rows came with.

    Attributes:
        request_id: its id.
        wire: the wire form's name.
        time_ns: when it came, in nanoseconds since 1970, UTC.
        started: the same on the clock that `Scored.finished` is read from.
    """

    request_id: str
    wire: str
    time_ns: int
    started: float


Share = tuple[Origin | None, Sequence[int] | None, int]
"""Whose rows come next in a batch: the request (None: not to be recorded), the rows' numbers in it (None:
from 0), and how many they are."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A batch that has run.

    Attributes:
        batch: the rows.
        result: their answers.
        shares: whose rows they are, in order.
        number: the batch's number.
        finished: when the answers were there, on the clock of `Origin.started`.
        nbytes: about how much memory the rows take.
    """

    batch: Batch
    result: Result
    shares: Sequence[Share]
    number: int
    finished: float
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        size = _OWN_BYTES * self.batch.num_rows
        for columns in (self.batch, self.result.outputs):
            for column in columns.values():
                size += column.nbytes
        object.__setattr__(self, "nbytes", size)

    @property
    def due_rows(self) -> int:
        """How many rows are lost where it cannot be recorded."""
        return sum(rows for origin, _, rows in self.shares if origin is not None)


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of a batch that are to be recorded.

    Attributes:
        scored: the batch.
        shares: whose rows they are, in order: the request, the rows' numbers in it (None: from 0), how many.
        sampled: for each share, whether its request belongs to the sample.
        positions: the rows' positions in the batch, ascending; None for all.
        rows: how many they are.
    """

    scored: Scored
    shares: Sequence[tuple[Origin, Sequence[int] | None, int]]
    sampled: Sequence[bool]
    positions: Rows | None
    rows: int

    @property
    def nbytes(self) -> int:
        """About how much memory the rows take."""
        return self.scored.nbytes * self.rows // max(1, self.scored.batch.num_rows)


def keep(scored: Scored, rate: float, *, errors: bool) -> Kept | None:
    """The rows whose requests are in the sample of this rate, and with `errors` those that failed.

    None where there are none.
    """
    whole = rate >= 1
    shares: list[tuple[Origin, Sequence[int] | None, int]] = []
    sampled: list[bool] = []
    positions: list[int] = []
    failed = {error.row for error in scored.result.errors} if errors and not whole else frozenset[int]()
    start = 0
    for origin, places, rows in scored.shares:
        if origin is not None:
            if whole or in_sample(origin.request_id, rate):
                shares.append((origin, places, rows))
                sampled.append(True)
                positions += range(start, start + rows)
            elif failed:
                found = [row for row in range(start, start + rows) if row in failed]
                if found:
                    numbers = [row - start if places is None else places[row - start] for row in found]
                    shares.append((origin, numbers, len(found)))
                    sampled.append(False)
                    positions += found
        start += rows
    if not positions:
        return None
    everything = len(positions) == scored.batch.num_rows
    return Kept(
        scored, shares, sampled, None if everything else np.asarray(positions, np.int64), len(positions)
    )


def table_of(kept: Sequence[Kept], source: Source, outputs: Schema, privacy: Privacy) -> pa.Table:
    """The rows of some batches as one table of the capture's columns.

    Args:
        kept: the rows, at least one.
        source: what answered them.
        outputs: the handler's output schema.
        privacy: what to hide.
    """
    inputs = Batch.concat(
        [
            item.scored.batch if item.positions is None else item.scored.batch.take(item.positions)
            for item in kept
        ]
    )
    results = [
        item.scored.result if item.positions is None else _taken(item.scored.result, item.positions)
        for item in kept
    ]
    result = Result.concat(results, outputs)
    answer_of = np.full(result.num_rows, -1, np.int64)
    answer_of[result.index] = np.arange(len(result.index))
    columns = [
        *zip(OWN, _own_columns(kept, results, source), strict=True),
        *privacy.columns_of(INPUT, inputs),
        *privacy.columns_of(OUTPUT, result.outputs, answer_of),
        (ERROR_FIELD, privacy.errors(result.to_table().column(ERROR_COLUMN))),
    ]
    schema = pa.schema([item for item, _ in columns])
    return pa.Table.from_arrays([values for _, values in columns], schema=schema)


def _own_columns(kept: Sequence[Kept], results: Sequence[Result], source: Source) -> list[Any]:
    """The arrays of `OWN`, in its order."""
    sizes = np.array([item.rows for item in kept])
    shares = [share for item in kept for share in item.shares]
    counts = np.array([rows for _, _, rows in shares])
    seconds = [item.scored.finished - origin.started for item in kept for origin, _, _ in item.shares]
    found: dict[str, Any] = {
        "_request_id": _repeated([origin.request_id for origin, _, _ in shares], counts),
        "_row": _row_numbers(shares, counts),
        "_time": pa.array(np.repeat([origin.time_ns for origin, _, _ in shares], counts)).cast(TIME_TYPE),
        "_latency_s": pa.array(np.repeat(seconds, counts)),
        "_wire": _repeated([origin.wire for origin, _, _ in shares], counts),
        "_sampled": pa.array(np.repeat([one for item in kept for one in item.sampled], counts)),
        "_batch": pa.array(np.repeat([item.scored.number for item in kept], sizes)),
        "_position": pa.array(np.concatenate([_positions(item) for item in kept]).astype(np.int32)),
        "_batch_rows": pa.array(
            np.repeat([item.scored.batch.num_rows for item in kept], sizes).astype(np.int32)
        ),
        "_bucket": pa.concat_arrays([_buckets(result) for result in results]),
    }
    constant = {
        "_handler": source.handler,
        "_version": source.version,
        "_profile": str(source.profile.get("name", "default")),
        "_runner": source.runner,
    }
    rows = int(sizes.sum())
    for name, value in constant.items():
        found[name] = pa.repeat(pa.scalar(value, pa.string()), rows)
    return [found[item.name] for item in OWN]


def _repeated(values: list[str], counts: np.ndarray[Any, Any]) -> pa.Array[Any]:
    """Each value as many times as it counts."""
    array = pa.array(values, pa.string())
    if (counts == 1).all():
        return array
    return array.take(cast("Any", pa.array(np.repeat(np.arange(len(values)), counts))))


def _row_numbers(
    shares: Sequence[tuple[Origin, Sequence[int] | None, int]], counts: np.ndarray[Any, Any]
) -> pa.Array[Any]:
    ends = np.cumsum(counts)
    numbers = np.arange(int(ends[-1])) - np.repeat(ends - counts, counts)
    for (_, places, rows), end in zip(shares, ends.tolist(), strict=True):
        if places is not None:
            numbers[end - rows : end] = places
    return pa.array(numbers.astype(np.int32))


def _positions(kept: Kept) -> Rows:
    return np.arange(kept.rows, dtype=np.int64) if kept.positions is None else kept.positions


def _taken(result: Result, rows: Rows) -> Result:
    """The answers and errors of some rows, ascending, renumbered."""
    mask = np.zeros(result.num_rows, np.bool_)
    mask[rows] = True
    new = np.cumsum(mask) - 1
    kept = np.flatnonzero(mask[result.index])
    return Result(
        num_rows=len(rows),
        outputs=result.outputs.take(kept),
        index=new[result.index[kept]].astype(np.int64),
        errors=tuple(error.at(int(new[error.row])) for error in result.errors if mask[error.row]),
        buckets=result.buckets[kept],
    )


def _buckets(result: Result) -> pa.Array[Any]:
    """For each row the rows that inference saw at once; null where the row failed, or nobody knows."""
    if len(result.buckets) == result.num_rows:
        return pa.array(result.buckets, pa.int32())
    found = np.zeros(result.num_rows, np.int32)
    if len(result.buckets) == len(result.index):
        found[result.index] = result.buckets
    return pa.array(found, mask=found == 0)
