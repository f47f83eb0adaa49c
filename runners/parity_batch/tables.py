"""Delta Lake and Iceberg tables as inputs: the data files that are alive in one version, and no other.

The libraries read a table's log; the files are then read as any Parquet file is, without the rows that were
deleted beside them. What else would make their rows differ from the table's, as columns of another name
inside a file, is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pyarrow as pa

from parity.errors import ConfigError, DatasetError
from parity_batch.deleted_rows import DeletedRows
from parity_batch.files import ICEBERG_METADATA, InputFile, table_kind
from parity_batch.footers import HIVE_NULL, Source, SourceFile
from parity_batch.iceberg_deletes import deleted_rows, refuse_equality_deletes
from parity_batch.places import Place, as_url, bare_url, beside, is_url, names_in, place_of, shown_place

_METADATA_NAME = re.compile(r"v?([0-9]+)(?:-.*)?(?:\.gz)?\.metadata\.json")
_SAME = {"s3a": "s3", "s3n": "s3"}
_FIELD_ID = b"PARQUET:field_id"
_HARMLESS_FEATURES = (
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "typeWidening",
    "deletionVectors",
)


@dataclass(frozen=True)
class Table:
    """One version of a table.

    Attributes:
        kind: "Delta Lake" or "Iceberg".
        version: the version's number, or the snapshot's id.
        files: its data files, sorted by name.
        schema: its columns; a file may lack some, and then they are null there.
        deleted: the rows that are deleted and still in a file, by where the file is.
    """

    kind: str
    version: int
    files: tuple[InputFile, ...]
    schema: pa.Schema
    deleted: Mapping[Place, DeletedRows]

    def notes(self, sources: Sequence[Source]) -> list[str]:
        """The version, and how many rows are left out of its files, for people."""
        what = "version" if self.kind == "Delta Lake" else "snapshot"
        found = [f"{self.kind} table at {what} {self.version}"]
        if deleted := sum(source.deleted_rows for source in sources):
            rows = sum(source.num_rows for source in sources)
            found.append(f"{deleted:,} of the {rows:,} rows of the table's files are deleted and left out")
        return found

    def placed(self, source: Source) -> SourceFile:
        """A file as one of the table's."""
        file = source.file
        return replace(file, absent=self.absent(source), deleted=self.deleted.get(file.path))

    @property
    def identity(self) -> dict[str, Any]:
        """What a job keeps of the table: a change of an Iceberg table's columns alone makes no snapshot."""
        found: dict[str, Any] = {"kind": self.kind, "version": self.version}
        if self.kind == "Iceberg":
            columns = [(field.name, str(field.type), field.nullable) for field in self.schema]
            text = json.dumps([columns, list(_ids(self.schema))])
            found["schema_sha256"] = hashlib.sha256(text.encode()).hexdigest()
        return found

    def problems(self, source: Source) -> list[str]:
        """Why a file's rows, and its columns found by name, would not be the table's."""
        deleted = self.deleted.get(source.file.path)
        if deleted is not None and deleted.end > source.num_rows:
            return [
                f"{source.name}: the table says that its row {deleted.end - 1} is deleted, and it has "
                f"{source.num_rows} rows; the file is not the one that the table was written with"
            ]
        if self.kind == "Delta Lake":
            return []
        theirs, ours = dict(_ids(source.schema)), dict(_ids(self.schema))
        if not theirs:
            return [
                f"{source.name}: its columns have no field ids, and the table's names may not be theirs; "
                "rewrite the table's data files"
            ]
        names = {number: name for name, number in ours.items()}
        found = [
            f"{source.name}: column {name!r} is {names[number]!r} in the table by now; rewrite its data files"
            for name, number in theirs.items()
            if number in names and names[number] != name
        ]
        found += [
            f"{source.name}: column {name!r} was dropped and added again; rewrite the table's data files"
            for name, number in theirs.items()
            if name in ours and ours[name] != number and number not in names
        ]
        return found

    def absent(self, source: Source) -> tuple[str, ...]:
        """The table's columns that a file lacks."""
        there = {*source.schema.names, *source.file.folder_values}
        return tuple(name for name in self.schema.names if name not in there)


