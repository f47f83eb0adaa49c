"""Files that are no Parquet: CSV, JSON lines and Arrow IPC. What they hold, and their rows, streamed.

Such a file has no footer that tells its rows, so that they are counted when the job is planned: it is read
twice, and one that is cut short is found before anything is scored. It is one unit of work.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import io
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa

from parity.codec.json_text import loads
from parity.codec.text_rows import TextDecoder
from parity.errors import DatasetError, MalformedError, RowError, shown
from parity.schema import Field
from parity_batch.files import InputFile
from parity_batch.footers import RowGroup, Source, SourceFile
from parity_batch.formats import ARROW, CSV, compression_of
from parity_batch.places import Place, open_file, stamp_of

PROBLEM = pa.field("\0problem", pa.string())
PROBLEM_FIELD = pa.field("\0field", pa.string())
"""Why a row of text could not be read, and which of its fields; columns are null there."""

CSV_BLOCK_BYTES = 8 * 1024 * 1024
READ_BYTES = 1024 * 1024
_LOOKED_AT_LINES = 1000
_DIGESTED_BYTES = 64 * 1024
_DELIMITERS = (";", "\t", "|")
_PACKED = 4
"""About how many bytes of text a compressed byte stands for."""


@dataclass(frozen=True)
class TextColumns:
    """What columns of text files hold; see `parity.codec.text_rows.TextDecoder`.

    Attributes:
        fields: for each column that is read its field.
        loose: the columns that are text whatever they hold.
        delimiter: what stands between the cells of CSV; empty for a comma.
    """

    fields: Mapping[str, Field] = field(default_factory=dict[str, Field])
    loose: frozenset[str] = frozenset()
    delimiter: str = ""


def probe(file: InputFile, columns: TextColumns, wanted: Collection[str]) -> Source:
    """What a file holds: its columns, and its rows, counted.

    Args:
        file: the file.
        columns: what columns of text hold.
        wanted: the columns that will be read.

    Raises:
        DatasetError: the file is cut short, damaged or of another format.
    """
    try:
        stamp = stamp_of(file.path)
        digest = _ends_digest(file.path)
        if file.format == ARROW:
            schema, rows = _probe_arrow(file)
        else:
            schema, rows = _probe_text(file, columns)
    except (OSError, pa.ArrowException, UnicodeDecodeError, csv.Error) as exc:
        raise DatasetError(
            f"{file.name}: cannot be read as {file.format}: {explained(exc)}; write the file anew"
        ) from exc
    far = frozenset(
        item.name
        for item in schema
        if pa.types.is_timestamp(item.type) and cast("Any", item.type).unit != "ns"
    )
    decoded = stamp.size_bytes * (_PACKED if compression_of(file.name) else 1)
    return Source(
        file=SourceFile(file.path, file.name, stamp, file.format),
        footer_sha256=digest,
        num_rows=rows,
        row_groups=(RowGroup(rows, decoded),),
        schema=schema,
        far_times=far & frozenset(wanted),
    )


def read_rows(source: SourceFile, names: Iterable[str], columns: TextColumns) -> Iterator[pa.RecordBatch]:
    """The rows of a file in order; those of text that cannot be read have a `PROBLEM`.

    Raises:
        OSError, pa.ArrowException: the file is damaged.
    """
    if source.format == ARROW:
        with contextlib.closing(open_arrow(source.path)) as batches:
            yield from (
                batch.select([name for name in names if name in batch.schema.names]) for batch in batches
            )
        return
    width = 0
    if source.format != "jsonl":
        with open_stream(source.path, source.name) as stream:
            there = header(stream.read(READ_BYTES), source.format, source.name, columns.delimiter)
        names = [name for name in names if name in there] or there[:1]
        width = len(there)
    with open_stream(source.path, source.name) as stream:
        anew = functools.partial(open_stream, source.path, source.name)
        yield from text_rows(stream, source.format, list(names), columns, width, anew)


def text_rows(
    stream: Any,
    form: str,
    names: Sequence[str],
    columns: TextColumns,
    width: int,
    anew: Callable[[], Any] | None = None,
) -> Generator[pa.RecordBatch]:
    """The rows of a stream of text, as `read_rows` gives them.

    Args:
        stream: the text.
        form: "csv", "tsv" or "jsonl".
        names: the columns to read.
        columns: what they hold.
        width: how many columns CSV has in all.
        anew: opens the stream again, where that can be done.
    """
    wanted = {name: columns.fields[name] for name in names if name in columns.fields}
    decoder = TextDecoder(wanted, columns.loose)
    if form == "jsonl":
        for lines in _lines(stream):
            found = decoder.lines(lines)
            yield _batch(found.columns, found.problems, len(lines))
        return
    delimiter = _delimiter(form, columns.delimiter)
    for batch in _csv_batches(stream, delimiter, names, alone=width == 1, anew=anew):
        found = decoder.cells(batch)
        yield _batch(found.columns, found.problems, batch.num_rows)


def open_stream(place: Place, name: str) -> Any:
    """A file to be read from its start, decompressed as its name says."""
    raw = open_file(place, READ_BYTES)
    packed = compression_of(name)
    return raw if packed is None else cast("Any", pa).CompressedInputStream(raw, packed)


def open_arrow(place: Place) -> Generator[pa.RecordBatch]:
    """The record batches of an Arrow IPC file or stream, each checked: a damaged one could reach anywhere."""
    with _arrow_reader(place) as reader:
        if isinstance(reader, pa.RecordBatchFileReader):
            batches: Any = (reader.get_batch(place) for place in range(reader.num_record_batches))
        else:
            batches = reader
        for batch in batches:
            batch.validate(full=True)
            yield batch


def explained(exc: Exception) -> str:
    """What a reader says is wrong, in one line, and what to do where it does not say."""
    text = " ".join(str(exc).split())
    if "straddling" in text:
        text = f"a row takes more than {CSV_BLOCK_BYTES // 2**20} MB, or a quote is never closed"
    return text or type(exc).__name__


@contextlib.contextmanager
def _arrow_reader(place: Place) -> Generator[Any]:
    with open_file(place, READ_BYTES) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        with pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file) as reader:
            yield reader


def _probe_arrow(file: InputFile) -> tuple[pa.Schema, int]:
    with _arrow_reader(file.path) as reader:
        schema = reader.schema
    return schema, sum(batch.num_rows for batch in open_arrow(file.path))


def _probe_text(file: InputFile, columns: TextColumns) -> tuple[pa.Schema, int]:
    with open_stream(file.path, file.name) as stream:
        if file.format == "jsonl":
            names, rows = probe_lines(stream, file.name, columns)
        else:
            names = header(stream.read(READ_BYTES), file.format, file.name, columns.delimiter)
            rows = -1
    if rows < 0:
        delimiter = _delimiter(file.format, columns.delimiter)
        anew = functools.partial(open_stream, file.path, file.name)
        with anew() as stream:
            found = _csv_batches(stream, delimiter, names[:1], alone=len(names) == 1, anew=anew)
            rows = sum(batch.num_rows for batch in found)
    fields = [
        pa.field(name, columns.fields[name].arrow_type if name in columns.fields else pa.string())
        for name in names
    ]
    return pa.schema(fields), rows


def probe_lines(stream: Any, name: str, columns: TextColumns) -> tuple[list[str], int]:
    """The keys of the first rows, with those that may be missing; and the number of rows.

    Raises:
        DatasetError: none of the first rows is JSON.
    """
    names = dict.fromkeys(
        key for key, field in columns.fields.items() if field.has_default and key not in columns.loose
    )
    rows = objects = 0
    wrong = ""
    for lines in _lines(stream):
        for line in lines[: max(0, _LOOKED_AT_LINES - rows)]:
            try:
                found = loads(line)
            except MalformedError as exc:
                wrong = wrong or str(exc)
                continue
            if isinstance(found, dict):
                objects += 1
                names.update(dict.fromkeys(cast("dict[str, Any]", found)))
            else:
                wrong = wrong or f"{type(found).__name__} is no object"
        rows += len(lines)
    if rows and not objects:
        raise DatasetError(f"{name}: none of the first lines is a row of JSON: {wrong}; write the file anew")
    return list(names) if rows else list(columns.fields), rows


def header(first: bytes, form: str, name: str, delimiter: str = "") -> list[str]:
    """The column names in the first line of CSV.

    Raises:
        DatasetError: there is none.
    """
    text = first.decode("utf-8-sig", errors="replace")
    names = next(csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(form, delimiter)), [])
    if not names:
        raise DatasetError(f"{name}: the file is empty; a {form.upper()} file begins with its column names")
    other = next((mark for mark in _DELIMITERS if mark in names[0]), None)
    if form == CSV and len(names) == 1 and other is not None and not delimiter:
        raise DatasetError(
            f"{name}: the first line is one column, {shown(names[0])}; --delimiter {other!r} separates it, "
            f"and --delimiter {_delimiter(form, '')!r} says that it is one"
        )
    return names


def _csv_batches(
    stream: Any, delimiter: str, names: Sequence[str], *, alone: bool, anew: Callable[[], Any] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of CSV, columns as bytes.

    Arrow's reader fetches up to 32 blocks ahead of what is taken from it, as fast as the disk gives them, and
    a row must fit in a block. So blocks are small until a row is too large for one; then the file is read
    `anew`, and the rows that came already are passed over. A stream that comes once has large ones.
    """
    done = 0
    try:
        for batch in _csv_blocks(
            stream, delimiter, names, CSV_BLOCK_BYTES if anew is None else READ_BYTES, alone
        ):
            done += batch.num_rows
            yield batch
        return
    except pa.ArrowInvalid as exc:
        if anew is None or "straddling" not in str(exc):
            raise
    with anew() as stream:
        for batch in _csv_blocks(stream, delimiter, names, CSV_BLOCK_BYTES, alone):
            passed = min(done, batch.num_rows)
            done -= passed
            if passed < batch.num_rows:
                yield batch.slice(passed)


