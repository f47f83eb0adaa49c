"""The output folder of a job: whose it is, what is done already, and what marks it complete.

part-00000-u00000.parquet   one part for each unit, input columns passed through, outputs, `_error`
_errors/part-….parquet      the rows that failed, only for units that have some
_units/part-….json          one record for each finished unit, written after its part
_manifest.json              what the job is, written before the first part
_summary.json, _SUCCESS     written when every unit is done
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from parity.durable import temporary
from parity.errors import DatasetError, ResumeError
from parity_batch.files import real_path
from parity_batch.footers import footer_digest
from parity_batch.identity import MANIFEST, changes, job_of, read_manifest
from parity_batch.places import Place, bare_url, local_path, shown_place
from parity_batch.plan import Plan
from parity_batch.storage import LOCK, Store, StoredFile, store_at

_PART = re.compile(r"(?:[^/]+/)*part-[0-9]+-u[0-9]+")
SUMMARY, SUCCESS = "_summary.json", "_SUCCESS"
ERRORS, UNITS = "_errors", "_units"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A finished Parquet file: enough to see later that it is still the one that was written."""

    size_bytes: int
    footer_sha256: str

    @staticmethod
    def of(file: StoredFile) -> FileRecord:
        """The record of a file; raises DatasetError or OSError when it is not a whole Parquet file."""
        with file.open() as opened:
            return FileRecord(opened.seek(0, 2), footer_digest(opened, PurePosixPath(file.name).name))


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
    """An output folder that a job holds; made by `open_folder`. It can be pickled: for that it is a place.

    Args:
        place: where it is.
        job: digest of the job.
        holder: the mark of the process that holds it; without one nothing is checked.
    """

    def __init__(self, place: Place, job: str, holder: str = "") -> None:
        self.store = store_at(place)
        self.job = job
        self.holder = holder

    def __reduce__(self) -> tuple[type[OutputFolder], tuple[Place, str, str]]:
        return OutputFolder, (self.store.place, self.job, self.holder)

    def part(self, name: str) -> StoredFile:
        """Where a unit's part goes."""
        return StoredFile(self.store, f"{name}.parquet", self.holder)

    def errors(self, name: str) -> StoredFile:
        """Where a unit's failed rows go."""
        return StoredFile(self.store, f"{ERRORS}/{PurePosixPath(name).name}.parquet", self.holder)

    def check_held(self) -> None:
        """Look whether this process still holds the folder, right before a file is put there.

        Raises:
            DatasetError: another process has taken the folder over, it is not there any more, or it cannot be
                asked.
        """
        with self._told():
            self._check_holder()

    def remove_errors(self, name: str) -> None:
        """Remove the failed rows that an earlier run of a unit left.

        Raises:
            DatasetError: another process has taken the folder over, or the file cannot be removed.
        """
        with self._told():
            self._check_holder()
            self.errors(name).remove()

    def record(self, name: str, rows: int, row_errors: Mapping[str, int]) -> None:
        """Note a unit as finished; its part must be in place, and so must the rows that failed.

        Raises:
            DatasetError: another process has taken the folder over, it is not there any more, or the record
                cannot be written.
        """
        with self._told():
            errors = FileRecord.of(self.errors(name)) if row_errors else None
            found = UnitRecord(self.job, rows, dict(row_errors), FileRecord.of(self.part(name)), errors)
            self._check_holder()
            self.store.write(record_name(name), _json(asdict(found)))
            self._check_holder()

    def finished(self, name: str) -> UnitRecord | None:
        """The record of a finished unit whose files are as they were written; None when it is to be done."""
        try:
            found = json.loads(self.store.read(record_name(name)))
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

    def all_finished(self, names: Iterable[str]) -> Iterator[UnitRecord | None]:
        """`finished` of each unit, in order; None, too, where failed rows lie there that its record lacks.

        Raises:
            DatasetError: the folder is not there any more, or cannot be listed.
        """
        with self._told():
            self._check_holder()
            there, failed = set(self.store.names(UNITS)), set(self.store.names(ERRORS))

        def one(name: str) -> UnitRecord | None:
            record = self.finished(name) if PurePosixPath(record_name(name)).name in there else None
            stray = (
                record is not None
                and record.errors is None
                and PurePosixPath(self.errors(name).name).name in failed
            )
            return None if stray else record

        return self.store.each(one, names)

    @property
    def is_complete(self) -> bool:
        """Whether a run of the job has ended in order."""
        return SUCCESS in self.store.names()

    def reopen(self) -> None:
        """Take back the mark of completeness, before a part is written; raises DatasetError."""
        with self._told():
            self.store.remove(SUCCESS)

    def complete(
        self, summary: Mapping[str, Any], *, parts: Sequence[str] = (), success: bool = True
    ) -> None:
        """Write the summary, then the mark of completeness when the job was a success.

        Args:
            summary: what is told of the job.
            parts: the finished units. Where no lock keeps others out, their files are looked at once more.
            success: whether the job was one.

        Raises:
            DatasetError: another process has taken the folder over or put a file of its own in place of
                one, the folder is not there any more, or it cannot be written to.
        """
        with self._told():
            self._check_holder()
            if not self.store.is_exclusive:
                self._check_parts(parts)
                if job_of(read_manifest(self.store)) != self.job:
                    raise DatasetError(
                        f"output folder {self.store.shown}: its manifest is another job's by now"
                    )
            self.store.write(SUMMARY, _json(summary))
            if success:
                self.store.write(SUCCESS, b"")
            self.store.settle()
            self._check_holder()

    def _check_parts(self, parts: Sequence[str]) -> None:
        other = [name for name, found in zip(parts, self.all_finished(parts), strict=True) if found is None]
        if other:
            raise DatasetError(
                f"output folder {self.store.shown}: {len(other)} parts are no longer what this job wrote, "
                f"{other[0]} first; another process has written here since. The same command scores them "
                "again"
            )

    def _check_holder(self) -> None:
        if self.holder:
            self.store.check(self.holder)

    @contextlib.contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except OSError as exc:
            raise _unwritable(self.store, exc) from exc