def find_table(inputs: Sequence[str | Path], version: str | None) -> Table | None:
    """The table that the input is; None where it is none.

    Args:
        inputs: what a job was given.
        version: the version to read; by default the current one.

    Raises:
        DatasetError: the table cannot be read as it is, or there is no such version.
        ConfigError: its library is not installed, or a version is asked for where there is no table.
    """
    places = [item if isinstance(item, Path) else place_of(item) for item in inputs]
    found = [(place, kind) for place in places if (kind := table_kind(place)) is not None]
    if not found:
        if version is not None:
            raise ConfigError(f"--input-version {version} is for a table, and the inputs are none")
        return None
    if len(places) > 1:
        raise DatasetError(
            f"input {shown_place(found[0][0])} is a {found[0][1]} table, and a job reads one table and "
            "nothing else; give it alone"
        )
    number = None
    if version is not None:
        if not version.isascii() or not version.isdigit():
            raise ConfigError(f"--input-version {version!r} is no number of a version or snapshot")
        number = int(version)
    place, kind = found[0]
    return _delta(place, number) if kind == "Delta Lake" else _iceberg(place, number)


def _delta(place: Place, version: int | None) -> Table:
    shown = shown_place(place)
    try:
        import deltalake
        from deltalake.exceptions import DeltaError
    except ImportError as exc:
        raise _not_installed(shown, "Delta Lake", "deltalake", "delta") from exc
    where = str(place.absolute()) if isinstance(place, Path) else bare_url(place)
    try:
        table: Any = deltalake.DeltaTable(where, version=version, storage_options=_delta_options(place))
        protocol, settings = table.protocol(), table.metadata().configuration
        keys = table.metadata().partition_columns
        actions: Any = pa.table(table.get_add_actions(flatten=False))
        schema: Any = pa.schema(table.schema().to_arrow())
        vectors = _vectors(table, shown) if "deletionVectors" in (protocol.reader_features or ()) else {}
    except (DeltaError, OSError, ValueError) as exc:
        asked = f" at version {version}" if version is not None else ""
        raise DatasetError(
            f"input {shown}: the Delta Lake table cannot be read{asked}: {' '.join(str(exc).split())}"
        ) from exc
    if settings.get("delta.columnMapping.mode", "none") != "none":
        raise DatasetError(
            f"input {shown}: the Delta Lake table maps columns (delta.columnMapping.mode), so its files hold "
            "other names; write it to a table without column mapping first"
        )
    strange = [
        name for name in protocol.reader_features or () if name not in (*_HARMLESS_FEATURES, "columnMapping")
    ]
    if strange:
        raise DatasetError(
            f"input {shown}: the Delta Lake table needs what is not known here ({', '.join(strange)}); write "
            "it to a plain table first"
        )
    for key in keys:
        _check_key(shown, key, schema.field(key).type)
    values = [_texts(actions.column("partition"), key) for key in keys] if keys and len(actions) else []
    paths = actions.column("path").to_pylist()
    files = [
        InputFile(
            beside(place, unquote(path)),
            "/".join(
                [
                    *(f"{quote(key, safe='')}={_named(values[at][row])}" for at, key in enumerate(keys)),
                    unquote(path).rpartition("/")[2],
                ]
            ),
        )
        for row, path in enumerate(paths)
    ]
    above = table.table_uri.rstrip("/")
    uris = [unquote(path if is_url(path) else f"{above}/{path}") for path in paths]
    if stray := vectors.keys() - set(uris):
        raise DatasetError(
            f"input {shown}: the Delta Lake table has a deletion vector of {min(stray)}, which is none of "
            "its files; its rows cannot be told from the deleted ones"
        )
    deleted = {file.path: rows for file, uri in zip(files, uris, strict=True) if (rows := vectors.get(uri))}
    return _table("Delta Lake", table.version(), files, schema, shown, deleted)


def _vectors(table: Any, shown: str) -> dict[str, DeletedRows | None]:
    """The rows that deletion vectors delete, by the URI of the file with nothing in it written as %XX."""
    if not hasattr(table, "deletion_vectors"):
        raise ConfigError(
            f"input {shown}: files of the Delta Lake table may have deletion vectors, which this release of "
            "deltalake does not give; pip install --upgrade deltalake"
        )
    found: dict[str, DeletedRows | None] = {}
    for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()):
        for uri, kept in zip(batch.column("filepath"), batch.column("selection_vector"), strict=True):
            flags = cast("Any", kept).values.to_numpy(zero_copy_only=False)
            found[unquote(str(uri))] = DeletedRows.flagged(~flags)
    return found


