"""Spark: a `pandas_udf` over the features as a struct."""

import importlib
import os
import sys
from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf, struct
from pyspark.sql.types import FloatType

os.environ["PYSPARK_PYTHON"] = sys.executable  # for the workers
workload, inputs, output = sys.argv[1:4]
model = importlib.import_module(f"{workload}_model")


@pandas_udf(FloatType())
def score(batches: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:
    net = model.load()
    for frame in batches:
        yield pd.Series(model.score(net, [frame[name].to_numpy() for name in model.FEATURES]))


spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "2g")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", 16 * 1024 if workload == "table" else 64)
    .getOrCreate()
)
rows = spark.read.parquet(inputs)
scored = rows.select(*model.PASSED, score(struct(*model.FEATURES)).alias("score"))
scored.write.option("compression", "zstd").parquet(output)
spark.stop()
