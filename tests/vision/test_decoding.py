"""Files of all kinds to pixels, whole handlers over them, and files that are broken."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image as Pillow

from parity import Batch, Engine, Float32, Handler, Image, Profile, Schema, vision
from parity.codec.arrow import decode_table
from parity.errors import ConfigError
from parity.numerics import current_device
from parity.vision import ImageError, Images
from tests.vision.pictures import file_of, images, noise, photo


def decoded(data: bytes, **options: Any) -> np.ndarray:
    (image,) = vision.decode([data], **options)
    return image.numpy()


def test_lossless_files_come_back_bit_for_bit() -> None:
    array = noise(1, 12, 17)
    for kind, options in (("PNG", {}), ("BMP", {}), ("TIFF", {}), ("WEBP", {"lossless": True})):
        assert np.array_equal(decoded(file_of(Pillow.fromarray(array), kind, **options)), array), kind
    assert np.array_equal(decoded(vision.encode_png(images(array))[0]), array)
    grey = noise(2, 5, 6, channels=1)
    assert np.array_equal(decoded(vision.encode_png(images(grey))[0], mode="L"), grey)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}, {"quality": 40}])
def test_jpeg_is_as_pillow_decodes_it(options: dict[str, Any]) -> None:
    data = file_of(Pillow.fromarray(photo()), "JPEG", **options)
    assert np.array_equal(decoded(data), np.asarray(Pillow.open(io.BytesIO(data))))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_upright_as_exif_says(orientation: int) -> None:
    array = noise(3, 4, 6)
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    turned = {
        1: array,
        2: array[:, ::-1],
        3: array[::-1, ::-1],
        4: array[::-1],
        5: array.transpose(1, 0, 2),
        6: np.rot90(array, -1),
        7: np.rot90(array, -1)[:, ::-1][::-1, ::-1],
        8: np.rot90(array, 1),
    }[orientation]
    found = decoded(file_of(Pillow.fromarray(array), "PNG", exif=exif))
    assert np.array_equal(found, turned)


def test_odd_modes_become_rgb() -> None:
    array = noise(4, 6, 5)
    picture = Pillow.fromarray(array)
    grey = picture.convert("L")
    assert np.array_equal(decoded(file_of(grey, "PNG")), np.repeat(np.asarray(grey)[..., None], 3, -1))
    cmyk = file_of(picture.convert("CMYK"), "JPEG", quality=100, subsampling=0)
    assert decoded(cmyk).shape == (6, 5, 3)
    alpha = picture.copy()
    alpha.putalpha(77)
    assert np.array_equal(decoded(file_of(alpha, "PNG")), array)
    assert (decoded(file_of(alpha, "PNG"), mode="RGBA")[..., 3] == 77).all()
    palette = picture.quantize(8)
    assert np.array_equal(decoded(file_of(palette, "GIF")), np.asarray(palette.convert("RGB")))
    deep = np.arange(0, 65536, 4096).astype(np.uint16).reshape(4, 4)
    assert np.array_equal(decoded(file_of(Pillow.fromarray(deep), "PNG"), mode="L")[..., 0], deep >> 8)
    bilevel = Pillow.fromarray(array[..., 0] > 127)
    assert set(np.unique(decoded(file_of(bilevel, "PNG")))) <= {0, 255}


MODES = (
    *("1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB"),
    *("I;16", "I;16B", "I", "F"),
)


def light_picture(mode: str) -> Pillow.Image:
    """A light grey picture, about level 200 of 255, as each mode has it."""
    deep = {"I;16": "<u2", "I;16B": ">u2", "I": "<i4"}
    if mode in deep:
        return Pillow.fromarray(np.full((6, 5), 200 * 257, deep[mode]))
    if mode == "F":
        return Pillow.fromarray(np.full((6, 5), 200 / 255, np.float32))
    if mode == "LAB":
        return Pillow.new("LAB", (5, 6), (200, 128, 128))
    return Pillow.new("RGB", (5, 6), (200, 200, 200)).convert(mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_picture_of_any_mode_stays_light_or_is_refused_with_the_reason(mode: str) -> None:
    data = file_of(light_picture(mode), "TIFF")
    if mode in ("I", "F"):
        with pytest.raises(ImageError, match=r"a TIFF file: its levels are 32-bit .*; expected 8 or 16 bits"):
            vision.decode([data])
    elif mode == "1":
        assert decoded(data).max() == 255, "dots of black and white"
    else:
        assert np.median(decoded(data)) > 180


def test_a_portable_grey_map_of_16_bits_loses_the_lower_byte() -> None:
    levels = np.arange(0, 65536, 4096).astype(">u2")
    data = b"P5\n4 4\n65535\n" + levels.tobytes()
    assert np.array_equal(decoded(data, mode="L")[..., 0].ravel(), levels >> 8)


def test_the_first_frame_of_several_counts() -> None:
    first, second = Pillow.fromarray(noise(5, 4, 4)), Pillow.fromarray(noise(6, 4, 4))
    data = file_of(first, "TIFF", save_all=True, append_images=[second])
    assert np.array_equal(decoded(data), np.asarray(first))


JPEG = file_of(Pillow.fromarray(photo(80, 90)), "JPEG")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty"),
        (b"hello", "it is no image file of a known kind"),
        (JPEG[:200], ""),
        (JPEG[: len(JPEG) // 2], "truncated"),
        (file_of(Pillow.fromarray(noise(7, 30, 30)), "PNG")[:-40], ""),
    ],
)
def test_files_that_are_broken_are_named_with_their_row(data: bytes, said: str) -> None:
    with pytest.raises(ImageError) as caught:
        vision.decode([JPEG, data, JPEG, data])
    assert list(caught.value.rows) == [1, 3]
    assert str(caught.value).startswith("the image of row 1 cannot be decoded: ")
    assert said in str(caught.value).lower()
    assert str(caught.value).endswith("and 1 more rows")


def test_an_image_of_too_many_pixels_is_refused_before_it_is_decoded() -> None:
    data = file_of(Pillow.new("1", (2000, 2000)), "PNG")
    assert len(data) < 2000
    with pytest.raises(ImageError, match="2000 x 2000 pixels, more than 1000000"):
        vision.decode([data], max_pixels=1_000_000)


def test_wrong_columns_and_modes_are_refused() -> None:
    with pytest.raises(ConfigError, match="no mode 'BGR'"):
        vision.decode([JPEG], mode="BGR")  # pyright: ignore[reportArgumentType]
    schema = Schema(photo=Image(form="array", channels=3))
    batch = decode_table(schema, pa.table({"photo": [noise(1, 2, 2).tolist()]})).batch
    with pytest.raises(ConfigError, match="takes a column of encoded images"):
        vision.decode(batch["photo"])


class Brightness(Handler):
    """Mean brightness of photos of any size."""

    inputs = Schema(photo=Image())
    outputs = Schema(mean=Float32(), sharp=Float32())

    def preprocess(self, batch: Batch) -> torch.Tensor:
        assert current_device() == "cpu"
        pictures = vision.decode(batch["photo"])
        self.kept: Images = pictures
        pictures = vision.resize(pictures, (16, 16), antialias=True)
        return vision.normalize(pictures, mean=(0.5,) * 3, std=(0.5,) * 3)

    def inference(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs.flatten(1).mean(1)

    def postprocess(self, outputs: torch.Tensor, batch: Batch) -> dict[str, object]:
        return {"mean": outputs, "sharp": torch.zeros_like(outputs)}


@pytest.mark.parametrize("buckets", [(), (8,)])
def test_a_broken_image_fails_its_own_row_only(buckets: tuple[int, ...]) -> None:
    files = [file_of(Pillow.fromarray(photo(20 + row, 30)), "PNG") for row in range(5)]
    batch = decode_table(
        Brightness.inputs, pa.table({"photo": pa.array([*files[:2], JPEG[:200], *files[2:]], pa.binary())})
    )
    with Engine(Brightness, Profile(buckets=buckets)) as engine:
        result = engine.score(batch)
        alone = engine.score(decode_table(Brightness.inputs, pa.table({"photo": files})))
    (error,) = result.errors
    assert error.row == 2
    assert (error.kind, error.stage, error.type) == ("rejected", "preprocess", "ImageError")
    assert "the image cannot be decoded: " in error.message
    assert result.outputs["mean"].to_pylist() == pytest.approx(alone.outputs["mean"].to_pylist(), abs=1e-6)


def test_the_library_is_imported_late(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "import sys, parity, parity.engine; assert 'torch' not in sys.modules and 'PIL' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WebP", "BMP", "TIFF"])
def test_a_file_that_is_cut_off_is_told_with_its_kind_and_where(kind: str) -> None:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(1).integers(0, 256, (40, 50, 3), np.uint8)
    Pillow.fromarray(pixels).save(buffer, kind)
    data = buffer.getvalue()
    vision.decode([data])
    with pytest.raises(vision.ImageError) as caught:
        vision.decode([data[: len(data) // 2]])
    assert f"cannot be decoded: a {kind} file" in str(caught.value)
    if kind == "JPEG":
        assert f"truncated at byte {len(data) // 2}" in str(caught.value)
    with pytest.raises(vision.ImageError) as caught:
        vision.decode([data[:12]])
    assert f"a {kind} file" in str(caught.value)
