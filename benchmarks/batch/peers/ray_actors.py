"""Ray Data: a class on a pool of actors, one for each core but the room that reading needs."""

import importlib
import sys
from pathlib import Path

import pyarrow as pa
import ray

workload, inputs, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
model = importlib.import_module(f"{workload}_model")


class Scorer:
    def __init__(self) -> None:
        self.net = model.load()

    def __call__(self, rows: pa.Table) -> pa.Table:
        features = [rows.column(name).to_numpy() for name in model.FEATURES]
        scores = pa.array(model.score(self.net, features))
        return rows.select(model.PASSED).append_column("score", scores)


ray.init(num_cpus=2, object_store_memory=2_000_000_000, include_dashboard=False, log_to_driver=False)
rows = ray.data.read_parquet(str(inputs), columns=[*model.PASSED, *model.FEATURES])
scored = rows.map_batches(
    Scorer,
    batch_format="pyarrow",
    batch_size=16 * 1024 if workload == "table" else 64,
    num_cpus=0.5,
    compute=ray.data.ActorPoolStrategy(size=2),
)
scored.write_parquet(str(output), compression="zstd")
ray.shutdown()
