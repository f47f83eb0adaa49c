"""Field types: what a value is allowed to be, told once for every wire form.

A field holds no decoding: values change form in `parity.codec` and nowhere else. It knows its canonical Arrow
type, its numpy dtype (when it has one) and the constraints that a value must meet.
"""

from __future__ import annotations

import functools
import json
import math
import re
import zoneinfo
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, cast

import ml_dtypes
import numpy as np
import pyarrow as pa

from parity.errors import SchemaError, did_you_mean, shown


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "MISSING"  # one object, in whatever process a schema is sent to


MISSING: Final = _Missing()
"""The default of a field that has none: a missing key is then an error."""

TimeUnit = Literal["s", "ms", "us", "ns"]
NonFinite = Literal["refuse", "string"]

BFLOAT16: Final = np.dtype(ml_dtypes.bfloat16)

_DTYPES: Final[dict[str, np.dtype[Any]]] = {
    **{
        name: np.dtype(name)
        for name in ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split())
    },
    "bfloat16": BFLOAT16,
}
DTYPE_NAMES: Final = tuple(_DTYPES)
"""The dtype names that a `Tensor` may have."""


def dtype_of(name: str) -> np.dtype[Any]:
    """The numpy dtype called `name`; bfloat16 is ml_dtypes'. Raises SchemaError for another name."""
    try:
        return _DTYPES[name]
    except KeyError:
        raise SchemaError(f"dtype {shown(name)} is not known; {did_you_mean(str(name), _DTYPES)}") from None


@functools.cache
def arrow_scalar_type(dtype: np.dtype[Any]) -> pa.DataType:
    """The Arrow type that stores values of `dtype` exactly; bfloat16 is stored as float32."""
    return pa.float32() if dtype == BFLOAT16 else pa.from_numpy_dtype(dtype)


@dataclass(frozen=True, kw_only=True)
class Field:
    """Base of all field types.

    Args:
        nullable: whether null is a value of this field.
        default: the value that a missing key takes; without one, a missing key is an error.
        doc: a sentence for people and for the OpenAPI page; put units here.
    """

    nullable: bool = False
    default: Any = MISSING
    doc: str = ""

    @property
    def type_name(self) -> str:
        """The field type's name, as written in a handler."""
        return type(self).__name__

    @property
    def arrow_type(self) -> pa.DataType:
        """The canonical Arrow type."""
        raise TypeError(f"{self.type_name} has no Arrow type")

    @property
    def numpy_dtype(self) -> np.dtype[Any] | None:
        """The dtype of the field's values in numpy; None where values are Python objects."""
        return None

    @property
    def row_shape(self) -> tuple[int, ...] | None:
        """The shape of one row's value where it is fixed and has a numpy dtype: () for scalars."""
        return () if self.numpy_dtype is not None else None

    @property
    def has_default(self) -> bool:
        """Whether a missing key takes a default."""
        return self.default is not MISSING

    def describe(self) -> str:
        """The field in a few words, as error messages say what was expected."""
        return f"{self.type_name}{' or null' if self.nullable else ''}"

    def metadata(self) -> dict[str, str]:
        """What the Arrow type does not tell, for the Arrow field's metadata."""
        found = {"parity.type": self.type_name}
        if self.doc:
            found["parity.doc"] = self.doc
        return found

    def to_arrow(self, name: str, *, nullable: bool | None = None) -> pa.Field[Any]:
        """The Arrow field, metadata included; `nullable` overrides the field's own."""
        allowed = self.nullable if nullable is None else nullable
        return pa.field(name, self.arrow_type, nullable=allowed, metadata=cast("Any", self.metadata()))


@dataclass(frozen=True, kw_only=True)
class Bool(Field):
    """True or false; 0 and 1 are not booleans."""

    @property
    def arrow_type(self) -> pa.DataType:
        return pa.bool_()

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.bool_)


