"""The loop that one would write by hand, and parity is measured by: pyarrow in, torch model, Parquet out.

Run as `python -m benchmarks.batch_hand_written INPUT OUTPUT BATCH_ROWS`; prints what it took as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file

from benchmarks.batch_data import HANDLER, WIDTH
from parity_batch.summary import peak_rss_bytes

_WRITE_ROWS = 128 * 1024


def score(inputs: Path, output: Path, batch_rows: int) -> int:
    """Score every file of a folder; the number of rows."""
    torch.set_num_threads(1)
    sys.path.insert(0, str(HANDLER))
    model = importlib.import_module("tabular_net").TabularNet()
    model.load_state_dict(load_file(HANDLER / "artifacts" / "model.safetensors"))
    model.eval()
    output.mkdir(parents=True)
    schema = pa.schema([("id", pa.int64()), ("score", pa.float32())])
    rows = 0
    with torch.inference_mode():
        for path in sorted(inputs.glob("*.parquet")):
            with pq.ParquetWriter(
                output / path.name, schema, compression="zstd", compression_level=1
            ) as writer:
                held: list[pa.RecordBatch] = []
                for batch in pq.ParquetFile(path).iter_batches(batch_size=batch_rows, columns=["id", "x"]):
                    column: Any = batch.column("x")
                    x = column.flatten().to_numpy().reshape(-1, WIDTH)
                    scores = model(torch.from_numpy(x.copy()))
                    held.append(
                        pa.record_batch([batch.column("id"), pa.array(scores.numpy())], schema=schema)
                    )
                    rows += batch.num_rows
                    if len(held) * batch_rows >= _WRITE_ROWS:
                        writer.write_table(pa.Table.from_batches(held))
                        held = []
                if held:
                    writer.write_table(pa.Table.from_batches(held))
    return rows


if __name__ == "__main__":
    began = time.perf_counter()
    scored = score(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
    spent = time.perf_counter() - began
    print(
        json.dumps(
            {
                "rows": scored,
                "seconds": spent,
                "rows_per_s": scored / spent,
                "peak_rss_bytes": peak_rss_bytes(),
            }
        )
    )
