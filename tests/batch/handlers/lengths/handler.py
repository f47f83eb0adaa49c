"""The length of a text: a handler whose rows may be of any size."""

from __future__ import annotations

from typing import Any

from parity import Batch, Handler, Int64, Schema, String


class Lengths(Handler):
    """How many characters a text has."""

    inputs = Schema(text=String())
    outputs = Schema(length=Int64())

    def preprocess(self, batch: Batch) -> list[int]:
        return [len(text) for text in batch["text"]]

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, object]:
        return {"length": list(outputs)}
