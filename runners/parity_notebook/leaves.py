"""What a stage's value holds, array by array: dtype, shape and range. Looks at values, never changes them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from parity.codec.foreign import as_numpy
from parity.errors import shown
from parity.padding import is_tensor
from parity.schema import BFLOAT16

_SAMPLE_ITEMS = 6


@dataclass(frozen=True)
class Leaf:
    """One array, list or scalar inside a stage's value.

    Attributes:
        path: where it is in the value, such as "['pixels']"; empty for the value itself.
        kind: its type, such as "torch.Tensor".
        dtype: the dtype of an array, the type of a list's first item; empty for a scalar.
        shape: the shape of an array, (items,) of a list, None for a scalar.
        minimum: the least number that is not NaN; None where there is no number.
        maximum: the greatest number that is not NaN.
        mean: the mean of the finite numbers.
        non_finite: how many elements are NaN or infinite.
        sample: the first few elements as text.
    """

    path: str
    kind: str
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    minimum: float | int | None = None
    maximum: float | int | None = None
    mean: float | None = None
    non_finite: int = 0
    sample: str = ""

    @property
    def range_text(self) -> str:
        """Minimum, mean and maximum in a few words; empty where there is no number."""
        if self.minimum is None or self.maximum is None:
            return ""
        mean = "" if self.mean is None else f", mean {short(self.mean)}"
        odd = f", {self.non_finite} not finite" if self.non_finite else ""
        return f"{short(self.minimum)} to {short(self.maximum)}{mean}{odd}"


def leaves(value: Any) -> tuple[Leaf, ...]:
    """The leaves of a tree of dicts, tuples and dataclasses, in order."""
    return tuple(_leaf(path, item) for path, item in _walk(value, ""))


def short(number: float) -> str:
    """A number with at most six significant digits; integers in full."""
    return str(number) if isinstance(number, int) else f"{number:.6g}"


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[Any, Any]", value).items():
            yield from _walk(item, f"{path}[{key!r}]")
    elif isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        names: tuple[str, ...] | None = getattr(items, "_fields", None)
        for position, item in enumerate(items):
            yield from _walk(item, f"{path}[{position}]" if names is None else f"{path}.{names[position]}")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _walk(getattr(value, field.name), f"{path}.{field.name}")
    else:
        yield path, value


def _leaf(path: str, value: Any) -> Leaf:
    if is_tensor(value):
        array = _as_numpy(value)
        device = str(value.device)
        dtype = str(value.dtype).removeprefix("torch.") + ("" if device == "cpu" else f" on {device}")
        return _of_array(path, "torch.Tensor", dtype, tuple(value.shape), array)
    if isinstance(value, np.ndarray):
        return _of_array(path, "numpy.ndarray", value.dtype.name, value.shape, value)
    if isinstance(value, list):
        return _of_list(path, cast("list[Any]", value))
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    return Leaf(path, type(value).__name__, minimum=number, maximum=number, sample=shown(value))


def _of_array(path: str, kind: str, dtype: str, shape: tuple[int, ...], array: np.ndarray[Any, Any]) -> Leaf:
    flat = array.reshape(-1)
    return Leaf(path, kind, dtype, shape, *_range(flat), sample=_sample(flat))


def _sample(flat: np.ndarray[Any, Any]) -> str:
    first: list[Any] = flat[:_SAMPLE_ITEMS].tolist()
    texts = [short(item) if isinstance(item, float) else shown(item, 30) for item in first]
    return f"[{', '.join(texts)}{', …' if flat.size > len(first) else ''}]"


def _of_list(path: str, items: list[Any]) -> Leaf:
    first = type(items[0]).__name__ if items else ""
    sample = shown(items[:_SAMPLE_ITEMS], 100)
    numbers = [_as_numpy(item).reshape(-1) for item in items if _is_numeric(item)]
    if items and len(numbers) == len(items):
        return Leaf(path, "list", first, (len(items),), *_range(np.concatenate(numbers)), sample=sample)
    return Leaf(path, "list", first, (len(items),), sample=sample)


def _is_numeric(value: Any) -> bool:
    return is_tensor(value) or isinstance(value, np.ndarray | np.generic | int | float)


def _as_numpy(value: Any) -> np.ndarray[Any, Any]:
    array = as_numpy(value)
    return np.asarray(value) if array is None else array


def _range(flat: np.ndarray[Any, Any]) -> tuple[float | int | None, float | int | None, float | None, int]:
    """Minimum, maximum, mean and the count of non-finite elements; Nones for what is no number."""
    if flat.dtype == BFLOAT16 or flat.dtype.kind == "f":
        wide = flat.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        numbers = wide[~np.isnan(wide)]
        if not numbers.size:
            return None, None, None, int(wide.size)
        mean = math.fsum(finite.tolist()) / finite.size if finite.size else None
        return float(numbers.min()), float(numbers.max()), mean, int(wide.size - finite.size)
    if flat.dtype.kind in "iu" and flat.size:
        return int(flat.min()), int(flat.max()), float(flat.mean(dtype=np.float64)), 0
    return None, None, None, 0
