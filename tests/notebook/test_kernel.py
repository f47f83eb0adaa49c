"""The runner in a real IPython kernel: a handler of a cell, its displays, its reload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.notebook.kernel import execute

HANDLER = """
from parity import Handler, Schema, Float64
from parity_notebook import load

class Scale(Handler):
    "Scale a number."
    inputs = Schema(x=Float64(doc="any <number>"))
    outputs = Schema(y=Float64())
    def postprocess(self, outputs, batch):
        return {"y": outputs["x"] * FACTOR}
"""

pytestmark = pytest.mark.slow


def displays(cells: list[str], folder: Path) -> list[dict[str, Any]]:
    """What each cell showed last, by MIME type."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    execute(notebook, folder)
    return [dict(cell["outputs"][-1].get("data", {})) if cell["outputs"] else {} for cell in notebook.cells]


def test_a_handler_of_a_cell_is_loaded_called_shown_and_reloaded(tmp_path: Path) -> None:
    shown = displays(
        [
            f"FACTOR = 2.0\n{HANDLER}",
            "scale = load(Scale)\nscale",
            "scale({'x': 4.0})",
            "scale.trace([{'x': 4.0}])",
            f"{HANDLER}\nFACTOR = 3.0".replace("Scale a number", "Triple a number"),
            "scale.reload()",
            "scale({'x': 4.0})",
            "import warnings, sys\nsorted({'torch', 'pandas', 'polars'} & set(sys.modules))",
        ],
        tmp_path,
    )
    assert "any &lt;number&gt;" in shown[1]["text/html"]
    assert "<Session scale 1" in shown[1]["text/plain"]
    assert shown[2]["text/plain"] == "{'y': 8.0}"
    assert "decoded inputs" in shown[3]["text/html"]
    assert "Triple a number" in shown[5]["text/html"]
    assert shown[6]["text/plain"] == "{'y': 12.0}"
    assert shown[7]["text/plain"] == "[]"
