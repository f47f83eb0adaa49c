"""The loop that most people start with: read a file with pandas, score it, write it."""

import importlib
import sys
from pathlib import Path

import pandas as pd

workload, inputs, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
model = importlib.import_module(f"{workload}_model")
net = model.load()

output.mkdir(parents=True)
for path in sorted(inputs.glob("*.parquet")):
    frame = pd.read_parquet(path)
    scored = frame[model.PASSED].copy()
    scored["score"] = model.score(net, [frame[name].to_numpy() for name in model.FEATURES])
    scored.to_parquet(output / path.name, compression="zstd", index=False)
