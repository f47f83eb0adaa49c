"""Rows of text files, CSV cells and JSON lines, as Arrow columns of stated types; nothing is inferred.

A value is read as the JSON of a request is: what does not fit is an error of its row, naming field, value and
what was expected. A CSV cell has no types, so that numbers, true and false are read from its text; lists,
tensors and structs are JSON in it, bytes base64. An empty cell without quotes is null; in a text column that
may not be null it is the empty text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from parity.codec.build import build_array
from parity.codec.json_text import dumps, loads
from parity.codec.numbers import finite_limit
from parity.codec.rejection import ValueRejectedError, brief, brief_json
from parity.codec.values import compile_default, compile_value, missing_key
from parity.errors import MalformedError, RowError
from parity.schema import (
    MISSING,
    Bool,
    Field,
    Float32,
    Float64,
    Floating,
    Image,
    Integer,
    List,
    String,
    Struct,
    Tensor,
)

_INTEGER = r"-?[0-9]+"
_NUMBER = r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?"
_WHOLE = re.compile(_INTEGER, re.ASCII)
_DECIMAL = re.compile(_NUMBER, re.ASCII)
_NON_FINITE = {
    "nan": "NaN", "inf": "Infinity", "infinity": "Infinity", "-inf": "-Infinity", "-infinity": "-Infinity",
}  # fmt: skip

_EXACT = 2.0**53
"""From here on a float need not be the number that was written."""


@dataclass(frozen=True)
class TextRows:
    """Some rows of a text file.

    Attributes:
        columns: an array for each column, null where the value could not be read.
        problems: what is wrong with rows, one error each.
    """

    columns: Mapping[str, Any]
    problems: Mapping[int, RowError]


class TextDecoder:
    """Reads rows of text; compile it once, use it from any thread.

    Args:
        fields: the columns to read and what they hold.
        loose: those of them that are text whatever they hold: a JSON value other than a string is its JSON.
    """

    def __init__(self, fields: Mapping[str, Field], loose: frozenset[str] = frozenset()) -> None:
        self._fields = fields
        self._decoders = {name: compile_value(field) for name, field in fields.items()}
        self._defaults = {
            name: compile_default(name, field, self._decoders[name]) for name, field in fields.items()
        }
        self._loose = loose

    def cells(self, cells: pa.RecordBatch) -> TextRows:
        """Rows of CSV: columns of bytes, null where a cell is empty and not quoted."""
        columns: dict[str, Any] = {}
        problems: dict[int, RowError] = {}
        for name, column in zip(cells.schema.names, cells.columns, strict=True):
            field = self._fields.get(name)
            if field is not None:
                found = _fast(field, column)
                columns[name] = found if found is not None else self._slow(name, field, column, problems)
        return TextRows(columns, problems)

    def lines(self, lines: Sequence[bytes]) -> TextRows:
        """Rows of JSON lines; keys that are no columns are left alone."""
        gathered = {name: _Gathered(field) for name, field in self._fields.items()}
        problems: dict[int, RowError] = {}
        steps = [
            (name, field, self._decoders[name], self._defaults[name], gathered[name], name in self._loose)
            for name, field in self._fields.items()
        ]
        for row, line in enumerate(lines):
            try:
                given = loads(line)
                if type(given) is not dict:
                    raise MalformedError(f"a row is {brief_json(given)}; expected an object")
            except MalformedError as exc:
                problems[row] = RowError(row, "invalid", str(exc))
                for column in gathered.values():
                    column.skip()
                continue
            found = cast("dict[str, Any]", given)
            for name, field, decode, default, column, loose in steps:
                try:
                    if name in found:
                        value = found[name]
                        if loose and value is not None and type(value) is not str:
                            value = _as_text(value)
                        column.add(decode(value))
                    elif default is not MISSING:
                        column.add(default)
                    else:
                        raise missing_key(field)
                except ValueRejectedError as exc:
                    column.skip()
                    problems.setdefault(row, RowError(row, "invalid", exc.message(name), name))
        return TextRows({name: column.array() for name, column in gathered.items()}, problems)

    def _slow(self, name: str, field: Field, cells: Any, problems: dict[int, RowError]) -> Any:
        """A column value by value."""
        decode, gathered = self._decoders[name], _Gathered(field)
        for row, cell in enumerate(cells.to_pylist()):
            try:
                gathered.add(decode(_value(field, cell)))
            except ValueRejectedError as exc:
                gathered.skip()
                problems.setdefault(row, RowError(row, "invalid", exc.message(name), name))
        return gathered.array()


class _Gathered:
    """The canonical values of a column, some rows having none."""

    def __init__(self, field: Field) -> None:
        self._field = field
        self._values: list[Any] = []
        self._places: list[int | None] = []

    def add(self, value: Any) -> None:
        self._places.append(len(self._values))
        self._values.append(value)

    def skip(self) -> None:
        self._places.append(None)

    def array(self) -> Any:
        found = build_array(self._field, self._values)
        if len(self._values) == len(self._places):
            return found
        return found.take(cast("Any", pa.array(self._places, pa.int64())))


def _as_text(value: Any) -> str:
    """A JSON value as text; a number whose digits were lost when it was read is refused."""
    if type(value) is float and abs(value) >= _EXACT:
        raise ValueRejectedError(
            f"the number {value!r} has more digits than are kept",
            "text, or a number below 2^53 or of 64 bits",
            "write it as a string",
        )
    return dumps(value).decode()


def _fast(field: Field, cells: Any) -> Any:
    """A whole column at once; None where it cannot be, or where a value may be wrong."""
    try:
        texts = cells.cast(pa.string())
    except pa.ArrowInvalid:  # not UTF-8
        return None
    if isinstance(field, String):
        texts = texts if field.nullable else texts.fill_null("")
        return texts if texts.type == field.arrow_type else texts.cast(field.arrow_type)
    kind = type(field)
    if texts.null_count and not field.nullable:
        return None
    try:
        if isinstance(field, Integer):
            return texts.cast(field.arrow_type) if _all_match(texts, _INTEGER) else None
        if kind in (Float32, Float64) and _all_match(texts, _NUMBER):
            return _floats(field, texts.cast(pa.float64()))
        if kind is Bool and _all_match(texts, "(?i:true|false)"):
            return _call("equal", _call("utf8_lower", texts), "true")
    except pa.ArrowInvalid:  # out of range
        return None
    return None


def _floats(field: Field, values: Any) -> Any:
    most = _call("max", _call("abs", values)).as_py()
    dtype = field.numpy_dtype
    if most is not None and dtype is not None and (math.isinf(most) or most > finite_limit(dtype)):
        return None
    return values.cast(field.arrow_type)


def _all_match(texts: Any, pattern: str) -> bool:
    matched = _call("match_substring_regex", texts, f"^(?:{pattern})$")
    return _call("all", matched, min_count=0).as_py() is not False


def _call(name: str, *arguments: Any, **options: Any) -> Any:
    function: Callable[..., Any] = getattr(pc, name)
    return function(*arguments, **options)


def _value(field: Field, cell: bytes | None) -> Any:
    """A cell as JSON would have it, for the field's own reader to judge."""
    if cell is None:
        return "" if isinstance(field, String) and not field.nullable else None
    try:
        text = cell.decode()
    except UnicodeDecodeError:
        raise ValueRejectedError(
            f"{brief(cell)} is not UTF-8", field.describe(), "save the file as UTF-8"
        ) from None
    bare = text.strip()
    if isinstance(field, Integer):
        return int(bare) if _WHOLE.fullmatch(bare) and len(bare) < 64 else _number_wanted(field, text)
    if isinstance(field, Floating):
        if bare.lower() in _NON_FINITE:
            return _NON_FINITE[bare.lower()]
        number = float(bare) if _DECIMAL.fullmatch(bare) else math.inf
        return number if math.isfinite(number) else _number_wanted(field, text)
    if isinstance(field, Bool):
        return bare.lower() == "true" if bare.lower() in ("true", "false") else text
    if isinstance(field, Tensor | List | Struct) or (isinstance(field, Image) and field.form == "array"):
        try:
            return loads(text)
        except MalformedError as exc:
            raise ValueRejectedError(
                f"{brief(text)} is {exc}", field.describe(), "write JSON in the cell"
            ) from None
    return text


def _number_wanted(field: Field, text: str) -> Any:
    raise ValueRejectedError(f"{brief(text)} is no number that fits", field.describe())
