"""Where a handler's golden cases live, and finding them. Nothing is written here."""

from __future__ import annotations

from pathlib import Path

from parity.errors import GoldenError
from parity.golden.cases import GoldenCase, read_case
from parity.golden.meta import CASE
from parity.handler import LoadedHandler

FOLDER = "golden"


def golden_folder(loaded: LoadedHandler, golden: str | Path | None = None) -> Path:
    """The folder that holds the handler's cases, or would hold its first one.

    An explicit `golden` folder holds cases directly, or a folder of them for each handler. Without one, the
    first of these that exists: `golden/` in the handler's folder, then `golden/<handler>/` beside that
    folder, beside its parent, and in the working folder. Where none exists, a case goes to
    `golden/<handler>/` where there is a `golden/` beside the folder or its parent, else into it.
    """
    if golden is not None:
        folder = Path(golden)
        inner = folder / loaded.name
        return folder if not inner.is_dir() and any(folder.glob(f"*/{CASE}")) else inner
    shared = _shared_roots(loaded)
    own = loaded.root / FOLDER if loaded.root is not None else None
    candidates = [*([own] if own is not None else []), *(root / loaded.name for root in shared)]
    for folder in candidates:
        if folder.is_dir():
            return folder
    if own is None:
        return Path(FOLDER) / loaded.name
    return next((root / loaded.name for root in shared[:2] if root.is_dir()), own)


def find_cases(loaded: LoadedHandler, golden: str | Path | None = None) -> list[GoldenCase]:
    """The handler's golden cases, in name order; empty when it has none.

    Raises:
        GoldenError: a case is stale, damaged, or orphaned; see `read_case`.
    """
    return [read_case(path, loaded) for path in case_folders(golden_folder(loaded, golden))]


def find_case(loaded: LoadedHandler, name: str, golden: str | Path | None = None) -> GoldenCase:
    """One golden case by name; raises GoldenError when there is none or it is stale."""
    return read_case(case_folder(loaded, name, golden), loaded)


def case_folder(loaded: LoadedHandler, name: str, golden: str | Path | None = None) -> Path:
    """The folder of an existing case; raises GoldenError, naming the cases there are, when there is none."""
    folder = golden_folder(loaded, golden)
    path = folder / name
    if name not in {item.name for item in case_folders(folder)}:
        known = ", ".join(item.name for item in case_folders(folder)) or "none"
        raise GoldenError(f"handler {loaded.name} has no golden case {name!r} in {folder}; there: {known}")
    return path


def case_folders(folder: Path) -> list[Path]:
    """The folders inside a golden folder, each of which should be a case; hidden ones are left out."""
    if not folder.is_dir():
        return []
    return sorted(item for item in folder.iterdir() if item.is_dir() and not item.name.startswith("."))


def require_cases(cases: list[GoldenCase], loaded: LoadedHandler, golden: str | Path | None = None) -> None:
    """Raise GoldenError when a handler has no golden case."""
    if not cases:
        folder = golden_folder(loaded, golden)
        raise GoldenError(
            f"handler {loaded.name} has no golden case in {folder}; record one: "
            f"parity golden record {loaded.ref or loaded.name} ROWS --case NAME --reason WHY"
        )


def _shared_roots(loaded: LoadedHandler) -> list[Path]:
    above = [loaded.root.parent, loaded.root.parent.parent] if loaded.root is not None else []
    roots: list[Path] = []
    for folder in [*above, Path.cwd()]:
        if folder / FOLDER not in roots:
            roots.append(folder / FOLDER)
    return roots