@dataclass(frozen=True, kw_only=True)
class _Number(Field):
    """A number of a fixed dtype, with an optional closed range."""

    _dtype: ClassVar[str]
    ge: Any = None
    le: Any = None

    def __post_init__(self) -> None:
        for bound in (self.ge, self.le):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int | float)):
                raise SchemaError(f"{self.type_name}: range bound {shown(bound)} is not a number")
            if bound is not None and not math.isfinite(bound):
                raise SchemaError(f"{self.type_name}: range bound {bound} is not finite; leave it out")
        if self.ge is not None and self.le is not None and self.ge > self.le:
            raise SchemaError(f"{self.type_name}: the range {self.ge} to {self.le} is empty")

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        return dtype_of(self._dtype)

    @property
    def arrow_type(self) -> pa.DataType:
        return arrow_scalar_type(self.numpy_dtype)

    def describe(self) -> str:
        text = self.type_name
        if self.ge is not None and self.le is not None:
            text += f" from {self.ge} to {self.le}"
        elif self.ge is not None:
            text += f" of at least {self.ge}"
        elif self.le is not None:
            text += f" of at most {self.le}"
        return text + (" or null" if self.nullable else "")


@dataclass(frozen=True, kw_only=True)
class Integer(_Number):
    """Base of the integer fields.

    Args:
        ge: the least value allowed.
        le: the greatest value allowed.
        choices: the only values allowed.
    """

    choices: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.choices is not None:
            object.__setattr__(self, "choices", tuple(self.choices))
            wrong = [choice for choice in self.choices if isinstance(choice, bool) or type(choice) is not int]
            if wrong:
                raise SchemaError(f"{self.type_name}: choice {shown(wrong[0])} is not an integer")

    @property
    def limits(self) -> tuple[int, int]:
        """The least and greatest value: the dtype's, narrowed by `ge` and `le`."""
        info = np.iinfo(self.numpy_dtype)
        low = info.min if self.ge is None else max(int(info.min), math.ceil(self.ge))
        high = info.max if self.le is None else min(int(info.max), math.floor(self.le))
        return int(low), int(high)


class Int8(Integer):
    """A signed integer of 8 bits."""

    _dtype = "int8"


class Int16(Integer):
    """A signed integer of 16 bits."""

    _dtype = "int16"


class Int32(Integer):
    """A signed integer of 32 bits."""

    _dtype = "int32"


class Int64(Integer):
    """A signed integer of 64 bits, exact in every wire form."""

    _dtype = "int64"


class UInt8(Integer):
    """An unsigned integer of 8 bits."""

    _dtype = "uint8"


class UInt16(Integer):
    """An unsigned integer of 16 bits."""

    _dtype = "uint16"


class UInt32(Integer):
    """An unsigned integer of 32 bits."""

    _dtype = "uint32"


class UInt64(Integer):
    """An unsigned integer of 64 bits, exact in every wire form."""

    _dtype = "uint64"


@dataclass(frozen=True, kw_only=True)
class Floating(_Number):
    """Base of the floating-point fields.

    NaN and the infinities are values. JSON has no token for them: on the way in they are the strings "NaN",
    "Infinity" and "-Infinity"; on the way out `non_finite` decides.

    Args:
        ge: the least value allowed; NaN does not meet a bound.
        le: the greatest value allowed.
        non_finite: what JSON answers do with NaN and infinities: "refuse" makes the row an error,
            "string" sends "NaN", "Infinity" or "-Infinity". Binary forms always carry them.
    """

    non_finite: NonFinite = "refuse"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_non_finite(self.type_name, self.non_finite)


class Float16(Floating):
    """A float of 16 bits (IEEE binary16)."""

    _dtype = "float16"


class BFloat16(Floating):
    """A float of 16 bits with float32's exponent; stored in Arrow as float32, which holds it exactly."""

    _dtype = "bfloat16"


class Float32(Floating):
    """A float of 32 bits; a decimal number becomes the nearest one."""

    _dtype = "float32"


class Float64(Floating):
    """A float of 64 bits."""

    _dtype = "float64"


