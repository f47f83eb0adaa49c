"""The output folder of a job: whose it is, what is done already, and what marks it complete.

part-00000-u00000.parquet   one part for each unit, input columns passed through, outputs, `_error`
_errors/part-….parquet      the rows that failed, only for units that have some
_units/part-….json          one record for each finished unit, written after its part
_manifest.json              what the job is, written before the first part
_summary.json, _SUCCESS     written when every unit is done
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parity.durable import is_temporary, locked, sync_folder, temporary, write_json
from parity.errors import DatasetError, ResumeError
from parity_batch.footers import footer_digest
from parity_batch.identity import changes, job_of, read_manifest
from parity_batch.plan import Plan

MANIFEST, SUMMARY, SUCCESS, LOCK = "_manifest.json", "_summary.json", "_SUCCESS", ".parity.lock"
ERRORS, UNITS = "_errors", "_units"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A finished Parquet file: enough to see later that it is still the one that was written."""

    size_bytes: int
    footer_sha256: str

    @staticmethod
    def of(path: Path) -> FileRecord:
        """The record of a file; raises DatasetError or OSError when it is not a whole Parquet file."""
        return FileRecord(path.stat().st_size, footer_digest(path, path.name))


@dataclass(frozen=True, slots=True)
class UnitRecord:
    """A finished unit.

    Attributes:
        job: digest of the job that it is a unit of.
        rows: its rows.
        row_errors: the rows that failed, by kind.
        part: its part.
        errors: its file in the errors dataset, when a row failed.
    """

    job: str
    rows: int
    row_errors: dict[str, int]
    part: FileRecord
    errors: FileRecord | None


class OutputFolder:
    """An output folder that the job has the lock of; made by `open_folder`."""

    def __init__(self, path: Path, job: str) -> None:
        self.path = path
        self.job = job

    def part(self, name: str) -> Path:
        """Where a unit's part goes."""
        return self.path / f"{name}.parquet"

    def errors(self, name: str) -> Path:
        """Where a unit's failed rows go."""
        return self.path / ERRORS / f"{Path(name).name}.parquet"

    def record(self, name: str, record: UnitRecord) -> None:
        """Note a unit as finished; its files must be in place."""
        write_json(self.path / UNITS / f"{Path(name).name}.json", asdict(record), uuid.uuid4().hex[:12])

    def finished(self, name: str) -> UnitRecord | None:
        """The record of a finished unit whose files are as they were written; None when it is to be done."""
        try:
            found = json.loads((self.path / UNITS / f"{Path(name).name}.json").read_text(encoding="utf-8"))
            errors = found["errors"]
            record = UnitRecord(
                job=found["job"],
                rows=found["rows"],
                row_errors=found["row_errors"],
                part=FileRecord(**found["part"]),
                errors=FileRecord(**errors) if errors is not None else None,
            )
            if record.job != self.job or FileRecord.of(self.part(name)) != record.part:
                return None
            if record.errors is not None and FileRecord.of(self.errors(name)) != record.errors:
                return None
        except (OSError, ValueError, KeyError, TypeError, DatasetError):
            return None
        return record

    @property
    def is_complete(self) -> bool:
        """Whether a run of the job has ended in order."""
        return (self.path / SUCCESS).exists()

    def reopen(self) -> None:
        """Take back the mark of completeness, before a part is written."""
        (self.path / SUCCESS).unlink(missing_ok=True)

    def complete(self, summary: Mapping[str, Any], *, success: bool = True) -> None:
        """Write the summary, then the mark of completeness when the job was a success."""
        write_json(self.path / SUMMARY, summary)
        if success:
            (self.path / SUCCESS).touch()
        sync_folder(self.path)


@contextmanager
def open_folder(
    path: Path, plan: Plan, manifest: Mapping[str, Any], *, restart: bool = False
) -> Generator[OutputFolder]:
    """The output folder, locked: a new one, or one with the work of the same job, to be continued.

    Args:
        path: the folder; it and its parents are made when they are not there.
        plan: the job's plan.
        manifest: the job's manifest.
        restart: remove what an earlier job left here, whatever it was.

    Raises:
        ResumeError: the folder holds the work of a job that differs, and `restart` is not set.
        DatasetError: the folder holds something else, lies inside the inputs, or is in use by another job.
    """
    _check_place(path, plan)
    _make(path)
    with locked(path / LOCK):
        known = (path / MANIFEST).exists()
        if not known and (foreign := _foreign(path)):
            raise DatasetError(
                f"output folder {path} is not empty and not parity's: it holds {', '.join(foreign[:5])}"
                f"{' and more' if len(foreign) > 5 else ''}; name an empty or new folder"
            )
        if known:
            before = read_manifest(path / MANIFEST)
            if restart:
                _clear(path, before)
            elif different := changes(before, manifest):
                raise ResumeError(
                    f"output folder {path} holds the work of another job, and parts of both must not be "
                    "mixed; --restart removes it and begins anew\n  " + "\n  ".join(different)
                )
        parts = {(path / unit.part).parent for unit in plan.units}
        for folder in (path, path / ERRORS, path / UNITS, *parts):
            for file in folder.glob(".*"):
                if is_temporary(file):
                    file.unlink()
        (path / UNITS).mkdir(exist_ok=True)
        if not (path / MANIFEST).exists():
            write_json(path / MANIFEST, manifest)
        yield OutputFolder(path.absolute(), job_of(manifest))


def _check_place(path: Path, plan: Plan) -> None:
    if path.exists() and not path.is_dir():
        raise DatasetError(f"output {path} is a file; name a folder")
    here = path.resolve()
    for source in plan.sources:
        if isinstance(source.file.path, Path) and source.file.path.resolve().is_relative_to(here):
            raise DatasetError(
                f"input {source.name} lies in the output folder {path}; write to a folder that holds no input"
            )
    for folder in plan.folders:
        if here.is_relative_to(folder.resolve()):
            below = here.relative_to(folder.resolve()).parts
            if not any(part.startswith(("_", ".")) for part in below):
                raise DatasetError(
                    f"output folder {path} lies in the input folder {folder}, and its parts would be inputs "
                    "of the next run; write beside it"
                )


def _foreign(path: Path) -> list[str]:
    own = {LOCK, UNITS, temporary(path / MANIFEST).name}
    return sorted(item.name for item in path.iterdir() if item.name not in own)


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise DatasetError(
            f"output folder {path} cannot be made: {reason}; name a folder that may be written to"
        ) from exc


def _clear(path: Path, manifest: Mapping[str, Any]) -> None:
    """Remove the files of a job and nothing else; the manifest goes last, for it says whose they are."""
    (path / SUCCESS).unlink(missing_ok=True)
    (path / SUMMARY).unlink(missing_ok=True)
    for part in (path / f"{unit['part']}.parquet" for unit in manifest["units"] if "/" in unit["part"]):
        part.unlink(missing_ok=True)
        for above in part.parents:
            if above == path or not above.is_dir() or any(above.iterdir()):
                break
            above.rmdir()
    for folder, pattern in ((path / UNITS, "*.json"), (path, "part-*.parquet"), (path / ERRORS, "*.parquet")):
        for file in folder.glob(pattern):
            file.unlink()
    if (path / ERRORS).is_dir() and not any((path / ERRORS).iterdir()):
        (path / ERRORS).rmdir()
    (path / MANIFEST).unlink()
