"""Answers of runners, kept in files, so that of several worker processes the first one asks for them all."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

from parity.durable import publish, temporary, write_text


@dataclass(frozen=True)
class Answers:
    """What a runner answered to all rows in one wire form.

    Attributes:
        table: `Result.to_table()`; None where the runner crashed or refused.
        error: why there are none.
        refused: whether the runner refused.
        seconds: how long it took.
    """

    table: pa.Table | None
    error: str = ""
    refused: bool = False
    seconds: float = 0.0


ByWire = dict[str, Answers]


def once(folder: Path | None, key: str, make: Callable[[], ByWire]) -> ByWire:
    """What `make` gives, made by whoever asks first for `key`; the others wait and read it.

    Without a folder there are no others.
    """
    if folder is None:
        return make()
    name = hashlib.sha256(key.encode()).hexdigest()[:24]
    with (folder / f"{name}.lock").open("a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel lets go of it when the process ends
        index = folder / f"{name}.json"
        if index.is_file():
            return _read(folder, json.loads(index.read_text(encoding="utf-8")))
        found = make()
        write_text(index, json.dumps(_write(folder, name, found)))
        return found


def _write(folder: Path, name: str, found: ByWire) -> dict[str, dict[str, object]]:
    told: dict[str, dict[str, object]] = {}
    for number, (wire, answers) in enumerate(found.items()):
        file = f"{name}-{number}.arrow" if answers.table is not None else ""
        if answers.table is not None:
            path = folder / file
            with ipc.new_file(str(temporary(path)), answers.table.schema) as writer:
                writer.write_table(answers.table)
            publish(path)
        told[wire] = {
            "file": file,
            "error": answers.error,
            "refused": answers.refused,
            "seconds": answers.seconds,
        }
    return told


def _read(folder: Path, told: dict[str, dict[str, object]]) -> ByWire:
    found: ByWire = {}
    for wire, item in told.items():
        table = None
        if item["file"]:
            with ipc.open_file(str(folder / str(item["file"]))) as reader:
                table = reader.read_all()
        seconds = float(str(item["seconds"]))
        found[wire] = Answers(table, str(item["error"]), bool(item["refused"]), seconds)
    return found
