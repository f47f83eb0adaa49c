"""Hypothesis strategies for fields, their values, schemas and batches; values are canonical Python values.

A canonical value is what `parity.codec.values` gives: ticks, days, floats rounded to their dtype, and so on.
`batches()` makes columns of them by `parity.codec.build`, past every decoder. Strategies are kept, since
making one costs more than drawing from it.
"""

from __future__ import annotations

import decimal
from functools import cache
from typing import Any, cast

import numpy as np
from hypothesis import strategies as st

from parity.batch import Batch
from parity.codec.build import columns_of_rows
from parity.codec.numbers import is_float, nearest
from parity.codec.texts import tick_limits
from parity.schema import (
    BFLOAT16,
    DTYPE_NAMES,
    BFloat16,
    Bool,
    Bytes,
    Date,
    Decimal,
    Field,
    Float16,
    Float32,
    Float64,
    Floating,
    Image,
    Int8,
    Int16,
    Int32,
    Int64,
    Integer,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)

UNITS = ("s", "ms", "us", "ns")
ZONES = (None, "UTC", "Europe/Madrid", "America/St_Johns", "+05:30")
SIGNATURES = (
    b"\xff\xd8\xff\xe0",
    b"\x89PNG\r\n\x1a\n",
    b"GIF89a",
    b"RIFF\x00\x00\x00\x00WEBP",
    b"BM",
    b"II*\x00",
    b"MM\x00*",
)
INTEGERS = (Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64)
FLOATS = (Float16, BFloat16, Float32, Float64)

_FLOAT_EDGES = (
    0.0,
    -0.0,
    float("nan"),
    float("inf"),
    -float("inf"),
    1e-45,
    1.1754942e-38,
    1e-40,
    5e-324,
    6e-8,
    0.1,
    1 / 3,
    16777217.0,
    65504.0,
    3.4028234663852886e38,
    1.7976931348623157e308,
)
_TEXTS = (
    "",
    "\x00",
    "a\x00b",
    "é",
    "e\u0301",
    "\U0001f600",
    "\u2028",
    '"\\/\b',
    "NaN",
    "null",
    " x ",
    "\ufeff",
)


def rounded(value: float, dtype: np.dtype[Any]) -> float:
    """The float of `dtype` that is nearest to `value`, as a Python float."""
    return float(nearest(np.array(value), dtype))


@cache
def floats(dtype: np.dtype[Any]) -> st.SearchStrategy[float]:
    """Values of a float dtype: any bit pattern but for NaN's payload, and the edges."""
    width = 32 if dtype == BFLOAT16 else dtype.itemsize * 8
    anything = st.floats(width=cast("Any", width)) | st.sampled_from(_FLOAT_EDGES)
    return anything.map(lambda value: rounded(value, dtype))


@cache
def integers(low: int, high: int) -> st.SearchStrategy[int]:
    """Integers of a range, its ends and 2**53 + 1 among them."""
    edges = [
        edge for edge in (low, high, low + 1, high - 1, 0, 2**53 + 1, -(2**53) - 1) if low <= edge <= high
    ]
    return st.integers(low, high) | st.sampled_from(edges)


@cache
def texts() -> st.SearchStrategy[str]:
    """Text without lone surrogates."""
    return st.text(st.characters(exclude_categories=("Cs",)), max_size=8) | st.sampled_from(_TEXTS)


@cache
def times(field: Timestamp) -> st.SearchStrategy[int]:
    """Ticks that have a text: years 0000 to 9999, those before 1970 and about clock changes among them."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[field.unit]
    low, high = (max(-62167219200 * per_second, tick_limits(field.unit)[0]), 253402300800 * per_second - 1)
    high = min(high, tick_limits(field.unit)[1])
    changes = st.integers(1_711_843_200 * per_second, 1_711_850_400 * per_second)
    return integers(low, high) | st.integers(-(10**9) * per_second, 10**9 * per_second) | changes


@cache
def decimals(field: Decimal) -> st.SearchStrategy[decimal.Decimal]:
    """Every number of the precision and scale."""
    limit = 10**field.precision - 1
    return integers(-limit, limit).map(lambda number: _scaled(number, field.scale))


def _scaled(number: int, scale: int) -> decimal.Decimal:
    digits = tuple(int(digit) for digit in str(abs(number)))
    return decimal.Decimal((int(number < 0), digits, -scale))


def arrays(field: Tensor, most: int = 3) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    """Arrays of a tensor field's dtype and of a shape that it allows, empty ones included."""
    dtype = field.numpy_dtype
    if dtype == np.bool_:
        element: st.SearchStrategy[Any] = st.booleans()
    elif is_float(dtype):
        element = floats(dtype)
    else:
        info = np.iinfo(dtype)
        element = integers(int(info.min), int(info.max))

    def made(shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray[Any, Any]]:
        count = int(np.prod(shape))
        return st.lists(element, min_size=count, max_size=count).map(
            lambda flat: _array(flat, dtype).reshape(shape)
        )

    dims = [st.integers(0, most) if size is None else st.just(size) for size in field.shape]
    return st.tuples(*dims).flatmap(made)


