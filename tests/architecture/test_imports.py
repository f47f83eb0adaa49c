"""What `import parity` brings along, and who may import whom."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Each of these costs a user who does not need it start-up time, memory, or an installation.
HEAVY = (
    "torch",
    "fastapi",
    "starlette",
    "uvicorn",
    "pandas",
    "polars",
    "cupy",
    "cudf",
    "cvcuda",
    "prometheus_client",
    "IPython",
    "duckdb",
    "matplotlib",
)


def loaded_after(statement: str) -> set[str]:
    """The top-level names in sys.modules of a new interpreter after `statement`."""
    names = "{name.partition('.')[0] for name in sys.modules}"
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted({names})))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.slow
@pytest.mark.parametrize("module", ["parity", "parity.cli"])
def test_importing_the_library_loads_no_heavy_library(module: str) -> None:
    assert loaded_after(f"import {module}").isdisjoint(HEAVY)


@pytest.mark.slow
def test_importing_parity_loads_little_more_than_pyarrow_and_its_own_modules() -> None:
    extra = loaded_after("import parity") - loaded_after("import pyarrow, numpy, orjson, ml_dtypes")
    foreign = {name for name in extra if name not in sys.stdlib_module_names and not name.startswith("_")}
    assert foreign <= {"parity"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        "parity_batch",
        "parity_notebook",
        "parity_online",
        "parity_ray.scoring",
        "parity.distributed.runner",
        "parity_spark.scoring",
        "parity_spark.worker",
    ],
)
def test_a_runner_module_loads_without_torch_pandas_polars_or_a_cluster(module: str) -> None:
    heavy = {"torch", "pandas", "polars", "ray", "pyspark"}
    assert loaded_after(f"import {module}").isdisjoint(heavy)


@pytest.mark.slow
def test_the_import_contracts_hold() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run(
        [lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}
    )
    assert run.returncode == 0, run.stdout + run.stderr
