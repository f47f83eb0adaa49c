"""Raw bodies and multipart forms as rows."""

from __future__ import annotations

import pytest

from parity.codec.form_body import file_field, form_row, raw_row, split_form
from parity.errors import MalformedError
from parity.schema import Bytes, Date, Float32, Image, Int64, Schema, String

SCHEMA = Schema(
    image=Image(), caption=String(default=""), n=Int64(default=1), day=Date(nullable=True, default=None)
)
TYPE = 'multipart/form-data; boundary="b-1"'
BMP = b"BM\r\n--b\r\n\xff"


def form(*parts: tuple[str, bytes], end: bytes = b"--b-1--\r\n") -> bytes:
    return (
        b"".join(
            b'--b-1\r\nContent-Disposition: form-data; name="%s"; filename="f"\r\nX: y\r\n\r\n%s\r\n'
            % (name.encode(), data)
            for name, data in parts
        )
        + end
    )


def test_a_part_is_the_field_of_its_name() -> None:
    parts = [("image", BMP), ("caption", "é".encode()), ("n", b"2"), ("day", b"2020-01-02")]
    assert form_row(SCHEMA, form(*parts), TYPE) == {"image": BMP, "caption": "é", "n": 2, "day": "2020-01-02"}


def test_a_lone_part_of_any_name_is_the_file() -> None:
    assert form_row(SCHEMA, form(("data", BMP)), TYPE) == {"image": BMP}
    assert raw_row(SCHEMA, BMP) == {"image": BMP}


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (form(("image", BMP)), "multipart/form-data", "no boundary of 1 to 70"),
        (form(("image", BMP)), "multipart/form-data; boundary=other", "no boundary 'other'"),
        (form(("image", BMP), end=b""), TYPE, "ends before its last boundary"),
        (
            b"--b-1\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b-1--",
            TYPE,
            "part 0 of the form has no name",
        ),
        (b"--b-1\r\nx\r\n--b-1--", TYPE, "part 0 of the form has no headers"),
        (b"--b-1--", TYPE, "has no part"),
        (form(("image", BMP), ("image", BMP)), TYPE, "'image' twice"),
        (form(("image", BMP), ("imag", BMP)), TYPE, "did you mean 'image'"),
        (form(("image", BMP), ("imag" * 3000, BMP)), TYPE, "has a part 'imagimag"),
        (form(("image", BMP), ("caption", b"\xff")), TYPE, "not UTF-8"),
        (form(*[("n", b"1")] * 1001), TYPE, "more than 1000 parts"),
        (form(("image", BMP), ("x" * 20_000, BMP)), TYPE, "part 1 of the form has 20"),
        (form(("image", BMP), ('x"; ' + "a" * 15_000 + '="' + "\\x" * 50, BMP)), TYPE, "a part 'x'"),
    ],
)
def test_what_is_no_form_is_malformed(body: bytes, kind: str, said: str) -> None:
    with pytest.raises(MalformedError) as caught:
        form_row(SCHEMA, body, kind)
    assert said in str(caught.value)


def test_a_name_may_be_quoted_with_escapes() -> None:
    assert split_form(form((r"a\"b\\c", b"1")), TYPE) == [('a"b\\c', b"1")]


def test_bytes_of_parts_are_untouched() -> None:
    data = bytes(range(256)) + b"\r\n\r\n--b-\r\n"
    assert split_form(form(("x", data), ("y", b"")), TYPE) == [("x", data), ("y", b"")]


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        (SCHEMA, "image"),
        (Schema(b=Bytes(default=b""), n=Int64(default=1)), "b"),
        (Schema(a=Image(), b=Image()), None),
        (Schema(a=Image(), x=Float32()), None),
        (Schema(a=Image(form="array")), None),
        (Schema(x=Float32()), None),
    ],
)
def test_one_file_field_takes_raw_bodies(schema: Schema, name: str | None) -> None:
    assert file_field(schema) == name
    if name is None:
        with pytest.raises(MalformedError, match="one required input is Bytes or an encoded Image"):
            raw_row(schema, b"x")
