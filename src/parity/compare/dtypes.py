"""Types against types: what two columns are declared to hold, before any value is looked at.

Only the logical type counts: a dictionary-encoded, large or view-backed string is a string, and a list is a
list whatever its offsets. bfloat16 is stored as float32, so the field's metadata says what it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa
import pyarrow.types as pat

from parity.compare.comparison import Finding, FindingKind

FLOATS = ("float16", "bfloat16", "float32", "float64")


def leaf_dtypes(field: pa.Field[Any], path: str = "") -> dict[str, str]:
    """The dtype name of every leaf by its dotted path; lists add nothing to a path."""
    path = path or field.name
    kind = plain_type(field.type)
    if pat.is_struct(kind):
        found: dict[str, str] = {}
        for child in _children(kind):
            found.update(leaf_dtypes(_marked(child, field), f"{path}.{child.name}"))
        return found
    if is_list(kind):
        item = cast("Any", kind).value_field
        return leaf_dtypes(_marked(item, field), path)
    return {path: _scalar_name(kind, field)}


def type_findings(expected: pa.Field[Any], obtained: pa.Field[Any], path: str = "") -> Iterator[Finding]:
    """The ways in which `obtained` is declared differently from `expected`."""
    path = path or expected.name
    yield from _metadata_findings(expected, obtained, path)
    one, other = plain_type(expected.type), plain_type(obtained.type)
    if pat.is_struct(one) and pat.is_struct(other):
        yield from _struct_findings(one, other, path)
    elif is_list(one) and is_list(other) and pat.is_fixed_size_list(one) == pat.is_fixed_size_list(other):
        if pat.is_fixed_size_list(one) and cast("Any", one).list_size != cast("Any", other).list_size:
            sizes = (str(cast("Any", one).list_size), str(cast("Any", other).list_size))
            yield _finding("shape", path, "holds {0} values per row, obtained {1}", *sizes)
        yield from type_findings(cast("Any", one).value_field, cast("Any", other).value_field, path)
    elif pat.is_timestamp(one) and pat.is_timestamp(other) and one.tz != other.tz:
        yield _finding("timezone", path, "has timezone {0}, obtained {1}", str(one.tz), str(other.tz))
    elif _scalar_name(one) != _scalar_name(other):
        sides = (_scalar_name(one, expected), _scalar_name(other, obtained))
        yield _finding("dtype", path, "is {0}, obtained {1}", *sides)


def nullability_finding(expected: pa.Field[Any], obtained: pa.Field[Any]) -> Finding | None:
    """A note when one side is declared nullable and the other is not; its nulls are compared as values."""
    if expected.nullable == obtained.nullable:
        return None
    words = {True: "nullable", False: "not nullable"}
    sides = (words[expected.nullable], words[obtained.nullable])
    return _finding("nullability", expected.name, "is declared {0}, obtained {1}", *sides, fails=False)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values, free of dictionary, run-end and extension encodings."""
    while True:
        if pat.is_dictionary(kind) or pat.is_run_end_encoded(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        else:
            return kind


def without_views(kind: pa.DataType) -> pa.DataType:
    """The type with views replaced by offsets at every level, since few Arrow kernels take views."""
    if pat.is_string_view(kind):
        return pa.large_string()
    if pat.is_binary_view(kind):
        return pa.large_binary()
    if pat.is_struct(kind):
        return pa.struct([child.with_type(without_views(child.type)) for child in _children(kind)])
    if is_list(kind):
        item = cast("Any", kind).value_field
        inner = item.with_type(without_views(item.type))
        if pat.is_fixed_size_list(kind):
            return pa.list_(inner, cast("Any", kind).list_size)
        return pa.list_(inner) if pat.is_list(kind) else pa.large_list(inner)
    return kind


def is_list(kind: pa.DataType) -> bool:
    """Whether values are lists, of any or of fixed length."""
    return pat.is_list(kind) or pat.is_large_list(kind) or pat.is_fixed_size_list(kind) or _is_list_view(kind)


def list_items(kind: pa.DataType) -> pa.DataType | None:
    """The item type of a list or of a tensor with several free dimensions; None for other types."""
    kind = plain_type(kind)
    if pat.is_struct(kind) and [kind.field(i).name for i in range(kind.num_fields)] == ["data", "shape"]:
        kind = plain_type(kind.field(0).type)
    return plain_type(cast("Any", kind).value_type) if is_list(kind) else None


def _is_list_view(kind: pa.DataType) -> bool:
    return pat.is_list_view(kind) or pat.is_large_list_view(kind)


def _children(kind: pa.DataType) -> list[pa.Field[Any]]:
    return [cast("pa.Field[Any]", kind.field(index)) for index in range(kind.num_fields)]


def _marked(child: pa.Field[Any], parent: pa.Field[Any]) -> pa.Field[Any]:
    """The child, marked as bfloat16 where its parent is: a tensor's metadata stand on the column."""
    return child.with_metadata(cast("Any", parent.metadata)) if _says_bfloat16(parent) else child


def _scalar_name(kind: pa.DataType, field: pa.Field[Any] | None = None) -> str:
    if pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind):
        return "string"
    if pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_binary_view(kind):
        return "binary"
    if pat.is_float32(kind):
        return "bfloat16" if field is not None and _says_bfloat16(field) else "float32"
    return {"halffloat": "float16", "double": "float64"}.get(str(kind), str(kind))


def _says_bfloat16(field: pa.Field[Any]) -> bool:
    said = field.metadata or {}
    return said.get(b"parity.type") == b"BFloat16" or said.get(b"parity.dtype") == b"bfloat16"


def _struct_findings(one: pa.DataType, other: pa.DataType, path: str) -> Iterator[Finding]:
    ours = {child.name: child for child in _children(one)}
    theirs = {child.name: child for child in _children(other)}
    for name, child in ours.items():
        if name in theirs:
            yield from type_findings(child, theirs[name], f"{path}.{name}")
        else:
            yield _finding("missing_column", f"{path}.{name}", "is missing from obtained")
    for name in theirs:
        if name not in ours:
            yield _finding("extra_column", f"{path}.{name}", "is in obtained only")


def _metadata_findings(expected: pa.Field[Any], obtained: pa.Field[Any], path: str) -> Iterator[Finding]:
    ours, theirs = expected.metadata or {}, obtained.metadata or {}
    kinds: dict[bytes, FindingKind] = {
        b"parity.type": "dtype",
        b"parity.dtype": "dtype",
        b"parity.shape": "shape",
    }
    for name, kind in kinds.items():
        if name in ours and name in theirs and ours[name] != theirs[name]:
            yield _finding(
                kind, path, "is declared {0}, obtained {1}", ours[name].decode(), theirs[name].decode()
            )
    if _says_bfloat16(expected) != _says_bfloat16(obtained) and not (
        b"parity.type" in ours and b"parity.type" in theirs
    ):
        sides = ["bfloat16" if _says_bfloat16(field) else "float32" for field in (expected, obtained)]
        yield _finding(
            "metadata", path, "is marked {0}, obtained {1}; compared as bfloat16", *sides, fails=False
        )


def _finding(kind: FindingKind, path: str, text: str, *sides: str, fails: bool = True) -> Finding:
    message = f"column {path!r} {text.format(*sides)}"
    expected, obtained = sides if sides else ("", "")
    return Finding(kind, message, path, expected, obtained, fails)