def record_name(part: str) -> str:
    """The name of the record of a unit, by that of its part."""
    return f"{UNITS}/{PurePosixPath(part).name}.json"


@contextlib.contextmanager
def open_folder(
    place: Place,
    plan: Plan,
    manifest_after: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    *,
    restart: bool = False,
) -> Generator[OutputFolder]:
    """The output folder, held for a job: a new one, or one with the work of the same job, to be continued.

    Args:
        place: the folder; it and its parents are made when they are not there.
        plan: the job's plan.
        manifest_after: the job's manifest, after that of the job whose work the folder holds; after an empty
            one where it holds none, or none that counts. Asked once, while the folder is held.
        restart: remove what an earlier job left here, whatever it was.

    Raises:
        ResumeError: the folder holds the work of a job that differs, and `restart` is not set.
        DatasetError: the folder holds something else, lies inside the inputs, is in use by another job, or
            cannot be written to.
    """
    store = store_at(place)
    _check_place(store, plan)
    before: dict[str, Any] = {}
    manifest: dict[str, Any] = {}

    def examine() -> None:
        if MANIFEST in store.names():
            before.update(read_manifest(store))
            manifest.update(manifest_after({} if restart else before))
            if not restart and (different := changes(before, manifest)):
                raise ResumeError(
                    f"output folder {store.shown} holds the work of another job, and parts of both must not "
                    "be mixed; --restart removes it and begins anew\n  " + "\n  ".join(different)
                )
        elif foreign := [name for name in store.names() if name not in _OWN]:
            raise DatasetError(
                f"output folder {store.shown} is not empty and not parity's: it holds "
                f"{', '.join(foreign[:5])}{' and more' if len(foreign) > 5 else ''}; name an empty or new "
                "folder"
            )
        else:
            manifest.update(manifest_after({}))

    with contextlib.ExitStack() as stack:
        try:
            store.make()
            holder = stack.enter_context(store.held(examine))
            if before and restart:
                _clear(store, before)
            store.tidy({"", ERRORS, UNITS, *(_folder_of(unit.part) for unit in plan.units)})
            if not before or restart:
                store.write(MANIFEST, _json(manifest))
        except OSError as exc:
            raise DatasetError(
                f"output folder {store.shown} cannot be written to: {_reason(exc)}; name a folder that may be"
            ) from exc
        yield OutputFolder(store.place, job_of(manifest), holder)


