"""Rows made from a schema: ordinary ones to show and to warm up with, and edge ones to provoke a handler.

Deterministic: a row is a pure function of the schema, the seed and its position, so the first rows of a
longer batch are the rows of a shorter one. Every row fits the schema; nothing here makes invalid input.
"""

from __future__ import annotations

import datetime
import decimal
import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final, Literal, cast, get_args

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.column import Column
from parity.schema import (
    BFLOAT16,
    Bool,
    Bytes,
    Date,
    Decimal,
    Field,
    Floating,
    Image,
    Integer,
    List,
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
)

EdgeKind = Literal["zero", "least", "greatest", "nan", "infinite", "null", "empty", "longest", "odd"]
EDGE_KINDS: Final[tuple[EdgeKind, ...]] = get_args(EdgeKind)
"""The kinds of edge values; a field has those that make sense for it."""

_WORDS = ("amber", "birch", "cobalt", "dune", "ember", "fjord", "garnet", "harbor", "iris", "juniper")
_LONG_ITEMS = 40
_LONG_TEXT = 300
_TICKS_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_NO_EDGE: Final = object()
_EXACT_IN_FLOAT64 = 2**53


def example_batch(schema: Schema, rows: int, seed: int = 0) -> Batch:
    """`rows` ordinary rows: moderate values inside every range; a nullable field is null in one row of eight.

    Row 0 is never null, so that it can be shown as an example.
    """
    return _batch(schema, [_example_row(schema, row, seed) for row in range(rows)])


def edge_batch(schema: Schema, seed: int = 0, *, overflow: bool = True) -> Batch:
    """Rows at the edges of what the schema allows: zeros, extremes, NaN, null, empty and long values.

    First one row for each kind with every field at that edge where it has it, then one row for each field and
    kind with the other fields ordinary.

    Args:
        schema: what the rows must fit.
        seed: of the ordinary values.
        overflow: take unbounded floats and 64-bit integers to their limits too. Sums of such values overflow
            or cancel, so that even a good model's answers to them may depend on the order of additions.
    """
    return _batch(schema, list(_edge_rows(schema, seed, overflow)))


def edge_row(schema: Schema, kind: EdgeKind, seed: int = 0) -> Batch | None:
    """One row with every field at the edge `kind` where it has one; None when no field has."""
    row = _edge_row(schema, kind, _example_row(schema, 0, seed), overflow=True)
    return None if row is None else _batch(schema, [row])


def _batch(schema: Schema, rows: list[dict[str, Any]]) -> Batch:
    columns = {
        name: Column(field, arrow=pa.array([row[name] for row in rows], type=field.arrow_type))
        for name, field in schema.items()
    }
    return Batch(schema, columns, len(rows))


# Values are made in the form that pa.array takes for the canonical type.


