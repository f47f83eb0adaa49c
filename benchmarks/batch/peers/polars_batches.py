"""Polars: a lazy scan, `map_batches` in the streaming engine, a sink."""

import importlib
import sys
from pathlib import Path

import numpy as np
import polars as pl

workload, inputs, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
model = importlib.import_module(f"{workload}_model")
net = model.load()
pl.Series(np.zeros(1))  # Polars loads numpy late, and several threads at once fail at it


def score(frame: pl.DataFrame) -> pl.DataFrame:
    features = [frame[name].to_numpy() for name in model.FEATURES]
    return frame.select(model.PASSED).with_columns(score=pl.Series(model.score(net, features)))


rows = pl.scan_parquet(inputs / "*.parquet").select(*model.PASSED, *model.FEATURES)
schema = {name: rows.collect_schema()[name] for name in model.PASSED} | {"score": pl.Float32}
output.mkdir(parents=True)
rows.map_batches(score, schema=schema, streamable=True).sink_parquet(
    output / "scored.parquet", compression="zstd", compression_level=1
)
