"""Padding a batch of arrays to a bucket, and cutting the padding off again.

Works on any tree of dicts, tuples and dataclasses whose leaves are arrays (numpy or torch) with the rows as
first dimension, or lists with one item a row. Numbers, strings, None and arrays without dimensions are no
rows and pass through. The padding is copies of the last real row, a valid input by construction: zeros can
hit edge cases and cost denormals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

ALIGNMENT_BYTES = 64
"""Vector kernels take another path on other alignments, which changes bits; so batches are aligned."""

_SCALARS = (int, float, complex, str, bytes, type(None), np.generic)


class UnpaddableError(ValueError):
    """A value that is no tree of arrays with the rows first; the message says where."""


def pad(value: Any, rows: int, bucket: int) -> Any:
    """The tree with every leaf copied into new, contiguous, 64-byte-aligned memory of `bucket` rows.

    Args:
        value: a tree of leaves with `rows` rows, at least one.
        rows: the real rows.
        bucket: the rows wanted, at least `rows`.

    Raises:
        UnpaddableError: a leaf has another number of rows, or is of a kind that has no rows.
    """

    def extend(leaf: Any) -> Any:
        if isinstance(leaf, list):
            return [*leaf, *[leaf[-1]] * (bucket - rows)]
        return _extended(leaf, rows, bucket)

    return _map(value, rows, extend, "preprocess returned", "value")


def cut(value: Any, rows: int, bucket: int) -> Any:
    """The tree with only the first `rows` of every leaf's `bucket` rows, as views.

    Raises:
        UnpaddableError: a leaf does not have `bucket` rows.
    """
    return _map(value, bucket, lambda leaf: leaf[:rows], "inference returned", "value")


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor, without importing torch."""
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "data_ptr")


def _map(value: Any, rows: int, change: Callable[[Any], Any], what: str, path: str) -> Any:
    if isinstance(value, np.ndarray) or is_tensor(value):
        if value.ndim == 0:
            return value
        if value.shape[0] != rows:
            raise UnpaddableError(
                f"{what} an array of shape {tuple(value.shape)} at {path} for {rows} rows: the first "
                "dimension must be the rows; padding to a bucket is not possible otherwise"
            )
        return change(value)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if len(items) != rows:
            raise UnpaddableError(
                f"{what} a list of {len(items)} items at {path} for {rows} rows: a list is one item a row; "
                "use a tuple or a dict to hold several arrays"
            )
        return change(items)
    if isinstance(value, Mapping):
        mapping = cast("Mapping[Any, Any]", value)
        return {key: _map(item, rows, change, what, f"{path}[{key!r}]") for key, item in mapping.items()}
    if isinstance(value, tuple):
        items = [
            _map(item, rows, change, what, f"{path}[{position}]")
            for position, item in enumerate(cast("tuple[Any, ...]", value))
        ]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            field.name: _map(getattr(value, field.name), rows, change, what, f"{path}.{field.name}")
            for field in dataclasses.fields(value)
        }
        return dataclasses.replace(value, **changed)
    if isinstance(value, _SCALARS):
        return value
    raise UnpaddableError(
        f"{what} a {type(value).__name__} at {path}, which cannot be padded to a bucket: return arrays, "
        "or a dict, tuple or dataclass of arrays"
    )


def _extended(leaf: Any, rows: int, bucket: int) -> Any:
    if is_tensor(leaf):
        extended = leaf.new_empty((bucket, *leaf.shape[1:]))
    else:
        extended = _aligned_empty((bucket, *leaf.shape[1:]), leaf.dtype)
    extended[:rows] = leaf
    if bucket > rows:
        extended[rows:] = leaf[rows - 1]
    return extended


def _aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.hasobject:
        return np.empty(shape, dtype=dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT_BYTES, dtype=np.uint8)
    offset = -memory.ctypes.data % ALIGNMENT_BYTES
    return memory[offset : offset + size].view(dtype).reshape(shape)
