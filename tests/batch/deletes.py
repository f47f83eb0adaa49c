"""Rows deleted beside their files, written by hand as the protocols of Delta Lake and Iceberg say."""

from __future__ import annotations

import json
import struct
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate
from pyiceberg.typedef import Record

_DELTA_MAGIC = 1681511377
_ICEBERG_MAGIC = b"\xd1\xd3\x39\x64"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_FEATURES = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
_LARGEST_ARRAY = 4096


def commit(folder: Path, *actions: dict[str, Any]) -> None:
    """Write the next version of a Delta Lake table's log."""
    version = len(list((folder / "_delta_log").glob("*.json")))
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (folder / "_delta_log" / f"{version:020d}.json").write_text(lines)


def actions_of(folder: Path, version: int, kind: str) -> list[dict[str, Any]]:
    """The actions of a kind in a version of a Delta Lake table's log."""
    lines = (folder / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return [found[kind] for line in lines if kind in (found := json.loads(line))]


def delete_of_delta(
    folder: Path, version: int, positions: Sequence[Sequence[int]], *, inline: bool = False
) -> list[dict[str, Any]]:
    """Delete rows of the files that a version of a table added, by position; the vectors' descriptors."""
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **_FEATURES}}
    ]
    vectors: list[dict[str, Any]] = []
    for added, deleted in zip(actions_of(folder, version, "add"), positions, strict=True):
        if not deleted:
            continue
        vectors.append(_inline(deleted) if inline else _in_a_file(folder, deleted))
        actions.append({"remove": {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}})
        actions.append({"add": {**added, "deletionVector": vectors[-1]}})
    commit(folder, *actions)
    return vectors


def rows_of_delta(folder: Path) -> pa.Table:
    """What deltalake itself reads of a table."""
    table = deltalake.DeltaTable(folder)
    found: Any = deltalake.QueryBuilder().register("t", table).execute("select * from t order by id")
    return pa.table(found.read_all())


def vector_file(folder: Path, vector: dict[str, Any]) -> Path:
    """The file that a descriptor names."""
    number = 0
    encoded = vector["pathOrInlineDv"][-20:]
    for start in range(0, 20, 5):
        word = 0
        for letter in encoded[start : start + 5]:
            word = word * 85 + _Z85.index(letter)
        number = number << 32 | word
    text = f"{number:032x}"
    name = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    return folder / f"deletion_vector_{name}.bin"


def file_content(positions: Sequence[int]) -> bytes:
    """A file of one vector."""
    data = struct.pack("<I", _DELTA_MAGIC) + roaring(positions)
    return b"\x01" + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def _in_a_file(folder: Path, positions: Sequence[int]) -> dict[str, Any]:
    number = uuid4()
    content = file_content(positions)
    (folder / f"deletion_vector_{number}.bin").write_bytes(content)
    described = {"storageType": "u", "pathOrInlineDv": _encoded(number.bytes), "offset": 1}
    return {**described, "sizeInBytes": len(content) - 9, "cardinality": len(set(positions))}


def _inline(positions: Sequence[int]) -> dict[str, Any]:
    data = struct.pack("<I", _DELTA_MAGIC) + roaring(positions)
    padded = data + bytes(-len(data) % 4)
    described = {"storageType": "i", "pathOrInlineDv": _encoded(padded)}
    return {**described, "sizeInBytes": len(data), "cardinality": len(set(positions))}