def _iceberg(place: Place, snapshot: int | None) -> Table:
    shown = shown_place(place)
    try:
        from pyiceberg.exceptions import (  # pyright: ignore[reportMissingImports]
            NoSuchTableError,
            ValidationError,
        )
        from pyiceberg.table import StaticTable  # pyright: ignore[reportMissingImports]
    except ImportError as exc:
        raise _not_installed(shown, "Iceberg", "pyiceberg", "iceberg") from exc
    metadata = _metadata_of(place, shown)
    try:
        table: Any = StaticTable.from_metadata(metadata, _iceberg_options(place))
        known = [item.snapshot_id for item in table.snapshots()]
        if snapshot is not None and snapshot not in known:
            raise DatasetError(
                f"input {shown}: the Iceberg table has no snapshot {snapshot}; it has "
                f"{', '.join(map(str, known[-5:])) or 'none'}"
            )
        if not known:
            raise DatasetError(f"input {shown}: the Iceberg table has no snapshot, so that there is no row")
        number = snapshot if snapshot is not None else table.current_snapshot().snapshot_id
        scan = table.scan(snapshot_id=number)
        refuse_equality_deletes(shown, table.snapshot_by_id(number).manifests(table.io), table.io)
        tasks = list(scan.plan_files())
        # A change of the schema makes no snapshot: the current one is read with the current schema.
        fields = table.schema() if snapshot is None else scan.projection()
    except (ValidationError, NoSuchTableError, OSError, ValueError, KeyError, NotImplementedError) as exc:
        raise DatasetError(
            f"input {shown}: the Iceberg table cannot be read: {' '.join(str(exc).split())}"
        ) from exc
    refuse_other_formats(shown, tasks)
    deleted = deleted_rows(shown, tasks, table.io)
    for field in fields.fields:
        if getattr(field, "initial_default", None) is not None:
            raise DatasetError(
                f"input {shown}: column {field.name!r} of the Iceberg table has a default for older files; "
                "rewrite its data files"
            )
    files = [InputFile(data_file(place, task.file.file_path), _base(task.file.file_path)) for task in tasks]
    gone = {data_file(place, path): rows for path, rows in deleted.items()}
    if len({file.name for file in files}) < len(files):
        files = [
            InputFile(file.path, task.file.file_path.replace("=", "-").partition("://")[2].lstrip("/"))
            for file, task in zip(files, tasks, strict=True)
        ]
    return _table("Iceberg", number, files, _plain(fields.as_arrow()), shown, gone)


def refuse_other_formats(shown: str, tasks: Sequence[Any]) -> None:
    """Raise DatasetError where a scan's data files are no Parquet."""
    other = {str(task.file.file_format) for task in tasks} - {"PARQUET", "FileFormat.PARQUET"}
    if other:
        raise DatasetError(f"input {shown}: files of the Iceberg table are {other}, and Parquet is read only")


def _table(
    kind: str,
    version: int,
    files: list[InputFile],
    schema: Any,
    shown: str,
    deleted: Mapping[Place, DeletedRows],
) -> Table:
    if not files:
        raise DatasetError(f"input {shown}: the {kind} table has no data file at {version}")
    return Table(kind, version, tuple(sorted(files, key=lambda file: file.name)), schema, deleted)


def _not_installed(shown: str, kind: str, package: str, extra: str) -> ConfigError:
    return ConfigError(
        f"input {shown} is a {kind} table, and reading one takes the package {package}: "
        f"pip install 'parity[{extra}]'; its folder alone does not tell which files are alive"
    )


def _check_key(shown: str, key: str, kind: Any) -> None:
    known = (
        pa.types.is_string, pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_date,
        pa.types.is_decimal,
    )  # fmt: skip
    if not any(check(kind) for check in known):
        raise DatasetError(
            f"input {shown}: partition column {key!r} of the table is {kind}, which is not read from the log"
        )


