"""The second process of a probe: what it is given, what it gives back, and what it does.

The first process writes a folder and runs `COMMAND FOLDER`; the module behind that command loads the handler
and calls `answer`. Nothing but digests comes back.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
from pyarrow import ipc

from parity.batch import Batch
from parity.codec.arrow import decode_table
from parity.engine import Engine
from parity.errors import RunnerError
from parity.exact.trial import reference_of
from parity.handler import LoadedHandler
from parity.profile import Profile

COMMAND: Final = (sys.executable, "-m", "parity.cli.probe_process")

_JOB, _ROWS, _ANSWER = "job.json", "rows.arrow", "answer.json"
_STDERR_LINES = 20

Load = Callable[[str, str | None], LoadedHandler]
"""Loads the handler under a reference, with the folder to import it from."""


def ask(
    loaded: LoadedHandler, profile: Profile, rows: Batch, buckets: Sequence[int], judged: Sequence[str]
) -> dict[int, list[str]]:
    """For each bucket the digests of what the rows get in a process of their own.

    Args:
        loaded: the handler; it must have a reference.
        profile: what it is loaded with.
        rows: the rows, asked in order, a bucket at a time.
        buckets: the buckets to ask at.
        judged: the places that the digests are made of.

    Raises:
        RunnerError: the process ended with an error; the message ends with what it said last.
    """
    with tempfile.TemporaryDirectory(prefix="parity-probe-") as temporary:
        folder = Path(temporary)
        job = {
            "handler": loaded.ref,
            "app_dir": loaded.app_dir,
            "profile": profile.name,
            "settings": profile.to_settings(),
            "buckets": list(buckets),
            "judged": list(judged),
        }
        (folder / _JOB).write_text(json.dumps(job), encoding="utf-8")
        _write_table(rows.to_table(), folder / _ROWS)
        done = subprocess.run(
            [*COMMAND, temporary],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").rstrip().splitlines()[-_STDERR_LINES:]
            ended = f"the second process of the probe ended with code {done.returncode}"
            raise RunnerError("\n  ".join([f"{ended} on handler {loaded.ref}:", *said]))
        found: dict[str, list[str]] = json.loads((folder / _ANSWER).read_text(encoding="utf-8"))
        return {int(bucket): digests for bucket, digests in found.items()}


def answer(folder: Path, load: Load) -> None:
    """Do the job in a folder."""
    job: Mapping[str, Any] = json.loads((folder / _JOB).read_text(encoding="utf-8"))
    loaded = load(job["handler"], job["app_dir"])
    profile = Profile(job["profile"]).with_settings(job["settings"])
    rows = decode_table(loaded.inputs, _read_table(folder / _ROWS)).batch
    judged = cast("list[str]", job["judged"])
    digests: dict[str, list[str]] = {}
    with Engine(loaded, profile) as engine:
        for bucket in cast("list[int]", job["buckets"]):
            sheet = reference_of(engine, rows, bucket)
            digests[str(bucket)] = [sheet.digest(row, judged) for row in range(sheet.num_rows)]
    (folder / _ANSWER).write_text(json.dumps(digests), encoding="utf-8")


def _write_table(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _read_table(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source, ipc.open_file(source) as reader:
        return reader.read_all()
