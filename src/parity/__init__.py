"""Write one Handler, run it anywhere, prove that the answers agree.

The names are imported when they are asked for: pytest loads our plugin in projects that never use it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parity.batch import Batch
    from parity.column import Column
    from parity.engine import Engine
    from parity.errors import ParityError, RowError, RowsError
    from parity.handler import Context, Handler
    from parity.profile import Profile
    from parity.registry import load_handler
    from parity.result import Result
    from parity.schema import (
        BFloat16,
        Bool,
        Bytes,
        Date,
        Decimal,
        Field,
        Float16,
        Float32,
        Float64,
        Image,
        Int8,
        Int16,
        Int32,
        Int64,
        List,
        Schema,
        String,
        Struct,
        Tensor,
        Timestamp,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
    )

__version__ = "0.1.0"

__all__ = [
    "BFloat16",
    "Batch",
    "Bool",
    "Bytes",
    "Column",
    "Context",
    "Date",
    "Decimal",
    "Engine",
    "Field",
    "Float16",
    "Float32",
    "Float64",
    "Handler",
    "Image",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "List",
    "ParityError",
    "Profile",
    "Result",
    "RowError",
    "RowsError",
    "Schema",
    "String",
    "Struct",
    "Tensor",
    "Timestamp",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "load_handler",
]

_SCHEMA = (
    "BFloat16 Bool Bytes Date Decimal Field Float16 Float32 Float64 Image Int8 Int16 Int32 Int64 List Schema "
    "String Struct Tensor Timestamp UInt8 UInt16 UInt32 UInt64"
)
_HOME = {
    **dict.fromkeys(_SCHEMA.split(), "schema"),
    **dict.fromkeys(("ParityError", "RowError", "RowsError"), "errors"),
    **dict.fromkeys(("Context", "Handler"), "handler"),
    "Batch": "batch",
    "Column": "column",
    "Engine": "engine",
    "Profile": "profile",
    "Result": "result",
    "load_handler": "registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
