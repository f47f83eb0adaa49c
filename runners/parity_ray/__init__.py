"""The Ray runner: a handler over a Ray Dataset, its model loaded once in each of a pool of actors.

scoring          score(dataset, handler) -> Dataset
pool             how many actors, such that Ray can still read and write
worker           the actor class
runner           replay, for `parity check`: the rows through a local cluster, in replay_process
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parity_ray.runner import RayRunner
    from parity_ray.scoring import score

    runner: RayRunner

__all__ = ["RayRunner", "runner", "score"]

COMMANDS: tuple[str, ...] = ()
"""`parity` lists no command for this runner, installed whole or not."""

_HOMES = {"RayRunner": "runner", "score": "scoring"}


def __getattr__(name: str) -> Any:
    if name == "runner":
        if importlib.util.find_spec("ray") is None:
            raise ImportError("No module named 'ray'")
        globals()[name] = made = importlib.import_module("parity_ray.runner").RayRunner()
        return made
    if name in _HOMES:
        return getattr(importlib.import_module(f"parity_ray.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