@dataclass(frozen=True, kw_only=True)
class String(Field):
    """Unicode text; never normalised, stripped or re-encoded.

    Args:
        choices: the only values allowed.
        max_length: the greatest number of code points.
    """

    choices: tuple[str, ...] | None = None
    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.choices is not None:
            if isinstance(self.choices, str):
                raise SchemaError(
                    f"String: choices {shown(self.choices)} is one string; write a tuple of them"
                )
            object.__setattr__(self, "choices", tuple(self.choices))

    @property
    def arrow_type(self) -> pa.DataType:
        return pa.string()

    def describe(self) -> str:
        text = "String"
        if self.choices is not None:
            text += f" out of {shown(list(self.choices), 200)}"
        if self.max_length is not None:
            text += f" of at most {self.max_length} characters"
        return text + (" or null" if self.nullable else "")


@dataclass(frozen=True, kw_only=True)
class Bytes(Field):
    """Raw bytes; base64 in JSON.

    Args:
        max_length: the greatest number of bytes.
    """

    max_length: int | None = None

    @property
    def arrow_type(self) -> pa.DataType:
        return pa.binary()


@dataclass(frozen=True, kw_only=True)
class Image(Field):
    """A picture: an encoded file's bytes, or pixels as (H, W, C) uint8.

    Args:
        form: "encoded" (the bytes of a JPEG, PNG, GIF, WebP, BMP or TIFF file, recognised by signature) or
            "array" (uint8, channels last).
        channels: for arrays, the number of channels; None accepts any.
    """

    form: Literal["encoded", "array"] = "encoded"
    channels: Literal[1, 3, 4] | None = None

    def __post_init__(self) -> None:
        if self.form not in ("encoded", "array"):
            raise SchemaError(f"Image: form {shown(self.form)} is neither 'encoded' nor 'array'")

    @property
    def as_tensor(self) -> Tensor:
        """The tensor field that an image in array form is equal to."""
        return Tensor("uint8", (None, None, self.channels), nullable=self.nullable, doc=self.doc)

    @property
    def arrow_type(self) -> pa.DataType:
        return pa.binary() if self.form == "encoded" else self.as_tensor.arrow_type

    def metadata(self) -> dict[str, str]:
        return {**super().metadata(), "parity.form": self.form}


@dataclass(frozen=True)
class Timestamp(Field):
    """A point in time.

    Args:
        unit: the resolution; a finer value is an error, never cut.
        tz: a zone name such as "UTC" or "Europe/Madrid". With one, values are instants and must carry an
            offset; without, values are wall-clock times and must not.
    """

    unit: TimeUnit = "us"
    tz: str | None = None

    def __post_init__(self) -> None:
        if self.unit not in ("s", "ms", "us", "ns"):
            raise SchemaError(f"Timestamp: unit {shown(self.unit)} is not one of s, ms, us, ns")
        if self.tz is not None and not _zone_exists(self.tz):
            raise SchemaError(
                f"Timestamp: time zone {shown(self.tz)} is not known here; use an IANA name such as "
                "'Europe/Madrid', or 'UTC'"
            )

    @property
    def arrow_type(self) -> pa.DataType:
        return pa.timestamp(self.unit, tz=cast("Any", self.tz))

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        return np.dtype(f"datetime64[{self.unit}]")

    def describe(self) -> str:
        zone = f"with an offset, for zone {self.tz}" if self.tz else "without an offset"
        return f"Timestamp({self.unit}) {zone}{' or null' if self.nullable else ''}"


@dataclass(frozen=True, kw_only=True)
class Date(Field):
    """A calendar day, "YYYY-MM-DD" in JSON."""

    @property
    def arrow_type(self) -> pa.DataType:
        return pa.date32()

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        return np.dtype("datetime64[D]")


