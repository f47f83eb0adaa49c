"""The comparison with other batch tools, on a small table with peers of this environment; untimed."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.batch.data import dataset
from benchmarks.batch.peers import PEERS
from benchmarks.batch.rounds import compared, contest
from benchmarks.batch.table import BEGIN, END, bars, markdown, write
from benchmarks.environments import Environments


class Here(Environments):
    """This environment for every peer."""

    def python(self, name: str) -> Path:
        return Path(sys.executable)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_peers_answers_are_compared_with_ours_and_shown(tmp_path: Path) -> None:
    inputs = dataset(tmp_path / "data", "table", 2000)
    peers = [peer for peer in PEERS if peer.name in ("hand", "polars")]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = contest("table", inputs, peers, Here(tmp_path), 1, scratch)
    assert found.rows == 2000
    assert {name: agreement.ok for name, agreement in found.agreement.items()} == {
        "hand": True,
        "polars": True,
    }
    for name in ("parity", "hand", "polars"):
        (took,) = found.measured[name]
        assert took.code == 0
        assert took.cpu_s > 0
        assert took.peak_bytes > 10_000_000
    names = [bar["what"] for bar in bars([found])]
    assert "table: speed as a multiple of Polars map_batches" in names
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    write(page, markdown([found], {"polars": {"polars": "1.2.3"}}))
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "polars 1.2.3" in text


def test_a_peer_that_loses_rows_or_changes_columns_is_refused() -> None:
    ours = _scored([0.5, 1, 2])
    with pytest.raises(RuntimeError, match="column 'id' is not what it was: 2 rows, 3 expected"):
        compared(ours, ours.slice(0, 2), ["id"])
    other = _scored([0.5, 1, 2.5])
    found = compared(ours, other, ["id"])
    assert not found.ok
    assert found.equal == pytest.approx(2 / 3)


def _scored(scores: list[float]) -> pa.Table:
    return pa.Table.from_arrays(
        [pa.array(range(len(scores))), pa.array(scores, pa.float32())], names=["id", "score"]
    )
