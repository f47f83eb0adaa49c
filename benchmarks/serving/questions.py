"""The rows that are asked, and what a real job of the batch runner answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parity.registry import load_handler
from parity.result import ERROR_COLUMN
from parity_batch.replay import replay

HANDLERS = Path(__file__).parent / "handlers"
MIXED, THUMB = "mixed", "thumb"
_SCORE, _ERROR = "expected score", "expected error"


@dataclass(frozen=True)
class Questions:
    """One handler's rows.

    Attributes:
        rows: by the names of its inputs.
        scores: float32, what the batch runner answers; NaN where it has an error.
        errors: the error's kind, empty for none.
        good: the places of rows that have an answer.
        bad: the places of the others.
    """

    rows: list[dict[str, Any]]
    scores: np.ndarray[Any, np.dtype[np.float32]]
    errors: list[str]
    good: Sequence[int]
    bad: Sequence[int]


def write_rows(folder: Path, rows: int, pictures: int) -> None:
    """FOLDER/HANDLER.parquet for both handlers; one row in twenty fails."""
    rng = np.random.default_rng(20240603)
    x = rng.normal(size=(rows, 32)).astype(np.float32)
    acts = ["raise" if place % 40 == 7 else "reject" if place % 40 == 23 else "" for place in range(rows)]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 32)
    ids = pa.array(rng.integers(-(2**63), 2**63 - 1, rows))
    pq.write_table(pa.table({"id": ids, "x": vectors, "act": acts}), folder / f"{MIXED}.parquet")
    files: list[bytes] = []
    for place in range(pictures):
        pixels = rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)
        data = cast("Any", cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 90])[1]).tobytes()
        files.append(data[:20] + bytes(20) if place % 20 == 3 else data)
    pq.write_table(pa.table({"image": pa.array(files, pa.binary())}), folder / f"{THUMB}.parquet")


def write_answers(folder: Path, handlers: Path, profile: str) -> None:
    """Add the batch runner's answers to the rows.

    Args:
        folder: where the rows are.
        handlers: the folder of both handlers.
        profile: which of their profiles.
    """
    for name in (MIXED, THUMB):
        path = folder / f"{name}.parquet"
        rows = pq.read_table(path)
        loaded = load_handler(str(handlers / name))
        answers = replay(str(handlers / name), rows, loaded.profile(profile)).to_table()
        kinds = [None if error is None else error["kind"] for error in answers[ERROR_COLUMN].to_pylist()]
        rows = rows.append_column(_SCORE, answers["score"]).append_column(
            _ERROR, pa.array(kinds, pa.string())
        )
        pq.write_table(rows, path)


def read_questions(folder: Path, name: str) -> Questions:
    """A handler's rows with their answers."""
    table = pq.read_table(folder / f"{name}.parquet")
    errors = [error or "" for error in table[_ERROR].to_pylist()]
    scores = np.array([np.nan if score is None else score for score in table[_SCORE].to_pylist()], np.float32)
    rows = table.drop_columns([_SCORE, _ERROR]).to_pylist()
    good = [place for place, error in enumerate(errors) if not error]
    bad = [place for place, error in enumerate(errors) if error]
    return Questions(rows, scores, errors, good, bad)