def _example_row(schema: Schema, row: int, seed: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, field in schema.items():
        generator = np.random.default_rng([seed, row, zlib.crc32(name.encode())])
        null = field.nullable and row > 0 and generator.integers(8) == 0
        values[name] = None if null else _ordinary(field, generator)
    return values


def _ordinary(field: Field, rng: np.random.Generator) -> Any:
    match field:
        case Bool():
            return bool(rng.integers(2))
        case Integer():
            return _ordinary_integer(field, rng)
        case Floating():
            return float_value(field, _ordinary_float(field, rng))
        case String():
            return _ordinary_text(field, rng)
        case Bytes():
            size = 8 if field.max_length is None else min(8, field.max_length)
            return rng.bytes(size)
        case Timestamp():
            return int(rng.integers(946_684_800, 1_704_067_200)) * _TICKS_A_SECOND[field.unit]
        case Date():
            return datetime.date(2000, 1, 1) + datetime.timedelta(days=int(rng.integers(9000)))
        case Decimal():
            digits = min(field.precision, 4)
            return _decimal(field, int(rng.integers(10**digits)))
        case Image():
            return image_value(field, rng.integers(0, 256, (32, 32, field.channels or 3), np.uint8))
        case Tensor():
            sizes = [int(rng.integers(1, 9)) if size is None else size for size in field.shape]
            return tensor_value(field, _ordinary_array(field, sizes, rng))
        case List():
            return [_ordinary(field.of, rng) for _ in range(int(rng.integers(1, 4)))]
        case Struct():
            return {name: _ordinary(member, rng) for name, member in field.members.items()}
        case _:
            raise TypeError(f"no example is known for {field.describe()}")


def _ordinary_integer(field: Integer, rng: np.random.Generator) -> int:
    if field.choices is not None:
        return field.choices[int(rng.integers(len(field.choices)))]
    low, high = field.limits
    start = min(max(low, 0), high)
    if high - start < 100:
        start = max(low, high - 100)
    return start + int(rng.integers(min(high - start, 100) + 1))


def _ordinary_float(field: Floating, rng: np.random.Generator) -> float:
    if field.ge is not None and field.le is not None:
        return float(field.ge) + float(rng.random()) * (float(field.le) - float(field.ge))
    value = round(float(rng.normal()), 3)
    if field.ge is not None:
        return float(field.ge) + abs(value)
    return float(field.le) - abs(value) if field.le is not None else value


def _ordinary_text(field: String, rng: np.random.Generator) -> str:
    if field.choices is not None:
        return field.choices[int(rng.integers(len(field.choices)))]
    words = [_WORDS[int(rng.integers(len(_WORDS)))] for _ in range(int(rng.integers(1, 4)))]
    return " ".join(words)[: field.max_length]


def _ordinary_array(field: Tensor, sizes: list[int], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    dtype = field.numpy_dtype
    if dtype == BFLOAT16 or dtype.kind == "f":
        return rng.normal(size=sizes).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, sizes).astype(dtype)
    return rng.integers(0, 256 if dtype == np.uint8 else 10, sizes).astype(dtype)


def _edge_rows(schema: Schema, seed: int, overflow: bool) -> Iterator[dict[str, Any]]:
    base = _example_row(schema, 0, seed)
    for kind in EDGE_KINDS:
        row = _edge_row(schema, kind, base, overflow)
        if row is not None:
            yield row
    if len(schema) == 1:
        return
    position = 1
    for name, field in schema.items():
        for kind in EDGE_KINDS:
            value = _edge_value(field, kind, overflow)
            if value is not _NO_EDGE:
                yield {**_example_row(schema, position, seed), name: value}
                position += 1


def _edge_row(schema: Schema, kind: EdgeKind, base: dict[str, Any], overflow: bool) -> dict[str, Any] | None:
    found = {name: _edge_value(field, kind, overflow) for name, field in schema.items()}
    if all(value is _NO_EDGE for value in found.values()):
        return None
    return {name: base[name] if value is _NO_EDGE else value for name, value in found.items()}


def _edge_value(field: Field, kind: EdgeKind, overflow: bool) -> Any:
    if not overflow and kind in ("least", "greatest") and _can_overflow(field):
        return _NO_EDGE
    return _edge(field, kind)


def _can_overflow(field: Field) -> bool:
    match field:
        case Integer():
            low, high = field.limits
            return max(-low, high) > _EXACT_IN_FLOAT64
        case Floating():
            return field.ge is None or field.le is None
        case Tensor():
            return field.numpy_dtype.kind not in "iub" or field.numpy_dtype.itemsize == 8
        case List():
            return _can_overflow(field.of)
        case Struct():
            return any(_can_overflow(member) for member in field.members.values())
        case _:
            return False


def _edge(field: Field, kind: EdgeKind) -> Any:
    """The field's value at an edge, or `_NO_EDGE` where it has none of that kind."""
    if kind == "null":
        return None if field.nullable else _NO_EDGE
    match field:
        case Bool():
            return {"zero": False, "greatest": True}.get(kind, _NO_EDGE)
        case Integer():
            return _edge_integer(field, kind)
        case Floating():
            return _edge_float(field, kind)
        case String():
            return _edge_text(field, kind)
        case Bytes():
            size = {"empty": 0, "longest": _LONG_TEXT, "odd": 2}.get(kind)
            size = None if size is None else min(size, size if field.max_length is None else field.max_length)
            return _NO_EDGE if size is None else b"\x00\xff"[:size] + bytes(max(0, size - 2))
        case Timestamp():
            seconds = {"zero": 0, "least": -2_208_988_800, "greatest": 7_258_118_400, "odd": -1}.get(kind)
            return _NO_EDGE if seconds is None else seconds * _TICKS_A_SECOND[field.unit]
        case Date():
            years = {"zero": 1970, "least": 1, "greatest": 9999}
            return datetime.date(years[kind], 1, 1) if kind in years else _NO_EDGE
        case Decimal():
            most = 10**field.precision - 1
            unscaled = {"zero": 0, "least": -most, "greatest": most, "odd": 1}.get(kind)
            return _NO_EDGE if unscaled is None else _decimal(field, unscaled)
        case Image():
            pixels = {"zero": (0, 32), "greatest": (255, 32), "longest": (128, 200), "odd": (77, 1)}.get(kind)
            if pixels is None:
                return _NO_EDGE
            level, side = pixels
            return image_value(field, np.full((side, side, field.channels or 3), level, np.uint8))
        case Tensor():
            return _edge_tensor(field, kind)
        case List():
            return _edge_list(field, kind)
        case Struct():
            return _edge_struct(field, kind)
        case _:
            return _NO_EDGE


def _edge_integer(field: Integer, kind: EdgeKind) -> Any:
    if field.choices is not None:
        low, high = min(field.choices), max(field.choices)
    else:
        low, high = field.limits
    if kind == "zero":
        return 0 if low <= 0 <= high and (field.choices is None or 0 in field.choices) else _NO_EDGE
    if kind == "odd":
        beyond = 2**53 + 1
        return beyond if low <= beyond <= high and field.choices is None else _NO_EDGE
    return {"least": low, "greatest": high}.get(kind, _NO_EDGE)


def _edge_float(field: Floating, kind: EdgeKind) -> Any:
    bounded = field.ge is not None or field.le is not None
    info = _float_info(field.numpy_dtype)
    values = {
        "zero": 0.0,
        "least": float(field.ge) if field.ge is not None else -float(info.max),
        "greatest": float(field.le) if field.le is not None else float(info.max),
        "nan": math.nan,
        "infinite": math.inf,
        "odd": float(info.smallest_subnormal),
    }
    value = values.get(kind)
    if value is None or (bounded and kind in ("nan", "infinite")):
        return _NO_EDGE
    if field.ge is not None and value < field.ge:
        return _NO_EDGE
    if field.le is not None and value > field.le:
        return _NO_EDGE
    return float_value(field, value)


def _edge_text(field: String, kind: EdgeKind) -> Any:
    if field.choices is not None:
        return {"least": field.choices[0], "greatest": field.choices[-1]}.get(kind, _NO_EDGE)
    texts = {"empty": "", "longest": "long " * (_LONG_TEXT // 5), "odd": "a\u0000é\u0301\u00a0\U0001f600İß"}
    return texts[kind][: field.max_length] if kind in texts else _NO_EDGE


def _edge_tensor(field: Tensor, kind: EdgeKind) -> Any:
    dtype = field.numpy_dtype
    floating = dtype == BFLOAT16 or dtype.kind == "f"
    if kind in ("empty", "longest"):
        if not field.variable_dims:
            return _NO_EDGE
        size = 0 if kind == "empty" else max(2, int(_LONG_ITEMS ** (1 / field.variable_dims)))
        sizes = [size if known is None else known for known in field.shape]
        return tensor_value(field, np.ones(sizes, dtype))
    value: Any
    if dtype.kind == "b":
        value = {"zero": False, "greatest": True}.get(kind)
    elif floating:
        info = _float_info(dtype)
        least, most, tiny = -float(info.max), float(info.max), float(info.smallest_subnormal)
        value = {"zero": 0, "least": least, "greatest": most, "nan": math.nan}.get(kind)
        value = {"infinite": math.inf, "odd": tiny}.get(kind, value)
    else:
        limits = np.iinfo(cast("Any", dtype))
        value = {"zero": 0, "least": limits.min, "greatest": limits.max}.get(kind)
    if value is None:
        return _NO_EDGE
    return tensor_value(field, np.full([3 if size is None else size for size in field.shape], value, dtype))


def _edge_list(field: List, kind: EdgeKind) -> Any:
    if kind == "empty":
        return []
    if kind == "longest":
        rng = np.random.default_rng(0)
        return [_ordinary(field.of, rng) for _ in range(_LONG_ITEMS)]
    inner = _edge(field.of, kind)
    return _NO_EDGE if inner is _NO_EDGE else [inner]


def _edge_struct(field: Struct, kind: EdgeKind) -> Any:
    found = {name: _edge(member, kind) for name, member in field.members.items()}
    if not found or all(value is _NO_EDGE for value in found.values()):
        return _NO_EDGE
    rng = np.random.default_rng(0)
    return {
        name: _ordinary(field.members[name], rng) if value is _NO_EDGE else value
        for name, value in found.items()
    }


def _float_info(dtype: np.dtype[Any]) -> Any:
    if dtype == BFLOAT16:
        import ml_dtypes

        return ml_dtypes.finfo(dtype)
    return np.finfo(dtype)


def float_value(field: Floating, value: float) -> Any:
    """The value in the field's dtype, moved inside the range when rounding left it; bfloat16 as float."""
    dtype = field.numpy_dtype
    with np.errstate(over="ignore"):
        rounded = np.asarray(value, np.float64).astype(dtype)
    if field.ge is not None and float(rounded) < field.ge:
        rounded = np.nextafter(rounded, np.asarray(np.inf, dtype))
    elif field.le is not None and float(rounded) > field.le:
        rounded = np.nextafter(rounded, np.asarray(-np.inf, dtype))
    return np.float16(rounded) if dtype == np.float16 else float(rounded)


def _decimal(field: Decimal, unscaled: int) -> decimal.Decimal:
    return decimal.Decimal((unscaled < 0, tuple(int(digit) for digit in str(abs(unscaled))), -field.scale))


def tensor_value(field: Tensor, array: np.ndarray[Any, Any]) -> Any:
    """The array in the form that `pa.array` takes for the field's canonical type."""
    flat = array.reshape(-1)
    if flat.dtype == BFLOAT16:
        flat = flat.astype(np.float32)
    if field.variable_dims < 2:
        return flat
    return {"data": flat, "shape": list(array.shape)}


def image_value(field: Image, pixels: np.ndarray[Any, Any]) -> Any:
    """(H, W, C) uint8 pixels in the form that `pa.array` takes for the field's canonical type."""
    return png(pixels) if field.form == "encoded" else tensor_value(field.as_tensor, pixels)


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    """(H, W, C) uint8 as a PNG file (RFC 2083), C being 1, 3 or 4."""
    height, width, channels = pixels.shape
    color = {1: 0, 3: 2, 4: 6}[channels]
    lines = b"".join(b"\x00" + pixels[row].tobytes() for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )
