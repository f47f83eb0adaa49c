"""Rows of Iceberg data files that are deleted by position: Parquet files of positions, deletion vectors.

What says which rows are deleted by their values, equality deletes, is refused: pyiceberg does not plan them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parity.errors import ConfigError, DatasetError
from parity_batch.deleted_rows import DeletedRows, Positions

_PATH, _POSITION = "file_path", "pos"


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

    Args:
        shown: the table, for messages.
        tasks: the scan's tasks: a data file, and the delete files that apply to it.
        files: the table's FileIO.

    Raises:
        DatasetError: a delete file cannot be read, or is of a format that is not read here.
        ConfigError: it takes a newer pyiceberg.
    """
    read: dict[str, dict[str, Positions]] = {}
    found: dict[str, DeletedRows] = {}
    for task in tasks:
        path = task.file.file_path
        positions: list[Positions] = []
        for file in task.delete_files:
            if file.file_path not in read:
                read[file.file_path] = _read(shown, file, files)
            positions.append(read[file.file_path].get(path, np.empty(0, np.int64)))
        deleted = DeletedRows.at(np.concatenate(positions)) if positions else None
        if deleted is not None:
            found[path] = deleted
    return found


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
            return readers[form](opened)
    except ImportError as exc:
        raise ConfigError(
            f"input {shown}: {file.file_path} of the Iceberg table has deletion vectors, which this release "
            "of pyiceberg does not give; pip install --upgrade pyiceberg"
        ) from exc
    except (OSError, pa.ArrowException, ValueError, KeyError) as exc:
        raise DatasetError(
            f"input {shown}: delete file {file.file_path} of the Iceberg table cannot be read: "
            f"{' '.join(str(exc).split())}"
        ) from exc


def _positions(opened: Any) -> dict[str, Positions]:
    table: Any = pq.read_table(opened, columns=[_PATH, _POSITION], read_dictionary=[_PATH])
    if table.column(_PATH).null_count or table.column(_POSITION).null_count:
        raise ValueError("a path or a position is null")
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


def _vectors(opened: Any) -> dict[str, Positions]:
    from pyiceberg.table.deletion_vector import (  # pyright: ignore[reportMissingImports]
        deletion_vectors_from_puffin_file,
    )
    from pyiceberg.table.puffin import PuffinFile  # pyright: ignore[reportMissingImports]

    vectors: Any = deletion_vectors_from_puffin_file(PuffinFile(opened.read()))
    found: dict[str, list[Positions]] = {}
    for vector in vectors:
        places = vector.to_vector().to_numpy().astype(np.int64)
        found.setdefault(vector.referenced_data_file, []).append(places)
    return {path: np.concatenate(places) for path, places in found.items()}
