"""What was compared: lines of a table, and whether each is within its bar."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Line:
    """One comparison.

    Attributes:
        part: what it belongs to: tests, vision, models, pipeline or handlers.
        what: what was compared.
        ok: whether it is within its bar; None where nothing was compared, and `note` says why.
        difference: the largest one, in the unit that `note` names; None where none was measured.
        host_ms: milliseconds on the host, None where they were not measured.
        device_ms: milliseconds on the device.
        note: the bar, the reason, or what failed.
    """

    part: str
    what: str
    ok: bool | None
    difference: float | None = None
    host_ms: float | None = None
    device_ms: float | None = None
    note: str = ""


def rendered(lines: Iterable[Line]) -> str:
    """The table."""
    head = f"{'':8}{'part':<10}{'what':<34}{'difference':>12}{'host ms':>10}{'device ms':>11}  note"
    rows = [
        f"{_verdict(line):<8}{line.part:<10}{line.what:<34}{_number(line.difference):>12}"
        f"{_number(line.host_ms):>10}{_number(line.device_ms):>11}  {line.note}"
        for line in lines
    ]
    return "\n".join([head, *rows])


def as_json(lines: Iterable[Line]) -> list[dict[str, Any]]:
    """The lines as JSON-ready data."""
    return [asdict(line) for line in lines]


def _verdict(line: Line) -> str:
    return "-" if line.ok is None else "ok" if line.ok else "MISSED"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
