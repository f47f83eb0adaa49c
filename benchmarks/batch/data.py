"""The two datasets: a table of numbers, and JPEG files in a table; made once for each size and kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILES = 8
FEATURES = 32
WIDTH, HEIGHT = 640, 480
_GROUP_ROWS = {"table": 100_000, "picture": 50}
_CITIES = ("Aarhus", "Bologna", "Córdoba", "Dresden", "Évora", "Fukuoka", "Gdańsk", "Høyanger")


def dataset(folder: Path, workload: str, rows: int) -> Path:
    """The folder of 8 Parquet files with the rows of a workload, "table" or "picture"."""
    path = folder / f"{workload}-{rows}"
    if not path.is_dir():
        making = folder / f".{path.name}"
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        make = _table if workload == "table" else _pictures
        rng = np.random.default_rng(7)
        for place in range(FILES):
            first, last = rows * place // FILES, rows * (place + 1) // FILES
            found = make(rng, np.arange(first, last))
            name = making / f"part-{place:02d}.parquet"
            pq.write_table(found, name, compression="zstd", row_group_size=_GROUP_ROWS[workload])
        making.rename(path)
    return path


def _table(rng: np.random.Generator, ids: np.ndarray[Any, Any]) -> pa.Table:
    rows = len(ids)
    columns: dict[str, Any] = {"id": ids}
    columns["shop"] = pa.array([f"shop-{shop}" for shop in rng.integers(0, 5000, rows)])
    columns["city"] = pa.array(np.array(_CITIES, object)[rng.integers(0, len(_CITIES), rows)], pa.string())
    for place in range(FEATURES):
        columns[f"f{place:02d}"] = rng.standard_normal(rows, dtype=np.float32)
    return pa.table(columns)


def _pictures(rng: np.random.Generator, ids: np.ndarray[Any, Any]) -> pa.Table:
    files: list[bytes] = []
    for _ in ids:
        coarse = rng.integers(0, 256, (HEIGHT // 20, WIDTH // 20, 3), dtype=np.uint8)
        smooth = cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC).astype(np.int16)
        grain = rng.integers(-12, 13, smooth.shape, dtype=np.int16)
        picture = np.clip(smooth + grain, 0, 255).astype(np.uint8)
        files.append(cast("Any", cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 90])[1]).tobytes())
    columns: dict[str, Any] = {"id": ids, "jpeg": pa.array(files, pa.binary())}
    return pa.table(columns)
