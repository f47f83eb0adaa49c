"""Daft: a class whose method scores batches."""

import importlib
import sys
from pathlib import Path

import daft
from daft import DataType, Series, col

workload, inputs, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
model = importlib.import_module(f"{workload}_model")


@daft.cls
class Scorer:
    def __init__(self) -> None:
        self.net = model.load()

    @daft.method.batch(return_dtype=DataType.float32())
    def score(self, *columns: Series) -> Series:
        features = [column.to_arrow().to_numpy(zero_copy_only=False) for column in columns]
        return Series.from_numpy(model.score(self.net, features))


scorer = Scorer()
rows = daft.read_parquet(f"{inputs}/*.parquet")
scored = rows.select(*model.PASSED, scorer.score(*(col(name) for name in model.FEATURES)).alias("score"))
scored.write_parquet(str(output), compression="zstd")
