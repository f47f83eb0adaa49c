"""The Spark runner: a handler over a Spark DataFrame, its model loaded once in each Python worker.

scoring          score(dataframe, handler) -> DataFrame
worker           what runs in a Python worker: the handler that is kept there, the GPU that the task has
java             whether there is a Java that Spark runs on
replay_process   what `parity check` starts: the rows through a local Spark
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parity.distributed.runner import ClusterRunner
    from parity_spark.scoring import score

    runner: ClusterRunner

__all__ = ["runner", "score"]

COMMANDS: tuple[str, ...] = ()
"""`parity` lists no command for this runner, installed whole or not."""

STARTS_SLOWLY = True
"""It is asked by name, or in a thorough check: a cluster takes half a minute to start."""


def __getattr__(name: str) -> Any:
    if name == "runner":
        if importlib.util.find_spec("pyspark") is None:
            raise ImportError("No module named 'pyspark'")
        from parity_spark.java import require_java

        require_java()
        from parity.distributed.runner import ClusterRunner

        globals()[name] = made = ClusterRunner("spark", "dataframe", "parity_spark.replay_process")
        return made
    if name == "score":
        return importlib.import_module("parity_spark.scoring").score
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
