"""A small Spark on this machine, for replays and tests: two tasks at a time, no web page, loopback only."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2,4]"
"""Two tasks at a time; a task may be tried four times, as on a cluster."""

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.codegen.wholeStage": "false",  # a short job ends before generated code has paid for itself
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
}


@contextlib.contextmanager
def local_session(settings: Mapping[str, str] | None = None, master: str = MASTER) -> Generator[SparkSession]:
    """A Spark session of this process's own; its Python workers run this interpreter."""
    with tempfile.TemporaryDirectory(prefix="parity-spark-") as scratch:
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(master).appName("parity")
        local = {"spark.local.dir": scratch, "spark.sql.warehouse.dir": f"{scratch}/warehouse"}
        for name, value in {**_SETTINGS, **local, **(settings or {})}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()