_OWN = (LOCK, UNITS, temporary(Path(MANIFEST)).name)


def _check_place(store: Store, plan: Plan) -> None:
    here = _followed(store.place)
    folders: dict[Path, Path] = {}
    for source in plan.sources:
        path = source.file.path
        if _lies_in(real_path(path, folders) if isinstance(path, Path) else _followed(path), here):
            raise DatasetError(
                f"input {source.name} lies in the output folder {store.shown}; write to a folder that holds "
                "no input"
            )
    for folder in plan.folders:
        below = path_below(here, _followed(folder))
        if below is not None and not any(part.startswith(("_", ".")) for part in below):
            raise DatasetError(
                f"output folder {store.shown} lies in the input folder {shown_place(folder)}, and its parts "
                "would be inputs of the next run; write beside it"
            )


def _lies_in(place: Place, folder: Place) -> bool:
    return path_below(place, folder) is not None


def _followed(place: Place) -> Place:
    found = local_path(place) if isinstance(place, str) else place
    return place if found is None else found.resolve()


def path_below(place: Place, folder: Place) -> tuple[str, ...] | None:
    """The parts of a place's path below a folder, links followed in both; None where it is not below."""
    if isinstance(place, Path) and isinstance(folder, Path):
        return place.relative_to(folder).parts if place.is_relative_to(folder) else None
    if isinstance(place, Path) or isinstance(folder, Path):
        return None
    here, there = (PurePosixPath(_one_scheme(bare_url(url))) for url in (place, folder))
    return here.relative_to(there).parts if here.is_relative_to(there) else None


_ALIASES = {"gcs": "gs", "s3a": "s3", "s3n": "s3"}


def _one_scheme(url: str) -> str:
    scheme, separator, path = url.partition("://")
    return f"{_ALIASES.get(scheme, scheme)}{separator}{path}"


def _folder_of(part: str) -> str:
    return part.rpartition("/")[0]


def _json(content: Mapping[str, Any]) -> bytes:
    text = io.StringIO()  # a list of its pieces would take eight times the memory of a large manifest
    text.writelines(json.JSONEncoder(indent=1, ensure_ascii=False).iterencode(content))
    text.write("\n")
    return text.getvalue().encode()


def _reason(exc: OSError) -> str:
    return exc.strerror or " ".join(str(exc).split())


def _unwritable(store: Store, exc: OSError) -> DatasetError:
    return DatasetError(
        f"output folder {store.shown} cannot be written to: {_reason(exc)}; the parts that are finished "
        "stay, and the same command continues"
    )


def _clear(store: Store, manifest: Mapping[str, Any]) -> None:
    """Remove the files of a job and nothing else; the manifest goes last, for it says whose they are."""
    parts = [str(unit["part"]) for unit in manifest["units"]]
    if strange := [part for part in parts if not _PART.fullmatch(part) or {".", ".."} & set(part.split("/"))]:
        raise DatasetError(
            f"{store.shown}/{MANIFEST} names {strange[0]!r}, which no job calls a part, so that nothing was "
            "removed; name another output folder"
        )
    own = [f"{part}.parquet" for part in parts if "/" in part]
    for folder, first, last in ((UNITS, "", ".json"), ("", "part-", ".parquet"), (ERRORS, "", ".parquet")):
        own += [
            f"{folder}/{name}".lstrip("/")
            for name in store.names(folder)
            if name.startswith(first) and name.endswith(last)
        ]
    for name in (SUCCESS, SUMMARY):
        store.remove(name)
    for _ in store.each(store.remove, own):
        pass
    for folder in {_folder_of(name) for name in own} - {UNITS}:
        store.prune(folder)
    store.remove(MANIFEST)
