"""What the columns of text files hold: a field's, else text or what `--types` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from parity.errors import ConfigError, did_you_mean
from parity.handler import LoadedHandler
from parity.schema import (
    Bool,
    Date,
    Field,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)
from parity_batch.containers import TextColumns

_NULLABLE: Final[dict[str, Any]] = {"nullable": True, "default": None}
_NUMBERS = (Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float32, Float64)

TYPES: Final[dict[str, Field]] = {
    **{kind.__name__.lower(): kind(**_NULLABLE) for kind in _NUMBERS},
    "string": String(**_NULLABLE),
    "bool": Bool(**_NULLABLE),
    "date": Date(**_NULLABLE),
    "timestamp": Timestamp("us", **_NULLABLE),
    "timestamp_utc": Timestamp("us", "UTC", **_NULLABLE),
}
"""What `--types COLUMN=TYPE` may say; every such column may be null, or not be there in a row."""


def text_columns(
    fields: Mapping[str, str], handler: LoadedHandler, others: Sequence[str], types: Mapping[str, str]
) -> TextColumns:
    """What each column that a job reads of text files holds.

    Args:
        fields: for each field of the handler the column that it is read from.
        handler: the handler.
        others: the columns of the condition and those that are passed through.
        types: the names of the types that the user gave some of them.

    Raises:
        ConfigError: a type is unknown, or is for a column that is not read, or has the type of its field.
    """
    found = {column: handler.inputs[field] for field, column in fields.items()}
    for column, kind in types.items():
        if kind not in TYPES:
            raise ConfigError(
                f"--types {column}={kind}: no such type; {did_you_mean(kind, TYPES) or ', '.join(TYPES)}"
            )
        if column in found:
            raise ConfigError(
                f"--types {column}={kind}: the column has the type of its field, {found[column].describe()}"
            )
        if column not in others:
            raise ConfigError(f"--types {column}={kind}: the column is not read; --columns passes it through")
    extra = {name: TYPES[types.get(name, "string")] for name in others if name not in found}
    return TextColumns({**found, **extra}, frozenset(name for name in extra if name not in types))
