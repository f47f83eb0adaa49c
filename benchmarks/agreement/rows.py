"""Many rows for an example handler: of the committed sample, but hardly two of them alike.

films and fashion mix and change what the sample has; tabular draws its vectors. Photos are the sample's own,
repeated: a million files of different photos would be a million times the same work.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parity import load_handler

ROOT: Final = Path(__file__).resolve().parents[2]
ROW: Final = "row"
"""The column that tells rows apart, int64, passed through by every runner."""

HANDLERS: Final = {
    "films": "handlers/films",
    "fashion": "handlers/fashion",
    "tabular": "benchmarks/handlers/tabular",
    "photo_quality": "handlers/photo_quality",
}
"""The handlers by name, and where they lie in the repository."""

_FILES = 7
_GROUP_ROWS = 10_000
_FADED = 16
_WIDTH = 32


def write_rows(name: str, folder: Path, rows: int) -> None:
    """Write a dataset for a handler: `row` from 0 on and its inputs, in 7 files, 10,000 rows a row group.

    Groups and files line up neither with each other nor with batches of 1,024. Rows are drawn with a seed.
    """
    folder.mkdir(parents=True)
    random = np.random.default_rng(19)
    made = _makers[name](name)
    start = 0
    for file in range(_FILES):
        stop = rows * (file + 1) // _FILES
        writer: pq.ParquetWriter | None = None
        while start < stop or writer is None:
            count = min(_GROUP_ROWS, stop - start)
            table = made(count, random).add_column(0, ROW, pa.array(np.arange(start, start + count)))
            if writer is None:
                writer = pq.ParquetWriter(folder / f"rows-{file}.parquet", table.schema, compression="zstd")
            writer.write_table(table, row_group_size=_GROUP_ROWS)
            start += count
        writer.close()


_Made = Callable[[int, np.random.Generator], pa.Table]


def _sample(name: str) -> pa.Table:
    loaded = load_handler(ROOT / HANDLERS[name])
    return pq.read_table(ROOT / "data" / name).select(list(loaded.inputs.names)).combine_chunks()


def _films(name: str) -> _Made:
    """Films that never were: each column's value of another film."""
    sample = _sample(name)

    def made(count: int, random: np.random.Generator) -> pa.Table:
        columns = [
            column.take(cast("Any", pa.array(random.integers(0, sample.num_rows, count))))
            for column in sample.columns
        ]
        return pa.Table.from_arrays(columns, schema=sample.schema)

    return made


def _fashion(name: str) -> _Made:
    """Items turned left or right, each of their pixels a little brighter or darker."""
    sample = _sample(name)
    field = sample.schema.field("image")
    images: Any = sample.column("image").combine_chunks()
    pixels = images.flatten().to_numpy().reshape(-1, 28, 28)

    def made(count: int, random: np.random.Generator) -> pa.Table:
        chosen = pixels[random.integers(0, len(pixels), count)].astype(np.int16)
        turned = random.integers(0, 2, count).astype(bool)
        chosen[turned] = chosen[turned, :, ::-1]
        changed = chosen + (chosen > 0) * random.integers(-_FADED, _FADED + 1, chosen.shape, np.int16)
        values: Any = pa.array(changed.clip(0, 255).astype(np.uint8).reshape(-1))
        image = pa.FixedSizeListArray.from_arrays(values, type=field.type)
        return pa.Table.from_arrays([image], schema=pa.schema([field]))

    return made


def _tabular(name: str) -> _Made:
    del name
    item = pa.field("item", pa.float32(), nullable=False)
    schema = pa.schema([pa.field("x", pa.list_(item, _WIDTH), nullable=False)])

    def made(count: int, random: np.random.Generator) -> pa.Table:
        values: Any = pa.array(random.standard_normal(count * _WIDTH, dtype=np.float32))
        x = pa.FixedSizeListArray.from_arrays(values, type=schema.field(0).type)
        return pa.Table.from_arrays([x], schema=schema)

    return made


def _photos(name: str) -> _Made:
    sample = _sample(name)

    def made(count: int, random: np.random.Generator) -> pa.Table:
        return sample.take(cast("Any", pa.array(random.integers(0, sample.num_rows, count))))

    return made


_makers: Final[dict[str, Callable[[str], _Made]]] = {
    "films": _films,
    "fashion": _fashion,
    "tabular": _tabular,
    "photo_quality": _photos,
}
