"""The Spark runner: a handler over a Spark DataFrame, its model loaded once in each Python worker.

scoring          score(dataframe, handler) -> DataFrame
worker           what runs in a Python worker: the handler that is kept there, the GPU that the task has
java             whether there is a Java that Spark runs on
runner           replay, for `parity check`: the rows through a local Spark, in replay_process
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parity_spark.runner import SparkRunner
    from parity_spark.scoring import score

    runner: SparkRunner

__all__ = ["SparkRunner", "runner", "score"]

COMMANDS: tuple[str, ...] = ()
"""`parity` lists no command for this runner, installed whole or not."""

_HOMES = {"SparkRunner": "runner", "score": "scoring"}


def __getattr__(name: str) -> Any:
    if name == "runner":
        if importlib.util.find_spec("pyspark") is None:
            raise ImportError("No module named 'pyspark'")
        from parity_spark.java import require_java

        require_java()
        globals()[name] = made = importlib.import_module("parity_spark.runner").SparkRunner()
        return made
    if name in _HOMES:
        return getattr(importlib.import_module(f"parity_spark.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
