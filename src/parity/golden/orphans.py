"""What lies among golden cases and is of no use: orphans, cases of other schemas, what killed jobs left.

Nothing is deleted by looking; `prune` deletes what it is given, and never in CI.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from parity.archive import require_no_archive
from parity.durable import is_temporary
from parity.errors import GoldenError, ParityError
from parity.golden.cases import FILES, read_case
from parity.golden.faults import DamagedCaseError, OrphanedCaseError, StaleCaseError
from parity.golden.meta import CASE, read_meta
from parity.golden.places import FOLDER, case_folders, golden_folder
from parity.golden.recording import refuse_in_ci
from parity.handler import LoadedHandler
from parity.manifest import read_manifest

LeftoverKind = Literal["orphan", "stale", "temporary", "stray file", "rescue"]

_HANDLER_FILE = "handler.py"
_TEMPORARY = re.compile(r"\.(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]*?)(?P<old>-old)?-[a-z0-9_]{8}")


@dataclass(frozen=True)
class Leftover:
    """Something among golden cases that proves nothing.

    Attributes:
        path: the file or folder.
        kind: "orphan" (a case of no handler, or no case at all), "stale" (a case of other schemas),
            "temporary" (what a killed recording left), "stray file" (in a case, but no part of it) or
            "rescue" (the last copy of a case, which a killed update left under another name; never pruned).
        why: the reason in words.
    """

    path: Path
    kind: LeftoverKind
    why: str

    @property
    def prunable(self) -> bool:
        """Whether `prune` may delete it."""
        return self.kind != "rescue"

    def to_dict(self) -> dict[str, object]:
        """The leftover as JSON-ready data."""
        return {"path": str(self.path), "kind": self.kind, "why": self.why, "prunable": self.prunable}


def find_leftovers(loaded: LoadedHandler, golden: str | Path | None = None) -> list[Leftover]:
    """All leftovers among a handler's golden cases, and the folders beside them of handlers that are gone.

    A damaged case is none: it may be had back from version control.
    """
    folder = golden_folder(loaded, golden)
    found = [*_temporary(folder)]
    for path in case_folders(folder):
        found.extend(_of_case(path, loaded))
    found.extend(_of_other_handlers(folder, loaded))
    return sorted(found, key=lambda item: item.path)


def find_orphans(loaded: LoadedHandler, golden: str | Path | None = None) -> list[Leftover]:
    """The orphans and rescues alone: what nobody checks, though somebody recorded it."""
    return [item for item in find_leftovers(loaded, golden) if item.kind in ("orphan", "rescue")]


def require_no_orphans(loaded: LoadedHandler, golden: str | Path | None = None) -> None:
    """Raise OrphanedCaseError, naming them all, when there are orphans."""
    found = find_orphans(loaded, golden)
    if found:
        raise OrphanedCaseError(orphans_text(found, loaded))


def orphans_text(found: Sequence[Leftover], loaded: LoadedHandler) -> str:
    """Orphans as a message, a line each, with what to do."""
    lines = [f"{item.path}: {item.why}" for item in found]
    remedy = ""
    if any(item.prunable for item in found):
        remedy = f"\n  `parity golden prune {loaded.ref or loaded.name}` lists what it would delete"
    what = "1 orphaned golden" if len(found) == 1 else f"{len(found)} orphaned goldens"
    return f"handler {loaded.name}: {what}\n  " + "\n  ".join(lines) + remedy


def prune(leftovers: Iterable[Leftover]) -> list[Leftover]:
    """Delete what may be deleted, and give it back.

    Raises:
        GoldenError: this is a CI run.
    """
    refuse_in_ci("prune")
    gone: list[Leftover] = []
    for item in leftovers:
        if not item.prunable:
            continue
        require_no_archive(item.path)
        if item.path.is_dir() and not item.path.is_symlink():
            shutil.rmtree(item.path)
        else:
            item.path.unlink(missing_ok=True)
        gone.append(item)
    return gone


def _of_case(path: Path, loaded: LoadedHandler) -> Iterator[Leftover]:
    try:
        meta = read_case(path, loaded).meta
    except OrphanedCaseError as exc:
        yield Leftover(path, "orphan", _reason(exc, path))
        return
    except StaleCaseError as exc:
        if not exc.updatable:  # else its rows are good, and an update gives it new answers
            yield Leftover(path, "stale", _reason(exc, path))
        return
    except DamagedCaseError:
        return
    for file in sorted(path.iterdir()):
        if file.name not in FILES:
            yield Leftover(file, "stray file", "no file of a case has this name")
        elif file.suffix == ".arrow" and "stages" not in meta.digests:
            yield Leftover(file, "stray file", f"{CASE} knows of no stage values")


def _temporary(folder: Path) -> Iterator[Leftover]:
    """The folders that `write_case` makes and a killed process left, by their names: .CASE-XXXXXXXX."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        named = _TEMPORARY.fullmatch(path.name)
        if named is None or not path.is_dir() or not all(_of_case_file(file) for file in path.iterdir()):
            continue
        if named["old"] and (path / CASE).is_file():
            case = folder / named["name"]
            if not case.exists():
                yield Leftover(
                    path,
                    "rescue",
                    f"an update was killed half way, and this is the last copy of case {case.name!r}: "
                    f"mv {path} {case}",
                )
                continue
        yield Leftover(path, "temporary", "a killed recording or update left it (unless one is running now)")


def _of_case_file(path: Path) -> bool:
    return path.name in FILES or is_temporary(path)


def _of_other_handlers(folder: Path, loaded: LoadedHandler) -> Iterator[Leftover]:
    """Folders beside a handler's own in a shared `golden/` whose handler is nowhere in reach."""
    root = folder.parent
    if root.name != FOLDER or folder.name != loaded.name or not root.is_dir():
        return
    known = {loaded.name, *_handlers_in_reach(root, loaded)}
    for other in case_folders(root):
        if other.name in known:
            continue
        names = {name for path in case_folders(other) if (name := _handler_of(path)) is not None}
        if names and names.isdisjoint(known):
            told = ", ".join(sorted(names))
            yield Leftover(other, "orphan", f"cases of handler {told}, which is nowhere in reach")


def _handlers_in_reach(root: Path, loaded: LoadedHandler) -> Iterator[str]:
    """The names of the handlers beside this one, and in folders and folders of folders beside `golden/`."""
    folders = [root.parent, Path()]
    if loaded.root is not None:
        folders.append(loaded.root.parent)
    for folder in folders:
        for pattern in (f"*/{_HANDLER_FILE}", f"*/*/{_HANDLER_FILE}", "*/handler.toml", "*/*/handler.toml"):
            for file in folder.glob(pattern):
                yield file.resolve().parent.name
                try:
                    yield read_manifest(file.parent).name
                except ParityError:
                    continue


def _handler_of(path: Path) -> str | None:
    try:
        return read_meta(path).handler
    except GoldenError:
        return None


def _reason(exc: GoldenError, path: Path) -> str:
    """An error about a case without the case's name and what to do."""
    return str(exc).removeprefix(f"golden case {path} ").rpartition("; ")[0]
