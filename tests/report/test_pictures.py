"""Arrays and files become pictures that a browser shows, and maps of where they differ."""

from __future__ import annotations

import base64
import io
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image as Pillow

from parity import Image, Schema, Tensor
from parity.codec.rows import RowDecoder
from parity.report import pictures
from parity.report.imagery import pictured_inputs, pictured_rows
from parity.report.pictures import MAX_ENCODED, MAX_SIDE, Picture

Pixels = np.ndarray[Any, Any]


def opened(picture: Picture | None) -> Pixels:
    assert picture is not None
    image = Pillow.open(io.BytesIO(picture.data))
    assert image.size == (picture.width, picture.height)
    return np.asarray(image)


def file(pixels: Pixels, form: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    Pillow.fromarray(pixels).save(buffer, form, **options)
    return buffer.getvalue()


@given(
    st.sampled_from([(), (3,), (4,)]).flatmap(
        lambda last: arrays.arrays(
            np.uint8, st.tuples(st.integers(1, 20), st.integers(1, 20)).map(lambda sides: (*sides, *last))
        )
    )
)
def test_a_png_holds_its_pixels(pixels: Pixels):
    image = Pillow.open(io.BytesIO(pictures.png(pixels)))
    assert np.array_equal(np.asarray(image), pixels)


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ((28, 28), "hw"),
        ((20, 30, 3), "hwc"),
        ((20, 30, 1), "hwc"),
        ((3, 20, 30), "chw"),
        ((4, 20, 30), "chw"),
        ((20,), None),
        ((3, 3), None),
        ((7, 100), None),
        ((8, 65), None),
        ((2, 20, 30), None),
        ((5, 3, 20, 30), None),
        ((0, 0), None),
        ((100_000, 100_000), None),
    ],
)
def test_shapes_that_are_pictures(shape: tuple[int, ...], found: str | None):
    assert pictures.layout(shape) == found


def test_an_array_is_shown_as_it_is_whatever_its_layout():
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    assert np.array_equal(opened(pictures.picture(pixels)), pixels)
    assert np.array_equal(opened(pictures.picture(pixels.transpose(2, 0, 1))), pixels)
    assert np.array_equal(opened(pictures.picture(pixels[..., :1])), pixels[..., 0])


def test_floats_are_scaled_and_what_is_not_finite_is_dark_or_bright():
    values = np.linspace(-2, 2, 100).reshape(10, 10)
    values[0, :3] = np.nan, np.inf, -np.inf
    shown = opened(pictures.picture(values))
    assert shown[0, :3].tolist() == [0, 255, 0]
    assert shown[9, 9] == 255
    assert opened(pictures.picture(np.full((9, 9), np.nan))).max() == 0
    assert opened(pictures.picture(np.full((9, 9), 7.0))).max() == 0
    assert opened(pictures.picture(np.eye(9, dtype=bool)))[3, 3] == 255


def test_texts_and_complex_numbers_are_no_pictures():
    assert pictures.picture(np.full((9, 9), "x")) is None
    assert pictures.picture(np.zeros((9, 9), np.complex128)) is None


def test_large_pictures_are_shrunk():
    shown = opened(pictures.picture(np.zeros((1000, 501), np.uint8)))
    assert max(shown.shape) <= MAX_SIDE
    assert shown.shape == (143, 72)


def test_a_single_pixel_of_difference_is_not_lost_by_shrinking():
    expected = np.zeros((900, 900, 3), np.uint8)
    obtained = expected.copy()
    obtained[444, 555, 1] = 7
    found = pictures.pictures(expected, obtained)
    assert found is not None
    assert found[3] == "1 of 810,000 pixels differs, by at most 7"
    shown = opened(found[2])
    assert (shown.max(axis=-1) > 200).sum() == 1


def test_both_sides_are_shown_on_one_scale():
    expected = np.full((9, 9), 1.0, np.float32)
    expected[0] = 0.0
    found = pictures.pictures(expected, expected * 2)
    assert found is not None
    ours, theirs, mapped, told = found
    assert (opened(ours).max(), opened(theirs).max()) == (128, 255)
    assert opened(mapped)[0].max() < 20
    assert told == "72 of 81 pixels differ, by at most 1"


