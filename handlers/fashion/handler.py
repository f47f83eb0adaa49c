"""Names the item of clothing in a 28x28 grey image."""

from __future__ import annotations

import torch
from fashion_idx import LABELS
from fashion_net import FashionNet

from parity import Batch, Context, Float32, Handler, Int64, Schema, String, Tensor

__all__ = ["Fashion"]


class Fashion(Handler):
    """Name a fashion item: one of ten kinds, and how sure the network is of it."""

    inputs = Schema(image=Tensor("uint8", (28, 28), doc="grey levels, 0 is the background"))
    outputs = Schema(
        label=String(choices=LABELS, doc="the most probable kind"),
        class_id=Int64(ge=0, le=9, doc="its index in fashion-MNIST's order"),
        confidence=Float32(ge=0.0, le=1.0, doc="its probability"),
    )

    def initialize(self, context: Context) -> None:
        """Load the network and the names of its outputs."""
        self.model = context.load_model("artifacts/model.safetensors", FashionNet())
        self.labels: list[str] = context.load_json("artifacts/labels.json")

    def preprocess(self, batch: Batch) -> torch.Tensor:
        """Return (n, 1, 28, 28) float32 in 0..1."""
        return batch["image"].torch(self.context.device).to(torch.float32).div(255.0).unsqueeze(1)

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the probabilities (n, 10)."""
        return self.model(inputs).softmax(-1)

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:
        """Return the most probable kind of each image."""
        confidence, class_id = outputs.max(-1)
        labels = [self.labels[index] for index in class_id.tolist()]
        return {"label": labels, "class_id": class_id, "confidence": confidence}
