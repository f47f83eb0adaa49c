"""What a parcel costs: a handler one of whose fields has a default."""

from __future__ import annotations

from typing import Any

from parity import Batch, Float64, Handler, Schema, String


class Shipping(Handler):
    """Two a kilogram, and five more abroad."""

    inputs = Schema(weight=Float64(), country=String(default="ES"))
    outputs = Schema(cost=Float64())

    def preprocess(self, batch: Batch) -> list[tuple[float, str]]:
        return list(zip(batch["weight"].numpy().tolist(), batch["country"], strict=True))

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, object]:
        return {"cost": [2 * weight + (0 if country == "ES" else 5) for weight, country in outputs]}
