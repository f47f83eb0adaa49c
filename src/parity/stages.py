"""What the stages gave, row by row, so that two executions can be compared stage by stage; and the tap.

A stage's value is a tree (dicts, tuples, dataclasses) of arrays with the rows first, or of lists with one
item a row. Here it is taken apart into leaves by path, such as "value['pixels']", and each leaf into rows.

The tap: an engine entered while the environment variable `PARITY_TAP` names a folder writes there the rows
that it was given, what each stage made of them, and the answers before they are encoded. So the stages of
another process, a server or a batch job, can be compared with this one's, whatever its runner is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from parity.batch import Batch
from parity.durable import publish, temporary, write_json
from parity.padding import is_tensor
from parity.result import Result

TAP_VARIABLE: Final = "PARITY_TAP"
STAGES: Final = ("preprocess", "inference")

Value = np.ndarray[Any, Any]
Leaves = Mapping[str, Sequence[Value | None]]
"""For each place in a stage's value, each row's array without the batch axis; None where the row failed."""

_counter = itertools.count()


@dataclass(frozen=True)
class Traces:
    """What each stage gave for each of some rows, in one execution.

    Attributes:
        inputs: the rows as the handler got them, decoded.
        preprocess: what `preprocess` made of each row, by place.
        inference: what `inference` made of each row, by place.
        outputs: the answers before encoding, with `_error`; see `Result.to_table`.
    """

    inputs: pa.Table
    preprocess: Leaves
    inference: Leaves
    outputs: pa.Table

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.inputs.num_rows

    def stage(self, name: str) -> Leaves:
        """The leaves of the stage "preprocess" or "inference"."""
        return self.preprocess if name == "preprocess" else self.inference

    def take(self, rows: Sequence[int]) -> Traces:
        """The traces of the rows at these positions, in that order."""
        indices: Any = pa.array(rows, pa.int64())
        picked = [
            {path: [values[row] for row in rows] for path, values in self.stage(stage).items()}
            for stage in STAGES
        ]
        return Traces(self.inputs.take(indices), picked[0], picked[1], self.outputs.take(indices))

    def missing(self, rows: int) -> Traces:
        """Traces of rows that never got to the stages: null inputs and answers, no leaves."""
        nulls = [
            pa.Table.from_arrays([pa.nulls(rows, item.type) for item in table.schema], schema=table.schema)
            for table in (self.inputs, self.outputs)
        ]
        return Traces(nulls[0], {}, {}, nulls[1])

    def aligned(self, rows: pa.Table) -> tuple[Traces, list[int], list[int]]:
        """The traces of `rows`, found by content, whatever order and batches they were given in.

        Returns:
            The traces of the rows that were found, the positions in `rows` that they belong to, and the
            positions in these traces of rows that are none of `rows`: where there are such, decoding made
            other rows of what was sent.
        """
        places: dict[bytes, list[int]] = {}
        for place, digest in enumerate(row_digests(self.inputs)):
            places.setdefault(digest, []).append(place)
        strangers = {place for found in places.values() for place in found}
        found: list[int] = []
        known: list[int] = []
        for position, digest in enumerate(row_digests(rows)):
            if digest in places:
                here = places[digest]
                strangers.difference_update(here)
                known.append(position)
                found.append(here.pop(0) if len(here) > 1 else here[0])
        return self.take(found), known, sorted(strangers)

    @staticmethod
    def concat(parts: Sequence[Traces]) -> Traces:
        """The rows of several traces, one after the other; a place that one lacks holds None there."""
        if not parts:
            raise ValueError("no traces to put together")
        joined: list[dict[str, list[Value | None]]] = []
        for stage in STAGES:
            paths = dict.fromkeys(path for part in parts for path in part.stage(stage))
            leaves: dict[str, list[Value | None]] = {}
            for path in paths:
                leaves[path] = [
                    value for part in parts for value in part.stage(stage).get(path, [None] * part.num_rows)
                ]
            joined.append(leaves)
        inputs = pa.concat_tables([part.inputs for part in parts])
        return Traces(inputs, joined[0], joined[1], pa.concat_tables([part.outputs for part in parts]))


def traces(batch: Batch, result: Result) -> Traces:
    """The traces of a batch that was run with `stages=True`."""
    found: list[dict[str, list[Value | None]]] = [{}, {}]
    for values in result.stages:
        for kept, stage in zip(found, STAGES, strict=True):
            for path, leaf in leaves(getattr(values, stage)):
                column = kept.setdefault(path, [None] * result.num_rows)
                for row, value in zip(values.rows.tolist(), rows_of(leaf, len(values.rows)), strict=True):
                    column[row] = value
    return Traces(batch.to_table(), found[0], found[1], result.to_table())


def leaves(value: Any, path: str = "value") -> Iterator[tuple[str, Any]]:
    """The leaves of a stage's value with their paths: arrays, tensors, lists and scalars."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[Any, Any]", value).items():
            yield from leaves(item, f"{path}[{key!r}]")
    elif isinstance(value, tuple):
        for position, item in enumerate(cast("tuple[Any, ...]", value)):
            yield from leaves(item, f"{path}[{position}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for option in dataclasses.fields(value):
            yield from leaves(getattr(value, option.name), f"{path}.{option.name}")
    elif value is not None:
        yield path, value


def rows_of(leaf: Any, rows: int) -> list[Value]:
    """A leaf's value for each of `rows` rows; one that has no rows is the same for all."""
    if is_tensor(leaf):
        try:
            tensor = leaf.detach().cpu()
            leaf = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
        except (TypeError, RuntimeError):  # sparse, quantised, or of a dtype that numpy has not
            return [_array(str(leaf))] * rows
    has_rows = isinstance(leaf, list) or (isinstance(leaf, np.ndarray) and leaf.ndim > 0)
    if has_rows and len(leaf) == rows:
        return [_array(item) for item in leaf]
    return [_array(leaf)] * rows


def snapshot(value: Any) -> Any:
    """The tree with its arrays copied, so that a buffer that is used again does not change it."""
    if is_tensor(value):
        return value.detach().clone()
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list):
        return [snapshot(item) for item in cast("list[Any]", value)]
    if isinstance(value, Mapping):
        return {key: snapshot(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, tuple):
        items = [snapshot(item) for item in cast("tuple[Any, ...]", value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        copied = {
            option.name: snapshot(getattr(value, option.name))
            for option in dataclasses.fields(value)
            if option.init
        }
        return dataclasses.replace(value, **copied)
    return value


def row_digests(rows: pa.Table) -> list[bytes]:
    """16 bytes for each row that are the same exactly where the row's bits are."""
    digests: list[bytes] = []
    for row in range(rows.num_rows):
        one = rows.take(cast("Any", pa.array([row]))).combine_chunks().to_batches()[0]
        # The message of a record batch: lengths and buffers, neither field names nor metadata.
        digests.append(hashlib.blake2b(one.serialize().to_pybytes(), digest_size=16).digest())
    return digests


class Tap:
    """Writes what the stages gave to a folder, a file a batch, whole or not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @staticmethod
    def from_environment() -> Tap | None:
        """The tap that the environment asks for, or None."""
        folder = os.environ.get(TAP_VARIABLE)
        return Tap(Path(folder)) if folder else None

    def enter(self, fingerprint: Mapping[str, str]) -> None:
        """Write in what environment this process answers."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_json(self._folder / f"{os.getpid()}.json", fingerprint)

    def record(self, batch: Batch, result: Result) -> None:
        """Write the traces of a batch that was run with `stages=True`."""
        write_traces(self._folder / f"{os.getpid()}-{next(_counter):06d}.arrow", traces(batch, result))


@contextlib.contextmanager
def tapped(folder: Path) -> Generator[None]:
    """Have engines that are entered meanwhile, here and in processes started meanwhile, write to a tap."""
    before = os.environ.get(TAP_VARIABLE)
    os.environ[TAP_VARIABLE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[TAP_VARIABLE]
        else:
            os.environ[TAP_VARIABLE] = before


def read_tap(folder: Path) -> Traces | None:
    """All that engines wrote to a tap's folder, in the order of the files' names; None when nothing was."""
    files = sorted(path for path in folder.glob("*.arrow") if not path.name.startswith("."))
    return Traces.concat([read_traces(file) for file in files]) if files else None


def read_tap_fingerprint(folder: Path) -> dict[str, str]:
    """The environment of the process that wrote to a tap's folder last; empty when none did."""
    files = [path for path in folder.glob("*.json") if not path.name.startswith(".")]
    if not files:
        return {}
    return json.loads(max(files, key=lambda path: path.stat().st_mtime_ns).read_text(encoding="utf-8"))


def write_traces(path: Path, found: Traces) -> None:
    """Write traces as one Arrow IPC file: inputs and outputs as structs, each leaf as arrays with a head."""
    columns: dict[str, pa.Array[Any]] = {
        "inputs": _struct(found.inputs),
        "outputs": _struct(found.outputs),
    }
    for stage in STAGES:
        for leaf, values in found.stage(stage).items():
            columns[f"{stage}:{leaf}"] = pa.array([_packed(value) for value in values], pa.large_binary())
    table = pa.table(columns)
    path.parent.mkdir(parents=True, exist_ok=True)
    with pa.OSFile(str(temporary(path)), "wb") as sink, ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    publish(path)


def read_traces(path: Path) -> Traces:
    """The traces in a file that `write_traces` wrote."""
    with ipc.open_file(str(path)) as reader:
        table = reader.read_all()
    stages: list[dict[str, list[Value | None]]] = []
    for stage in STAGES:
        names = [name for name in table.column_names if name.startswith(f"{stage}:")]
        stages.append(
            {
                name.partition(":")[2]: [_unpacked(item) for item in table.column(name).to_pylist()]
                for name in names
            }
        )
    return Traces(_unstruct(table, "inputs"), stages[0], stages[1], _unstruct(table, "outputs"))


def _struct(table: pa.Table) -> pa.Array[Any]:
    batches = table.combine_chunks().to_batches()
    fields = list(table.schema)
    if not batches:
        return pa.array([], pa.struct(fields))
    return pa.StructArray.from_arrays(batches[0].columns, fields=fields)


def _unstruct(table: pa.Table, name: str) -> pa.Table:
    column = table.column(name)
    array = cast("Any", pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type))
    return pa.Table.from_arrays(array.flatten(), schema=pa.schema(list(array.type)))


def _array(value: Any) -> Value:
    """One row's value as an array; what is no number, truth or text is told by its text."""
    found = cast("Value", np.asarray(value))
    if found.dtype.hasobject or found.dtype.kind not in "biufcUSmM":
        try:
            return np.asarray(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str))
        except (TypeError, ValueError):
            return np.asarray(str(value))
    return found


def _packed(value: Value | None) -> bytes | None:
    if value is None:
        return None
    head = json.dumps({"dtype": value.dtype.str, "shape": value.shape}).encode()
    return len(head).to_bytes(4, "little") + head + np.ascontiguousarray(value).tobytes()


def _unpacked(data: bytes | None) -> Value | None:
    if data is None:
        return None
    size = int.from_bytes(data[:4], "little")
    head = json.loads(data[4 : 4 + size])
    return np.frombuffer(data[4 + size :], np.dtype(head["dtype"])).reshape(head["shape"])
