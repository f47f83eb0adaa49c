"""MLflow: a pyfunc model as a Spark UDF."""

import importlib
import os
import sys
import tempfile

import mlflow
import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import struct

os.environ["PYSPARK_PYTHON"] = sys.executable  # for the workers
workload, inputs, output = sys.argv[1:4]
model = importlib.import_module(f"{workload}_model")


class Scorer(mlflow.pyfunc.PythonModel):
    def load_context(self, context) -> None:
        self.net = model.load()

    def predict(self, context, model_input: pd.DataFrame, params=None):
        return model.score(self.net, [model_input[name].to_numpy() for name in model.FEATURES])


spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "2g")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", 16 * 1024 if workload == "table" else 64)
    .getOrCreate()
)
with tempfile.TemporaryDirectory() as folder:
    mlflow.pyfunc.save_model(f"{folder}/model", python_model=Scorer(), pip_requirements=[])
    score = mlflow.pyfunc.spark_udf(spark, f"{folder}/model", result_type="float", env_manager="local")
    rows = spark.read.parquet(inputs)
    scored = rows.select(*model.PASSED, score(struct(*model.FEATURES)).alias("score"))
    scored.write.option("compression", "zstd").parquet(output)
spark.stop()
