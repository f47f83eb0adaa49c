"""Why one value was refused, before anyone has said in which row: internal to the codecs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from parity.errors import shown
from parity.schema import Field

_MOST_CHARS = 60
_MOST_SHOWN = 4
"""Of longer lists and objects, only the number is told."""
_DEPTH = 3


class ValueRejectedError(Exception):
    """A value does not fit a field.

    Attributes:
        what: the value shown, and what is wrong with it.
        expected: the field in words; empty when `what` says it all.
        remedy: what to do next; may be empty.
        path: where in the field's value, such as "[3].lat"; empty for the value itself.
    """

    def __init__(self, what: str, expected: str = "", remedy: str = "", path: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.remedy = remedy
        self.path = path

    def inside(self, step: str) -> ValueRejectedError:
        """The same refusal seen from one level further out."""
        return ValueRejectedError(self.what, self.expected, self.remedy, step + self.path)

    def message(self, name: str) -> str:
        """The whole sentence, for field `name`."""
        where = f"field {name!r}{f' at {self.path}' if self.path else ''}"
        expected = f"; expected {self.expected}" if self.expected else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{where}: {self.what}{expected}{remedy}"


def brief(value: object) -> str:
    """`value` as an error message shows it; big values are cut before they are turned into text."""
    if isinstance(value, str | bytes | bytearray) and len(value) > _MOST_CHARS:
        return shown(value[:_MOST_CHARS])
    if isinstance(value, list | tuple) and len(value) > _MOST_SHOWN:
        return f"{type(value).__name__} of {len(value)} ({brief(value[0])}, …)"
    if isinstance(value, dict) and len(value) > _MOST_SHOWN:
        return f"dict of {len(value)} keys"
    return shown(value)


def brief_json(value: object, depth: int = 0) -> str:
    """`value` as `brief` shows it, but null, true, false and objects as JSON spells and names them."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, list | tuple | dict) and depth == _DEPTH:
        return "…"
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        if len(items) > _MOST_SHOWN:
            return f"{type(value).__name__} of {len(items)} ({brief_json(items[0], depth + 1)}, …)"
        return _cut(f"[{', '.join(brief_json(item, depth + 1) for item in items)}]")
    if isinstance(value, dict):
        entries = cast("dict[object, object]", value)
        if len(entries) > _MOST_SHOWN:
            return f"object of {len(entries)} keys"
        shown_entries = (f"{brief(key)}: {brief_json(item, depth + 1)}" for key, item in entries.items())
        return _cut(f"{{{', '.join(shown_entries)}}}")
    return brief(value)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 1]}…"


def wrong_type(field: Field, value: object, remedy: str = "") -> ValueRejectedError:
    """The refusal of a value of a type that the field does not take; null is told apart from the others."""
    if value is None:
        return ValueRejectedError(
            "null is not allowed here",
            field.describe(),
            "send a value, or declare nullable=True (null, NaN and a missing key are three things)",
        )
    if isinstance(value, float) and value != value:  # NaN
        return ValueRejectedError(
            "NaN is a float, not null",
            field.describe(),
            "send null where no value is known, if the field is nullable",
        )
    return ValueRejectedError(f"{brief_json(value)} is of type {type_name(value)}", field.describe(), remedy)


def type_name(value: object) -> str:
    """The type of a value, as JSON calls it where JSON has it."""
    name = type(value).__name__
    return _JSON_NAMES.get(name, name)


_JSON_NAMES = {"str": "string", "bool": "boolean", "int": "integer", "dict": "object"}
