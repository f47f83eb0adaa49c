"""Rows from a file or standard input, and answers into a file. Which suffix means what, and nothing else."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from parity.codec import arrow, form_body, rows
from parity.codec.decoded import Decoded
from parity.codec.json_text import is_blank
from parity.errors import ConfigError, DatasetError, MalformedError, RowError
from parity.result import ERROR_COLUMN, Result
from parity.schema import Schema

STANDARD_INPUT = "-"
_READABLE = ".json, .jsonl, .ndjson or .parquet"
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PARQUET_MARK = b"PAR1"
_MOST_FIELDS = 4


def read_rows(source: str, schema: Schema, limit: int | None = None) -> Decoded:
    """The rows of a file, or of standard input for "-"; at most the first `limit`.

    A file of another suffix is one row, as the raw body of a request is.

    Raises:
        DatasetError: there is no such file, it cannot be read, or it holds no row.
        MalformedError: it is not what its suffix says; the line, or the item of the list, is named.
        SchemaError: a Parquet file does not have the columns.
    """
    if source == STANDARD_INPUT:
        return _decode(_json_or_lines, sys.stdin.buffer.read(), "standard input", schema, limit)
    path = Path(source)
    if not path.exists():
        raise DatasetError(f"no file {source!r}; give {_READABLE}, or - for JSON from standard input")
    suffix = path.suffix.lower()
    if suffix == ".parquet" or path.is_dir():
        table = read_table(path)
        if not table.num_rows:
            raise _no_rows(f"{source} holds columns and no row", "a row", schema)
        return arrow.decode_table(schema, table if limit is None else table.slice(0, limit))
    if suffix in (".jsonl", ".ndjson"):
        return _decode(_lines, _content(path), source, schema, limit)
    if suffix == ".json":
        return _decode(_whole, _content(path), source, schema, limit)
    if form_body.file_field(schema) is not None:
        return rows.RowDecoder(schema).decode([form_body.raw_row(schema, _content(path))])
    raise DatasetError(
        f"{source}: rows are read from {_READABLE}, not from {suffix or 'a file without suffix'}; any other "
        "file is a row for handlers whose one required input is Bytes or an encoded Image"
    )


def read_table(path: Path) -> pa.Table:
    """The table of a Parquet file or a folder of them; raises DatasetError when there is none."""
    try:
        if path.is_dir():
            _require_parquet(path)
        elif path.is_file() and path.stat().st_size == 0:
            raise DatasetError(f"{path} is empty, of 0 bytes; write the Parquet file anew")
        return pq.read_table(path)
    except (pa.ArrowException, OSError) as exc:
        raise DatasetError(f"{path}: not readable as Parquet: {exc}") from exc


def _require_parquet(folder: Path) -> None:
    """Refuse a folder that is no Parquet dataset, before a reader calls its first file a damaged one."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    shown = [file.relative_to(folder).as_posix() for file in files if not _is_parquet(file)]
    if not files:
        raise DatasetError(
            f"{folder} is a folder without files; give a file, {_READABLE}, or a Parquet dataset"
        )
    if len(shown) == len(files):
        raise DatasetError(
            f"{folder} is a folder, which is read as a Parquet dataset, and holds no Parquet file (it has "
            f"{shown[0]!r}{f' and {len(shown) - 1} more' if len(shown) > 1 else ''}); name one of its files"
        )


def _is_parquet(file: Path) -> bool:
    """By name or by content: parts may have no suffix."""
    if file.suffix.lower() in (".parquet", ".pq", ".parq"):
        return True
    with file.open("rb") as opened:
        return opened.read(len(_PARQUET_MARK)) == _PARQUET_MARK


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise DatasetError(f"{path} cannot be read: {exc.strerror or exc}") from exc


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
    if path.is_dir():
        raise ConfigError(f"--output {path} is a folder; name a file, such as {path / 'answers.jsonl'}")
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


def _decode(
    read: Callable[[bytes], list[Any]], data: bytes, name: str, schema: Schema, limit: int | None
) -> Decoded:
    """The rows of JSON text, by what reads its objects."""
    if data.startswith(_UTF16_MARKS):
        raise MalformedError(f"{name} is UTF-16, and JSON is UTF-8; save it as UTF-8")
    if is_blank(data):
        raise _no_rows(f"{name} is empty", "a JSON object for each row", schema)
    try:
        objects = read(data)
    except MalformedError as exc:
        raise MalformedError(f"{name}: {exc}") from None
    if not objects:
        raise _no_rows(f"{name} is a list without rows", "an object for each row", schema)
    return rows.RowDecoder(schema).decode(objects if limit is None else objects[:limit])


def _no_rows(found: str, wanted: str, schema: Schema) -> DatasetError:
    names = [f'"{name}": ...' for name in list(schema)[:_MOST_FIELDS]]
    more = ", ..." if len(list(schema)) > _MOST_FIELDS else ""
    return DatasetError(
        f"{found}, so that there is nothing to do; put {wanted} into it: {{{', '.join(names)}{more}}}"
    )


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
        if not is_blank(line):
            try:
                found.append(rows.loads(line))
            except MalformedError as exc:
                raise MalformedError(f"line {number}: {exc}") from None
    return found
