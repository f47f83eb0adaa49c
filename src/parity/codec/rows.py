"""Rows as JSON objects or Python mappings: decoded one by one for isolation, columns built once per batch.

JSON is strict (see `parity.codec.json_text`): UTF-8, no bare NaN, 64-bit integers exact, no key twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from parity.batch import Batch
from parity.codec.build import columns_of_rows
from parity.codec.decoded import Decoded, RowInvalidError
from parity.codec.json_text import dumps, loads
from parity.codec.jsonable import encode_column
from parity.codec.rejection import ValueRejectedError, brief, brief_json, type_name
from parity.codec.values import MISSING_KEY, compile_default, compile_value, missing_key
from parity.errors import RowError, did_you_mean
from parity.schema import MISSING, NonFinite, Schema

__all__ = ["RowDecoder", "dumps", "encode_rows", "loads"]


class RowDecoder:
    """Reads rows of one schema; compile it once, use it from any thread.

    Raises:
        SchemaError: a default does not fit its field.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        decoders = [(name, field, compile_value(field)) for name, field in schema.items()]
        self._fields = [
            (name, field, decode, compile_default(name, field, decode)) for name, field, decode in decoders
        ]
        self._known = frozenset(schema.names)
        self._width = len(schema)

    def decode_one(self, row: object) -> tuple[Any, ...]:
        """One row as canonical values in the schema's order.

        Raises:
            RowInvalidError: the row does not fit; it names the field.
        """
        if type(row) is not dict:
            row = _as_dict(row)
        found: list[Any] = []
        used = 0
        name = ""
        try:
            for name, field, decode, default in self._fields:
                if name in row:
                    used += 1
                    found.append(decode(row[name]))
                elif default is not MISSING:
                    found.append(default)
                else:
                    raise missing_key(field)
        except ValueRejectedError as exc:
            if exc.what == MISSING_KEY and (unknown := self._unknown(row)) is not None:
                raise RowInvalidError(
                    name, f"{exc.message(name)}; the row has an unknown key {unknown}"
                ) from None
            raise RowInvalidError(name, exc.message(name)) from None
        if used != len(row):
            unknown = self._unknown(row)
            raise RowInvalidError(None, f"unknown key {unknown}; remove it, or declare the field")
        return tuple(found)

    def build(self, rows: list[tuple[Any, ...]]) -> Batch:
        """A batch of rows that `decode_one` gave."""
        return Batch(self.schema, columns_of_rows(self.schema, rows), len(rows))

    def decode(self, rows: Sequence[object]) -> Decoded:
        """Many rows; those that do not fit become row errors and leave the others alone."""
        good: list[tuple[Any, ...]] = []
        errors: dict[int, RowError] = {}
        for position, row in enumerate(rows):
            try:
                good.append(self.decode_one(row))
            except RowInvalidError as exc:
                errors[position] = exc.at(position)
        return Decoded.around(self.build(good), len(rows), errors)

    def _unknown(self, row: dict[Any, Any]) -> str | None:
        for key in row:
            if key not in self._known:
                hint = did_you_mean(str(key)[:200], self._known)
                return f"{brief(key)}{f' ({hint})' if hint else ''}"
        return None


def encode_rows(batch: Batch, *, non_finite: NonFinite | None = None) -> list[dict[str, Any] | RowError]:
    """One JSON-ready object for each row, or a row error where JSON cannot tell a value.

    Numbers stay numpy scalars and arrays of their dtype, so that `dumps` writes the fewest digits that read
    back as the same value. Requests, unlike answers, may always carry NaN: give `non_finite="string"`.

    Args:
        batch: the rows.
        non_finite: "string" or "refuse" for all fields; by default each field's own `non_finite` decides.
    """
    names = batch.schema.names
    refused: dict[int, RowError] = {}
    columns: list[list[Any]] = []
    for name in names:
        values, problems = encode_column(batch[name], non_finite)
        columns.append(values)
        for row, message in problems.items():
            refused.setdefault(row, RowError(row, "failed", f"field {name!r}: {message}", name))
    if not names:
        return [{} for _ in range(batch.num_rows)]
    rows: list[dict[str, Any] | RowError] = [
        dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)
    ]
    for row, error in refused.items():
        rows[row] = error
    return rows


def _as_dict(row: object) -> dict[Any, Any]:
    if isinstance(row, Mapping):
        return dict(cast("Mapping[Any, Any]", row))
    kind = "null" if row is None else f"{brief_json(row)} of type {type_name(row)}"
    raise RowInvalidError(None, f"a row is {kind}; expected an object with one key for each field")
