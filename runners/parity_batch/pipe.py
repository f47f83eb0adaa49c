"""Rows from standard input, answers to standard output: for small jobs, with nothing to resume.

A row that failed keeps its place with null answers and the reason in `_error`; the first of them are told.
"""

from __future__ import annotations

import csv
import io
import math
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, cast

import pyarrow as pa

from parity.codec.jsonable import encode_column
from parity.codec.rebatch import rebatch
from parity.codec.rows import dumps, encode_rows
from parity.column import Column
from parity.engine import Engine
from parity.errors import ConfigError, DatasetError, RowError, RowsError, did_you_mean
from parity.failures import few_of_a_kind
from parity.handler import LoadedHandler
from parity.result import ERROR_COLUMN, Result
from parity.schema import Field
from parity.scored import DEFAULT_BATCH_ROWS, part_rows, part_schema
from parity.sizing import AUTO
from parity_batch.containers import READ_BYTES, TextColumns, explained, header, probe_lines, text_rows
from parity_batch.footers import Source, SourceFile
from parity_batch.formats import ARROW, CSV, PARQUET
from parity_batch.layout import Layout, check_columns, fit, mapping_of
from parity_batch.places import Stamp
from parity_batch.settings import Settings
from parity_batch.stream import kept_rows, with_absent
from parity_batch.text_types import text_columns
from parity_batch.unit import FailedRow, decoded_rows, positions_of
from parity_batch.where import Where

OUTPUT_FORMATS: Final = ("jsonl", "csv", ARROW)
_NAME = "standard input"
_TOLD_ERRORS = 5
_PATIENCE_S = 2.0


class StdoutError(DatasetError):
    """The answers cannot be written."""


Write = Callable[[bytes], object]


class _Writer(Protocol):
    def write(self, rows: pa.RecordBatch, result: Result) -> None: ...

    def close(self) -> None: ...


def score_pipe(
    stdin: Any,
    write: Write,
    loaded: LoadedHandler,
    columns: Sequence[str],
    settings: Settings,
    output_format: str,
    tell: Callable[[str], object],
) -> None:
    """Score what `stdin` holds and give the answers to `write`, a micro-batch at a time.

    Args:
        stdin: rows in `settings.input_format`, JSON lines without one.
        write: takes bytes of the output.
        loaded: the handler.
        columns: columns to pass through.
        settings: how to run; what is about files and engines does not matter.
        output_format: one of `OUTPUT_FORMATS`.
        tell: takes lines about rows that failed.

    Raises:
        ConfigError: a format is none that can be piped.
        DatasetError: the input is damaged, or does not fit the handler.
        RowsError: every row failed, or more than `max_errors` allows.
    """
    form = settings.input_format or "jsonl"
    if form == PARQUET:
        raise ConfigError("Parquet is read from its end, which a pipe has not: save it, and name the file")
    if output_format not in OUTPUT_FORMATS:
        hint = did_you_mean(output_format, OUTPUT_FORMATS) or ", ".join(OUTPUT_FORMATS)
        raise ConfigError(f"--output-format {output_format!r} is none that can be piped; {hint}")
    if settings.batch_rows == AUTO:
        raise ConfigError("--batch-rows auto measures rows of files, and a pipe's come once; give a number")
    settings = settings.with_defaults(loaded.manifest.batch)
    write = _told_apart(write)
    if isinstance(settings.max_errors, str) and settings.max_errors.strip().endswith("%"):
        if settings.max_errors.strip() != "100%":
            raise ConfigError("--max-errors P%: a pipe's rows are not known before; give a number, or 100%")
        most = None
    else:
        most = settings.most_errors(0)
    try:
        layout, source, read = _opened(stdin, form, loaded, columns, settings)
        engine = Engine(loaded, settings.profile)
        given = settings.batch_rows
        batch_rows = given if given and given != AUTO else engine.profile.whole_buckets(DEFAULT_BATCH_ROWS)
        schema = part_schema(layout.schema, layout.columns, loaded, {}, settings.form)
        writer: _Writer = _ArrowWriter(write, schema) if output_format == ARROW else _TextWriter(
            write, output_format, layout, loaded
        )  # fmt: skip
        done = failed = 0
        with few_of_a_kind(tells_texts=settings.log_failures), engine:
            for rows in rebatch(kept_rows(read, layout, source, None), batch_rows):
                result = engine.score(decoded_rows(loaded.inputs, rows, layout))
                positions = positions_of(rows)
                for error in result.errors[: max(0, _TOLD_ERRORS - failed)]:
                    place = done + error.row if positions is None else positions[error.row]
                    tell(FailedRow(f"row {place}", error).told(texts=settings.log_failures))
                done += rows.num_rows
                failed += len(result.errors)
                writer.write(with_absent(rows, layout), result)
                if most is not None and failed > most:
                    raise RowsError(f"stopped: {failed} rows failed and --max-errors allows {most}")
        writer.close()
    except (BrokenPipeError, StdoutError):
        raise
    except (OSError, pa.ArrowException, csv.Error) as exc:
        raise DatasetError(f"{_NAME}: cannot be read as {form}: {explained(exc)}") from exc
    if failed:
        tell(f"{failed:,} of {done:,} rows failed; `{ERROR_COLUMN}` says why")
    if done and failed == done and settings.max_errors is None:
        raise RowsError(f"every row failed ({done:,}); --max-errors 100% calls that a success")


