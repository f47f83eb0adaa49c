from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from parity import Engine, Profile, Result, load_handler
from parity.codec.arrow import decode_table
from parity.errors import ConfigError, RunnerError
from parity.registry import Runner, find_runner
from parity_notebook import runner
from parity_notebook.job import read_answer, write_answer
from tests.notebook.conftest import PRICES, ROWS

BAD: list[dict[str, Any]] = [
    {"price": 13.0, "units": 1, "name": "Bo", "at": None, "tags": []},
    {"price": float("nan"), "units": 7, "name": "\0", "at": None, "tags": ["x"]},
    {"price": 1.0, "units": 1, "name": "reject me", "at": None, "tags": []},
    {"price": float("inf"), "units": 0, "name": "Cy", "at": None, "tags": []},
]


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=load_handler(PRICES).inputs.to_arrow())


def expected_of(table: pa.Table, profile: Profile) -> Result:
    loaded = load_handler(PRICES)
    with Engine(loaded, profile) as engine:
        return engine.score(decode_table(loaded.inputs, table))


def same_bits(one: pa.Table, other: pa.Table) -> bool:
    """Equal types, nulls and values, NaN equal to NaN and -0.0 not to 0.0."""
    return one.schema.equals(other.schema) and repr(one.to_pylist()) == repr(other.to_pylist())


def test_the_notebook_runner_is_installed_and_has_no_command() -> None:
    found = find_runner("notebook")
    assert found is runner
    assert isinstance(found, Runner)
    assert (found.name, found.command_name, found.command) == ("notebook", "", None)
    assert found.wire_forms == ("pandas", "rows", "polars", "arrow")


@pytest.mark.slow
@pytest.mark.parametrize("wire", [None, "pandas", "rows", "polars", "arrow"])
def test_replay_gives_the_answers_of_the_engine_to_the_bit(wire: str | None) -> None:
    table = table_of([*ROWS, *BAD])
    profile = load_handler(PRICES).profile("exact")
    result = runner.replay(str(PRICES), table, profile, wire=wire)
    expected = expected_of(table, profile)
    assert same_bits(result.to_table(), expected.to_table())
    assert result.index.tolist() == [0, 1, 2, 4, 6]
    assert [(error.row, error.kind, error.stage) for error in result.errors] == [
        (3, "failed", "inference"), (5, "rejected", None),
    ]  # fmt: skip
    assert result.buckets.tolist() == [8] * 5
    assert set(result.timings) == {"preprocess", "inference", "postprocess"}


@pytest.mark.slow
def test_replay_of_no_rows_has_no_answers() -> None:
    result = runner.replay(str(PRICES), table_of([]), Profile())
    assert (result.num_rows, result.outputs.num_rows, result.errors) == (0, 0, ())


@pytest.mark.slow
def test_a_crash_is_told_with_what_the_process_said(copied_prices: Path) -> None:
    handler = copied_prices / "handler.py"
    text = handler.read_text(encoding="utf-8")
    handler.write_text(
        text.replace(
            "    def preprocess",
            "    def initialize(self, context):\n        raise OSError('no disk')\n\n    def preprocess",
        ),
        encoding="utf-8",
    )
    with pytest.raises(RunnerError, match=r"(?s)ended with code 1:.*OSError: no disk"):
        runner.replay(str(copied_prices), table_of(ROWS), Profile())


@pytest.mark.slow
def test_a_process_that_dies_is_told(copied_prices: Path) -> None:
    handler = copied_prices / "handler.py"
    text = handler.read_text(encoding="utf-8")
    handler.write_text(
        text.replace(
            "    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:",
            "    def inference(self, inputs):\n        import os\n        os.kill(os.getpid(), 9)",
        ),
        encoding="utf-8",
    )
    with pytest.raises(RunnerError, match="ended with code -9"):
        runner.replay(str(copied_prices), table_of(ROWS), Profile())


def test_an_unknown_wire_form_is_told() -> None:
    with pytest.raises(ConfigError, match="did you mean 'pandas'"):
        runner.replay(str(PRICES), table_of(ROWS), Profile(), wire="panda")


def test_an_answer_written_is_read_back_exactly(tmp_path: Path) -> None:
    written = expected_of(table_of([*ROWS, *BAD]), Profile())
    write_answer(tmp_path, "pandas", written)
    obtained = read_answer(tmp_path, "pandas", load_handler(PRICES).outputs)
    assert same_bits(obtained.to_table(), written.to_table())
    assert obtained.errors == written.errors
    np.testing.assert_array_equal(obtained.index, written.index)
    np.testing.assert_array_equal(obtained.buckets, written.buckets)


@pytest.mark.slow
def test_importing_the_runner_loads_nothing_heavy() -> None:
    heavy = ("torch", "pandas", "polars", "IPython", "tqdm", "fastapi", "http.server")
    code = f"import sys, parity_notebook; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
