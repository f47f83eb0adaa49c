"""Hugging Face datasets: a batched `map`."""

import importlib
import sys
import tempfile
from pathlib import Path

from datasets import load_dataset

workload, inputs, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
model = importlib.import_module(f"{workload}_model")
net = model.load()


def score(batch):
    return {"score": model.score(net, [batch[name] for name in model.FEATURES])}


output.mkdir(parents=True)
with tempfile.TemporaryDirectory(dir=output.parent) as cache:
    files = sorted(str(path) for path in inputs.glob("*.parquet"))
    rows = load_dataset("parquet", data_files=files, split="train", cache_dir=cache)
    if workload == "table":
        rows = rows.with_format("numpy", columns=model.FEATURES, output_all_columns=True)
    scored = rows.map(score, batched=True, batch_size=16 * 1024, remove_columns=model.FEATURES)
    scored.with_format(None).to_parquet(output / "scored.parquet")
