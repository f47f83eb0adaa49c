"""A small handler of images, the same with its channels swapped, and real reports about the two."""

from __future__ import annotations

import base64
import dataclasses
import io
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image as Pillow

from parity import Batch, Engine, Float32, Handler, Image, Schema, String, Tensor
from parity.codec.rows import RowDecoder
from parity.compare import compare
from parity.laws import check_laws, laws_named
from parity.report import CheckReport, Entry
from parity.report.samples import samples
from parity.stages import Traces, traces
from parity.triage import Divergence, Side, diagnose

ROWS, SIDE = 60, 40
FINGERPRINT = {
    "python": "3.11.9",
    "torch": "2.13.0",
    "pillow": "13.0.0",
    "cpu": "x86-64 AVX2",
    "threads": "1",
}


class Photo(Handler):
    """How warm a photo is, and a mask of its warm pixels."""

    inputs = Schema(photo=Tensor("uint8", (SIDE, SIDE, 3)), file=Image(), name=String())
    outputs = Schema(
        label=String(),
        warmth=Float32(),
        colours=Tensor("float32", (3,)),
        mask=Tensor("uint8", (SIDE, SIDE)),
    )
    swapped = False

    def preprocess(self, batch: Batch) -> dict[str, Any]:
        pixels = np.stack([np.asarray(value) for value in batch["photo"]]).astype(np.float32) / 255
        if self.swapped:
            pixels = pixels[..., ::-1]
        return {"pixels": np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))}

    def inference(self, inputs: dict[str, Any]) -> dict[str, Any]:
        pixels = inputs["pixels"]
        return {"colours": pixels.mean(axis=(2, 3)), "warm": pixels[:, 0] - pixels[:, 2]}

    def postprocess(self, outputs: dict[str, Any], batch: Batch) -> dict[str, object]:
        warmth = outputs["colours"][:, 0] - outputs["colours"][:, 2]
        return {
            "label": ["warm" if value > 0 else "cold" for value in warmth.tolist()],
            "warmth": warmth,
            "colours": outputs["colours"],
            "mask": np.where(outputs["warm"] > 0.1, 255, 0).astype(np.uint8),
        }


class SwappedPhoto(Photo):
    """The photo handler with red and blue exchanged."""

    swapped = True


@cache
def photos() -> Batch:
    """Give coloured shapes on coloured grounds; every sixth is grey, and hides what is swapped."""
    random = np.random.default_rng(4)
    across, down = np.meshgrid(np.arange(SIDE), np.arange(SIDE))
    images: list[np.ndarray[Any, Any]] = []
    for row in range(ROWS):
        ground, shape = random.integers(20, 236, 3), random.integers(20, 236, 3)
        if row % 6 == 0:
            ground, shape = np.full(3, ground[0]), np.full(3, shape[0])
        x, y, size = random.integers(10, 30), random.integers(10, 30), random.integers(5, 14)
        inside = (across - x) ** 2 + (down - y) ** 2 < size**2
        shaded = np.where(inside[..., None], shape, ground) * (0.6 + 0.4 * down / SIDE)[..., None]
        images.append(shaded.astype(np.uint8))
    return batch_of(images, [f"photo {row}" for row in range(ROWS)])


def batch_of(images: list[np.ndarray[Any, Any]], names: list[str]) -> Batch:
    """Give these images, as arrays and as JPEG files."""
    rows: list[dict[str, object]] = []
    for image, name in zip(images, names, strict=True):
        buffer = io.BytesIO()
        Pillow.fromarray(image).save(buffer, "JPEG")
        file = base64.b64encode(buffer.getvalue()).decode()
        rows.append({"photo": image.tolist(), "file": file, "name": name})
    decoded = RowDecoder(Photo.inputs).decode(rows)
    assert decoded.errors == ()
    return decoded.batch


@cache
def asked(cls: type[Photo]) -> tuple[pa.Table, Traces]:
    """Give the answers of a handler, and its stage values."""
    with Engine(cls) as engine:
        result = engine.run(photos(), stages=True)
    return result.to_table(), traces(photos(), result)


@cache
def photo_report() -> CheckReport:
    """Give a report of a runner that exchanges channels, and of one that agrees; with real laws."""
    (right, ours), (wrong, theirs) = asked(Photo), asked(SwappedPhoto)
    inputs = photos().to_table()
    buckets = [(8, 16, 32)[row % 3] for row in range(ROWS)]
    recorded = {**FINGERPRINT, "pillow": "12.1.0"}
    entries: list[Entry] = []
    for runner, wire, answers in (
        ("notebook", None, right),
        ("batch", None, right),
        ("online", "json", wrong),
        ("online", "v2", wrong),
    ):
        found = compare(right, answers, inputs=inputs)
        kept = samples(found, right, answers, buckets, inputs=inputs, traces=(ours, theirs))
        entry = Entry(runner, "photos", wire, ROWS, found, 1.5, recorded=recorded, samples=kept)
        if not entry.ok:
            sides = Side("as recorded", right, ours), Side(entry.name, answers, theirs)
            entry = dataclasses.replace(entry, diagnosis=diagnose(Divergence("golden", inputs, *sides)))
        entries.append(entry)
    with Engine(Photo) as engine:
        laws = check_laws(engine, photos(), laws=laws_named(["repeatable", "order", "wire-form"]))
    return CheckReport(
        "photo", "1.2.0", "default (cpu, float32)", FINGERPRINT, tuple(entries), tuple(laws), "handlers/photo"
    )
