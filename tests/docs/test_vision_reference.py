"""The table of measured differences names every fast path, and each row holds on this machine."""

from __future__ import annotations

import pytest

from parity import vision
from tools.vision_reference import BEGIN, END, PART_OF, PATH, REFERENCES, Row, page, rows, section

WRITTEN = PATH.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def measured() -> list[Row]:
    return rows()


def written() -> list[list[str]]:
    table = WRITTEN.partition(BEGIN)[2].partition(END)[0]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


@pytest.mark.slow
def test_every_row_is_within_its_class_here(measured: list[Row]) -> None:
    assert [row for row in measured if not row.holds] == []


@pytest.mark.slow
def test_the_page_has_the_rows_that_are_measured(measured: list[Row]) -> None:
    """But for the differences, whose last bits are another processor's."""
    assert [cells[:4] for cells in written()] == [row.cells()[:4] for row in measured], (
        "run python tools/vision_reference.py"
    )


def test_what_is_written_is_within_its_class() -> None:
    for operation, _, _, kind, worst in written():
        most = {"T0": 0.0, "T1": 1e-4 * 255, "U1": 1.0}[kind]
        assert worst == "not run" or float(worst) <= most, operation


def test_every_operation_has_a_row_of_its_definition() -> None:
    told = {reference.operation.split()[0].rstrip(",") for reference in REFERENCES}
    assert told == set(vision.versions())


def test_every_fast_path_belongs_to_an_operation() -> None:
    named = {PART_OF.get(backend.operation, backend.operation) for backend in vision.backends()}
    assert named <= set(vision.versions())


@pytest.mark.parametrize(
    ("worst", "shown", "holds"),
    [
        (0.0, "0", True),
        (0.000435, "0.0005", True),
        (0.02, "0.02", True),
        (0.03, "0.03", False),
        (None, "not run", True),
    ],
)
def test_differences_are_rounded_up_to_one_digit(worst: float | None, shown: str, holds: bool) -> None:
    row = Row("flip", "OpenCV", "torch", 1e-4, worst)
    assert row.cells()[4] == shown
    assert row.holds == holds


def test_the_table_is_replaced_and_nothing_else() -> None:
    found = [Row("flip", "OpenCV", "torch", 0.0, 0.0)]
    text = page(f"before\n{BEGIN}\nold\n{END}\nafter", found)
    assert text == f"before\n{section(found)}\nafter"
    assert page(text, found) == text
