"""A progress bar for long inputs, where tqdm is installed."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Generator
from typing import Any, cast

from parity.errors import ConfigError

SHOWN_FROM_ROWS = 5_000
"""Inputs of fewer rows get no bar unless it is asked for."""

_DELAY_S = 0.5


@contextlib.contextmanager
def progress_bar(name: str, rows: int, *, shown: bool | None) -> Generator[Callable[[int], None]]:
    """A bar counting to `rows`; yields the function that moves it on by so many rows.

    Args:
        name: what stands before the bar.
        rows: the total.
        shown: True always, False never, None when there are at least SHOWN_FROM_ROWS rows, tqdm is installed
            and half a second has passed.

    Raises:
        ConfigError: a bar was asked for, and tqdm is not installed.
    """
    installed = importlib.util.find_spec("tqdm") is not None
    if shown and not installed:
        raise ConfigError("progress=True needs tqdm; pip install 'parity[notebook]' brings it")
    if not (shown or (shown is None and installed and rows >= SHOWN_FROM_ROWS)):
        yield lambda _: None
        return
    import tqdm

    make = cast("Any", tqdm.tqdm)
    with make(total=rows, desc=name, unit=" rows", unit_scale=True, delay=0.0 if shown else _DELAY_S) as bar:
        yield bar.update
