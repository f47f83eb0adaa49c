"""A handler of encoded images, for raw bodies and forms."""

from __future__ import annotations

from typing import Any

from parity import Batch, Handler, Image, Int64, Schema, String


class Picture(Handler):
    """Answer how many bytes a picture has, and its caption."""

    inputs = Schema(image=Image(), caption=String(default="none"), times=Int64(default=1))
    outputs = Schema(size=Int64(), caption=String())

    def preprocess(self, batch: Batch) -> Any:
        return [len(image) for image in batch["image"].to_pylist()], batch["times"].to_pylist()

    def inference(self, inputs: Any) -> list[int]:
        return [size * times for size, times in zip(*inputs, strict=True)]

    def postprocess(self, outputs: list[int], batch: Batch) -> dict[str, Any]:
        return {"size": outputs, "caption": batch["caption"].to_pylist()}
