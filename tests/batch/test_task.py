"""What a process keeps of a handler from one job to the next, and what it must not keep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parity.registry import load_handler
from parity_batch import score
from parity_batch.task import HandlerReference
from tests.batch.jobs import read_parts, write_orders


@pytest.fixture
def helped(handler: Path) -> Path:
    """The handler, which takes what it adds to its factor from a module beside it."""
    code = (handler / "handler.py").read_text()
    made = code.replace("POISON = 666", "from surcharge import ADDED\n\nPOISON = 666")
    made = made.replace(
        'context.load_json("artifacts/factor.json"))', 'context.load_json("artifacts/factor.json")) + ADDED'
    )
    assert made.count("ADDED") == 2
    (handler / "handler.py").write_text(made)
    (handler / "surcharge.py").write_text("ADDED = 1\n")
    return handler


def test_a_module_that_was_edited_between_two_jobs_is_read_again(helped: Path, tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (20,))
    totals: list[float] = []
    sources: set[str] = set()
    for added in (1, 20):
        (helped / "surcharge.py").write_text(f"ADDED = {added}\n")
        output = tmp_path / f"out-{added}"
        score(tmp_path / "in", output, helped)
        totals.append(read_parts(output)["total"].to_numpy()[3] / (3 * 37 / 8 * 3))
        sources.add(json.loads((output / "_manifest.json").read_text())["handler"]["digests"]["source"])
    assert totals == pytest.approx([3.5, 22.5])
    assert len(sources) == 2


def test_another_process_reads_an_edited_module_again_too(helped: Path) -> None:
    for added in (1, 2):  # two files of one size and perhaps of one second
        (helped / "surcharge.py").write_text(f"ADDED = {added}\n")
        loaded = HandlerReference.of(load_handler(helped)).load()
        assert loaded.cls.preprocess.__globals__["ADDED"] == added
