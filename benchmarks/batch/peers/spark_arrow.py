"""Spark: `mapInArrow` on a local session."""

import importlib
import os
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable  # for the workers
workload, inputs, output = sys.argv[1:4]
model = importlib.import_module(f"{workload}_model")


def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    net = model.load()
    for batch in batches:
        features = [batch.column(name).to_numpy(zero_copy_only=False) for name in model.FEATURES]
        passed = [batch.column(name) for name in model.PASSED]
        scores = pa.array(model.score(net, features))
        yield pa.RecordBatch.from_arrays([*passed, scores], names=[*model.PASSED, "score"])


spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "2g")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", 16 * 1024 if workload == "table" else 64)
    .getOrCreate()
)
rows = spark.read.parquet(inputs).select(*model.PASSED, *model.FEATURES)
schema = ", ".join(f"{name} {kind}" for name, kind in rows.select(*model.PASSED).dtypes)
scored = rows.mapInArrow(score, f"{schema}, score float")
scored.write.option("compression", "zstd").parquet(output)
spark.stop()
