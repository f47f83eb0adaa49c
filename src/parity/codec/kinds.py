"""Whether an Arrow type can hold a field's values at all: said of a whole column, before values are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from parity.codec.layouts import is_list_like, numpy_dtype, plain_type
from parity.codec.numbers import kind_problem
from parity.errors import did_you_mean
from parity.schema import (
    Bool,
    Bytes,
    Date,
    Decimal,
    Field,
    Floating,
    Image,
    Integer,
    List,
    String,
    Struct,
    Tensor,
    Timestamp,
)

_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BINARY = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
_DATES = (pa.types.is_date32, pa.types.is_date64)


def kind_problems(path: str, field: Field, kind: Any) -> Iterator[str]:
    """What keeps a column of Arrow type `kind` from being read as `field`, as sentences; nothing when it can.

    Args:
        path: the column's name, for the sentences.
        field: what the values are to be.
        kind: the Arrow type; any encoding of it is seen through.
    """
    whole = kind
    kind = plain_type(kind)
    if pa.types.is_null(kind):
        return
    if isinstance(field, Image) and field.form == "array":
        field = field.as_tensor
    if isinstance(field, List):
        if is_list_like(kind):
            yield from kind_problems(f"{path}[]", field.of, kind.value_type)
        else:
            yield _problem(path, field, whole)
    elif isinstance(field, Struct):
        if pa.types.is_struct(kind):
            yield from _member_problems(path, field, kind)
        else:
            yield _problem(path, field, whole)
    elif isinstance(field, Tensor):
        if (hint := _tensor_hint(field, whole, kind)) is not None:
            yield _problem(path, field, whole, hint)
    elif (hint := _scalar_hint(field, kind)) is not None:
        yield _problem(path, field, whole, hint)


def _problem(path: str, field: Field, kind: Any, hint: str = "") -> str:
    return f"column {path!r} is of type {kind}; expected {field.describe()}{f'; {hint}' if hint else ''}"


def _member_problems(path: str, field: Struct, kind: Any) -> Iterator[str]:
    names = [kind.field(at).name for at in range(kind.num_fields)]
    for name, member in field.members.items():
        count = names.count(name)
        if count > 1:
            yield f"column {path!r} has {count} members called {name!r}; keep one"
        elif count:
            yield from kind_problems(f"{path}.{name}", member, kind.field(names.index(name)).type)
        elif not member.has_default:
            hint = did_you_mean(name, names)
            yield f"column {path!r} lacks member {name!r} ({member.describe()}){f'; {hint}' if hint else ''}"


def _scalar_hint(field: Field, kind: Any) -> str | None:
    """None when the type can be read, else what to do about it."""
    dtype = numpy_dtype(kind)
    if isinstance(field, Bool):
        return None if pa.types.is_boolean(kind) else "cast the column to bool, as you mean it"
    if isinstance(field, Integer):
        if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
            return None  # Spark, for one, has no other type for unsigned 64 bits
        if pa.types.is_floating(kind):
            return (
                "floats never become integers here: cast the column first; where pandas made it float "
                "because of a missing value, .astype('Int64') keeps both"
            )
        return "cast the column to an integer type"
    if isinstance(field, Floating):
        return None if dtype is not None and dtype.kind in "iuf" else "cast the column to a float type"
    if isinstance(field, String):
        return None if _any(_TEXT, kind) else "cast the column to string"
    if isinstance(field, Bytes | Image):
        return None if _any(_BINARY, kind) else "give the raw bytes as a binary column"
    if isinstance(field, Timestamp):
        return _timestamp_hint(field, kind)
    if isinstance(field, Date):
        return None if _any(_DATES, kind) else "cast the column to date32"
    if isinstance(field, Decimal):
        exact = pa.types.is_decimal(kind) or pa.types.is_integer(kind)
        return None if exact else "a float is not exact: cast the column to a decimal type, as you mean it"
    return "no codec reads this field type"


def _timestamp_hint(field: Timestamp, kind: Any) -> str | None:
    if not pa.types.is_timestamp(kind):
        return "cast the column to a timestamp type"
    if field.tz is not None and kind.tz is None:
        return (
            "it is naive: say which zone its times are in, as with pandas' .dt.tz_localize('Europe/Madrid')"
        )
    if field.tz is None and kind.tz is not None:
        return "it has a zone and the field has none: drop it, as with pandas' .dt.tz_localize(None)"
    return None


def _tensor_hint(field: Tensor, whole: Any, kind: Any) -> str | None:
    ndim = len(field.shape)
    if isinstance(whole, pa.FixedShapeTensorType):
        return _extension_hint(field, whole)
    if pa.types.is_struct(kind):
        names = [kind.field(at).name for at in range(kind.num_fields)]
        if names != ["data", "shape"]:
            return "expected a list, or a struct of data and shape"
        data, shape = (plain_type(kind.field(at).type) for at in range(2))
        if (
            not is_list_like(data)
            or not is_list_like(shape)
            or not pa.types.is_integer(plain_type(shape.value_type))
        ):
            return "expected a struct of data (a list) and shape (a list of integers)"
        return _element_hint(field, plain_type(data.value_type))
    if not is_list_like(kind):
        return "give one list for each row"
    depth = 0
    while is_list_like(kind):
        kind, depth = plain_type(kind.value_type), depth + 1
    if depth == 1 < ndim and field.variable_dims > 1:
        return f"a flat list does not tell which shape it has: nest the lists {ndim} deep"
    if depth not in (1, ndim):
        return f"the lists are nested {depth} deep; expected {ndim}, or flat row-major lists"
    return _element_hint(field, kind)


def _extension_hint(field: Tensor, kind: Any) -> str | None:
    shape, permutation = list(kind.shape), kind.permutation
    if permutation is not None and list(permutation) != sorted(permutation):
        return f"its axes are permuted ({list(permutation)}): store it row-major"
    fits = len(shape) == len(field.shape) and all(
        want is None or want == got for want, got in zip(field.shape, shape, strict=True)
    )
    if not fits:
        return f"its shape is {shape}"
    return _element_hint(field, plain_type(kind.value_type))


def _element_hint(field: Tensor, kind: Any) -> str | None:
    if pa.types.is_null(kind):
        return None
    dtype = numpy_dtype(kind)
    problem = "does not hold numbers" if dtype is None else kind_problem(dtype, field.numpy_dtype)
    return f"its elements are {kind}, which {problem}" if problem else None


def _any(tests: Any, kind: Any) -> bool:
    return any(test(kind) for test in tests)
