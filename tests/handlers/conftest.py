"""The example handlers, loaded as users load them, and the samples committed with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parity.engine import Engine
from parity.registry import load_handler

ROOT = Path(__file__).parents[2]

LoadEngine = Callable[[str, str], Engine]
ReadSample = Callable[[str], pa.Table]


@pytest.fixture(scope="package")
def load_engine() -> Iterator[LoadEngine]:
    """Give the engine of a handler (a folder below the root) under a profile; each is loaded once."""
    engines: dict[tuple[str, str], Engine] = {}
    with ExitStack() as stack:

        def load(folder: str, profile: str) -> Engine:
            if (folder, profile) not in engines:
                loaded = load_handler(str(ROOT / folder))
                engines[folder, profile] = stack.enter_context(Engine(loaded, loaded.profile(profile)))
            return engines[folder, profile]

        yield load


@pytest.fixture(scope="package")
def read_sample() -> ReadSample:
    """Give a sample dataset by its folder in data/, in file order."""

    def read(name: str) -> pa.Table:
        files = sorted((ROOT / "data" / name).glob("*.parquet"))
        return pa.concat_tables([pq.read_table(file) for file in files])

    return read
