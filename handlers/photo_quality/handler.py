"""Tells whether a photo of goods is fit to be shown: sharp enough, and neither too dark nor too bright."""

from __future__ import annotations

from typing import Any

import torch

from parity import Batch, Context, Float32, Handler, Image, Int64, Schema, String, vision

__all__ = ["PhotoQuality"]

VERDICTS = ("good", "blurred", "too dark", "too bright")


class PhotoQuality(Handler):
    """Score photos of any size and kind of file by sharpness and exposure."""

    inputs = Schema(photo=Image(doc="a JPEG, PNG, WebP, GIF, BMP or TIFF file"))
    outputs = Schema(
        verdict=String(choices=VERDICTS, doc="fit to be shown, or why not"),
        width=Int64(ge=1, doc="of the upright photo, in pixels"),
        height=Int64(ge=1),
        sharpness=Float32(ge=0.0, doc="variance of the Laplacian, the longer side at 128 pixels"),
        brightness=Float32(ge=0.0, le=1.0, doc="mean grey level"),
        dark=Float32(ge=0.0, le=1.0, doc="share of pixels that are black"),
        bright=Float32(ge=0.0, le=1.0, doc="share of pixels that are white"),
    )

    def initialize(self, context: Context) -> None:
        """Read the limits from handler.toml."""
        self.limits: dict[str, float] = {name: float(value) for name, value in context.config.items()}

    def preprocess(self, batch: Batch) -> dict[str, list[Any]]:
        """Decode, and bring to one scale: sharpness means nothing across sizes."""
        photos = vision.decode(batch["photo"])
        scaled = vision.resize_longest(photos, int(self.limits["longest_side"]), antialias=True)
        return {"sizes": photos.sizes, "photos": list(scaled)}

    def inference(self, inputs: dict[str, list[Any]]) -> dict[str, Any]:
        """Measure."""
        photos = vision.Images(inputs["photos"])
        light = vision.exposure(photos)
        return {
            "sizes": inputs["sizes"],
            "sharpness": vision.sharpness(photos),
            "brightness": light.mean,
            "dark": light.dark,
            "bright": light.bright,
        }

    def postprocess(self, outputs: dict[str, Any], batch: Batch) -> dict[str, object]:
        """Judge by the limits, light first: what is dark is seldom sharp."""
        limits = self.limits
        dark = (outputs["brightness"] < limits["darkest"]) | (outputs["dark"] > limits["most_dark"])
        bright = (outputs["brightness"] > limits["brightest"]) | (outputs["bright"] > limits["most_bright"])
        blurred = outputs["sharpness"] < limits["least_sharp"]
        kinds = torch.where(dark, 2, torch.where(bright, 3, torch.where(blurred, 1, 0)))
        sizes = outputs["sizes"]
        return {
            "verdict": [VERDICTS[kind] for kind in kinds.tolist()],
            "width": [width for _, width in sizes],
            "height": [height for height, _ in sizes],
            **{name: outputs[name] for name in ("sharpness", "brightness", "dark", "bright")},
        }
