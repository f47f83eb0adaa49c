"""Rows of Iceberg data files that are deleted by position: Parquet files of positions, deletion vectors.

What says which rows are deleted by their values, equality deletes, is refused: pyiceberg does not plan them.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parity.errors import ConfigError, DatasetError
from parity_batch.deleted_rows import DeletedRows, Positions

_PATH, _POSITION = "file_path", "pos"
_VECTOR_MAGIC = b"\xd1\xd3\x39\x64"


def refuse_equality_deletes(shown: str, manifests: Iterable[Any], files: Any) -> None:
    """Raise DatasetError where a snapshot deletes rows by their values.

    Args:
        shown: the table, for the message.
        manifests: the snapshot's manifests.
        files: the table's FileIO.
    """
    for manifest in manifests:
        if manifest.content.name != "DELETES":
            continue
        for entry in manifest.fetch_manifest_entry(files, discard_deleted=True):
            if entry.data_file.content.name == "EQUALITY_DELETES":
                raise DatasetError(
                    f"input {shown}: {entry.data_file.file_path} of the Iceberg table deletes rows by their "
                    "values (equality deletes), which pyiceberg does not plan; rewrite_data_files with "
                    "delete-file-threshold 1 writes the data files anew without them"
                )


def deleted_rows(shown: str, tasks: Sequence[Any], files: Any) -> dict[str, DeletedRows]:
    """For each data file of a scan some of whose rows are deleted, by its path: which.

    A delete file is read once, and its positions are kept until the last task that it applies to.

    Args:
        shown: the table, for messages.
        tasks: the scan's tasks: a data file, and the delete files that apply to it.
        files: the table's FileIO.

    Raises:
        DatasetError: a delete file cannot be read, is damaged, is of a format that is not read here, or
            names a row that the data file does not have.
        ConfigError: it takes a newer pyiceberg.
    """
    uses = Counter(file.file_path for task in tasks for file in task.delete_files)
    read: dict[str, dict[str, Positions]] = {}
    found: dict[str, DeletedRows] = {}
    for task in tasks:
        path = task.file.file_path
        positions: list[Positions] = []
        for file in task.delete_files:
            if file.file_path not in read:
                read[file.file_path] = _read(shown, file, files)
            if (places := read[file.file_path].get(path)) is not None:
                _check_places(shown, file, task.file, places)
                positions.append(places)
            uses[file.file_path] -= 1
            if not uses[file.file_path]:  # its positions take eight bytes a row
                del read[file.file_path]
        deleted = DeletedRows.at(np.concatenate(positions)) if positions else None
        if deleted is not None:
            found[path] = deleted
    return found


def _check_places(shown: str, file: Any, data_file: Any, places: Positions) -> None:
    rows = data_file.record_count
    wrong = places[(places < 0) | (places >= rows)]
    if len(wrong):
        raise DatasetError(
            f"input {shown}: delete file {file.file_path} of the Iceberg table deletes row {wrong[0]} of "
            f"{data_file.file_path}, which has rows 0 to {rows - 1}; the delete file is damaged: "
            "--input-version NUMBER reads a snapshot before it"
        )


def _read(shown: str, file: Any, files: Any) -> dict[str, Positions]:
    """The positions that a delete file has, by the path of the data file."""
    form = str(getattr(file.file_format, "name", file.file_format))
    readers = {"PARQUET": _positions, "PUFFIN": _vectors}
    if form not in readers:
        raise DatasetError(
            f"input {shown}: delete file {file.file_path} of the Iceberg table is {form}, and Parquet and "
            "deletion vectors are read; rewrite_position_delete_files, or rewrite_data_files, writes it anew"
        )
    try:
        with files.new_input(file.file_path).open() as opened:
            return readers[form](opened, file.record_count)
    except ImportError as exc:
        raise ConfigError(
            f"input {shown}: {file.file_path} of the Iceberg table has deletion vectors, which this release "
            "of pyiceberg does not give; pip install --upgrade pyiceberg"
        ) from exc
    except Exception as exc:  # of a damaged file the libraries raise anything
        text = " ".join(str(exc).split())
        if not isinstance(exc, (OSError, ValueError, pa.ArrowException)):
            text = f"{type(exc).__name__} {text}".strip()
        raise DatasetError(
            f"input {shown}: delete file {file.file_path} of the Iceberg table cannot be read: {text}"
        ) from exc


def _positions(opened: Any, record_count: int) -> dict[str, Positions]:
    table: Any = pq.read_table(opened, columns=[_PATH, _POSITION], read_dictionary=[_PATH])
    if table.column(_PATH).null_count or table.column(_POSITION).null_count:
        raise ValueError("a path or a position is null")
    if table.num_rows != record_count:
        raise ValueError(f"it has {table.num_rows} positions, and {record_count} by the manifest")
    if not pa.types.is_integer(kind := table.schema.field(_POSITION).type):
        raise ValueError(f"its positions are of type {kind}")
    if not table.num_rows:
        return {}
    table = table.unify_dictionaries().combine_chunks()
    paths = table.column(_PATH).chunk(0)
    codes, places = paths.indices.to_numpy(), table.column(_POSITION).to_numpy().astype(np.int64)
    order = np.argsort(codes, kind="stable")
    borders = np.searchsorted(codes[order], np.arange(len(paths.dictionary) + 1))
    return {
        path: places[order[borders[code] : borders[code + 1]]]
        for code, path in enumerate(paths.dictionary.to_pylist())
    }


def _vectors(opened: Any, record_count: int) -> dict[str, Positions]:
    """Of a Puffin file: of each deletion vector that is what was written, by its checksum and its count."""
    from pyiceberg.table.deletion_vector import (  # pyright: ignore[reportMissingImports]
        deletion_vectors_from_puffin_file,
    )
    from pyiceberg.table.puffin import PuffinFile  # pyright: ignore[reportMissingImports]

    puffin: Any = PuffinFile(opened.read())
    blobs: Any = puffin.footer.blobs
    for blob in blobs:
        _check_blob(puffin.get_blob_payload(blob))
    vectors: Any = deletion_vectors_from_puffin_file(puffin)
    found: dict[str, list[Positions]] = {}
    counts: list[int] = []
    for blob, vector in zip(blobs, vectors, strict=True):
        places = vector.to_vector().to_numpy().astype(np.int64)
        counts.append(len(places))
        told = blob.properties.get("cardinality", str(len(places)))
        if told != str(len(places)):
            raise ValueError(f"a deletion vector has {len(places)} positions, and {told} by the footer")
        found.setdefault(vector.referenced_data_file, []).append(places)
    if record_count not in {*counts, sum(counts)}:  # a manifest names each vector of a file, or the file
        raise ValueError(
            f"its deletion vectors have {', '.join(map(str, counts)) or 'no'} positions, and {record_count} "
            "by the manifest"
        )
    return {path: np.concatenate(places) for path, places in found.items()}


def _check_blob(payload: bytes) -> None:
    """Raise ValueError for what is no whole `deletion-vector-v1` blob, as the Puffin specification has it.

    That is: the length of magic number and bitmap, both of these, and their CRC-32; numbers are big-endian.
    """
    vector = payload[4:-4]
    length, checksum = int.from_bytes(payload[:4], "big"), int.from_bytes(payload[-4:], "big")
    if length != len(vector) or vector[:4] != _VECTOR_MAGIC or checksum != zlib.crc32(vector):
        raise ValueError("a deletion vector is damaged: its length, magic number or checksum does not fit")
