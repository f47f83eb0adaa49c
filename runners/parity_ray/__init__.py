"""The Ray runner: a handler over a Ray Dataset, its model loaded once in each of a pool of actors.

scoring          score(dataset, handler) -> Dataset
pool             how many actors, such that Ray can still read and write
worker           the actor class
replay_process   what `parity check` starts: the rows through a local cluster
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parity.distributed.runner import ClusterRunner
    from parity_ray.scoring import score

    runner: ClusterRunner

__all__ = ["runner", "score"]

COMMANDS: tuple[str, ...] = ()
"""`parity` lists no command for this runner, installed whole or not."""

STARTS_SLOWLY = True
"""It is asked by name, or in a thorough check: a cluster takes half a minute to start."""


def __getattr__(name: str) -> Any:
    if name == "runner":
        if importlib.util.find_spec("ray") is None:
            raise ImportError("No module named 'ray'")
        from parity.distributed.runner import ClusterRunner

        globals()[name] = made = ClusterRunner("ray", "dataset", "parity_ray.replay_process")
        return made
    if name == "score":
        return importlib.import_module("parity_ray.scoring").score
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
