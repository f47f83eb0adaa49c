from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pytest
from PIL import Image as Pillow

from parity import Batch, Float64, Handler, Image, Schema
from parity.triage.causes.images import SUSPECTS
from tests.triage.divergences import against, by_hand, claims, denies, table_of

RNG = np.random.default_rng(7)


def picture(row: int, height: int = 12, width: int = 16) -> np.ndarray:
    """A smooth coloured picture that no turn and no permutation maps to itself."""
    down, right = np.meshgrid(np.linspace(0, 1, height), np.linspace(0, 1, width), indexing="ij")
    colours = [down * 180 + row * 3, right * 120 + 40, (down * right) ** 0.7 * 220 + row]
    return np.clip(np.stack(colours, -1), 0, 255).astype(np.uint8)


PICTURES = [picture(row) for row in range(5)]
SQUARE = [picture(row, 14, 14) for row in range(4)]


def png(pixels: np.ndarray, **options: Any) -> bytes:
    sink = io.BytesIO()
    Pillow.fromarray(pixels).save(sink, format="PNG", **options)
    return sink.getvalue()


@pytest.mark.parametrize("order", [[2, 1, 0], [1, 2, 0]])
@pytest.mark.parametrize("first", [False, True])
def test_channels_in_another_order_last_or_first(order: list[int], first: bool) -> None:
    changed = [value[..., order] for value in PICTURES]
    axes = (2, 0, 1) if first else (0, 1, 2)
    one, other = ([value.transpose(axes) for value in side] for side in (PICTURES, changed))
    found = claims("channel-order", by_hand(one, other))
    assert f"channels {order}" in found.cause.evidence if found.cause else False


def test_channels_in_another_order_before_each_was_standardised() -> None:
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])

    def standard(value: np.ndarray) -> np.ndarray:
        return ((value / 255 - mean) / deviation).astype(np.float32)

    found = claims(
        "channel-order",
        by_hand([standard(value) for value in PICTURES], [standard(value[..., ::-1]) for value in PICTURES]),
    )
    assert found.cause is not None
    assert "scale and offset of each channel" in found.cause.evidence


def test_grey_pictures_among_coloured_ones_do_not_hide_the_order() -> None:
    grey = [np.repeat(value[..., :1], 3, axis=-1) for value in PICTURES[:3]]
    mixed = [*grey, *PICTURES[3:]]
    found = claims("channel-order", by_hand(mixed, [value[..., ::-1] for value in mixed]))
    assert found.rows == (3, 4)


def test_channels_permuted_in_some_rows_only_are_no_channel_order() -> None:
    changed = [value[..., ::-1] if row % 2 else 255 - value for row, value in enumerate(PICTURES)]
    assert "no permutation" in denies("channel-order", by_hand(PICTURES, changed))


@pytest.mark.parametrize("pictures", [PICTURES, SQUARE, [value[..., 0] for value in SQUARE]])
def test_rows_and_columns_swapped(pictures: list[np.ndarray]) -> None:
    claims("transpose", by_hand(pictures, [np.swapaxes(value, 0, 1) for value in pictures]))


def test_channels_moved_by_a_reshape() -> None:
    first = [value.transpose(2, 0, 1) for value in PICTURES]
    found = claims("transpose", by_hand(first, [value.reshape(3, 12, 16) for value in PICTURES]))
    assert found.cause is not None
    assert "reshape" in found.cause.sentence


def test_mirrored_pictures_are_no_transpose() -> None:
    assert denies("transpose", by_hand(SQUARE, [value[:, ::-1] for value in SQUARE]))


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_turned_pictures(quarters: int) -> None:
    found = claims("orientation", by_hand(PICTURES, [np.rot90(value, quarters) for value in PICTURES]))
    assert found.cause is not None
    assert "turned" in found.cause.evidence


def test_each_picture_may_be_turned_another_way() -> None:
    turned = [np.rot90(value, row % 3 + 1) for row, value in enumerate(SQUARE)]
    found = claims("orientation", by_hand(SQUARE, turned))
    assert found.cause is not None
    assert "turned left 2" in found.cause.evidence


def test_negatives_are_no_orientation() -> None:
    assert denies("orientation", by_hand(SQUARE, [255 - value for value in SQUARE]))


class Decoded(Handler):
    """A picture's pixels, and their mean."""

    inputs = Schema(image=Image())
    outputs = Schema(mean=Float64())

    def pixels(self, data: bytes) -> np.ndarray:
        return np.asarray(Pillow.open(io.BytesIO(data)).convert("RGB"))

    def preprocess(self, batch: Batch) -> Any:
        return [self.pixels(data) for data in batch["image"].to_pylist()]

    def inference(self, inputs: Any) -> Any:
        return np.array([float(pixels.mean()) + float(pixels[0].mean()) * 2 for pixels in inputs])

    def postprocess(self, outputs: Any, batch: Batch) -> dict[str, Any]:
        return {"mean": outputs}


def images(*pictures: bytes) -> pa.Table:
    return table_of(Decoded, [{"image": data} for data in pictures])


class Turning(Decoded):
    def pixels(self, data: bytes) -> np.ndarray:
        from PIL import ImageOps

        return np.asarray(ImageOps.exif_transpose(Pillow.open(io.BytesIO(data))).convert("RGB"))


