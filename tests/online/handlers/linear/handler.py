"""A small model whose answer for a row does not depend on its neighbours, bit for bit."""

import numpy as np

from parity import Batch, Bool, Context, Float32, Handler, Int64, List, Schema, String, Tensor, Timestamp


class Linear(Handler):
    """Score a vector."""

    inputs = Schema(
        features=Tensor("float32", (8,), doc="eight numbers"),
        account=Int64(nullable=True),
        name=String(default="nobody"),
        at=Timestamp(unit="us", tz="UTC", nullable=True),
        tags=List(String(), default=()),
    )
    outputs = Schema(
        score=Float32(non_finite="string"),
        positive=Bool(),
        account=Int64(nullable=True),
        greeting=String(),
        tags=Int64(),
        echo=Tensor("float32", (2,), non_finite="string"),
    )

    def initialize(self, context: Context) -> None:
        self.weights = (np.arange(8, dtype=np.float32) - np.float32(3.3)) / np.float32(7)

    def preprocess(self, batch: Batch) -> np.ndarray:
        for row, name in enumerate(batch["name"].to_pylist()):
            if name == "reject me":
                batch.reject(row, "nobody is called that")
        return batch["features"].numpy()

    def inference(self, inputs: np.ndarray) -> np.ndarray:
        return (inputs * self.weights).sum(axis=1, dtype=np.float32)

    def postprocess(self, outputs: np.ndarray, batch: Batch) -> dict[str, object]:
        names = batch["name"].to_pylist()
        if "raise" in names:
            raise ValueError("a row is called raise")
        return {
            "score": outputs,
            "positive": outputs > 0,
            "account": batch["account"].to_pylist(),
            "greeting": [f"hello {name}" for name in names],
            "tags": np.array([len(tags) for tags in batch["tags"].to_pylist()], dtype=np.int64),
            "echo": batch["features"].numpy()[:, :2],
        }
