"""From recorded columns to rows that a handler can be asked again, or the reason why it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from parity.capture import INPUT, OUTPUT
from parity.codec.arrow import check_schema
from parity.codec.build import constant_array
from parity.codec.rejection import ValueRejectedError
from parity.codec.values import compile_value
from parity.errors import ConfigError, did_you_mean
from parity.replay.selection import Portion
from parity.result import ERROR_COLUMN, ERROR_TYPE
from parity.schema import Schema


@dataclass(frozen=True)
class Question:
    """The inputs of a portion, or why there are none.

    Attributes:
        rows: one column for each input; None where the portion cannot be replayed.
        reason: why not.
        notes: what was assumed or left out.
    """

    rows: pa.Table | None
    reason: str = ""
    notes: tuple[str, ...] = ()


class Assumptions:
    """Values for inputs that were not recorded.

    Args:
        inputs: the handler's input schema.
        values: by input name, as JSON has them.

    Raises:
        ConfigError: there is no such input, or the value does not fit it.
    """

    def __init__(self, inputs: Schema, values: Mapping[str, object]) -> None:
        self.values: dict[str, Any] = {}
        for name, value in values.items():
            if name not in inputs:
                raise ConfigError(f"--assume {name}: no such input; {did_you_mean(name, inputs.names)}")
            try:
                self.values[name] = compile_value(inputs[name])(value)
            except ValueRejectedError as exc:
                raise ConfigError(f"--assume {name}: {exc.message(name)}") from None


def question(inputs: Schema, portion: Portion, assumptions: Assumptions) -> Question:
    """The inputs as they were recorded, for the handler as it is now.

    An input that was dropped or hashed is not replaced by its default: nobody knows that it was that.
    """
    meta, table = portion.meta, portion.table
    columns: dict[str, Any] = {}
    reasons: list[str] = []
    notes: list[str] = []
    for name, field in inputs.items():
        column = f"{INPUT}{name}"
        if column in table.column_names:
            columns[name] = table.column(column)
        elif name in assumptions.values:
            columns[name] = constant_array(field, assumptions.values[name], table.num_rows)
            notes.append(f"input {name!r} was not recorded; a value was assumed for it")
        elif column in meta.dropped:
            reasons.append(f"input {name!r} was dropped at capture")
        elif column in meta.hashed:
            reasons.append(f"of input {name!r} only a hash was captured")
        elif field.has_default:
            notes.append(f"input {name!r} is new since version {meta.source.version}; it took its default")
        else:
            reasons.append(f"input {name!r} is new since version {meta.source.version}, and has no default")
    gone = [
        column.removeprefix(INPUT)
        for column in table.column_names
        if column.startswith(INPUT) and column.removeprefix(INPUT) not in inputs
    ]
    notes += [f"input {name!r} of version {meta.source.version} is no input any more" for name in gone]
    if reasons:
        return Question(None, "; ".join(reasons), tuple(notes))
    rows = pa.table(columns) if columns else table.select([])
    problems = check_schema(inputs, rows.schema)
    if problems:
        what = f"version {meta.source.version} had other inputs: {' | '.join(problems)}"
        return Question(None, what, tuple(notes))
    return Question(rows, "", tuple(notes))


@dataclass(frozen=True)
class Answers:
    """The two sides to compare, of the same columns but for what is gone.

    Attributes:
        recorded: the answers as they were recorded, and `_error`.
        replayed: the answers now.
        notes: which columns are not compared.
    """

    recorded: pa.Table
    replayed: pa.Table
    notes: tuple[str, ...] = ()


def answers(portion: Portion, replayed: pa.Table) -> Answers:
    """The recorded and the replayed answers of a portion, without what was not recorded.

    An answer that is new since the recording is noted; one that is gone stays on the recorded side, where a
    comparison finds it.
    """
    meta, table = portion.meta, portion.table
    names = [column for column in table.column_names if column.startswith(OUTPUT)]
    recorded = table.select([*names, ERROR_COLUMN])
    recorded = recorded.rename_columns([*(name.removeprefix(OUTPUT) for name in names), ERROR_COLUMN])
    notes: list[str] = []
    kept: list[str] = []
    for name in replayed.column_names:
        column = f"{OUTPUT}{name}"
        if name in recorded.column_names:
            kept.append(name)
        elif column in meta.dropped:
            notes.append(f"answer {name!r} was dropped at capture, and is not compared")
        elif column in meta.hashed:
            notes.append(f"of answer {name!r} only a hash was captured; it is not compared")
        else:
            notes.append(f"answer {name!r} is new since version {meta.source.version}")
    replayed = replayed.select(kept)
    if meta.dropped or meta.hashed:
        recorded, replayed = _without_messages(recorded), _without_messages(replayed)
    return Answers(recorded, replayed, tuple(notes))


def _without_messages(table: pa.Table) -> pa.Table:
    """The table with the kinds of its errors only; a capture that hides anything keeps no messages."""
    place = table.column_names.index(ERROR_COLUMN)
    errors: Sequence[dict[str, Any] | None] = table.column(ERROR_COLUMN).to_pylist()  # pyright: ignore[reportAssignmentType]
    if not any(errors):
        return table
    kept = [None if error is None else {**error, "message": None} for error in errors]
    return table.set_column(place, table.schema.field(place), pa.array(kept, type=ERROR_TYPE))
