"""What a process keeps of a handler from one job to the next, and what it must not keep."""

from __future__ import annotations

import json
import pickle  # noqa: TID251 - what engines send work with
from pathlib import Path

import pyarrow as pa
import pytest

from parity.codec.arrow import decode_table
from parity.distributed import Placement
from parity.errors import ConfigError
from parity.registry import load_handler
from parity_batch import score
from parity_batch.folder import OutputFolder
from parity_batch.layout import Layout
from parity_batch.task import UnitTask
from tests.batch.jobs import orders, read_parts, write_orders


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
        found = load_handler(helped)
        loaded = Placement.of(found, found.profile()).load()
        assert loaded.cls.preprocess.__globals__["ADDED"] == added


def test_a_task_of_another_job_lets_go_of_the_engines_that_nobody_uses(handler: Path, tmp_path: Path) -> None:
    first, second = (_arrived(handler, tmp_path, job) for job in ("first", "second"))
    first.prepare(1)
    (engine,) = first._engines._free
    with second._engines.taken(1, second._enter):
        third = _arrived(handler, tmp_path, "third")
        assert first._engines._free == []
        with pytest.raises(ConfigError, match="is not loaded"):
            engine.run(decode_table(engine.loaded.inputs, orders(1).select(["price", "quantity"])).batch)
    assert len(second._engines._free) == 1, "it was in use when the third arrived"
    assert _arrived(handler, tmp_path, "third")._engines is third._engines
    assert second._engines._free == []
    first.prepare(1)
    assert len(first._engines._free) == 1, "a task that comes back loads its handler again"
    first.close()


def _arrived(handler: Path, folder: Path, job: str) -> UnitTask:
    """A task of a job as another process receives it."""
    loaded = load_handler(handler)
    layout = Layout({}, (), pa.schema([]))
    task = UnitTask(loaded.profile(), layout, OutputFolder(folder, job), {}, 8, handler=loaded)
    return pickle.loads(pickle.dumps(task))
