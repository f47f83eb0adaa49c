"""What each row of one batch got from the stages, ready to be compared with another batch's row by its bits.

NaNs count as equal whatever their payload; -0.0 and 0.0 do not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.column import Column
from parity.compare import Exact
from parity.compare.floats import column_scale, float_differences
from parity.engine import Engine
from parity.failures import unlogged
from parity.padding import is_tensor
from parity.result import Result
from parity.schema import BFLOAT16
from parity.stages import leaves, row_digests, rows_of

Stage = Literal["preprocess", "inference", "postprocess"]
STAGES: Final[tuple[Stage, ...]] = ("preprocess", "inference", "postprocess")

Value = np.ndarray[Any, Any]

_PLAIN = (str, bytes, bool, int, float, type(None))
"""Values whose text tells their bits."""


@dataclass(frozen=True)
class Sheet:
    """What the rows of a batch got.

    Attributes:
        errors: for each row the kind of its error and the exception's type, "" where it has an answer.
        leaves: for each place, such as "inference value['x']" or "postprocess score", each row's value; None
            where the row failed.
        dtypes: the dtype of each place, where it is a float.
        shape: the trailing shapes of what inference was given, in words.
        reason: why the first row that failed did so.
    """

    errors: tuple[str, ...]
    leaves: Mapping[str, Sequence[Value | None]]
    dtypes: Mapping[str, str]
    shape: str = ""
    reason: str = ""

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.errors)

    def shape_of(self, path: str) -> set[tuple[int, ...]]:
        """The shapes that the rows' values at a place have."""
        return {value.shape for value in self.leaves.get(path, ()) if value is not None}

    def digest(self, row: int, paths: Iterable[str]) -> str:
        """32 hex digits that are the same exactly where the row's bits at these places are."""
        found = hashlib.blake2b(self.errors[row].encode(), digest_size=16)
        for path in paths:
            values = self.leaves.get(path)
            value = None if values is None else values[row]
            found.update(f"\0{path}\0".encode())
            if value is not None:
                found.update(f"{value.dtype.str}{value.shape}".encode())
                found.update(value.tobytes())
        return found.hexdigest()

    def first_difference(self, row: int, other: Sheet, other_row: int) -> Stage | None:
        """The first stage that gave a row other bits than another sheet's row; None when there is none.

        Inference and answer are judged. A place of inference whose shape differs, as that of a sequence
        padded to another length does, is left to the answer to judge. Preprocess is looked at only where the
        rest differs.
        """
        if self.errors[row] != other.errors[other_row]:
            return "postprocess"
        if not any(self._differs(stage, row, other, other_row) for stage in ("inference", "postprocess")):
            return None
        return next(stage for stage in STAGES if self._differs(stage, row, other, other_row))

    def ulp(self, row: int, obtained: Sheet, obtained_row: int) -> float:
        """How far a row's floats are apart at most, in units in the last place at the scale of their column.

        Infinite where a NaN, an infinity, an error or something that is no float differs.
        """
        if self.errors[row] != obtained.errors[obtained_row]:
            return float("inf")
        worst = 0.0
        for path, values in self.leaves.items():
            one, other = values[row], obtained.leaves.get(path, [None] * (obtained_row + 1))[obtained_row]
            if path.startswith("preprocess") or one is None or other is None or one.shape != other.shape:
                continue
            if path not in self.dtypes:
                worst = max(worst, 0.0 if one.tobytes() == other.tobytes() else float("inf"))
                continue
            flat, other_flat = one.reshape(-1), other.reshape(-1)
            found = float_differences(flat, other_flat, self.dtypes[path], Exact(), scale=self._scales[path])
            worst = max(worst, float(found.ulp.max(initial=0.0)))
        return worst

    @cached_property
    def _scales(self) -> dict[str, float]:
        """The median magnitude of each place of floats."""
        found: dict[str, float] = {}
        for path in self.dtypes:
            values = [value.reshape(-1) for value in self.leaves[path] if value is not None]
            found[path] = column_scale(np.concatenate(values)) if values else 0.0
        return found

    def _differs(self, stage: Stage, row: int, other: Sheet, other_row: int) -> bool:
        for path, values in self.leaves.items():
            if not path.startswith(stage):
                continue
            one, others = values[row], other.leaves.get(path)
            another = None if others is None else others[other_row]
            if one is None or another is None:
                if (one is None) != (another is None) and stage == "postprocess":
                    return True
                continue
            if one.shape != another.shape or one.dtype != another.dtype:
                if stage != "inference":
                    return True
                continue
            if one.tobytes() != another.tobytes():
                return True
        return False

    @staticmethod
    def concat(sheets: Sequence[Sheet]) -> Sheet:
        """The rows of several sheets, one after the other."""
        if len(sheets) == 1:
            return sheets[0]
        paths = dict.fromkeys(path for sheet in sheets for path in sheet.leaves)
        joined = {
            path: [value for sheet in sheets for value in sheet.leaves.get(path, [None] * sheet.num_rows)]
            for path in paths
        }
        dtypes = {path: dtype for sheet in sheets for path, dtype in sheet.dtypes.items()}
        errors = tuple(error for sheet in sheets for error in sheet.errors)
        reason = next((sheet.reason for sheet in sheets if sheet.reason), "")
        return Sheet(errors, joined, dtypes, sheets[0].shape, reason)


