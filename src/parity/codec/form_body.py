"""One row as a body of raw bytes, or as a form of parts (multipart/form-data): what curl sends of a file.

A raw body is the one Bytes or Image field that has no default, and every other field takes its default. A
part of a form is the field of its name: a file's bytes as they are, text as it is, anything else as JSON. A
lone part of another name, such as TorchServe's `data`, is the field that a raw body would be.
"""

from __future__ import annotations

import re
from typing import Any

from parity.codec.rejection import brief
from parity.codec.rows import loads
from parity.errors import MalformedError, did_you_mean, shown
from parity.schema import Bytes, Field, Image, Schema, String

_PARAMETER = re.compile(r';\s*([A-Za-z0-9_*-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*+)"|([^;"\s]+))')
_MOST_PARTS = 1000
_MOST_HEAD_BYTES = 16 * 1024


def file_field(schema: Schema) -> str | None:
    """The field that a raw body is; None where there is not exactly one, or others need values, too."""
    needed = [name for name, field in schema.items() if not field.has_default]
    names = needed or [name for name, field in schema.items() if _is_file(field)]
    return names[0] if len(names) == 1 and _is_file(schema[names[0]]) else None


def raw_row(schema: Schema, body: bytes) -> dict[str, Any]:
    """The row of a raw body, for `RowDecoder.decode_one`.

    Raises:
        MalformedError: the schema has no such field.
    """
    name = file_field(schema)
    if name is None and not body:
        raise MalformedError(f"the body is empty: expected {expected_body(schema)}")
    if name is None:
        raise MalformedError(
            "a raw body is for handlers whose one required input is Bytes or an encoded Image; this one has "
            f"{', '.join(f'{name}: {field.describe()}' for name, field in schema.items())}; send JSON"
        )
    if not body and isinstance(schema[name], Image):
        raise MalformedError(f"the body is empty: expected {expected_body(schema)}")
    return {name: body}


def expected_body(schema: Schema) -> str:
    """What a body of one row, or of some, may be, in words."""
    name = file_field(schema)
    rows = "a JSON object (one row) or a list of objects"
    return rows if name is None else f"{rows}, or the file of the field {name!r} ({schema[name].describe()})"


def form_row(schema: Schema, body: bytes, content_type: str) -> dict[str, Any]:
    """The row of a form, for `RowDecoder.decode_one`.

    Raises:
        MalformedError: the body is no such form, or has a part twice, or of a name that is no field's.
    """
    parts = split_form(body, content_type)
    if len(parts) == 1 and parts[0][0] not in schema and (name := file_field(schema)) is not None:
        return {name: parts[0][1]}
    row: dict[str, Any] = {}
    for name, data in parts:
        if name not in schema:
            raise MalformedError(f"the form has a part {shown(name)}; {did_you_mean(name, schema.names)}")
        if name in row:
            raise MalformedError(f"the form has the part {name!r} twice; a form is one row")
        row[name] = _value(name, schema[name], data)
    return row


def split_form(body: bytes, content_type: str) -> list[tuple[str, bytes]]:
    """The parts of a multipart/form-data body: names and data, in their order (RFC 7578).

    Raises:
        MalformedError: it is none.
    """
    boundary = dict(_parameters(content_type)).get("boundary", "")
    if not 0 < len(boundary) <= 70:
        raise MalformedError(f"Content-Type {shown(content_type)} has no boundary of 1 to 70 characters")
    delimiter = b"\r\n--" + boundary.encode("latin-1", "replace")
    if not body:
        raise MalformedError("the body is empty: expected a form of at least one part")
    pieces = (b"\r\n" + body).split(delimiter, _MOST_PARTS + 1)
    if len(pieces) < 2:
        raise MalformedError(f"the body has no boundary {shown(boundary)}, which its Content-Type names")
    if len(pieces) > _MOST_PARTS + 1:
        raise MalformedError(f"the form has more than {_MOST_PARTS} parts")
    if not pieces[-1].startswith(b"--"):
        raise MalformedError("the form ends before its last boundary")
    found: list[tuple[str, bytes]] = []
    for piece in pieces[1:-1]:
        head, separator, data = piece.lstrip(b" \t").partition(b"\r\n\r\n")
        if not separator or not head.startswith(b"\r\n"):
            raise MalformedError(f"part {len(found)} of the form has no headers that end with an empty line")
        if len(head) > _MOST_HEAD_BYTES:
            raise MalformedError(
                f"part {len(found)} of the form has {len(head)} bytes of headers; at most {_MOST_HEAD_BYTES}"
            )
        found.append((_name_of(head, len(found)), data))
    if not found:
        raise MalformedError("the form has no part")
    return found


def _name_of(head: bytes, place: int) -> str:
    for line in head.decode("utf-8", "replace").split("\r\n"):
        key, _, value = line.partition(":")
        if key.strip().lower() == "content-disposition":
            name = dict(_parameters(value)).get("name")
            if name is not None:
                return name
    raise MalformedError(f"part {place} of the form has no name in its Content-Disposition")


def _parameters(header: str) -> list[tuple[str, str]]:
    return [
        (key.lower(), re.sub(r"\\(.)", r"\1", quoted) if plain == "" else plain)
        for key, quoted, plain in _PARAMETER.findall(header)
    ]


def _value(name: str, field: Field, data: bytes) -> Any:
    if _is_file(field):
        return data
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise MalformedError(f"the part {name!r} is {brief(data)}, which is not UTF-8") from None
    if isinstance(field, String):
        return text
    try:
        return loads(text)
    except MalformedError:
        return text  # a date, say; what does not fit is refused as a value


def _is_file(field: Field) -> bool:
    return isinstance(field, Bytes) or (isinstance(field, Image) and field.form == "encoded")
