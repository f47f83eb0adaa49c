"""How far the job of an output folder is, read from its records; nothing is locked or changed."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parity.errors import DatasetError
from parity_batch.folder import SUCCESS, SUMMARY, UNITS, record_name
from parity_batch.identity import MANIFEST, job_of, read_manifest
from parity_batch.places import place_of
from parity_batch.progress import size
from parity_batch.reasons import common_reasons
from parity_batch.storage import Store, store_at
from parity_batch.summary import files_told


@dataclass(frozen=True)
class Status:
    """How far a job is.

    Attributes:
        output: the output folder.
        state: "complete"; "running", while a process holds the folder; "failed", with every row scored and
            not one answered; "stopped", to be continued; or "unfinished", running or stopped, where an object
            store cannot tell.
        handler: name and version.
        profile: the profile's name.
        files: the input files, those that were left out included.
        units: the units of work.
        done_units: those that are finished.
        rows: the rows of all units.
        done_rows: those of finished units.
        row_errors: the rows of finished units that failed, by kind.
        reasons: why rows failed, the most common ones of the first few parts that have some.
        size_bytes: of the finished parts.
        skipped_files: the files that the last run could not read and left out, with the reason.
        next_units: the parts that are missing, the first few.
    """

    output: str
    state: str
    handler: str
    profile: str
    files: int
    units: int
    done_units: int
    rows: int
    done_rows: int
    row_errors: dict[str, int]
    reasons: tuple[str, ...]
    size_bytes: int
    skipped_files: dict[str, str]
    next_units: list[str]

    def to_dict(self) -> dict[str, Any]:
        """The status as JSON has it."""
        return asdict(self)

    def describe(self) -> str:
        """The status in a few lines for people."""
        all_done = self.done_rows >= self.rows
        share = 1.0 if all_done else min(self.done_rows / self.rows, 0.99)  # 100 % is all
        lines = [
            f"{self.output}: {self.state}, {files_told(self.files, len(self.skipped_files))}; "
            f"{self.handler}, profile {self.profile}",
            f"{self.done_units:,} of {self.units:,} parts, {self.done_rows:,} of {self.rows:,} rows "
            f"({share:.0%}), {size(self.size_bytes)}",
        ]
        if self.row_errors:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.row_errors.items())
            failed = sum(self.row_errors.values())
            every = "every row so far, " if failed == self.done_rows else ""
            lines.append(f"{every}{failed:,} rows failed ({kinds}); see {self.output}/_errors")
            lines += [f"  {reason}" for reason in self.reasons]
        if self.state == "failed":
            lines.append(
                "mend the handler or the input and start anew with --restart; the command that began the job "
                "with --max-errors 100% calls this a success"
            )
        lines += [f"skipped: {problem}" for problem in self.skipped_files.values()]
        if self.state in ("stopped", "unfinished") and self.next_units:
            lines.append(f"next: {', '.join(self.next_units)}; the command that began the job continues it")
        return "\n".join(lines)


def status(output: str | Path) -> Status:
    """How far the job of an output folder is.

    Raises:
        DatasetError: the folder is not there, or holds no job.
    """
    store = store_at(output if isinstance(output, Path) else place_of(output))
    try:
        there = store.names()
    except OSError as exc:
        raise DatasetError(f"{store.shown} cannot be listed: {' '.join(str(exc).split())}") from exc
    if MANIFEST not in there:
        what = "holds no batch job: there is no _manifest.json" if there else "is not there, or is empty"
        raise DatasetError(f"{store.shown} {what}; name the OUTPUT of a `parity batch` command")
    manifest = read_manifest(store)
    job = job_of(manifest)
    done: dict[str, dict[str, Any]] = {}
    kinds: Counter[str] = Counter()
    records = set(store.names(UNITS))

    def record_of(unit: dict[str, Any]) -> dict[str, Any] | None:
        name = record_name(unit["part"])
        return _record(store, name) if name.rpartition("/")[2] in records else None

    for unit, record in zip(manifest["units"], store.each(record_of, manifest["units"]), strict=True):
        if record is not None and record.get("job") == job:
            done[unit["part"]] = record
            kinds.update(record["row_errors"])
    done_rows = sum(record["rows"] for record in done.values())
    state = _state(SUCCESS in there, store.in_use())
    if state != "complete" and state != "running" and len(done) == len(manifest["units"]):
        state = "failed" if 0 < done_rows == kinds.total() else state
    skipped = (_record(store, SUMMARY) or {}).get("skipped_files", {})
    return Status(
        output=store.shown,
        state=state,
        handler=f"{manifest['handler']['name']}@{manifest['handler']['version']}",
        profile=manifest["profile"]["name"],
        files=len({item["path"] for item in manifest["inputs"]} | set(skipped)),
        units=len(manifest["units"]),
        done_units=len(done),
        rows=sum(unit["rows"] for unit in manifest["units"]),
        done_rows=sum(unit["rows"] for unit in manifest["units"] if unit["part"] in done),
        row_errors=dict(sorted(kinds.items())),
        reasons=common_reasons(store, [part for part, record in done.items() if record["row_errors"]]),
        size_bytes=sum(record["part"]["size_bytes"] for record in done.values()),
        skipped_files=skipped,
        next_units=[unit["part"] for unit in manifest["units"] if unit["part"] not in done][:3],
    )


def _state(complete: bool, in_use: bool | None) -> str:
    if in_use or complete:
        return "running" if in_use else "complete"
    return "unfinished" if in_use is None else "stopped"


def _record(store: Store, name: str) -> dict[str, Any] | None:
    try:
        return json.loads(store.read(name))
    except (OSError, ValueError):
        return None
