"""The shape key of a row: which rows may share a batch, where a field's shape varies from row to row.

It has the shapes of the row's tensors, and of its images where they come as arrays; an encoded image has none
before it is decoded. Rows of a schema whose shapes are all fixed have no key, nor have those that may mix.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parity.batch import Batch
from parity.result import Result
from parity.schema import Field, Image, Schema, Tensor


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a batch that share a key: themselves, their places in the batch, and the key."""

    batch: Batch
    rows: np.ndarray[Any, np.dtype[np.int64]]
    key: Hashable


class ShapeKeys:
    """Reads the keys of rows of one schema; for any thread.

    Args:
        schema: the handler's inputs.
        mix: give no keys, so that all rows may share a batch.
    """

    def __init__(self, schema: Schema, *, mix: bool = False) -> None:
        self._fields = [
            (place, name) for place, (name, field) in enumerate(schema.items()) if not mix and _varies(field)
        ]

    def of_row(self, row: Sequence[Any]) -> Hashable:
        """The key of a decoded row, its values in the schema's order."""
        if not self._fields:
            return None
        return tuple(None if row[place] is None else row[place].shape for place, _ in self._fields)

    def cut_rows(self, rows: Sequence[Sequence[Any]], most: int) -> list[tuple[Sequence[int], Hashable]]:
        """The places of decoded rows in pieces of one key and at most `most` rows, each in order."""
        if not self._fields:
            return _cut({None: range(len(rows))}, most)
        return _cut(_grouped([self.of_row(row) for row in rows]), most)

    def cut(self, batch: Batch, most: int) -> list[Piece]:
        """A batch in pieces of one key and at most `most` rows, each in order."""
        groups: dict[Hashable, Sequence[int]] = {None: range(batch.num_rows)}
        if self._fields:
            columns = [batch[name].arrays() for _, name in self._fields]
            shapes = [[None if array is None else array.shape for array in column] for column in columns]
            groups = _grouped(list(zip(*shapes, strict=True)))
        if len(groups) == 1:
            (key,) = groups
            if batch.num_rows <= most:
                return [Piece(batch, np.arange(batch.num_rows), key)]
            return [
                Piece(piece, np.arange(at * most, at * most + piece.num_rows), key)
                for at, piece in enumerate(batch.split(most))
            ]
        return [Piece(batch.take(rows), np.array(rows, np.int64), key) for rows, key in _cut(groups, most)]


def put_back(results: Sequence[Result], pieces: Sequence[Piece], outputs: Schema) -> Result:
    """The results of a batch's pieces as one of the batch; without timings, buckets and stages."""
    if len(results) == 1:
        return results[0]
    joined = Result.concat(results, outputs)
    order = np.concatenate([np.empty(0, np.int64), *(piece.rows for piece in pieces)])
    index = order[joined.index]
    ascending = np.argsort(index)
    in_order = bool(np.all(ascending == np.arange(len(index))))
    errors = sorted((error.at(int(order[error.row])) for error in joined.errors), key=lambda error: error.row)
    return Result(
        joined.num_rows,
        joined.outputs if in_order else joined.outputs.take(ascending),
        index[ascending],
        tuple(errors),
    )


def _varies(field: Field) -> bool:
    tensor = field.as_tensor if isinstance(field, Image) and field.form == "array" else field
    return isinstance(tensor, Tensor) and tensor.variable_dims > 0


def _grouped(keys: Sequence[Hashable]) -> dict[Hashable, Sequence[int]]:
    found: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        found.setdefault(key, []).append(place)
    return dict(found)


def _cut(groups: dict[Hashable, Sequence[int]], most: int) -> list[tuple[Sequence[int], Hashable]]:
    return [
        (places[start : start + most], key)
        for key, places in groups.items()
        for start in range(0, len(places), most)
    ]
