"""The peers: which script, which environment, which packages, and how many threads suit each best."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """Somebody who scores the same data with the same model.

    Attributes:
        name: as it is asked for.
        title: as it is shown.
        script: in this folder; called with workload, inputs and output.
        packages: what its environment holds beside torch, numpy, OpenCV and pyarrow.
        environment: the environment's name, where several peers need the same packages.
        by_hand: whether it is the loop that ours is measured by; all others are to be beaten.
    """

    name: str
    title: str
    script: str
    packages: tuple[str, ...]
    environment: str
    by_hand: bool = False


PEERS = (
    Peer("hand", "loop by hand, two threads", "hand.py", ("pyarrow",), "hand", by_hand=True),
    Peer("pandas", "pandas loop", "pandas_loop.py", ("pandas", "pyarrow"), "pandas"),
    Peer("polars", "Polars map_batches", "polars_batches.py", ("polars",), "polars"),
    Peer("duckdb", "DuckDB Arrow UDF", "duckdb_udf.py", ("duckdb", "pyarrow"), "duckdb"),
    Peer("daft", "Daft class", "daft_class.py", ("daft",), "daft"),
    Peer("datasets", "datasets map", "datasets_map.py", ("datasets",), "datasets"),
    Peer("mlflow", "MLflow pyfunc loop", "mlflow_pyfunc.py", ("mlflow", "pyspark"), "mlflow"),
    Peer("ray", "Ray Data actors", "ray_actors.py", ("ray[data]",), "ray"),
    Peer("spark", "Spark mapInArrow", "spark_arrow.py", ("pyspark", "pandas", "pyarrow"), "spark"),
    Peer(
        "spark-pandas", "Spark pandas_udf", "spark_pandas_udf.py", ("pyspark", "pandas", "pyarrow"), "spark"
    ),
    Peer("mlflow-spark", "MLflow spark_udf", "mlflow_spark_udf.py", ("mlflow", "pyspark"), "mlflow"),
)
