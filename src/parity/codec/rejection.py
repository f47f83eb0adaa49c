"""Why one value was refused, before anyone has said in which row: internal to the codecs."""

from __future__ import annotations

from parity.errors import shown
from parity.schema import Field


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
    if isinstance(value, str | bytes | bytearray) and len(value) > 60:
        return shown(value[:60])
    if isinstance(value, list | tuple) and len(value) > 4:
        return f"{type(value).__name__} of {len(value)} ({brief(value[0])}, …)"
    if isinstance(value, dict) and len(value) > 4:
        return f"dict of {len(value)} keys"
    return shown(value)


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
    name = type(value).__name__
    return ValueRejectedError(
        f"{brief(value)} is of type {_JSON_NAMES.get(name, name)}", field.describe(), remedy
    )


_JSON_NAMES = {"str": "string", "bool": "boolean", "int": "integer", "dict": "object"}