def test_an_exif_tag_that_one_side_follows_is_named() -> None:
    tag = Pillow.Exif()
    tag[0x0112] = 6
    rows = images(png(PICTURES[0]), png(PICTURES[1], exif=tag), png(PICTURES[2]))
    with against(Turning, Decoded, rows) as (divergence, engine):
        found = claims("orientation", divergence, engine)
    assert found.rows == (1,)
    assert found.cause is not None
    assert "EXIF orientation 6" in found.cause.evidence


class OnWhite(Decoded):
    def pixels(self, data: bytes) -> np.ndarray:
        image = Pillow.open(io.BytesIO(data)).convert("RGBA")
        ground = Pillow.new("RGBA", image.size, (255, 255, 255, 255))
        return np.asarray(Pillow.alpha_composite(ground, image).convert("RGB"))


class Inverted(Decoded):
    def pixels(self, data: bytes) -> np.ndarray:
        return 255 - super().pixels(data)


def with_alpha(pixels: np.ndarray) -> bytes:
    alpha = np.linspace(0, 255, pixels.shape[1]).astype(np.uint8)
    return png(np.concatenate([pixels, np.broadcast_to(alpha[:, None], (*pixels.shape[:2], 1))], axis=-1))


def test_alpha_that_one_side_drops() -> None:
    rows = images(png(PICTURES[0]), with_alpha(PICTURES[1]), png(PICTURES[2]), with_alpha(PICTURES[3]))
    with against(OnWhite, Decoded, rows) as (divergence, engine):
        found = claims("alpha", divergence, engine)
    assert found.rows == (1, 3)
    assert found.cause is not None
    assert "laid on white" in found.cause.evidence
    with against(Decoded, Inverted, rows) as (divergence, engine):
        assert "have an alpha channel" in denies("alpha", divergence, engine)


class Deep(Decoded):
    def pixels(self, data: bytes) -> np.ndarray:
        image = Pillow.open(io.BytesIO(data))
        if image.mode.startswith("I"):
            return np.stack([(np.asarray(image) >> 8).astype(np.uint8)] * 3, -1)
        return np.asarray(image.convert("RGB"))


class Saturated(Deep):
    def pixels(self, data: bytes) -> np.ndarray:
        image = Pillow.open(io.BytesIO(data))
        if image.mode.startswith("I"):
            return np.stack([np.minimum(np.asarray(image), 255).astype(np.uint8)] * 3, -1)
        return super().pixels(data)


def test_pictures_of_sixteen_bits() -> None:
    deep = png(PICTURES[1][..., 0].astype(np.uint16) * 257)
    rows = images(png(PICTURES[0]), deep, png(PICTURES[2]))
    with against(Deep, Saturated, rows) as (divergence, engine):
        found = claims("bit-depth", divergence, engine)
    assert found.rows == (1,)
    with against(Decoded, Inverted, images(png(PICTURES[0]), deep)) as (divergence, engine):
        assert "rows differ whose pictures do not" in denies("bit-depth", divergence, engine)


class Resized(Decoded):
    """To 8 by 8."""

    def pixels(self, data: bytes) -> np.ndarray:
        return np.asarray(
            Pillow.open(io.BytesIO(data)).convert("RGB").resize((8, 8), Pillow.Resampling.BILINEAR)
        )


class Unsmoothed(Resized):
    def pixels(self, data: bytes) -> np.ndarray:
        image = np.asarray(Pillow.open(io.BytesIO(data)).convert("RGB"))
        return np.asarray(cv2.resize(image, (8, 8), interpolation=cv2.INTER_LINEAR))


class Scaled(Resized):
    def pixels(self, data: bytes) -> np.ndarray:
        return (super().pixels(data) // 2).astype(np.uint8)


def test_resizing_with_and_without_antialias() -> None:
    noisy = [RNG.integers(0, 255, (40, 44, 3)).astype(np.uint8) for _ in range(3)]
    rows = images(*map(png, noisy))
    with against(Resized, Unsmoothed, rows) as (divergence, engine):
        found = claims("resize-antialias", divergence, engine)
    assert found.cause is not None
    assert "Pillow's bilinear (antialias)" in found.cause.evidence
    assert "OpenCV's linear" in found.cause.evidence
    assert "smooths before it shrinks" in found.cause.sentence
    with against(Resized, Scaled, rows) as (divergence, engine):
        assert "no two ways" in denies("resize-antialias", divergence, engine)


def moved(value: np.ndarray, down: int, right: int) -> np.ndarray:
    return np.roll(value, (down, right), (0, 1))


def test_pictures_a_pixel_apart() -> None:
    found = claims("pixel-shift", by_hand(PICTURES, [moved(value, 1, -2) for value in PICTURES]))
    assert found.cause is not None
    assert "1 pixels down and 2 left" in found.cause.evidence
    assert denies("pixel-shift", by_hand(PICTURES, [value[::-1] for value in PICTURES]))


def test_a_flat_picture_shifts_nowhere() -> None:
    flat = [np.full((12, 12, 3), 40, np.uint8)] * 3
    assert denies("pixel-shift", by_hand(flat, [value + 9 for value in flat]))


def test_values_without_pictures_have_no_cause_of_pictures() -> None:
    scores = by_hand([1.0, 2.0], [3.0, 4.0])
    for suspect in SUSPECTS:
        assert denies(suspect.name, scores) == ""