def _told_apart(write: Write) -> Write:
    """The same, its errors told apart from those of the input."""

    def checked(data: bytes) -> object:
        try:
            return write(data)
        except BrokenPipeError:
            raise
        except OSError as exc:
            raise StdoutError(f"standard output: {explained(exc)}") from exc

    return checked


def _opened(
    stdin: Any, form: str, loaded: LoadedHandler, columns: Sequence[str], settings: Settings
) -> tuple[Layout, SourceFile, Iterator[pa.RecordBatch]]:
    check_columns(columns, loaded)
    fields = mapping_of(settings.renames, loaded)
    condition = Where(settings.where) if settings.where else None
    others = (*columns, *(condition.columns if condition is not None else ()))
    text = replace(text_columns(fields, loaded, others, settings.types), delimiter=settings.delimiter)
    if settings.delimiter and form != CSV:
        raise ConfigError(f"--delimiter is for CSV, and the input is {form}")
    if form == ARROW:
        if settings.types:
            raise ConfigError("--types is for CSV and JSON lines; columns of Arrow have types")
        reader = pa.ipc.open_stream(stdin)
        schema, read = reader.schema, _checked(reader)
    else:
        first = stdin.read(READ_BYTES)
        stdin = _Again(first, stdin)
        names = (
            header(first, form, _NAME, text.delimiter)
            if form != "jsonl"
            else _keys(first, list(fields.values()), text)
        )
        typed = [
            (name, text.fields[name].arrow_type if name in text.fields else pa.string()) for name in names
        ]
        schema = pa.schema(typed)
        wanted = [name for name in names if name in text.fields] or names[:1]
        read = _let_go_of(text_rows(stdin, form, wanted, text, len(names)), weakref.ref(stdin))
    source = Source(SourceFile(cast("Any", _NAME), _NAME, Stamp(0, 0), form), "", 0, (), schema)
    fitted = fit([source], loaded, fields, columns, condition)
    if fitted.problems:
        raise DatasetError(
            f"handler {loaded.name}: nothing was scored, for the inputs have problems\n  "
            + "\n  ".join(fitted.problems)
        )
    return fitted.layout, source.file, read


def _keys(first: bytes, of_fields: Sequence[str], text: TextColumns) -> list[str]:
    """The columns of JSON lines: those of fields, whose absence is a row's error, and others that are seen.

    A column that none of the first lines has is none, as in files.
    """
    whole = first if len(first) < READ_BYTES else first[: first.rfind(b"\n") + 1]
    seen, rows = probe_lines(io.BytesIO(whole), _NAME, text)
    return list(dict.fromkeys([*of_fields, *seen])) if rows else list(text.fields)


def _checked(reader: Any) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        batch.validate(full=True)
        yield batch


