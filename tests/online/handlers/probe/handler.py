"""A handler that tests steer from outside: it waits, raises, rejects, and writes down which rows it ran."""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from parity import Batch, Float32, Handler, Int64, Schema, String


class Probe(Handler):
    """Answer y = 2 x + 1, and how many rows the batch had."""

    inputs = Schema(
        id=Int64(doc="written to the file $PROBE_RAN when the row runs"),
        x=Float32(default=0.0),
        act=String(default="", choices=("", "raise", "reject", "nan")),
        wait=String(default="", doc="the batch waits until this file exists; an absolute path"),
    )
    outputs = Schema(id=Int64(), y=Float32(), rows=Int64())

    def preprocess(self, batch: Batch) -> dict[str, Any]:
        for row, act in enumerate(batch["act"].to_pylist()):
            if act == "reject":
                batch.reject(row, "act says reject")
        return {"x": batch["x"].numpy(), "act": batch["act"].to_pylist(), "wait": batch["wait"].to_pylist()}

    def inference(self, inputs: dict[str, Any]) -> np.ndarray:
        for name in inputs["wait"]:
            while name.startswith("/") and not Path(name).exists():
                time.sleep(0.001)
        if "raise" in inputs["act"]:
            raise LookupError(f"act says raise: secret-{40 + 2}")
        y = inputs["x"] * np.float32(2) + np.float32(1)
        return np.where(np.array(inputs["act"]) == "nan", np.float32("nan"), y)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        ran = os.environ.get("PROBE_RAN")
        if ran:
            with Path(ran).open("a", encoding="utf-8") as file:
                file.writelines(f"{number}\n" for number in batch["id"].to_pylist())
        return {"id": batch["id"].numpy(), "y": outputs, "rows": np.full(batch.num_rows, batch.num_rows)}
