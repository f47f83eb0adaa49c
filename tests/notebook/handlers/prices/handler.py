"""A handler whose rows have nulls, instants, lists and every way to fail; numpy only."""

import numpy as np
from price_table import FACTOR

from parity import Batch, Float64, Handler, Int64, List, Schema, String, Tensor, Timestamp


class Prices(Handler):
    """Total an order: <b>units</b> times price."""

    inputs = Schema(
        price=Float64(doc="per unit"),
        units=Int64(nullable=True, ge=0),
        name=String(default="nobody"),
        at=Timestamp(unit="us", tz="UTC", nullable=True, default=None),
        tags=List(String(), default=()),
    )
    outputs = Schema(
        total=Float64(non_finite="string"),
        units=Int64(nullable=True),
        greeting=String(),
        at=Timestamp(unit="us", tz="UTC", nullable=True),
        parts=Tensor("float32", (2,), non_finite="string"),
        tags=Int64(),
    )

    def preprocess(self, batch: Batch) -> dict[str, np.ndarray]:
        for row, name in enumerate(batch["name"].to_pylist()):
            if name == "reject me":
                batch.reject(row, "nobody is called that")
        units = batch["units"].fill_null(0).numpy().astype(np.float64)
        return {"price": batch["price"].numpy(), "units": units}

    def inference(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        if (inputs["price"] == 13.0).any():
            raise ValueError("thirteen is <unlucky>")
        with np.errstate(invalid="ignore"):
            return inputs["price"] * inputs["units"] * FACTOR

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        return {
            "total": outputs,
            "units": batch["units"].to_pylist(),
            "greeting": [f"hello {name}" for name in batch["name"].to_pylist()],
            "at": batch["at"].to_pylist(),
            "parts": np.stack([outputs / 2, outputs / 3], axis=1).astype(np.float32),
            "tags": np.array([len(tags) for tags in batch["tags"].to_pylist()], np.int64),
        }