def _encoded(data: bytes) -> str:
    letters: list[str] = []
    for start in range(0, len(data), 4):
        word = int.from_bytes(data[start : start + 4], "big")
        letters += [_Z85[word // 85**place % 85] for place in (4, 3, 2, 1, 0)]
    return "".join(letters)


def roaring(positions: Sequence[int]) -> bytes:
    """Positions as a 64-bit Roaring bitmap in its portable format."""
    all_of = np.unique(np.array(positions, np.uint64))
    highs = np.unique(all_of >> np.uint64(32))
    found = struct.pack("<Q", len(highs))
    for high in highs:
        low = (all_of[all_of >> np.uint64(32) == high] & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        found += struct.pack("<I", int(high)) + _roaring_32(low)
    return found


def _roaring_32(values: np.ndarray[Any, np.dtype[np.uint32]]) -> bytes:
    keys = np.unique(values >> np.uint32(16))
    heads, bodies = b"", []
    for key in keys:
        low = (values[values >> np.uint32(16) == key] & np.uint32(0xFFFF)).astype("<u2")
        heads += struct.pack("<HH", int(key), len(low) - 1)
        if len(low) <= _LARGEST_ARRAY:
            bodies.append(low.tobytes())
        else:
            flags = np.zeros(65536, np.uint8)
            flags[low] = 1
            bodies.append(np.packbits(flags, bitorder="little").tobytes())
    place = 8 + len(heads) + 4 * len(keys)
    offsets = b""
    for body in bodies:
        offsets += struct.pack("<I", place)
        place += len(body)
    return struct.pack("<II", 12346, len(keys)) + heads + offsets + b"".join(bodies)


def delete_of_iceberg(
    table: Any,
    positions: Sequence[tuple[str, int]],
    *,
    vectors: bool = False,
    content: DataFileContent = DataFileContent.POSITION_DELETES,
    form: FileFormat = FileFormat.PARQUET,
) -> Path:
    """Add a snapshot with a delete file, of (data file, position), to an Iceberg table; the file."""
    where = f"{table.location()}/data/deletes-{uuid4()}.{'puffin' if vectors else 'parquet'}"
    path = Path(where.removeprefix("file://"))
    if vectors:
        path.write_bytes(puffin_content(positions))
        form = FileFormat.PUFFIN
    else:
        paths, places = [item[0] for item in positions], [item[1] for item in positions]
        fields = [
            pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
        ]
        pq.write_table(
            pa.table([pa.array(paths, pa.string()), pa.array(places, pa.int64())], schema=pa.schema(fields)),
            path,
        )
    file = DataFile.from_args(
        content=content,
        file_path=where,
        file_format=form,
        partition=Record(),
        record_count=len(positions),
        file_size_in_bytes=path.stat().st_size,
        equality_ids=[1] if content is DataFileContent.EQUALITY_DELETES else None,
    )
    file.spec_id = table.spec().spec_id
    _commit(table, file)
    return path


class _DeleteManifest(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def _commit(table: Any, file: DataFile) -> None:
    before = table.current_snapshot()
    number, sequence = uuid4().int >> 66, table.metadata.last_sequence_number + 1
    folder = f"{table.location()}/metadata"
    output = table.io.new_output(f"{folder}/deletes-{number}.avro")
    with _DeleteManifest(table.spec(), table.schema(), output, number, "deflate") as writer:
        writer.add_entry(
            ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=file)
        )
    listed = f"{folder}/snap-{number}.avro"
    with write_manifest_list(
        2, table.io.new_output(listed), number, before.snapshot_id, sequence, "deflate"
    ) as writing:
        writing.add_manifests([writer.to_manifest_file(), *before.manifests(table.io)])
    snapshot = {
        "snapshot-id": number,
        "parent-snapshot-id": before.snapshot_id,
        "sequence-number": sequence,
        "timestamp-ms": int(time.time() * 1000),
        "manifest-list": listed,
        "summary": {"operation": "delete"},
        "schema-id": table.schema().schema_id,
    }
    updates = (
        AddSnapshotUpdate.model_validate({"snapshot": snapshot}),
        SetSnapshotRefUpdate.model_validate({"ref-name": "main", "type": "branch", "snapshot-id": number}),
    )
    table.catalog.commit_table(table, (), updates)
    table.refresh()


def puffin_content(positions: Sequence[tuple[str, int]]) -> bytes:
    """A Puffin file of a deletion vector for each data file, of (data file, position)."""
    content, blobs = b"PFA1", []
    for path in dict.fromkeys(path for path, _ in positions):
        places = [place for other, place in positions if other == path]
        data = _ICEBERG_MAGIC + roaring(places)
        blob = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        told = {
            "type": "deletion-vector-v1",
            "fields": [2147483645],
            "snapshot-id": -1,
            "sequence-number": -1,
        }
        told |= {"offset": len(content), "length": len(blob)}
        blobs.append({**told, "properties": {"referenced-data-file": path, "cardinality": str(len(places))}})
        content += blob
    footer = json.dumps({"blobs": blobs}).encode()
    return content + b"PFA1" + footer + struct.pack("<I", len(footer)) + bytes(4) + b"PFA1"


def with_blobs(content: bytes, **changed: Any) -> bytes:
    """A Puffin file whose footer says something else of each of its vectors."""
    end = len(content) - 12
    start = end - int.from_bytes(content[end : end + 4], "little")
    footer = json.loads(content[start:end])
    data = json.dumps({"blobs": [{**blob, **changed} for blob in footer["blobs"]]}).encode()
    return content[:start] + data + struct.pack("<I", len(data)) + content[end + 4 :]
