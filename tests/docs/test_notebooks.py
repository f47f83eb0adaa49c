"""Every notebook runs from top to bottom, and shows what its text promises."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.notebook.kernel import execute

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def executed() -> dict[str, dict[str, Any]]:
    """Each notebook's cells by id, executed."""
    found: dict[str, dict[str, Any]] = {}
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        execute(notebook, path.parent)
        found[path.stem] = {cell["id"]: cell for cell in notebook.cells}
    return found


def text_of(cell: Any) -> str:
    """Everything a cell showed, as text."""
    return "".join(
        output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]
        for output in cell["outputs"]
    )


def html_of(cell: Any) -> str:
    return "".join(output["data"].get("text/html", "") for output in cell["outputs"])


def test_there_is_a_notebook() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first_steps"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_what_it_showed(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.timeout(240)
def test_first_steps_shows_what_it_says(executed: dict[str, dict[str, Any]]) -> None:
    cells = executed["first_steps"]
    assert "fashion 1" in html_of(cells["load-fashion"])
    share = re.fullmatch(r"([\d.]+)% of 2000 images named correctly\n", text_of(cells["score-fashion"]))
    assert share is not None
    assert 89.0 < float(share[1]) < 95.0
    assert "preprocess of rows 0 to 2" in html_of(cells["trace-fashion"])
    assert text_of(cells["trace-values"]) == "('Tensor', (3, 1, 28, 28), (3, 10))"

    error = re.fullmatch(
        r"DataFrame of 4000 rows, mean absolute error (0\.\d+)\n", text_of(cells["error-films"])
    )
    assert error is not None
    assert float(error[1]) < 0.8
    assert re.fullmatch(r"\{'score': [\d.]+, 'band': '(poor|mixed|good|great)'\}", text_of(cells["one-film"]))

    refused = text_of(cells["refused"])
    assert "3 of 4 rows failed" in refused
    assert all(
        text in refused for text in ("row 1", "'year'", "1500", "'runtime_min'", "162.5", "'released'")
    )
    kept = text_of(cells["keep"]).splitlines()
    assert kept[1:] == ["None year", "None runtime_min", "None released"]
    assert kept[0].endswith(" None")

    verdict = text_of(cells["verdict"])
    assert re.match(r"'200 rows (bit-identical|within tolerance)", verdict)
    assert "films 1" in html_of(cells["compare"])
    assert text_of(cells["stop"]) == "0"
