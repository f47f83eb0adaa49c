"""Write one Handler, run it anywhere, prove that the answers agree."""

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
