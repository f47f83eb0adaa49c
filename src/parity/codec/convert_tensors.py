"""Tensor columns in any of Arrow's shapes of list into the canonical one; see `parity.schema.Tensor`.

Read are flat row-major lists, lists nested as deep as the tensor has dimensions, `arrow.fixed_shape_tensor`
storage, and the canonical struct of data and shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from parity.codec.build import primitive, tensor_array
from parity.codec.constraints import Faults
from parity.codec.layouts import Array, is_list_like, numbers, peel, plain, present_mask, relabelled
from parity.codec.numbers import exact_cast
from parity.codec.rejection import ValueRejectedError
from parity.errors import SchemaError
from parity.schema import BFLOAT16, Tensor


def convert_tensor(field: Tensor, array: Any) -> tuple[Any, Faults]:
    """The canonical array, and the rows that do not fit; what those hold does not matter."""
    ready = _as_it_is(field, array)
    if ready is not None:
        return ready, {}
    faults: Faults = {}
    if pa.types.is_struct(array.type):
        lengths, elements, dims = _from_struct(field, array, faults)
    else:
        lengths, elements, dims = _from_lists(field, array, faults)
    present = present_mask(array)
    owner = np.repeat(np.arange(len(array)), lengths)
    values = _element_values(field, elements, owner, lengths, dims, faults)
    try:
        return _assembled(field, values, owner, lengths, dims, present, faults), faults
    except OverflowError as exc:
        raise SchemaError(str(exc)) from None


def _as_it_is(field: Tensor, array: Any) -> Any:
    """The array itself under the canonical type when its memory is canonical already; else None."""
    kind: Any = field.arrow_type
    if field.variable_dims > 1 or field.numpy_dtype == BFLOAT16:
        return None
    fixed = pa.types.is_fixed_size_list(kind)
    if fixed:
        fits = pa.types.is_fixed_size_list(array.type) and array.type.list_size == kind.list_size
    else:
        fits = pa.types.is_list(array.type)
    if not fits or not array.type.value_type.equals(field.value_type) or array.flatten().null_count:
        return None
    if not fixed and field.size != 1:
        lengths = peel(array)[0]
        if (lengths % field.size if field.size else lengths).any():
            return None
    return relabelled(array, kind)


def _from_struct(field: Tensor, array: Any, faults: Faults) -> tuple[Array, Any, Array]:
    """The canonical struct, whose rows must have as many elements as their shape says."""
    ndim = len(field.shape)
    data, shape = (plain(child) for child in array.flatten())
    lengths, elements = peel(data)
    counts, sizes = peel(shape)
    sizes = plain(sizes)
    usable = counts == ndim
    for child in (data, shape):
        mask = present_mask(child)
        if mask is not None:
            usable &= mask
    known = present_mask(sizes)
    if known is not None:
        usable[np.repeat(np.arange(len(array)), counts)[~known]] = False
    dims = np.zeros((len(array), ndim), dtype=np.int64)
    starts = (np.cumsum(counts) - counts)[usable]
    dims[usable] = numbers(sizes).astype(np.int64)[starts[:, None] + np.arange(ndim)]
    # In floats a product too great for int64 is merely great; in integers it would wrap to a small one.
    bad = (
        ~usable
        | (dims < 0).any(axis=1)
        | (dims >= 2**31).any(axis=1)
        | (np.prod(dims.astype(np.float64), axis=1) != lengths)
    )
    valid = present_mask(array)
    for row in np.flatnonzero(bad if valid is None else bad & valid).tolist():
        what = f"{lengths[row]} elements do not make shape {dims[row].tolist()}"
        faults[row] = ValueRejectedError(what, field.describe())
    _check_dims(field, dims, valid, faults)
    return lengths, elements, dims


def _from_lists(field: Tensor, array: Any, faults: Faults) -> tuple[Array, Any, Array]:
    """Lists, flat or nested, as lengths per row, elements and the shape of each row."""
    ndim = len(field.shape)
    valid = present_mask(array)
    lengths, items = peel(array)
    items = plain(items)
    dims = np.zeros((len(array), ndim), dtype=np.int64)
    if ndim > 1 and not is_list_like(items.type):
        _flat_dims(field, lengths, dims, valid, faults)
        return lengths, items, dims
    dims[:, 0] = lengths
    owner = np.repeat(np.arange(len(array)), lengths)
    for axis in range(1, ndim):
        inner, deeper = peel(items)
        first = np.zeros(len(array), dtype=np.int64)
        first[owner[::-1]] = inner[::-1]  # the last write wins: the first item of each row
        missing = present_mask(items)
        uneven = inner != first[owner]
        if missing is not None:
            uneven |= ~missing
        for place in np.flatnonzero(uneven).tolist():
            faults.setdefault(
                int(owner[place]),
                ValueRejectedError(
                    "null stands where a list belongs"
                    if missing is not None and not missing[place]
                    else f"a list of {inner[place]} beside lists of {first[owner[place]]}",
                    field.describe(),
                ),
            )
        dims[:, axis] = first
        hollow = dims[:, axis - 1] == 0
        dims[hollow, axis] = field.shape[axis] or 0
        owner = np.repeat(owner, inner)
        items = plain(deeper)
    lengths = np.bincount(owner, minlength=len(array)).astype(np.int64)
    _check_dims(field, dims, valid, faults)
    return lengths, items, dims


def _flat_dims(field: Tensor, lengths: Array, dims: Array, valid: Array | None, faults: Faults) -> None:
    """The shapes of flat row-major rows: what one varying dimension is follows from the length."""
    size = field.size
    known = size == 0 or field.variable_dims == 0
    bad = lengths != size if known else lengths % size != 0
    if valid is not None:
        bad = bad & valid
    for row in np.flatnonzero(bad).tolist():
        wanted = str(size) if known else f"a multiple of {size}"
        faults[row] = ValueRejectedError(
            f"{lengths[row]} elements; the shape needs {wanted}", field.describe()
        )
    for axis, dim in enumerate(field.shape):
        dims[:, axis] = lengths // max(1, size) if dim is None else dim


def _check_dims(field: Tensor, dims: Array, valid: Array | None, faults: Faults) -> None:
    bad = np.zeros(len(dims), dtype=np.bool_)
    for axis, dim in enumerate(field.shape):
        if dim is not None:
            bad |= dims[:, axis] != dim
    if valid is not None:
        bad &= valid
    for row in np.flatnonzero(bad).tolist():
        faults.setdefault(
            row, ValueRejectedError(f"shape {dims[row].tolist()} is not the field's", field.describe())
        )


def _element_values(
    field: Tensor, elements: Any, owner: Array, lengths: Array, dims: Array, faults: Faults
) -> Array:
    """All elements in the field's dtype; null or inexact ones put their row at fault."""
    elements = plain(elements)
    if pa.types.is_null(elements.type):
        values: Array = np.zeros(len(elements), dtype=field.numpy_dtype)
    else:
        values = numbers(elements)
    cast, exact = exact_cast(values, field.numpy_dtype)
    missing = present_mask(elements)
    bad = np.zeros(len(values), dtype=np.bool_) if exact is None else ~exact
    if missing is not None:
        bad |= ~missing
    starts = np.cumsum(lengths) - lengths
    for place in np.flatnonzero(bad).tolist():
        row = int(owner[place])
        if row in faults:
            continue
        path = _path(place - int(starts[row]), dims[row])
        if missing is not None and not missing[place]:
            faults[row] = ValueRejectedError("null is no element of a tensor", field.describe(), path=path)
        else:
            faults[row] = ValueRejectedError(
                f"{values[place].item()} of type {values.dtype.name} is no {field.dtype}, and a typed column "
                "is never rounded here",
                field.describe(),
                "cast the column, as you mean it, or declare another dtype",
                path,
            )
    return cast


def _path(position: int, dims: Array) -> str:
    if int(np.prod(dims)) <= position:
        return f"[{position}]"
    return "".join(f"[{index}]" for index in np.unravel_index(position, tuple(dims.tolist())))


def _assembled(
    field: Tensor,
    values: Array,
    owner: Array,
    lengths: Array,
    dims: Array,
    present: Array | None,
    faults: Faults,
) -> Any:
    """The canonical array; rows that are null or at fault hold zeros, or nothing where rows may be empty."""
    good = np.ones(len(lengths), dtype=np.bool_) if present is None else present.copy()
    good[list(faults)] = False
    fixed = pa.types.is_fixed_size_list(field.arrow_type)
    if not bool(good.all()):
        values = values[good[owner]]
        lengths = np.where(good, lengths, 0)
        dims = np.where(good[:, None], dims, 0)
        if fixed:
            spread = np.zeros((len(good), field.size), dtype=values.dtype)
            spread[good] = values.reshape(-1, field.size)
            values, lengths = spread.reshape(-1), np.full(len(good), field.size)
    return tensor_array(field, primitive(field.value_type, values), lengths, dims, present)
