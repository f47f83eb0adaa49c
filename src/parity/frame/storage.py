"""Arrow arrays as tensors with validity, and back. No memory is shared with the batch: it is read-only."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import torch

from parity.frame.dtypes import FLOATS, kind_of
from parity.staging import send


def to_tensor(values: pa.Array[Any], device: torch.device) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The values as one tensor of the type that holds them, 0 where null, and where they are not null."""
    array = cast("Any", values)
    kind = kind_of(array.type)
    valid: torch.Tensor | None = None
    if array.null_count:
        valid = torch.from_numpy(array.is_valid().to_numpy(zero_copy_only=False))
    if kind == "bool":
        flags = (array.fill_null(False) if array.null_count else array).to_numpy(zero_copy_only=False)
        found = torch.from_numpy(flags)
    else:
        stored = _stored(array.type)
        buffer = array.buffers()[1]
        if buffer is None or len(array) == 0:
            flat: np.ndarray[Any, Any] = np.zeros(len(array), stored)
        else:
            flat = np.frombuffer(buffer, stored, len(array), array.offset * stored.itemsize)
        held = stored if array.type in FLOATS else np.dtype(np.int64)
        found = torch.from_numpy(flat.astype(held))
        if valid is not None:
            found.masked_fill_(~valid, 0)
    if device.type == "cuda":
        there, *known = send([tensor.numpy() for tensor in (found, valid) if tensor is not None], device)
        return there, known[0] if known else None
    return found.to(device), None if valid is None else valid.to(device)


def to_arrow(values: torch.Tensor, valid: torch.Tensor | None, dtype: pa.DataType) -> pa.Array[Any]:
    """The tensor as an Arrow array of the type, null where it is not valid."""
    held = values.detach().cpu().contiguous().numpy()
    null = None if valid is None else ~valid.cpu().numpy()
    if kind_of(dtype) in ("time", "date"):
        if pa.types.is_date32(dtype):
            held = held.astype(np.int32)
        return cast("Any", pa.array(held, mask=null)).cast(dtype)
    if kind_of(dtype) == "bool":
        return pa.array(held, pa.bool_(), mask=null)
    return pa.array(held.astype(_stored(dtype)), dtype, mask=null)


def _stored(dtype: pa.DataType) -> np.dtype[Any]:
    if kind_of(dtype) == "time":
        return np.dtype(np.int64)
    if kind_of(dtype) == "date":
        return np.dtype(np.int32)
    return np.dtype(dtype.to_pandas_dtype())
