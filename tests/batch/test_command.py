"""`parity batch` as people type it: exit codes, what it prints, and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.batch.jobs import ORDERS, expected_total, orders, read_parts, run, write_orders

pytestmark = pytest.mark.slow


def test_a_job_prints_what_it_did(tmp_path: Path) -> None:
    table = write_orders(tmp_path / "in", (40, 60))
    done = run(ORDERS, f"{tmp_path}/in/*.parquet", tmp_path / "out", "--columns", "id", "--columns", "note")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("100 rows of 2 files scored by orders@1.2.0 into ")
    assert done.stderr == ""
    scored = read_parts(tmp_path / "out")
    assert scored.column_names[:2] == ["id", "note"]
    np.testing.assert_array_equal(scored.column("total").to_numpy(), expected_total(table))


def test_the_summary_is_printed_as_json_too(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (40,))
    done = run(
        ORDERS, tmp_path / "in", tmp_path / "out", "--json", "--profile", "bucket", "--set", "threads=1"
    )
    summary = json.loads(done.stdout)
    assert summary == json.loads((tmp_path / "out" / "_summary.json").read_text())
    assert summary["rows"] == 40
    assert json.loads((tmp_path / "out" / "_manifest.json").read_text())["profile"]["buckets"] == [32]


def test_buckets_may_be_given_by_an_option_of_their_own(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (40,))
    done = run(ORDERS, tmp_path / "in", tmp_path / "out", "--buckets", "8, 64")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "_manifest.json").read_text())["profile"]["buckets"] == [8, 64]
    again = run(ORDERS, tmp_path / "in", tmp_path / "out", "--set", "buckets=[8,64]", "--resume")
    assert "nothing was left to do" in again.stdout
    for given, said in (
        (["--buckets", "0,8"], "--buckets 0,8 is not a list of positive batch sizes"),
        (["--buckets", "many"], "--buckets many is not a list of positive batch sizes"),
        (["--buckets", "8", "--set", "buckets=[8]"], "say the same; give one"),
    ):
        wrong = run(ORDERS, tmp_path / "in", tmp_path / "new", *given)
        assert (wrong.returncode, said in wrong.stderr) == (2, True)


def test_bad_input_ends_with_code_2_and_one_message(tmp_path: Path) -> None:
    write_orders(tmp_path / "in", (10,))
    (tmp_path / "in" / "zero.parquet").touch()
    done = run(ORDERS, tmp_path / "in", tmp_path / "out")
    assert done.returncode == 2
    assert "zero.parquet: the file has 0 bytes" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_too_many_errors_end_with_code_2(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = orders(10).set_column(2, "quantity", pa.array([-1] * 10))
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    done = run(ORDERS, tmp_path / "in", tmp_path / "out", "--max-errors", "9")
    assert done.returncode == 2
    assert "10 rows failed and --max-errors allows 9" in done.stderr
    assert run(ORDERS, tmp_path / "in", tmp_path / "out", "--max-errors", "10").returncode == 0


def huge_row_group(path: Path, rows: int) -> None:
    """One row group of `rows` rows of about 1 kB, most of it a column that is passed through."""
    noise = np.random.default_rng(1).bytes(1000 * rows)
    note: Any = pa.Array.from_buffers(pa.binary(1000), rows, [None, pa.py_buffer(noise)])
    table = orders(rows).set_column(3, "note", note)
    path.parent.mkdir()
    pq.write_table(table, path, row_group_size=rows, compression="none", use_dictionary=False)
    assert pq.ParquetFile(path).metadata.num_row_groups == 1


def test_memory_does_not_follow_the_size_of_a_row_group(tmp_path: Path) -> None:
    peaks: list[float] = []
    for name, rows in (("small", 160_000), ("large", 480_000)):
        huge_row_group(tmp_path / name / "a.parquet", rows)
        done = run(ORDERS, tmp_path / name, tmp_path / f"{name}-out", "--columns", "note", "--json")
        peaks.append(json.loads(done.stdout)["peak_rss_bytes"] / 1e6)
    assert peaks[1] < peaks[0] + 60, f"160 MB: {peaks[0]:.0f} MB resident, 480 MB: {peaks[1]:.0f} MB"


def test_a_job_with_answers_in_arrays_does_not_load_pandas(tmp_path: Path) -> None:
    """It is a fifth of a small job's time; `pa.array` and `fill_null` of Python values load it."""
    (tmp_path / "handler.py").write_text(
        "from parity import Float32, Handler, Schema\n\n\n"
        "class Half(Handler):\n"
        "    inputs = Schema(price=Float32())\n    outputs = Schema(half=Float32())\n\n"
        "    def initialize(self, context):\n        pass\n\n"
        "    def preprocess(self, batch):\n        return batch['price'].numpy()\n\n"
        "    def inference(self, inputs):\n        return inputs / 2\n\n"
        "    def postprocess(self, outputs, batch):\n        return {'half': outputs}\n",
        encoding="utf-8",
    )
    pq.write_table(orders(3000), tmp_path / "a.parquet")
    code = (
        "import sys\nfrom parity.cli import app\n"
        "try: app(['batch', 'handler.py:Half', 'a.parquet', 'out', '--columns', 'id,note'])\n"
        "except SystemExit as exc: assert not exc.code, exc.code\n"
        "print([name for name in ('pandas', 'polars') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr
