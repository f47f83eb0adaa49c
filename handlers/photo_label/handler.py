"""Names what a photo shows, and tells how sharp and how bright it is and which photos are like it."""

from __future__ import annotations

from typing import Any

import torch
from photo_label_net import CLASSES, FEATURES, EfficientNetLite0, published_weights

from parity import Batch, Context, Float32, Handler, Image, Int64, Schema, String, Tensor, vision

__all__ = ["PhotoLabel"]

SIDE = 224
MEAN, DEVIATION = 127 / 255, 128 / 255

FOR_NETWORK = vision.Plan(
    vision.step(vision.resize_shortest, SIDE + 32, interpolation="cubic", antialias=True),
    vision.step(vision.center_crop, (SIDE, SIDE)),
    vision.step(vision.normalize, mean=[MEAN] * 3, std=[DEVIATION] * 3),
    name="photo_label",
)


class PhotoLabel(Handler):
    """Name a photo of any size and kind of file by one of ImageNet's 1000 classes, and measure it."""

    inputs = Schema(photo=Image(doc="a JPEG, PNG, WebP, GIF, BMP or TIFF file"))
    outputs = Schema(
        label=String(doc="the most probable of ImageNet's 1000 classes"),
        class_id=Int64(ge=0, le=CLASSES - 1, doc="its index in ImageNet's order"),
        confidence=Float32(ge=0.0, le=1.0, doc="its probability"),
        embedding=Tensor(
            "float32", (FEATURES,), doc="features of length 1; the dot product of two is likeness"
        ),
        sharpness=Float32(ge=0.0, doc="variance of the Laplacian, the longer side at 128 pixels"),
        brightness=Float32(ge=0.0, le=1.0, doc="mean grey level"),
    )

    def initialize(self, context: Context) -> None:
        """Load the network out of its package, and the names of its classes."""
        network = EfficientNetLite0()
        network.load_state_dict(published_weights())
        self.model = context.run_model(network)
        self.labels: list[str] = context.load_json("artifacts/labels.json")
        self.longest_side = int(context.config["longest_side"])

    def preprocess(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Decode, measure at one scale, and give the middle (n, 3, 224, 224), about -1 to 1."""
        photos = vision.decode(batch["photo"])
        scaled = vision.resize_longest(photos, self.longest_side, antialias=True)
        return {
            "pixels": FOR_NETWORK(photos),
            "sharpness": vision.sharpness(scaled),
            "brightness": vision.exposure(scaled).mean,
        }

    def inference(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the probabilities (n, 1000) and the features (n, 1280)."""
        logits, features = self.model(inputs["pixels"])
        return {
            "probabilities": logits.softmax(-1),
            "features": features,
            "sharpness": inputs["sharpness"],
            "brightness": inputs["brightness"],
        }

    def postprocess(self, outputs: dict[str, Any], batch: Batch) -> dict[str, object]:
        """Return the most probable class of each photo beside what was measured."""
        confidence, class_id = outputs["probabilities"].max(-1)
        return {
            "label": [self.labels[index] for index in class_id.tolist()],
            "class_id": class_id,
            "confidence": confidence,
            "embedding": outputs["features"],
            "sharpness": outputs["sharpness"],
            "brightness": outputs["brightness"],
        }
