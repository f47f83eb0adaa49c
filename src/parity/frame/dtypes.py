"""The types of a frame's columns: Arrow's, how torch holds them, and which type two of them make together.

Integers of every width are held as int64 and checked against their own range; times and dates are held as
their ticks. uint64, decimals, bytes, lists, structs and tensors are carried, and have no numeric verbs.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import torch

from parity.errors import did_you_mean, shown
from parity.frame.errors import FrameError

Kind = Literal["bool", "int", "float", "time", "date", "text", "other"]

INTEGERS: Final[dict[pa.DataType, tuple[int, int]]] = {
    kind: (int(np.iinfo(str(kind)).min), int(np.iinfo(str(kind)).max))
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32())
}
"""The integer types that have arithmetic, with their least and greatest value."""

FLOATS: Final[dict[pa.DataType, torch.dtype]] = {
    pa.float16(): torch.float16,
    pa.float32(): torch.float32,
    pa.float64(): torch.float64,
}

PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""The ticks of a second in each unit of time."""

NAMES: Final[dict[str, pa.DataType]] = {
    "bool": pa.bool_(),
    **{str(kind): kind for kind in INTEGERS},
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "str": pa.string(),
    "date32": pa.date32(),
}
"""The names that `astype` knows; an Arrow type will do, too."""


def name_of(dtype: pa.DataType) -> str:
    """The type as pandas and numpy call it: "float64", where Arrow says "double"."""
    return _SPELLED.get(dtype, str(dtype))


_SPELLED: Final[dict[pa.DataType, str]] = {
    pa.float16(): "float16",
    pa.float32(): "float32",
    pa.float64(): "float64",
}


def dtype_named(wanted: Any) -> pa.DataType:
    """The type called so; raises FrameError with near names."""
    if isinstance(wanted, pa.DataType):
        return wanted
    if wanted in (int, float, bool, str):
        return {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}[wanted]
    text = str(wanted)
    if text not in NAMES:
        raise FrameError(f"astype: no type {shown(text)}; {did_you_mean(text, NAMES)}")
    return NAMES[text]


def kind_of(dtype: pa.DataType) -> Kind:
    """What a column of this type can do."""
    if dtype in INTEGERS:
        return "int"
    if dtype in FLOATS:
        return "float"
    if pa.types.is_boolean(dtype):
        return "bool"
    if pa.types.is_timestamp(dtype):
        return "time"
    if pa.types.is_date32(dtype):
        return "date"
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        return "text"
    return "other"


def held_as(dtype: pa.DataType) -> torch.dtype:
    """The tensor type that holds the values of a type that is not text or other."""
    if pa.types.is_boolean(dtype):
        return torch.bool
    return FLOATS.get(dtype, torch.int64)


def together(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of arithmetic between two numeric columns, as numpy and pandas have it.

    int64 and float32 make float64; int32 and uint32 make int64.
    """
    return pa.from_numpy_dtype(np.result_type(name_of(left), name_of(right)))