def _csv_blocks(
    stream: Any, delimiter: str, names: Sequence[str], block_bytes: int, alone: bool
) -> Iterator[pa.RecordBatch]:
    import pyarrow.csv as pacsv

    options: Any = pacsv
    try:
        reader = options.open_csv(
            stream,
            read_options=options.ReadOptions(use_threads=False, block_size=block_bytes),
            # A blank line of a file of one column is a row with an empty cell.
            parse_options=options.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=not alone
            ),
            convert_options=options.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                include_columns=list(names),
                include_missing_columns=False,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid as exc:
        if "Empty CSV file" in str(exc):  # column names, whose line has no end, and no row
            return
        raise
    with reader:
        yield from reader


def _delimiter(form: str, given: str) -> str:
    return "\t" if form == "tsv" else given or ","


def _lines(stream: Any) -> Iterator[list[bytes]]:
    """The lines of a stream that are not blank, about a megabyte at a time."""
    held: list[bytes] = []
    first = True
    while chunk := stream.read(READ_BYTES):
        if first:
            chunk, first = chunk.removeprefix(b"\xef\xbb\xbf"), False
        if b"\n" not in chunk:
            held.append(chunk)
            continue
        lines = b"".join([*held, chunk]).split(b"\n")
        held = [lines.pop()]
        whole = [line for line in lines if line.strip()]
        if whole:
            yield whole
    rest = b"".join(held)
    if rest.strip():
        yield [rest]


