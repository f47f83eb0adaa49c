"""Tensor data as bytes: V2's binary tensor extension and the raw contents of its gRPC form.

Numbers are little-endian, row-major, without padding; NaN and infinities are what they are. A BYTES tensor is
the elements in order, each its length as a little-endian uint32 and then its bytes: strings in UTF-8, raw
bytes and encoded images as they are, timestamps, dates, decimals, lists and structs as the text that JSON has
for them, in which NaN and infinities are strings. Null has no form here.
"""

from __future__ import annotations

import math
import struct
from typing import Any, cast

import numpy as np

from parity.codec.constraints import Faults, numeric_faults
from parity.codec.jsonable import encode_column
from parity.codec.oip_values import Values, as_tensor, decode_each, flat_elements, row_dims
from parity.codec.rejection import ValueRejectedError, brief
from parity.codec.values import Decode
from parity.column import Column
from parity.errors import MalformedError, RowError, RowsError, SchemaError
from parity.schema import Bytes, Date, Field, Image, Timestamp

Array = np.ndarray[Any, Any]

_LENGTH = struct.Struct("<I")


def element_dtype(field: Field) -> np.dtype[Any] | None:
    """The little-endian dtype of a field's elements; None where they are BYTES."""
    tensor = as_tensor(field)
    if tensor is not None:
        return tensor.numpy_dtype.newbyteorder("<")
    dtype = field.numpy_dtype
    return None if dtype is None or isinstance(field, Timestamp | Date) else dtype.newbyteorder("<")


def values_of_bytes(
    what: str, field: Field, decode: Decode, rows: int, dims: tuple[int, ...], data: memoryview
) -> tuple[Values, Faults]:
    """The values of one tensor sent as bytes, and the rows that do not fit.

    Args:
        what: the tensor in a few words, for messages.
        field: what it is read as.
        decode: reads one BYTES element's text or bytes; unused for numbers.
        rows: the first dimension.
        dims: the others.
        data: the bytes.

    Raises:
        MalformedError: there are not as many bytes, or elements, as the shape says.
    """
    dtype = element_dtype(field)
    count = rows * math.prod(dims)
    if dtype is None:
        return decode_each(bytes_decoder(field, decode), split_bytes(what, data, count))
    if len(data) != count * dtype.itemsize:
        raise MalformedError(
            f"input byte size mismatch for {what}: expected {count * dtype.itemsize} bytes "
            f"({count} elements of {dtype.itemsize}), got {len(data)}"
        )
    return _numbers(field, dtype, rows, dims, data)


def split_bytes(what: str, data: memoryview, count: int) -> list[bytes]:
    """The elements of a BYTES tensor.

    Raises:
        MalformedError: a length reaches beyond the data, or there are more or fewer than `count`.
    """
    found: list[bytes] = []
    place, end = 0, len(data)
    while place < end:
        start = place + 4
        if start > end:
            raise MalformedError(f"{what} ends within the length of element {len(found)}")
        (size,) = _LENGTH.unpack_from(data, place)
        place = start + size
        if place > end:
            raise MalformedError(
                f"{what}: element {len(found)} says it has {size} bytes, but {end - start} are left"
            )
        found.append(bytes(data[start:place]))
        if len(found) > count:
            break
    if len(found) != count:
        more = "more than " if len(found) > count else ""
        raise MalformedError(f"{what} has {more}{min(len(found), count)} elements, its shape needs {count}")
    return found


def bytes_decoder(field: Field, decode: Decode) -> Decode:
    """What reads one BYTES element that came as bytes."""
    if isinstance(field, Bytes | Image):
        return decode

    def decode_utf8(value: bytes) -> Any:
        try:
            text = value.decode()
        except UnicodeDecodeError:
            raise ValueRejectedError(f"{brief(value)} is not UTF-8", field.describe()) from None
        return decode(text)

    return decode_utf8


def bytes_of_column(name: str, column: Column, *, nulls: bool = False) -> tuple[list[int], bytes]:
    """The dimensions of one row, and the bytes of all.

    Args:
        name: the column's name, for messages.
        column: the column.
        nulls: write zeros or no bytes for null rows, which something else tells.

    Raises:
        SchemaError: a row is null, or the rows' tensors differ in shape.
        RowsError: JSON cannot tell a value inside a list or struct.
    """
    field = column.field
    dtype = element_dtype(field)
    if column.null_count and not nulls:
        raise SchemaError(f"field {name!r} has null rows, which V2's bytes cannot tell; use JSON for it")
    if dtype is None:
        elements = bytes_elements(name, column)
        return [], b"".join(part for item in elements for part in (_LENGTH.pack(len(item)), item))
    if column.null_count and as_tensor(field) is None:
        values = [0 if value is None else value for value in column.arrow.to_pylist()]
        return [], np.array(values, np.bool_ if dtype == np.bool_ else field.numpy_dtype).astype(
            dtype
        ).tobytes()
    dims = list(row_dims(name, column))
    if field.row_shape is not None and not column.null_count:
        return dims, np.ascontiguousarray(column.numpy(), dtype).tobytes()
    nothing = np.zeros(dims, dtype).tobytes()
    arrays = column.arrays()
    return dims, b"".join(
        nothing if array is None else np.ascontiguousarray(array, dtype).tobytes() for array in arrays
    )


def bytes_elements(name: str, column: Column) -> list[bytes]:
    """The elements of a BYTES tensor, empty for null rows.

    Raises:
        RowsError: JSON cannot tell a value inside a list or struct.
    """
    if isinstance(column.field, Bytes | Image):
        return [value or b"" for value in cast("list[bytes | None]", column.arrow.to_pylist())]
    values, problems = encode_column(column, "string")
    if problems:
        errors = [
            RowError(row, "failed", f"field {name!r}: {message}", name) for row, message in problems.items()
        ]
        raise RowsError(f"field {name!r}, row {errors[0].row}: {errors[0].message}", errors)
    _, texts = flat_elements(name, column, values)
    return [b"" if text is None else text.encode() for text in texts]


def _numbers(
    field: Field, dtype: np.dtype[Any], rows: int, dims: tuple[int, ...], data: memoryview
) -> tuple[Values, Faults]:
    faults: Faults = {}
    if dtype == np.bool_:
        octets = np.frombuffer(data, np.uint8).reshape(rows, *dims)
        odd = (octets > 1).reshape(rows, math.prod(dims)).any(axis=1)
        for row in np.flatnonzero(odd).tolist():
            value = int(octets[row].max())
            faults[row] = ValueRejectedError(f"the byte {value} is no boolean", "0 or 1")
        values: Array = octets == 1
    else:
        # A copy: aligned, whatever came before it in the body, and it does not keep the body alive.
        values = np.frombuffer(data, dtype).reshape(rows, *dims).astype(dtype.newbyteorder("="))
    if as_tensor(field) is None:
        faults.update(numeric_faults(field, values.reshape(rows)))
        return Column(field, numpy=values.reshape(rows)), faults
    if field.row_shape is not None:
        return Column(field, numpy=values), faults
    return list(values), faults
