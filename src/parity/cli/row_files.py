"""Rows from a file or standard input, and answers into a file. Which suffix means what, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from parity.codec import arrow, form_body, rows
from parity.codec.decoded import Decoded
from parity.errors import ConfigError, DatasetError, MalformedError, RowError
from parity.result import ERROR_COLUMN, Result
from parity.schema import Schema

STANDARD_INPUT = "-"
_READABLE = ".json, .jsonl, .ndjson or .parquet"


def read_rows(source: str, schema: Schema, limit: int | None = None) -> Decoded:
    """The rows of a file, or of standard input for "-"; at most the first `limit`.

    A file of another suffix is one row, as the raw body of a request is.

    Raises:
        DatasetError: there is no such file, or it cannot be read.
        MalformedError: it is not what its suffix says; the line is named.
        SchemaError: a Parquet file does not have the columns.
    """
    if source == STANDARD_INPUT:
        return _decode(_json_or_lines(sys.stdin.buffer.read()), schema, limit)
    path = Path(source)
    if not path.exists():
        raise DatasetError(f"no file {source!r}; give {_READABLE}, or - for JSON from standard input")
    suffix = path.suffix.lower()
    if suffix == ".parquet" or path.is_dir():
        table = read_table(path)
        return arrow.decode_table(schema, table if limit is None else table.slice(0, limit))
    if suffix in (".jsonl", ".ndjson"):
        return _decode(_lines(path.read_bytes()), schema, limit)
    if suffix == ".json":
        return _decode(_whole(path.read_bytes()), schema, limit)
    if form_body.file_field(schema) is not None:
        return rows.RowDecoder(schema).decode([form_body.raw_row(schema, path.read_bytes())])
    raise DatasetError(
        f"{source}: rows are read from {_READABLE}, not from {suffix or 'a file without suffix'}; any other "
        "file is a row for handlers whose one required input is Bytes or an encoded Image"
    )


def read_table(path: Path) -> pa.Table:
    """The table of a Parquet file or a folder of them; raises DatasetError when there is none."""
    try:
        return pq.read_table(path)
    except (pa.ArrowException, OSError) as exc:
        raise DatasetError(f"{path}: not readable as Parquet: {exc}") from exc


def answers_of(result: Result) -> Iterator[dict[str, Any]]:
    """One JSON-ready object for each row: its answer, or `{"_error": {...}}`."""
    encoded = iter(rows.encode_rows(result.outputs))
    failed = {error.row: error for error in result.errors}
    for row in range(result.num_rows):
        error = failed.get(row)
        if error is None:
            answer = next(encoded)
            if not isinstance(answer, RowError):
                yield answer
                continue
            error = answer.at(row)
        parts = {"kind": error.kind, "stage": error.stage, "field": error.field, "message": error.message}
        yield {ERROR_COLUMN: parts}


def check_output(path: Path) -> None:
    """Raise ConfigError when answers cannot be written into a file of this name."""
    if path.suffix.lower() not in (".parquet", ".json", ".jsonl", ".ndjson"):
        raise ConfigError(f"--output {path}: answers are written as {_READABLE}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"--output {path}: folder {path.parent} does not exist")


def write_answers(result: Result, path: Path) -> None:
    """Write answers as the suffix says: one object a line, a JSON array, or a Parquet table with `_error`."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        pq.write_table(result.to_table(), path)
    elif suffix == ".json":
        path.write_bytes(rows.dumps(list(answers_of(result))) + b"\n")
    else:
        path.write_bytes(b"".join(rows.dumps(answer) + b"\n" for answer in answers_of(result)))


def _decode(objects: list[Any], schema: Schema, limit: int | None) -> Decoded:
    return rows.RowDecoder(schema).decode(objects if limit is None else objects[:limit])


def _json_or_lines(text: bytes) -> list[Any]:
    try:
        return _whole(text)
    except MalformedError:
        if len(text.split(b"\n", 1)[-1].strip()) == 0:
            raise
        return _lines(text)


def _whole(text: bytes) -> list[Any]:
    found = rows.loads(text)
    return cast("list[Any]", found) if isinstance(found, list) else [found]


def _lines(text: bytes) -> list[Any]:
    found: list[Any] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        if line.strip():
            try:
                found.append(rows.loads(line))
            except MalformedError as exc:
                raise MalformedError(f"line {number}: {exc}") from None
    return found
