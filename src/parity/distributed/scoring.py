"""Tables scored in a worker process by a handler that is loaded there once, and what comes out of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from parity.codec.arrow import check_schema, decode_table
from parity.codec.rebatch import rebatch
from parity.distributed.placement import Placement
from parity.engine import Engine
from parity.errors import ConfigError, SchemaError, did_you_mean
from parity.handler import LoadedHandler
from parity.profile import Profile
from parity.result import ERROR_COLUMN, ERROR_TYPE
from parity.scored import DEFAULT_BATCH_ROWS
from parity.stages import TAP_VARIABLE


class TableScorer:
    """Scores tables with a handler that is loaded once, in this process.

    Args:
        placement: the handler and its profile.
        columns: the columns to pass through.
        batch_rows: rows scored at once.
        device: the device that the engine assigned to this process, in place of the profile's.
        tap: a folder where the engine writes what the stages gave; see `parity.stages`.

    Raises:
        ParityError: the handler cannot be loaded here.
    """

    def __init__(
        self,
        placement: Placement,
        *,
        columns: Sequence[str],
        batch_rows: int,
        device: str | None = None,
        tap: str | None = None,
    ) -> None:
        os.environ.pop(TAP_VARIABLE, None)  # an earlier job's, where the process outlives it
        if tap is not None:
            os.environ[TAP_VARIABLE] = tap
        engine = Engine(placement.load(), placement.to_profile(device))
        self._engine = engine.__enter__()  # until the process ends
        self._columns = tuple(columns)
        self._batch_rows = batch_rows

    @property
    def engine(self) -> Engine:
        """The engine, entered."""
        return self._engine

    def score(self, table: pa.Table) -> pa.Table:
        """The table's rows in their order: pass-through columns, outputs, `_error`; see `scored_schema`.

        Raises:
            SchemaError: a column is missing or of a type that cannot be read.
            InputMutatedError: the handler wrote into its inputs.
        """
        schema = scored_schema(table.schema, self._engine.loaded, self._columns)
        cut = rebatch(table.to_batches(), self._batch_rows)
        pieces = [self._scored(pa.Table.from_batches([rows]), schema) for rows in cut]
        return pa.concat_tables(pieces) if pieces else schema.empty_table()

    def _scored(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        inputs = self._engine.loaded.inputs
        there = set(rows.schema.names)
        decoded = decode_table(inputs, rows.select([name for name in inputs.names if name in there]))
        answers = self._engine.score(decoded).to_table()
        passed = [rows.column(name) for name in self._columns]
        return pa.Table.from_arrays([*passed, *answers.columns], schema=schema)


def chosen_columns(
    given: Sequence[str], loaded: LoadedHandler, columns: Sequence[str] | None
) -> tuple[str, ...]:
    """The columns to pass through: those that were named, or all that are there.

    Raises:
        SchemaError: one is not there, is named twice, or has the name of an output; every problem is named.
    """
    chosen = tuple(given if columns is None else columns)
    problems: list[str] = []
    for name in dict.fromkeys(chosen):
        if name not in given:
            problems.append(f"pass-through column {name!r} is not there; {did_you_mean(name, given)}")
        elif chosen.count(name) > 1:
            problems.append(f"pass-through column {name!r} is there {chosen.count(name)} times; keep one")
        elif name == ERROR_COLUMN or name in loaded.outputs:
            whose = (
                "parity's own name" if name == ERROR_COLUMN else f"an output of handler {loaded.name}, too"
            )
            problems.append(f"pass-through column {name!r} is {whose}; rename or drop it, or name columns=")
    if problems:
        raise SchemaError(" | ".join(problems))
    return chosen


def scored_schema(given: pa.Schema, loaded: LoadedHandler, columns: Sequence[str]) -> pa.Schema:
    """The schema of scored rows: pass-through columns as they are, outputs, `_error`.

    Raises:
        SchemaError: `given` cannot be read by the handler; the message names every column at fault.
    """
    problems = check_schema(loaded.inputs, given)
    if problems:
        raise SchemaError(f"handler {loaded.name}: the rows do not fit its inputs: {' | '.join(problems)}")
    fields: list[pa.Field[Any]] = [given.field(name) for name in columns]
    fields += [field.to_arrow(name, nullable=True) for name, field in loaded.outputs.items()]
    fields.append(pa.field(ERROR_COLUMN, ERROR_TYPE))
    return pa.schema(fields)


def check_batch_rows(batch_rows: int | None, profile: Profile) -> int:
    """The rows to score at once, `DEFAULT_BATCH_ROWS` in whole buckets by default; ConfigError below 1."""
    if batch_rows is None:
        return profile.whole_buckets(DEFAULT_BATCH_ROWS)
    if batch_rows < 1:
        raise ConfigError(f"batch_rows = {batch_rows} must be at least 1")
    return batch_rows
