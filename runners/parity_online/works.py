"""What the slots of a model are asked and answer: works that share a batch, and its result cut to them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parity.batch import Batch
from parity.capture import Origin, Share
from parity.codec.rows import RowDecoder, dumps, encode_rows
from parity.errors import RowError
from parity.result import Result
from parity_online.trace import Ran


@dataclass(slots=True)
class Texts:
    """Answers as JSON objects; not frozen, which would cost each request a microsecond.

    Attributes:
        rows: for each row of the work its JSON text, or why there is none; rows count from 0 in the work.
        batch: the number under which the log tells more.
        ran: what the batch took.
    """

    rows: list[bytes | RowError]
    batch: int
    ran: Ran | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """Answers as columns.

    Attributes:
        outputs: the answers of the work's good rows.
        errors: why the others have none; rows count from 0 in the work.
        batch: the number under which the log tells more.
        ran: what the batch took.
    """

    outputs: Batch
    errors: tuple[RowError, ...]
    batch: int
    ran: Ran | None = None

    @property
    def result(self) -> Result:
        """They and the errors as the result of the work; timings and buckets are left out."""
        rows = self.outputs.num_rows + len(self.errors)
        index = np.arange(rows, dtype=np.int64)
        if self.errors:
            index = np.setdiff1d(index, [error.row for error in self.errors])
        return Result(rows, self.outputs, index, self.errors)


@dataclass(slots=True)
class RowsWork:
    """Decoded rows that want JSON objects back; for a capture, the request and the rows' numbers in it.

    `key` is the shape that they share; see `parity_online.shapes`.
    Not frozen, which would cost each request a microsecond.
    """

    rows: tuple[Any, ...]
    origin: Origin | None = None
    places: Sequence[int] | None = None
    key: Hashable = None

    @property
    def share(self) -> Share:
        """The rows as a capture knows them."""
        return self.origin, self.places, len(self.rows)


@dataclass(frozen=True, slots=True)
class ColumnsWork:
    """A batch that wants columns back; for a capture, the request and the rows' numbers in it.

    `key` is the shape that its rows share; see `parity_online.shapes`.
    """

    batch: Batch
    origin: Origin | None = None
    places: Sequence[int] | None = None
    key: Hashable = None

    @property
    def share(self) -> Share:
        """The rows as a capture knows them."""
        return self.origin, self.places, self.batch.num_rows


Work = RowsWork | ColumnsWork


def assemble(works: Sequence[Work], decoder: RowDecoder) -> Batch:
    """The works' rows as one batch, in order: columns are built once for each run of decoded rows."""
    pieces: list[Batch] = []
    rows: list[Any] = []
    for work in works:
        if isinstance(work, RowsWork):
            rows.extend(work.rows)
            continue
        if rows:
            pieces.append(decoder.build(rows))
            rows = []
        pieces.append(work.batch)
    if rows:
        pieces.append(decoder.build(rows))
    return pieces[0] if len(pieces) == 1 else Batch.concat(pieces)


def answers_of(works: Sequence[Work], result: Result, ran: Ran) -> list[Texts | Columns]:
    """A batch's result, cut to the works that it was made of."""
    texts = _texts(result) if any(isinstance(work, RowsWork) for work in works) else []
    found: list[Texts | Columns] = []
    start = 0
    for work in works:
        if isinstance(work, RowsWork):
            stop = start + len(work.rows)
            found.append(Texts(_renumbered(texts[start:stop], start), ran.batch, ran))
        else:
            stop = start + work.batch.num_rows
            found.append(_columns(result, start, stop, ran))
        start = stop
    return found


def _texts(result: Result) -> list[bytes | RowError]:
    """For each row of the batch its answer's JSON, or its error."""
    texts: list[bytes | RowError] = [b""] * result.num_rows
    for row, answer in zip(result.index.tolist(), encode_rows(result.outputs), strict=True):
        texts[row] = answer.at(row) if isinstance(answer, RowError) else dumps(answer)
    for error in result.errors:
        texts[error.row] = error
    return texts


def _renumbered(texts: list[bytes | RowError], start: int) -> list[bytes | RowError]:
    if start == 0:
        return texts
    return [text.at(text.row - start) if isinstance(text, RowError) else text for text in texts]


def _columns(result: Result, start: int, stop: int, ran: Ran) -> Columns:
    low, high = (int(place) for place in np.searchsorted(result.index, [start, stop]))
    errors = tuple(error.at(error.row - start) for error in result.errors if start <= error.row < stop)
    whole = low == 0 and high == result.outputs.num_rows
    return Columns(result.outputs if whole else result.outputs.slice(low, high), errors, ran.batch, ran)