def _texts(partition: Any, key: str) -> list[str | None]:
    values = partition.combine_chunks().field(key).cast(pa.string()).to_pylist()
    return [value if value != "" else None for value in values]


def _named(value: str | None) -> str:
    return HIVE_NULL if value is None else quote(value, safe="")


def _metadata_of(place: Place, shown: str) -> str:
    """The metadata file of the current version, as the folder tells."""
    if str(place).partition("?")[0].endswith(ICEBERG_METADATA):
        return str(place.absolute()) if isinstance(place, Path) else bare_url(place)
    numbers: dict[int, list[str]] = {}
    for name in names_in(beside(place, "metadata")):
        if not name.removesuffix(".gz").endswith(ICEBERG_METADATA):
            continue
        parsed = _METADATA_NAME.fullmatch(name)
        if parsed is None:
            raise DatasetError(
                f"input {shown}: {name!r} of the Iceberg table's metadata has no number of a version that is "
                f"known here, and may be its current one; name the {ICEBERG_METADATA} file that the catalog "
                "names"
            )
        numbers.setdefault(int(parsed[1]), []).append(name)
    newest = numbers[max(numbers)] if numbers else []
    if len(newest) != 1:
        raise DatasetError(
            f"input {shown}: {len(newest)} metadata files of the Iceberg table could be its current one "
            f"({', '.join(sorted(newest))}); name the one that the catalog names"
        )
    found = beside(place, f"metadata/{newest[0]}")
    return str(found.absolute()) if isinstance(found, Path) else bare_url(found)


def data_file(place: Place, path: str) -> Place:
    """Where a data file is: Iceberg's paths are literal, so that nothing of them is decoded."""
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme or not rest.startswith("/"):
        return Path(path)
    if scheme == "file":
        return Path(f"/{rest[2:].partition('/')[2]}" if rest.startswith("//") else rest)
    _, mark, options = str(place).partition("?") if isinstance(place, str) else ("", "", "")
    return f"{as_url(f'{_SAME.get(scheme, scheme)}:{rest}')}{mark}{options}"


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _ids(fields: Any, above: str = "") -> Iterator[tuple[str, int]]:
    for field in fields:
        yield from _ids_of(field, f"{above}{field.name}")


def _ids_of(field: Any, name: str) -> Iterator[tuple[str, int]]:
    """The ids of a field and of all below it; what writers call a list's and a map's own fields varies."""
    if field.metadata and _FIELD_ID in field.metadata:
        yield name, int(field.metadata[_FIELD_ID])
    kind = field.type
    if pa.types.is_struct(kind):
        yield from _ids(kind, f"{name}.")
    elif pa.types.is_map(kind):
        yield from _ids_of(kind.key_field, f"{name}.key")
        yield from _ids_of(kind.item_field, f"{name}.value")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _ids_of(kind.value_field, f"{name}[]")


def _plain(schema: pa.Schema) -> pa.Schema:
    """A schema with the types that files have: pyiceberg calls all text large."""
    plain: dict[Any, Any] = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return pa.schema([field.with_type(plain.get(field.type, field.type)) for field in schema])


def _query(place: Place) -> dict[str, str]:
    if isinstance(place, Path):
        return {}
    parts = urlsplit(place)
    found = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    if "endpoint_override" in found:
        found["endpoint"] = f"{found.get('scheme', 'https')}://{found['endpoint_override']}"
    if parts.username and parts.password:
        found |= {"key": unquote(parts.username), "secret": unquote(parts.password)}
    return found


def _delta_options(place: Place) -> dict[str, str]:
    names = {
        "endpoint": "AWS_ENDPOINT_URL",
        "region": "AWS_REGION",
        "key": "AWS_ACCESS_KEY_ID",
        "secret": "AWS_SECRET_ACCESS_KEY",
    }
    found = _query(place)
    options = {names[key]: value for key, value in found.items() if key in names}
    if found.get("scheme") == "http":
        options["AWS_ALLOW_HTTP"] = "true"
    return options


def _iceberg_options(place: Place) -> dict[str, str]:
    names = {
        "endpoint": "s3.endpoint",
        "region": "s3.region",
        "key": "s3.access-key-id",
        "secret": "s3.secret-access-key",
    }
    return {names[key]: value for key, value in _query(place).items() if key in names}