@dataclass(frozen=True)
class Decimal(Field):
    """An exact decimal number; a string or an integer in JSON, since a JSON float is not exact.

    Args:
        precision: the number of significant digits, 1 to 76.
        scale: the number of digits behind the point; a value with more is an error, never rounded.
    """

    precision: int = 38
    scale: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= 76) or not (0 <= self.scale <= self.precision):
            raise SchemaError(
                f"Decimal({self.precision}, {self.scale}): needs 1 <= precision <= 76 and 0 <= scale"
            )

    @property
    def arrow_type(self) -> pa.DataType:
        make = pa.decimal128 if self.precision <= 38 else pa.decimal256
        return make(self.precision, self.scale)

    def describe(self) -> str:
        return f"Decimal({self.precision}, {self.scale}){' or null' if self.nullable else ''}"


@dataclass(frozen=True)
class Tensor(Field):
    """An array of one dtype for each row.

    Args:
        dtype: one of `parity.schema.DTYPE_NAMES`.
        shape: the shape of one row's value; None marks a dimension that may vary from row to row.
        non_finite: what JSON answers do with NaN and infinities, as for `Floating`.
    """

    dtype: str
    shape: tuple[int | None, ...]
    non_finite: NonFinite = "refuse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        dtype_of(self.dtype)
        _check_non_finite("Tensor", self.non_finite)
        for size in self.shape:
            if size is not None and (type(size) is not int or size < 0):
                raise SchemaError(f"Tensor: dimension {shown(size)} is neither a size nor None")
        if not self.shape:
            raise SchemaError("Tensor: shape () is a scalar; use Float32, Int64, ... instead")
        if self.variable_dims and 0 in self.shape:
            raise SchemaError(f"Tensor: shape {self.shape} mixes a variable dimension with an empty one")

    @property
    def variable_dims(self) -> int:
        """How many dimensions may vary."""
        return sum(size is None for size in self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the fixed dimensions."""
        return math.prod(size for size in self.shape if size is not None)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        return dtype_of(self.dtype)

    @property
    def row_shape(self) -> tuple[int, ...] | None:
        return None if self.variable_dims else cast("tuple[int, ...]", self.shape)

    @property
    def value_type(self) -> pa.DataType:
        """The Arrow type of one element."""
        return arrow_scalar_type(self.numpy_dtype)

    @property
    def arrow_type(self) -> pa.DataType:
        item = pa.field("item", self.value_type, nullable=False)
        if self.variable_dims == 0 and self.size:
            return pa.list_(item, self.size)
        if self.variable_dims <= 1:  # and no fixed lists of size 0, which neither Parquet nor Polars can hold
            return pa.list_(item)
        dims = pa.list_(pa.field("item", pa.int32(), nullable=False), len(self.shape))
        return pa.struct([pa.field("data", pa.list_(item)), pa.field("shape", dims)])

    def describe(self) -> str:
        dims = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"Tensor({self.dtype}, [{dims}]){' or null' if self.nullable else ''}"

    def metadata(self) -> dict[str, str]:
        found = super().metadata()
        found["parity.dtype"] = self.dtype
        found["parity.shape"] = json.dumps(list(self.shape))
        return found


@dataclass(frozen=True)
class List(Field):
    """A list of any length whose items are all of one field type."""

    of: Field

    def __post_init__(self) -> None:
        if not isinstance(self.of, Field):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            raise SchemaError(f"List: {shown(self.of)} is not a field; write List(Int64()), not List(Int64)")

    @property
    def arrow_type(self) -> pa.DataType:
        return pa.list_(self.of.to_arrow("item"))

    def describe(self) -> str:
        items = f"({self.of.describe()})" if self.of.nullable else self.of.describe()
        return f"List of {items}{' or null' if self.nullable else ''}"


def _check_non_finite(name: str, value: str) -> None:
    if value not in ("refuse", "string"):
        raise SchemaError(f"{name}: non_finite {shown(value)} is neither 'refuse' nor 'string'")


def _zone_exists(name: str) -> bool:
    if re.fullmatch(r"[+-]\d{2}:\d{2}", name):
        return True
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
