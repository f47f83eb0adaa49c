"""Which values of rows and of stages are images, and their pictures, with a map of the difference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from parity.report import pictures
from parity.report.pictures import Picture, Values

if TYPE_CHECKING:
    from parity.stages import Traces

Source = Literal["input", "answer", "preprocess", "inference"]

MAX_FIELDS = 4
_STAGES: tuple[Literal["preprocess", "inference"], ...] = ("preprocess", "inference")


@dataclass(frozen=True)
class Pictured:
    """An image of a row: one picture of an input, two and their difference of what lies on both sides.

    Attributes:
        row: the row's position.
        source: where the image comes from.
        where: the field, column, or place in the stage's value.
        expected: the picture, or the expected side's.
        obtained: the other side's.
        difference: the map of where they differ.
        note: the difference in words.
    """

    row: int
    source: Source
    where: str
    expected: Picture | None
    obtained: Picture | None = None
    difference: Picture | None = None
    note: str = ""

    def to_dict(self) -> dict[str, object]:
        """What is pictured, as JSON-ready data without the pictures."""
        return {"row": self.row, "source": self.source, "where": self.where, "note": self.note}


def pictured_rows(
    rows: Sequence[int], inputs: pa.Table | None, expected: pa.Table, obtained: pa.Table
) -> list[Pictured]:
    """The images among the inputs and answers of some rows; answers only where they differ."""
    found: list[Pictured] = []
    for row in rows:
        if inputs is not None:
            found += pictured_inputs(inputs, row)
        for name in [name for name in expected.column_names if name in obtained.column_names]:
            pair = _both(_image(expected, name, row), _image(obtained, name, row))
            if pair is not None:
                found.append(Pictured(row, "answer", name, *pair))
    return found


def pictured_inputs(inputs: pa.Table, row: int) -> list[Pictured]:
    """The images among the fields of one row."""
    found: list[Pictured] = []
    for name in inputs.column_names:
        value = _image(inputs, name, row)
        shown = pictures.encoded(value) if isinstance(value, bytes) else _shown(value)
        if shown is not None and len(found) < MAX_FIELDS:
            found.append(Pictured(row, "input", name, shown))
    return found


def pictured_stages(rows: Sequence[int], expected: Traces, obtained: Traces) -> list[Pictured]:
    """What the stages made of some rows on both sides, where that is an image and differs."""
    found: list[Pictured] = []
    for row in rows:
        for stage in _STAGES:
            ours, theirs = expected.stage(stage), obtained.stage(stage)
            for path in [path for path in ours if path in theirs][:MAX_FIELDS]:
                pair = _both(ours[path][row], theirs[path][row])
                if pair is not None:
                    found.append(Pictured(row, stage, path, *pair))
    return found


def _both(
    expected: Values | bytes | None, obtained: Values | bytes | None
) -> tuple[Picture, Picture, Picture, str] | None:
    if expected is None or obtained is None:
        return None
    ours, theirs = (
        pictures.decoded(side) if isinstance(side, bytes) else side for side in (expected, obtained)
    )
    if ours is None or theirs is None or (ours.shape == theirs.shape and np.array_equal(ours, theirs)):
        return None
    return pictures.pictures(ours, theirs)


def _shown(value: Values | None) -> Picture | None:
    return None if value is None else pictures.picture(value)


def _image(table: pa.Table, name: str, row: int) -> Values | bytes | None:
    """The value as encoded bytes or as an array in one of the layouts; None where it is no image."""
    column = table.schema.field(name)
    scalar: Any = table.column(name)[row]
    if not scalar.is_valid:
        return None
    if pat.is_binary(column.type) or pat.is_large_binary(column.type):
        data = cast("bytes", scalar.as_py())
        return data if pictures.media_type(data) else None
    array = _tensor(column, scalar)
    return array if array is not None and pictures.layout(array.shape) is not None else None


def _tensor(column: pa.Field[Any], scalar: Any) -> Values | None:
    """A uint8 or bool tensor in its shape; None for other values."""
    told = {key.decode(): text.decode() for key, text in (column.metadata or {}).items()}
    if told.get("parity.type") not in ("Tensor", "Image"):
        return None
    if told.get("parity.dtype", "uint8") not in ("uint8", "bool"):
        return None
    shape: list[int | None] = json.loads(told.get("parity.shape", "[]"))
    if pat.is_struct(column.type):
        shape = list(scalar["shape"].as_py())
        scalar = scalar["data"]
    values = np.asarray(scalar.values.to_numpy(zero_copy_only=False))
    if None in shape:
        known = int(np.prod([size for size in shape if size is not None], dtype=np.int64))
        shape = [len(values) // max(1, known) if size is None else size for size in shape]
    sizes = cast("list[int]", shape)
    return values.reshape(sizes) if sizes and int(np.prod(sizes)) == len(values) else None
