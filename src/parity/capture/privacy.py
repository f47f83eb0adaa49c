"""What must not be recorded: fields that are dropped, and fields of which only a keyed hash is kept."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.capture.format import HASH, INPUT, OUTPUT
from parity.capture.settings import CaptureSettings
from parity.codec.rows import dumps, encode_rows
from parity.column import spread
from parity.errors import ConfigError, RowError, did_you_mean
from parity.result import ERROR_TYPE
from parity.schema import Schema

_HASH_CHARACTERS = 32


@dataclass(frozen=True)
class Privacy:
    """The columns of one handler that are dropped or hashed, by their names in the capture.

    Attributes:
        dropped: such as "input.name".
        hashed: likewise; a column that is also dropped is not among them.
        key: the key of the hashes.
    """

    dropped: tuple[str, ...] = ()
    hashed: tuple[str, ...] = ()
    key: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, settings: CaptureSettings, inputs: Schema, outputs: Schema) -> Privacy:
        """What the settings mean for a handler with these schemas; fields that it lacks are passed by."""
        columns = column_names(inputs, outputs)
        dropped = tuple(column for column in columns if _is_named(column, settings.drop))
        hashed = tuple(c for c in columns if _is_named(c, settings.hash) and c not in dropped)
        return cls(dropped, hashed, settings.key)

    @property
    def hides(self) -> bool:
        """Whether anything is kept back."""
        return bool(self.dropped or self.hashed)

    @property
    def key_id(self) -> str:
        """Tells whether two captures were hashed with one key, without telling the key."""
        return self.digest(b"parity capture key")[:8] if self.hashed else ""

    def digest(self, value: bytes) -> str:
        """The keyed hash of a value: the first 16 bytes of its HMAC-SHA256, in hexadecimal."""
        return hmac.new(self.key, value, "sha256").hexdigest()[:_HASH_CHARACTERS]

    def columns_of(
        self, prefix: str, batch: Batch, rows: np.ndarray[Any, np.dtype[np.int64]] | None = None
    ) -> Iterator[tuple[pa.Field[Any], pa.Array[Any]]]:
        """A batch's columns under their names in the capture, without what is to be hidden.

        Args:
            prefix: `INPUT` or `OUTPUT`.
            batch: the values.
            rows: for each row of the capture its row of the batch, -1 where it has none; all, in order, when
                not given.
        """
        for name, item in batch.schema.items():
            column = f"{prefix}{name}"
            if column in self.dropped:
                continue
            if column in self.hashed:
                kind = pa.field(f"{HASH}{column}", pa.string())
                values: pa.Array[Any] = pa.array(self._hashes(batch, name), pa.string())
            else:
                kind = item.to_arrow(column, nullable=item.nullable if rows is None else True)
                values = batch[name].arrow
            yield kind, values if rows is None else spread(values, rows)

    def errors(self, column: Any) -> Any:
        """The `_error` column; without its messages where anything is hidden, since they quote values."""
        if not self.hides or column.null_count == len(column):
            return column
        kept = [
            None if error is None else {**error, "message": None}
            for error in cast("list[dict[str, Any] | None]", column.to_pylist())
        ]
        return pa.array(kept, type=ERROR_TYPE)

    def _hashes(self, batch: Batch, name: str) -> list[str | None]:
        return [None if value is None else self.digest(value) for value in canonical_bytes(batch, name)]


def require_known(settings: CaptureSettings, handlers: Iterable[tuple[Schema, Schema]]) -> None:
    """Raise ConfigError when a field to drop or hash is one of no handler: a misspelt name hides nothing."""
    columns = list(dict.fromkeys(name for pair in handlers for name in column_names(*pair)))
    for option in ("drop", "hash"):
        for name in cast("tuple[str, ...]", getattr(settings, option)):
            if not any(_is_named(column, (name,)) for column in columns):
                known = {*columns, *(column.partition(".")[2] for column in columns)}
                raise ConfigError(
                    f"capture: {option} names the field {name!r}, which no handler served here has; "
                    f"{did_you_mean(name, known)}"
                )


def column_names(inputs: Schema, outputs: Schema) -> list[str]:
    """The names that a handler's fields have in a capture."""
    return [*(f"{INPUT}{name}" for name in inputs), *(f"{OUTPUT}{name}" for name in outputs)]


def canonical_bytes(batch: Batch, name: str) -> list[bytes | None]:
    """For each row what is hashed: text as UTF-8, bytes as they are, else the value's JSON; None for null."""
    alone = Batch(Schema(**{name: batch.schema[name]}), {name: batch[name]})
    found: list[bytes | None] = []
    for raw, row in zip(alone[name].to_pylist(), encode_rows(alone, non_finite="string"), strict=True):
        if raw is None:
            found.append(None)
        elif isinstance(raw, str):
            found.append(raw.encode())
        elif isinstance(raw, bytes):
            found.append(raw)
        else:
            found.append(b"" if isinstance(row, RowError) else dumps(row[name]))
    return found


def _is_named(column: str, names: Sequence[str]) -> bool:
    return column in names or column.partition(".")[2] in names
