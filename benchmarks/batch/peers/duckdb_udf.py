"""DuckDB: a vectorised Python function in a COPY statement."""

import importlib
import sys
from pathlib import Path

import duckdb
import pyarrow as pa

workload, inputs, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
model = importlib.import_module(f"{workload}_model")
net = model.load()


def score(*columns: pa.ChunkedArray) -> pa.Array:
    return pa.array(model.score(net, [column.to_numpy(zero_copy_only=False) for column in columns]))


database = duckdb.connect()
# Without types for its parameters a function takes any number of columns.
database.create_function("score", score, None, "FLOAT", type="arrow")
output.mkdir(parents=True)
database.execute(
    f"COPY (SELECT {', '.join(model.PASSED)}, score({', '.join(model.FEATURES)}) AS score "
    f"FROM '{inputs}/*.parquet') TO '{output}/scored.parquet' (FORMAT parquet, COMPRESSION zstd)"
)
