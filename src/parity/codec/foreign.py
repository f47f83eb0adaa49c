"""Arrays of other libraries as numpy, without importing those libraries: told by the module of their type."""

from __future__ import annotations

from typing import Any

import numpy as np

from parity.schema import BFLOAT16


def library_of(value: object) -> str:
    """The top-level package that defines the value's type, such as "torch" or "pandas"."""
    return type(value).__module__.partition(".")[0]


def as_numpy(value: Any) -> np.ndarray[Any, Any] | None:
    """A numpy array, or a torch tensor's values on the host, in native byte order; None for anything else.

    The result may share the memory of `value`.
    """
    if isinstance(value, np.ndarray):
        found = value
    elif library_of(value) == "torch" and hasattr(value, "detach"):
        found = _from_torch(value)
    else:
        return None
    if not found.dtype.isnative:
        found = found.astype(found.dtype.newbyteorder("="))
    return found


def _from_torch(tensor: Any) -> np.ndarray[Any, Any]:
    try:
        found = tensor.numpy()  # most are ready for it; each call of torch waits for other threads
    except (TypeError, RuntimeError):
        return _detached(tensor)
    return found if found.flags.c_contiguous else np.ascontiguousarray(found)


def _detached(tensor: Any) -> np.ndarray[Any, Any]:
    host = tensor.detach().cpu().contiguous().resolve_conj().resolve_neg()
    if str(host.dtype) == "torch.bfloat16":
        import torch

        return host.view(torch.int16).numpy().view(BFLOAT16)
    return host.numpy()
