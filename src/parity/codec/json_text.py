"""JSON text in and out: orjson, with keys that are there twice refused.

orjson keeps the last of two equal keys without a word. Each key of a text is followed by a colon, and so are
no other tokens: where there are as many colons as keys in what was read, no key was there twice. Only where
there are more, because strings hold some, are the keys of the text counted.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, cast

import orjson

from parity.errors import MalformedError, shown

_MARK = codecs.BOM_UTF8
_OPTIONS = orjson.OPT_SERIALIZE_NUMPY
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"[ \t\r\n]*+(:?)', re.DOTALL)


def loads(data: bytes | bytearray | memoryview | str) -> Any:
    """JSON text as Python objects; one byte order mark of UTF-8, which some editors write, is passed over.

    Raises:
        MalformedError: it is not JSON, or an object has a key twice; the message says where. Nesting beyond
            1024 levels is refused.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        if not _is_marked(data):
            raise _malformed(exc) from None
        data = data[1:] if isinstance(data, str) else data[len(_MARK) :]
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as inner:
            raise _malformed(inner) from None
    if type(value) is dict or type(value) is list:
        text = data.encode() if isinstance(data, str) else data if isinstance(data, bytes) else bytes(data)
        colons = text.count(b":")
        # No text has fewer colons than keys: where an outer object has as many, no inner one has any.
        if not colons or (type(value) is dict and colons == len(cast("dict[str, Any]", value))):
            return value
        if colons != (keys := _keys(cast("Any", value))) and _key_tokens(text) != keys:
            raise MalformedError(f"not JSON: {_repeated_key(text)}; each key may be there once")
    return value


def loads_body(data: bytes | memoryview, expected: str) -> Any:
    """The body of a request as Python objects; `expected` says what an empty one should have been.

    Raises:
        MalformedError: it is empty, or not JSON; see `loads`.
    """
    first = bytes(data[:1])
    if not first or ((first.isspace() or first == _MARK[:1]) and is_blank(bytes(data))):
        raise MalformedError(f"the body is empty: expected {expected}")
    return loads(data)


def is_blank(text: bytes) -> bool:
    """Whether a text holds no value: white space at most, and a byte order mark before it."""
    return not text.removeprefix(_MARK).strip()


def dumps(value: object) -> bytes:
    """Python objects, numpy scalars and arrays included, as JSON text.

    NaN and infinities must have been dealt with by `parity.codec.rows.encode_rows`: here they would become
    null.
    """
    return orjson.dumps(value, option=_OPTIONS)


def _keys(value: dict[str, Any] | list[Any]) -> int:
    """The number of keys of all objects in a value."""
    count = 0
    left: list[Any] = [value]
    while left:
        inner = left.pop()
        if type(inner) is dict:
            count += len(inner)
            inner = cast("dict[str, Any]", inner).values()
        kinds = set(map(type, inner))
        if dict in kinds or list in kinds:
            left.extend(item for item in inner if type(item) is dict or type(item) is list)
    return count


def _key_tokens(text: bytes) -> int:
    """The number of strings in a JSON text that are followed by a colon."""
    return sum(1 for colon in _STRING.findall(text) if colon)


def _repeated_key(text: bytes) -> str:
    """Which key is there twice, and where the text is a list, as of rows, in which of its items."""
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> object:
        """`found` itself for an object that has a key twice, or holds one that has."""
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                found.append(key)
            seen.add(key)
        return found if len(seen) < len(pairs) or any(holds(value) for _, value in pairs) else None

    def holds(value: Any) -> bool:
        return value is found or (isinstance(value, list) and any(map(holds, cast("list[Any]", value))))

    try:
        value = json.loads(text, object_pairs_hook=look)
        items = cast("list[Any]", value) if isinstance(value, list) and value is not found else []
        item = next((place for place, item in enumerate(items) if holds(item)), None)
    except RecursionError:
        return "an object has a key twice"
    where = "" if item is None else f"in item {item} of the list, counted from 0, "
    return f"{where}an object has the key {shown(found[0])} twice" if found else "an object has a key twice"


def _is_marked(data: bytes | bytearray | memoryview | str) -> bool:
    if isinstance(data, str):
        return data.startswith("\ufeff")
    return bytes(data[: len(_MARK)]) == _MARK


def _malformed(exc: orjson.JSONDecodeError) -> MalformedError:
    return MalformedError(f"not JSON: {exc}{_json_hint(exc)}")


def _json_hint(exc: orjson.JSONDecodeError) -> str:
    rest = exc.doc[exc.pos : exc.pos + 9]
    if rest.startswith(("NaN", "Infinity", "-Infinity", "-I", "I", "nan", "inf")):
        return '; JSON has no such token, send the string "NaN", "Infinity" or "-Infinity"'
    return ""