def _batch(columns: Mapping[str, Any], problems: Mapping[int, RowError], rows: int) -> pa.RecordBatch:
    arrays, names = list(columns.values()), list(columns)
    told = [problems.get(row) for row in range(rows)] if problems else []
    for take in (lambda item: item.message, lambda item: item.field):
        texts = [None if item is None else take(item) for item in told]
        arrays.append(pa.array(texts, pa.string()) if problems else pa.nulls(rows, pa.string()))
    names += [PROBLEM.name, PROBLEM_FIELD.name]
    return cast("Any", pa.RecordBatch).from_arrays(arrays, names=names)


def problems_of(rows: pa.RecordBatch) -> dict[int, RowError]:
    """The rows of a batch that could not be read, with the reason."""
    place = rows.schema.get_field_index(PROBLEM.name)
    if place < 0 or rows.column(place).null_count == rows.num_rows:
        return {}
    messages = cast("list[str | None]", rows.column(place).to_pylist())
    fields = cast("list[str | None]", rows.column(PROBLEM_FIELD.name).to_pylist())
    return {
        row: RowError(row, "invalid", message, fields[row])
        for row, message in enumerate(messages)
        if message is not None
    }


def _ends_digest(place: Place) -> str:
    """SHA-256 of a file's first and last bytes; with its size, time and rows it is told from another one."""
    with open_file(place) as file:
        digest = hashlib.sha256(file.read(_DIGESTED_BYTES))
        file.seek(0, 2)
        file.seek(max(0, file.tell() - _DIGESTED_BYTES))
        digest.update(file.read())
    return digest.hexdigest()
