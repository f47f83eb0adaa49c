"""Arrow values as short plain ones, for showing in reports: exact where short, cut where long."""

from __future__ import annotations

import decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

MAX_ITEMS = 16
MAX_TEXT = 120


def one_array(chunked: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """All chunks as one array; strings too long for 32-bit offsets become large ones."""
    if chunked.num_chunks == 1:
        return cast("Any", chunked.chunk(0))
    kind = chunked.type
    if chunked.nbytes > 2**30 and (pat.is_string(kind) or pat.is_binary(kind)):
        chunked = chunked.cast(pa.large_string() if pat.is_string(kind) else pa.large_binary())
    whole = cast("Any", chunked).combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def shown_value(values: pa.Array[Any], index: int) -> object:
    """The value at `index` as plain data, ready for JSON but for NaN and infinities.

    A float32 or float16 is the shortest float that round-trips, 0.1 rather than 0.10000000149011612. Bytes
    become hex text; timestamps, dates and decimals text.
    """
    return _shown(values[index])


def cell(table: pa.Table, name: str, row: int) -> object:
    """The value of column `name` in a row, as `shown_value` gives it."""
    one = table.column(name).slice(row, 1)
    return shown_value(next(chunk for chunk in one.chunks if len(chunk)), 0)


def raw_text(values: pa.Array[Any], index: int) -> str | None:
    """The string at `index` in full; None when it is null or no string."""
    kind = values.type
    texts = pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind)
    return cast("str | None", values[index].as_py()) if texts else None


def _shown(scalar: Any) -> object:
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pat.is_dictionary(kind):
        return _shown(scalar.value)
    if isinstance(kind, pa.BaseExtensionType):
        return _shown(scalar.value)
    if pat.is_float32(kind) or pat.is_float16(kind):
        return float(str(np.float32(scalar.as_py()) if pat.is_float32(kind) else np.float16(scalar.as_py())))
    if pat.is_struct(kind):
        return {kind.field(i).name: _shown(scalar[i]) for i in range(kind.num_fields)}
    if isinstance(scalar, pa.ListScalar | pa.LargeListScalar | pa.FixedSizeListScalar):
        return _shown_list(cast("Any", scalar).values)
    if pat.is_temporal(kind):
        return _shown_time(scalar)
    return _short(scalar.as_py())


def _shown_list(values: Any) -> list[object]:
    items = [_shown(values[i]) for i in range(min(len(values), MAX_ITEMS))]
    return [*items, f"… {len(values) - MAX_ITEMS} more"] if len(values) > MAX_ITEMS else items


def _shown_time(scalar: Any) -> str:
    try:
        return str(scalar.cast(pa.string()).as_py())
    except pa.ArrowException:
        return f"{scalar.value} ({scalar.type})"


def _short(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, bytes):
        return f"0x{value[:32].hex()}{f'… {len(value)} bytes' if len(value) > 32 else ''}"
    text = (
        value if isinstance(value, str) else str(value) if isinstance(value, decimal.Decimal) else repr(value)
    )
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}… {len(text)} characters"