def run_sheet(engine: Engine, batch: Batch, bucket: int, *, threads: int | None = None) -> Sheet:
    """What the rows of a batch get when inference sees `bucket` rows at once.

    Rows that fail are told in the sheet, and not logged.

    Args:
        engine: an entered engine; it has its own profile again afterwards.
        batch: rows of the handler's input schema, at least one.
        bucket: the bucket; a longer batch is cut to pieces.
        threads: intra-op threads; the profile's when not given.
    """
    before = engine.profile
    engine.profile = replace(before, buckets=(bucket,), threads=threads or before.threads)
    try:
        with unlogged():
            result = engine.run(batch, stages=True)
    finally:
        engine.profile = before
    return _sheet(result, bucket)


def _sheet(result: Result, bucket: int) -> Sheet:
    errors = [""] * result.num_rows
    for error in result.errors:
        errors[error.row] = f"{error.kind} {error.type or ''}".strip()
    for row, rows in zip(result.index.tolist(), result.buckets.tolist(), strict=True):
        if rows != bucket:
            errors[row] = f"answered among {rows} rows"
    found: dict[str, list[Value | None]] = {}
    dtypes: dict[str, str] = {}
    shapes: dict[str, str] = {}
    for values in result.stages:
        for stage in ("preprocess", "inference"):
            for place, leaf in leaves(getattr(values, stage)):
                if not _has_rows(leaf, len(values.rows)):
                    continue
                path = f"{stage} {place}"
                column = found.setdefault(path, [None] * result.num_rows)
                if stage == "preprocess" and not isinstance(leaf, list):
                    shapes[place] = "x".join(str(int(size)) for size in leaf.shape[1:])
                for row, value in zip(values.rows.tolist(), _values(leaf, path, dtypes), strict=True):
                    column[row] = value
    for name, column in result.outputs.items():
        path = f"postprocess {name}"
        values = found.setdefault(path, [None] * result.num_rows)
        for row, value in zip(result.index.tolist(), _column_values(name, column, path, dtypes), strict=True):
            values[row] = value
    reason = result.errors[0].message if result.errors else ""
    return Sheet(tuple(errors), found, dtypes, _shape_words(shapes), reason)


def _has_rows(leaf: Any, rows: int) -> bool:
    if isinstance(leaf, list):
        return len(cast("list[Any]", leaf)) == rows
    return (isinstance(leaf, np.ndarray) or is_tensor(leaf)) and leaf.ndim > 0 and len(leaf) == rows


def _values(leaf: Any, path: str, dtypes: dict[str, str]) -> list[Value]:
    """A leaf's value for each row, NaNs made alike; bfloat16 as float32, which holds it exactly."""
    is_bfloat16 = str(getattr(leaf, "dtype", "")).endswith("bfloat16")
    if isinstance(leaf, np.ndarray) and leaf.dtype == BFLOAT16:
        leaf = leaf.astype(np.float32)
    if isinstance(leaf, np.ndarray) or is_tensor(leaf):
        whole = cast("Value", leaf) if isinstance(leaf, np.ndarray) else np.stack(rows_of(leaf, len(leaf)))
        if whole.dtype.kind == "f":
            dtypes[path] = "bfloat16" if is_bfloat16 else whole.dtype.name
            leaf = _alike(whole)
        return rows_of(leaf, len(leaf))
    return [rows_of(item[None], 1)[0] if is_tensor(item) else rows_of([item], 1)[0] for item in leaf]


def _column_values(name: str, column: Column, path: str, dtypes: dict[str, str]) -> list[Value]:
    field = column.field
    if field.numpy_dtype is not None and field.row_shape is not None and column.null_count == 0:
        return _values(column.numpy(), path, dtypes)
    plain = column.to_pylist()
    if all(isinstance(value, _PLAIN) for value in plain):
        return [np.frombuffer(repr(value).encode("utf-8", "surrogatepass"), np.uint8) for value in plain]
    table = pa.table({name: column.arrow})
    return [np.frombuffer(digest, np.uint8) for digest in row_digests(table)]


def _alike(values: Value) -> Value:
    """The floats with one NaN for all."""
    missing = np.isnan(values)
    if not missing.any():
        return values
    alike = values.copy()
    alike[missing] = np.nan
    return alike


def _shape_words(shapes: Mapping[str, str]) -> str:
    """Trailing shapes by place in words; one for all where they are the same, as those of a mask are."""
    distinct = set(shapes.values()) - {""}
    if len(distinct) <= 1:
        return "".join(distinct)
    return ", ".join(f"{place} {shape}" for place, shape in shapes.items() if shape)
