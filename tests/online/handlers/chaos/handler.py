"""A handler that does what no handler should, where a row says so."""

import asyncio
from typing import Any

import numpy as np

from parity import Batch, Float32, Handler, Int64, Schema, String


class Chaos(Handler):
    """Answer y = 2 x + 1, or rubbish."""

    inputs = Schema(id=Int64(), x=Float32(default=0.0), act=String(default=""))
    outputs = Schema(id=Int64(), y=Float32())

    def preprocess(self, batch: Batch) -> Any:
        acts = set(batch["act"].to_pylist())
        if "mutate" in acts:
            batch["x"].numpy()[:] = 7
        if "no memory" in acts:
            raise MemoryError("act says so")
        return batch["x"].numpy(), acts

    def inference(self, inputs: Any) -> Any:
        x, acts = inputs
        if "exit" in acts:
            raise SystemExit(3)
        if "interrupt" in acts:
            raise KeyboardInterrupt
        if "cancel" in acts:
            raise asyncio.CancelledError
        if "stop" in acts:
            raise StopIteration
        if "half" in acts:
            raise ValueError("half of \ud83d\ude00 is \ud83d")
        if "recurse" in acts:
            return self.inference(inputs)
        return x * np.float32(2) + np.float32(1), acts

    def postprocess(self, outputs: Any, batch: Batch) -> Any:
        y, acts = outputs
        if "none" in acts:
            return None
        if "short" in acts:
            return {"id": batch["id"].numpy()[:0], "y": y[:0]}
        if "long" in acts:
            return {
                "id": np.zeros(batch.num_rows + 1, np.int64),
                "y": np.zeros(batch.num_rows + 1, np.float32),
            }
        if "dtype" in acts:
            return {"id": batch["id"].numpy(), "y": ["text"] * batch.num_rows}
        if "names" in acts:
            return {"id": batch["id"].numpy(), "z": y}
        if "object" in acts:
            return object()
        return {"id": batch["id"].numpy(), "y": y}
