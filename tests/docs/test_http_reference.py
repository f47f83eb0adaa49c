"""docs/reference/http.md lists the routes that are there, and the statuses that are given."""

import re
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from parity_online.app import build_app
from parity_online.metrics import Metrics
from parity_online.models import Models
from parity_online.protocols import PROTOCOLS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "http.md").read_text()


def rows_of(first_cell: str) -> list[list[str]]:
    """The cells of the table whose head begins with this cell."""
    head = PAGE.index(f"| {first_cell} |")
    lines = PAGE[head:].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def expanded(cell: str) -> set[str]:
    """The paths of a cell: `[...]` may be left out, and `...` stands for the last path without its end."""
    found: set[str] = set()
    last = ""
    for text in re.findall(r"`([^`]+)`", cell):
        path = text
        if text.startswith("..."):
            ends_inside = last.endswith(("}", "]"))
            path = (last if ends_inside else last.rpartition("/")[0]) + text[3:]
        last = path
        found.add(re.sub(r"\[([^\]]*)\]", r"\1", path))
        found.add(re.sub(r"\[[^\]]*\]", "", path))
    return found


def test_the_table_of_routes_is_the_apps() -> None:
    told = {
        (verb, path)
        for cell, verbs, _ in rows_of("route")
        for verb in verbs.split(", ")
        for path in expanded(cell)
    }
    routes = {
        (verb, path)
        for route in build_app(Models(), Metrics()).routes
        if (path := getattr(route, "path", ""))
        for verb in getattr(route, "methods", ())
        if verb != "HEAD"
    }
    routes |= {
        (verb, path)
        for protocol in PROTOCOLS
        for path in (protocol.path, protocol.version_path)
        for verb in protocol.verbs
    }
    assert told == routes


def test_the_table_of_statuses_is_whole() -> None:
    told = {int(status) for cell, *_ in rows_of("status") for status in re.findall(r"\d{3}", cell)}
    sources = (ROOT / "runners" / "parity_online").glob("*.py")
    given = {
        int(status)
        for source in sources
        for status in re.findall(r"(?:ProblemError|_close_with)\(\s*(\d{3})\b", source.read_text())
    }
    assert told == given


def test_the_codes_of_grpc_are_those_told() -> None:
    pytest.importorskip("grpc")
    from parity_online.grpc_service import CODES

    said = PAGE[PAGE.index("Statuses become codes:") :].partition("\n\n")[0]
    told: dict[int, str] = {}
    for statuses, code in re.findall(r"((?:\d{3}(?:,| and)?\s+)+)([A-Z_]+)", said):
        told |= {int(status): str(code) for status in re.findall(r"\d{3}", statuses)}
    assert told == {status: code.name for status, code in CODES.items()}
