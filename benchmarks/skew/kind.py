"""A kind of mismatch: a broken handler, its clean twin, rows that hide it, and what parity should say of it.

Each module of `benchmarks.skew.kinds` is one kind. It defines

    Twin        a handler that is right, and must not be flagged
    Broken      one that is not; left out by a kind that proves silence only
    Reference   the other implementation, where only two of them together show the mismatch
    EXPECTED    what parity should say of Broken
    rows()      the golden rows, `ROWS` of them, most of which hide the mismatch
    TOLERANCE   `[tolerance]` of its handler.toml, if any
    artifacts(side)  the files beside the handler, if any, for the side "Reference", "Broken" or "Twin"
    FINGERPRINT what the environment of Reference was where it differs from this one, if it does

Its docstring's first line says what goes wrong.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

import pyarrow as pa

from benchmarks.skew import kinds
from parity import Handler
from parity.handler import LoadedHandler
from parity.registry import load_handler

Side = Literal["Reference", "Broken", "Twin"]
Mode = Literal["law", "reference", "runner"]
RowTest = Callable[[Mapping[str, Any]], bool]
"""Whether a row, as Python values by column, is of a sort."""

GOLDEN: Final = "golden"
NOTHING: Final = ""
REPOSITORY: Final = Path(__file__).resolve().parents[2]


def every_row(row: Mapping[str, Any]) -> bool:
    """Any row at all."""
    del row
    return True


@dataclass(frozen=True)
class Expected:
    """What parity should say of a broken handler.

    Attributes:
        law: the law that it breaks, or "golden" where the recorded answers of another implementation show it.
        stage: the first stage whose values differ.
        column: the output column that differs.
        cause: the cause; "" where no cause of the catalogue is true, and so none may be claimed.
        rows: which rows can get a wrong answer.
        beside: which rows must be among the others of the smallest counterexample.
        fewest: how many rows the smallest counterexample has.
    """

    law: str
    stage: str
    column: str
    cause: str
    rows: RowTest = every_row
    beside: RowTest | None = None
    fewest: int | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of mismatch, found by its module's name."""

    name: str
    module: ModuleType

    @property
    def sentence(self) -> str:
        """What goes wrong."""
        return (self.module.__doc__ or "").strip().splitlines()[0]

    @property
    def expected(self) -> Expected | None:
        """What parity should say; None for a kind that proves silence only."""
        return getattr(self.module, "EXPECTED", None)

    @property
    def mode(self) -> Mode:
        """How it is shown: by a law, by another implementation's golden answers, or by a runner."""
        if self.expected is None or self.expected.law == GOLDEN:
            return "reference"
        return "runner" if self.expected.law == "runner" else "law"

    @property
    def sides(self) -> tuple[Side, ...]:
        """The handlers that there are."""
        sides: tuple[Side, ...] = ("Reference", "Broken", "Twin")
        return tuple(side for side in sides if hasattr(self.module, side))

    @property
    def fingerprint(self) -> Mapping[str, str]:
        """What the environment of the reference was, where it differs from this one."""
        return getattr(self.module, "FINGERPRINT", {})

    def handler(self, side: Side) -> type[Handler]:
        """The handler class of a side."""
        return getattr(self.module, side)

    def rows(self) -> pa.Table:
        """The golden rows."""
        return self.module.rows()

    def load(self, side: Side, folder: Path) -> LoadedHandler:
        """The handler of a side, from a folder of its own that is written into `folder`.

        All sides carry the kind's name, as versions of one handler do.
        """
        home = folder / side.lower()
        home.mkdir(parents=True, exist_ok=True)
        code = (
            f'"""{self.sentence}"""\n\nimport sys\n\nsys.path.append({str(REPOSITORY)!r})\n\n'
            f"from {self.module.__name__} import {side}  # noqa: E402, F401\n"
        )
        (home / "handler.py").write_text(code, encoding="utf-8")
        (home / "handler.toml").write_text(self._manifest(side), encoding="utf-8")
        files: Mapping[str, bytes] = getattr(self.module, "artifacts", _no_files)(side)
        for name, content in files.items():
            (home / name).write_bytes(content)
        return load_handler(home)

    def _manifest(self, side: Side) -> str:
        lines = [f'name = "{self.name}"', 'version = "1"', f'handler = "handler.py:{side}"']
        tolerance: Mapping[str, Mapping[str, object]] = getattr(self.module, "TOLERANCE", {})
        for column, rule in tolerance.items():
            lines += ["", f"[tolerance.{column}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in rule.items()]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Missing:
    """A kind that cannot run here, and why."""

    name: str
    why: str


def find_kinds(names: list[str] | None = None) -> Iterator[Kind | Missing]:
    """The kinds of these names, or all; one whose library is not installed is `Missing`.

    Raises:
        KeyError: there is no kind of a name.
    """
    known = sorted(info.name for info in pkgutil.iter_modules(kinds.__path__))
    for name in names or []:
        if name not in known:
            raise KeyError(f"no kind {name!r}; there are {', '.join(known)}")
    for name in names or known:
        try:
            module = importlib.import_module(f"{kinds.__name__}.{name}")
        except ModuleNotFoundError as exc:
            if exc.name is None or exc.name.partition(".")[0] in ("benchmarks", "parity"):
                raise
            yield Missing(name, f"it needs {exc.name}, which is not installed")
        else:
            yield Kind(name, module)


def _no_files(side: Side) -> Mapping[str, bytes]:
    del side
    return {}


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