def _let_go_of(read: Generator[pa.RecordBatch], stream: weakref.ref[_Again]) -> Iterator[pa.RecordBatch]:
    """The rows, and at their end a wait until Arrow's reader has let go of the stream.

    It reads on a thread of its own. When Python ends while that thread is still in Python the process is
    aborted.
    """
    try:
        yield from read
    finally:
        read.close()
        del read
        given_up = time.monotonic() + _PATIENCE_S
        while stream() is not None and time.monotonic() < given_up:
            time.sleep(0.001)
        time.sleep(0.01)  # for the last bytes, which it lets go of after the stream


class _Again:
    """A stream whose first bytes were read already."""

    closed = False

    def __init__(self, first: bytes, rest: Any) -> None:
        self._first, self._rest = first, rest

    def read(self, size: int) -> bytes:
        """Up to so many bytes; empty at the end."""
        if self._first:
            found, self._first = self._first[:size], self._first[size:]
            return found
        return self._rest.read(size)

    def close(self) -> None:
        """Leave the stream open: it is the process's."""


class _ArrowWriter:
    def __init__(self, write: Write, schema: pa.Schema) -> None:
        self._schema, self._write = schema, write
        self._sink = io.BytesIO()
        self._writer = pa.ipc.new_stream(self._sink, schema)

    def write(self, rows: pa.RecordBatch, result: Result) -> None:
        self._writer.write_table(part_rows(rows, result, self._schema).unify_dictionaries())
        self._hand_over()

    def close(self) -> None:
        self._writer.close()
        self._hand_over()

    def _hand_over(self) -> None:
        self._write(self._sink.getvalue())
        self._sink.seek(0)
        self._sink.truncate()


class _TextWriter:
    def __init__(self, write: Write, form: str, layout: Layout, loaded: LoadedHandler) -> None:
        self._write, self._form, self._columns = write, form, layout.columns
        fields = {column: loaded.inputs[field] for field, column in layout.fields.items()}
        self._fields: Mapping[str, Field | None] = {name: fields.get(name) for name in layout.columns}
        self._names = [*layout.columns, *loaded.outputs.names, ERROR_COLUMN]
        if form == "csv":
            self._write(self._csv([self._names]))

    def write(self, rows: pa.RecordBatch, result: Result) -> None:
        found: list[dict[str, Any]] = [dict.fromkeys(self._names) for _ in range(result.num_rows)]
        for name, field in self._fields.items():
            for row, value in zip(found, self._passed(rows.column(name), field), strict=True):
                row[name] = value
        for place, answer in zip(result.index.tolist(), encode_rows(result.outputs), strict=True):
            if isinstance(answer, RowError):
                found[place][ERROR_COLUMN] = f"{answer.kind}: {answer.message}"
            else:
                found[place].update(answer)
        for error in result.errors:
            found[error.row][ERROR_COLUMN] = f"{error.kind}: {error.message}"
        if self._form == "csv":
            self._write(self._csv([[_cell(value) for value in row.values()] for row in found]))
        else:
            self._write(b"".join(dumps(row) + b"\n" for row in found))

    def close(self) -> None:
        """Nothing is held."""

    def _passed(self, column: Any, field: Field | None) -> Sequence[Any]:
        if field is not None and len(column):
            there = [place for place, is_there in enumerate(column.is_valid().to_pylist()) if is_there]
            found: list[Any] = [None] * len(column)
            encoded = encode_column(Column(field, arrow=column.drop_null()), "string")[0] if there else ()
            for place, value in zip(there, encoded, strict=True):
                found[place] = value
            return found
        values = column.to_pylist()
        if pa.types.is_floating(column.type):
            values = [
                value if value is None or math.isfinite(value) else _ODD[str(value)] for value in values
            ]
        try:
            dumps(values)
        except TypeError as exc:
            raise DatasetError(
                f"a pass-through column of type {column.type} has no form in text; --output-format arrow has"
            ) from exc
        return values

    def _csv(self, rows: Sequence[Sequence[Any]]) -> bytes:
        sink = io.StringIO(newline="")
        csv.writer(sink, lineterminator="\n").writerows(rows)
        return sink.getvalue().encode()


_ODD: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _cell(value: Any) -> str:
    """A value as CSV has it: text as it is, everything else as JSON; null is empty."""
    return "" if value is None else value if isinstance(value, str) else dumps(value).decode()
