"""Captures read back: which parts there are, what they say, and their rows, a piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from parity.capture.format import OWN, PartMeta, read_meta
from parity.capture.places import Place, place_of
from parity.errors import DatasetError, NothingComparedError

PIECE_ROWS = 8192


@dataclass(frozen=True)
class Part:
    """A part of a capture.

    Attributes:
        name: its name in the capture's folder.
        meta: what it says of itself.
    """

    name: str
    meta: PartMeta


@dataclass(frozen=True)
class Capture:
    """The parts of a capture in the order of their first rows.

    Attributes:
        folder: the folder or URL, as given.
        parts: at least one.
    """

    folder: str
    parts: tuple[Part, ...]

    @property
    def handlers(self) -> tuple[str, ...]:
        """The names of the handlers whose traffic it is, sorted."""
        return tuple(sorted({part.meta.source.handler for part in self.parts}))

    def read(self, part: Part, rows: int = PIECE_ROWS) -> Iterator[pa.Table]:
        """The rows of a part in tables of at most `rows`, of the canonical types.

        Raises:
            DatasetError: the part cannot be read, or is not what its metadata says.
        """
        with _opened(place_of(self.folder), part.name, f"{self.folder}/{part.name}") as file:
            try:
                for piece in file.iter_batches(batch_size=rows):
                    yield canonical(pa.Table.from_batches([piece]), part)
            except (pa.ArrowException, OSError) as exc:
                raise DatasetError(f"{self.folder}/{part.name} cannot be read: {exc}") from exc


def read_capture(folder: str | Path, wanted: Callable[[PartMeta], bool] | None = None) -> Capture:
    """The capture in a folder or at a URL.

    Args:
        folder: what was given to `--capture`, or one handler's folder in it.
        wanted: which parts to take; all when not given.

    Raises:
        DatasetError: there is no such folder, or a part is damaged or of a later format.
        NothingComparedError: there is no part in it.
    """
    place = place_of(folder)
    names = place.parts()
    if not names:
        raise NothingComparedError(
            f"{folder} holds no part of a capture; a part appears when it is full (--capture-rotate-mb), old "
            "enough (--capture-rotate-s) or the server has been stopped"
        )
    found: list[Part] = []
    for name in names:
        where = f"{folder}/{name}"
        with _opened(place, name, where) as file:
            meta = read_meta(file.metadata.metadata, where)
            if file.metadata.num_rows != meta.rows:
                raise DatasetError(
                    f"{where} has {file.metadata.num_rows} rows, its metadata says {meta.rows}"
                )
        if wanted is None or wanted(meta):
            found.append(Part(name, meta))
    return Capture(str(folder), tuple(sorted(found, key=lambda part: (part.meta.first_ns, part.name))))


def canonical(table: pa.Table, part: Part) -> pa.Table:
    """The rows with the types that were recorded, where Parquet has none such.

    Raises:
        DatasetError: the columns are not those that the metadata names.
    """
    schema = part.meta.schema
    if table.column_names != schema.names or not set(OWN.names) <= set(schema.names):
        raise DatasetError(f"part {part.name}: its columns are not those that its metadata names")
    try:
        columns = [
            pa.chunked_array([restored(chunk, item.type) for chunk in column.chunks], item.type)
            for column, item in zip(table.columns, schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=schema)
    except (pa.ArrowException, IndexError, TypeError) as exc:
        raise DatasetError(f"part {part.name}: a column is not of the type recorded: {exc}") from exc


def restored(array: Any, kind: Any) -> Any:
    """An array as it was before Parquet, which makes milliseconds of seconds, wherever they are nested.

    A cast would not do: it refuses what lies beneath a null record, which Parquet does not keep.

    Raises:
        ArrowException: it is of another type altogether.
    """
    if array.type == kind:
        return array
    if pat.is_struct(kind) and array.type.num_fields == kind.num_fields:
        valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
        members = [restored(array.field(place), kind.field(place).type) for place in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, len(array), [bitmap], children=members)
    if pat.is_list(kind) and pat.is_list(array.type):
        values = restored(array.values, kind.value_type)
        return pa.Array.from_buffers(
            kind, len(array), array.buffers()[:2], offset=array.offset, children=[values]
        )
    return array.cast(kind)


def _opened(place: Place, name: str, where: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(place.open(name))
    except (pa.ArrowException, OSError) as exc:
        raise DatasetError(
            f"{where} cannot be read: {exc}; parts are written whole, so it was damaged afterwards: "
            "restore it, or remove it"
        ) from exc