def test_what_is_not_finite_on_one_side_is_told():
    expected, obtained = np.zeros((9, 9)), np.zeros((9, 9))
    obtained[2, 2] = np.nan
    found = pictures.pictures(expected, obtained)
    assert found is not None
    assert found[3] == "1 of 81 pixels differs, by at most 0; 1 is NaN or infinite on one side"
    assert opened(found[2])[2, 2].max() > 200
    both = pictures.pictures(obtained, obtained)
    assert both is not None
    assert both[3] == "0 of 81 pixels differ, by at most 0"


def test_other_shapes_have_no_difference():
    assert pictures.pictures(np.zeros((9, 9)), np.zeros((9, 10))) is None
    assert pictures.pictures(np.zeros(9), np.zeros(9)) is None


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_small_files_are_shown_as_they_are(form: str):
    data = file(np.zeros((9, 9, 3), np.uint8), form)
    found = pictures.encoded(data)
    assert found is not None
    assert found.data == data
    assert found.media_type == f"image/{form.lower()}"
    assert base64.b64decode(found.uri().partition(",")[2]) == data


def test_large_files_and_tiff_become_small_pngs():
    pixels = np.random.default_rng(0).integers(0, 256, (600, 400, 3), np.uint8)
    large = file(pixels)
    assert len(large) > MAX_ENCODED
    assert opened(pictures.encoded(large)).shape == (150, 100, 3)
    assert opened(pictures.encoded(file(pixels[:9, :9], "TIFF"))).shape == (9, 9, 3)


def test_a_rotated_photo_is_decoded_upright():
    pixels = np.zeros((10, 20, 3), np.uint8)
    exif = Pillow.Exif()
    exif[0x0112] = 6
    decoded = pictures.decoded(file(pixels, "JPEG", exif=exif))
    assert decoded is not None
    assert decoded.shape == (20, 10, 3)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg onload='alert(1)'/>",
        b"\x89PNG\r\n\x1a\n" + b"\0" * 100_000,
        b"II*\x00 broken",
        b"RIFF\0\0\0\0WAVE",
    ],
)
def test_what_is_no_image_is_not_shown(data: bytes):
    assert pictures.encoded(data) is None
    assert pictures.decoded(data) is None


def test_an_image_of_absurd_size_is_not_decoded():
    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + head + b"\0" * 8
    assert pictures.decoded(data) is None


class Rows:
    schema = Schema(
        square=Tensor("uint8", (9, 9)),
        tall=Tensor("uint8", (None, 9, 3)),
        any=Image(form="array"),
        file=Image(),
        vector=Tensor("float32", (9, 9)),
        short=Tensor("uint8", (4,)),
        empty=Image(nullable=True),
    )

    @staticmethod
    def table(shade: int) -> pa.Table:
        pixels = np.full((12, 9, 3), shade, np.uint8)
        row = {
            "square": pixels[:9, :, 0].tolist(),
            "tall": pixels.tolist(),
            "any": pixels.tolist(),
            "file": base64.b64encode(file(pixels)).decode(),
            "vector": np.zeros((9, 9)).tolist(),
            "short": [1, 2, 3, 4],
            "empty": None,
        }
        decoded = RowDecoder(Rows.schema).decode([row])
        assert decoded.errors == ()
        return decoded.batch.to_table()


def test_the_images_of_a_row_are_found_by_the_types_of_its_fields():
    found = pictured_inputs(Rows.table(50), 0)
    assert [item.where for item in found] == ["square", "tall", "any", "file"]
    assert opened(found[0].expected).shape == (9, 9)
    assert opened(found[1].expected).shape == (12, 9, 3)
    assert opened(found[2].expected).shape == (12, 9, 3)


def test_answers_are_shown_where_they_differ():
    found = pictured_rows([0], None, Rows.table(50), Rows.table(90))
    assert [(item.where, item.source) for item in found] == [
        ("square", "answer"),
        ("tall", "answer"),
        ("any", "answer"),
        ("file", "answer"),
    ]
    assert found[0].note == "81 of 81 pixels differ, by at most 40"
    assert pictured_rows([0], None, Rows.table(50), Rows.table(50)) == []
