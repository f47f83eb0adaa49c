"""A handler that tests steer stage by stage: each may wait for a file, raise, or reject the row."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from parity import Batch, Handler, Int64, Schema, String


class Steps(Handler):
    """Answer y = 2 x + 1, with the number of rows that the batch had."""

    inputs = Schema(
        x=Int64(),
        prepare=String(default="", doc="preprocess waits until this file exists"),
        infer=String(default="", doc="inference waits until this file exists"),
        finish=String(default="", doc="postprocess waits until this file exists"),
        act=String(default="", choices=("", "reject", "raise", "infer", "finish")),
        seen=String(default="", doc="a folder; each stage leaves a file NAME-X there when it begins"),
    )
    outputs = Schema(x=Int64(), y=Int64(), rows=Int64())

    def preprocess(self, batch: Batch) -> dict[str, Any]:
        """Wait, reject or raise; then hand the columns on."""
        found = {name: batch[name].to_pylist() for name in ("infer", "act", "seen", "x")}
        _leave("preprocess", found["seen"], found["x"])
        _wait(batch["prepare"].to_pylist())
        for row, act in enumerate(found["act"]):
            if act == "reject":
                batch.reject(row, "act says reject")
            if act == "raise":
                raise LookupError("act says raise")
        return {**found, "values": batch["x"].numpy()}

    def inference(self, inputs: dict[str, Any]) -> np.ndarray:
        """Wait or raise; then compute."""
        _leave("inference", inputs["seen"], inputs["x"])
        _wait(inputs["infer"])
        if "infer" in inputs["act"]:
            raise LookupError("act says infer")
        return inputs["values"] * 2 + 1

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        """Wait or raise; then answer."""
        _leave("postprocess", batch["seen"].to_pylist(), batch["x"].to_pylist())
        _wait(batch["finish"].to_pylist())
        if "finish" in batch["act"].to_pylist():
            raise LookupError("act says finish")
        return {"x": batch["x"].numpy(), "y": outputs, "rows": np.full(batch.num_rows, batch.num_rows)}


def _wait(names: list[str]) -> None:
    for name in names:
        while name and not Path(name).exists():
            time.sleep(0.001)


def _leave(stage: str, folders: list[str], values: list[int]) -> None:
    for folder, x in zip(folders, values, strict=True):
        if folder:
            (Path(folder) / f"{stage}-{x}").touch()
