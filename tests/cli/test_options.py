"""Options that several commands share are read the same by each."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parity.cli.options import batch_sizes
from parity.errors import ConfigError
from tests.cli.conftest import Parity


@given(st.lists(st.integers(1, 999_999_999), min_size=1), st.sampled_from([",", ", ", " , ", ",00"]))
def test_batch_sizes_are_read_in_their_order(sizes: list[int], between: str) -> None:
    assert batch_sizes(between.join(map(str, sizes))) == tuple(sizes)


WRONG = [
    "",
    ",",
    "8,",
    "0",
    "8,0",
    "-8",
    "+8",
    "8 16",
    "8;16",
    "1_0",
    "1e3",
    "8.0",
    "\u0668",
    "many",
    "9" * 5000,
]


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:9] or "nothing")
def test_what_is_no_list_of_batch_sizes_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a list of positive batch sizes, such as 16,64"):
        batch_sizes(text)


@pytest.mark.parametrize("text", ["0,8", "1_0", "many"])
@pytest.mark.parametrize("command", ["batch", "probe", "optimize"])
def test_each_command_refuses_wrong_buckets_in_the_same_words(
    parity: Parity, scale: str, rows_file: Path, command: str, text: str
) -> None:
    files = (rows_file, "out") if command == "batch" else ()
    done = parity(command, scale, *files, "--buckets", text)
    assert done.code == 2
    assert f"--buckets {text} is not a list of positive batch sizes, such as 16,64" in done.err