def _array(flat: list[Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    return (
        nearest(np.array(flat, dtype=np.float64), dtype) if is_float(dtype) else np.array(flat, dtype=dtype)
    )


@cache
def values(field: Field) -> st.SearchStrategy[Any]:
    """Canonical values of a field, null among them where it may be."""
    found = _required(field)
    return st.none() | found if field.nullable else found


def _required(field: Field) -> st.SearchStrategy[Any]:
    if isinstance(field, Bool):
        return st.booleans()
    if isinstance(field, Integer):
        return integers(*field.limits) if field.choices is None else st.sampled_from(field.choices)
    if isinstance(field, Floating):
        return floats(field.numpy_dtype)
    if isinstance(field, String):
        return texts() if field.choices is None else st.sampled_from(field.choices)
    if isinstance(field, Bytes):
        return st.binary(max_size=8)
    if isinstance(field, Image):
        if field.form == "array":
            return arrays(field.as_tensor)
        return st.builds(lambda head, rest: head + rest, st.sampled_from(SIGNATURES), st.binary(max_size=4))
    if isinstance(field, Timestamp):
        return times(field)
    if isinstance(field, Date):
        return integers(-719_528, 2_932_896)
    if isinstance(field, Decimal):
        return decimals(field)
    if isinstance(field, Tensor):
        return arrays(field)
    if isinstance(field, List):
        return st.lists(values(field.of), max_size=3)
    members = cast("Struct", field).members
    return st.fixed_dictionaries({name: values(member) for name, member in members.items()})


@cache
def decimal_fields() -> st.SearchStrategy[Field]:
    """Decimals of every precision that pandas, Polars and Parquet all hold."""
    return st.integers(1, 38).flatmap(
        lambda precision: st.integers(0, precision).map(
            lambda scale: Decimal(precision=precision, scale=scale, nullable=precision % 2 == 0)
        )
    )


@cache
def tensor_fields() -> st.SearchStrategy[Tensor]:
    """Tensors of every dtype, of one to three dimensions, none, one or several of them varying."""
    shapes = st.sampled_from(
        [(3,), (1,), (2, 2), (0,), (2, 0), (None,), (None, 2), (2, None), (None, None), (None, 1, None)]
    )
    return st.builds(
        lambda dtype, shape, nullable: Tensor(dtype, shape, nullable=nullable),
        st.sampled_from(DTYPE_NAMES),
        shapes,
        st.booleans(),
    )


@cache
def scalar_fields() -> st.SearchStrategy[Field]:
    """Every field type that holds no other."""
    nullable = st.booleans()
    plain = st.sampled_from((Bool, *INTEGERS, *FLOATS, String, Bytes, Date))
    return st.one_of(
        st.builds(lambda kind, null: kind(nullable=null), plain, nullable),
        st.builds(lambda null: Image(nullable=null), nullable),
        st.builds(
            lambda channels, null: Image(form="array", channels=channels, nullable=null),
            st.sampled_from((None, 1, 3)),
            nullable,
        ),
        st.builds(
            lambda unit, tz, null: Timestamp(unit=unit, tz=tz, nullable=null),
            st.sampled_from(UNITS),
            st.sampled_from(ZONES),
            nullable,
        ),
        decimal_fields(),
        tensor_fields(),
    )


@cache
def fields() -> st.SearchStrategy[Field]:
    """Every field type, lists and structs nested up to three deep."""
    return st.recursive(
        scalar_fields(),
        lambda inner: st.one_of(
            st.builds(lambda of, null: List(of, nullable=null), inner, st.booleans()),
            st.builds(lambda a, b, null: Struct(a=a, b=b, nullable=null), inner, inner, st.booleans()),
        ),
        max_leaves=3,
    )


@st.composite
def schemas(draw: st.DrawFn, most: int = 3) -> Schema:
    """Schemas of one to `most` fields called a, b, c and so on."""
    count = draw(st.integers(1, most))
    return Schema(**{"abcdefgh"[position]: draw(fields()) for position in range(count)})


@st.composite
def batches(draw: st.DrawFn, schema: Schema | None = None, most: int = 4) -> Batch:
    """Batches of at most `most` rows of a schema, or of any."""
    found = draw(schemas()) if schema is None else schema
    row = st.tuples(*(values(field) for field in found.values()))
    rows = draw(st.lists(row, max_size=most))
    return Batch(found, columns_of_rows(found, rows), len(rows))
