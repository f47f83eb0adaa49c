"""Arithmetic, comparison and functions of numbers, on tensors with validity: one definition for all devices.

Null in, null out. Integers are exact: a result outside its type's range is an error that names the rows, and
division by the integer 0 is null. Floats are IEEE 754: x / 0 is an infinity or NaN, comparisons with NaN are
False (`!=` True). Division rounds down, and a remainder has the divisor's sign, as in Python.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import torch

from parity.errors import shown
from parity.frame.dtypes import FLOATS, INTEGERS, held_as, kind_of, name_of, together
from parity.frame.errors import FrameError, rows_shown

INT64: Final = (-(2**63), 2**63 - 1)

_SAFE_FACTOR = 3_037_000_499
"""Two factors up to this one have a product that fits int64."""


@dataclass(frozen=True)
class Operand:
    """One side of an operation: a column, or a number that fits any (then `dtype` is None).

    Attributes:
        tensor: (rows,) values; what stands where a row is null has no meaning.
        valid: (rows,) where rows are not null; None where all are.
        dtype: the column's type.
        number: the Python number, where this is none of a column.
    """

    tensor: torch.Tensor | None
    valid: torch.Tensor | None
    dtype: pa.DataType | None
    number: int | float | None = None


Result = tuple[torch.Tensor, torch.Tensor | None, pa.DataType]


def both_valid(left: torch.Tensor | None, right: torch.Tensor | None) -> torch.Tensor | None:
    """Where neither side is null; None where no row of either is."""
    if left is None or right is None:
        return right if left is None else left
    return left & right


def arithmetic(symbol: str, left: Operand, right: Operand) -> Result:
    """`left symbol right` for + - * / // %.

    Raises:
        FrameError: a side is no number, a number does not fit, or an integer result is out of range.
    """
    dtype = _common(symbol, left, right, divides=symbol == "/")
    a, b = _held(left, dtype, symbol), _held(right, dtype, symbol)
    valid = both_valid(left.valid, right.valid)
    if dtype in FLOATS:
        return _FLOAT[symbol](a, b), valid, dtype
    if symbol in ("//", "%"):
        divisor = _as_tensor(b, a)
        zero = divisor == 0
        if bool(zero.any()):
            valid = both_valid(valid, ~zero.expand(_rows(a, b)))
    found, out_of_range = _INTEGER[symbol](a, b)
    check_range(found, valid, dtype, f"{symbol} of {name_of(dtype)} columns", out_of_range)
    return found, valid, dtype


def compare(symbol: str, left: Operand, right: Operand) -> Result:
    """`left symbol right` for == != < <= > >=, as bool."""
    kinds = {kind_of(side.dtype) for side in (left, right) if side.dtype is not None}
    valid = both_valid(left.valid, right.valid)
    if kinds == {"bool"} and isinstance(right.number, bool | None):
        dtype = pa.bool_()
    elif kinds == {"int"} and isinstance(right.number, int):
        number, (low, high) = right.number, INT64
        if not low <= number <= high:  # no int64 reaches it, so all are on one side of it
            beyond = torch.full_like(_required(left), -1 if number > high else 1)
            return _COMPARE[symbol](beyond, 0), valid, pa.bool_()
        dtype = pa.int64()
    elif kinds == {"int"} and right.number is None:
        dtype = pa.int64()
    else:
        dtype = _common(symbol, left, right)
        if dtype in FLOATS and right.number is not None and _overflows(right.number, dtype):
            # Only an infinity is on the far side of it.
            values, side = _required(left).to(held_as(dtype)), 1.0 if right.number > 0 else -1.0
            beyond = torch.where(values == side * math.inf, side, -side).masked_fill(values.isnan(), math.nan)
            return _COMPARE[symbol](beyond, 0.0), valid, pa.bool_()
    found = _COMPARE[symbol](_held(left, dtype, symbol), _held(right, dtype, symbol))
    return found, valid, pa.bool_()


def check_range(
    found: torch.Tensor,
    valid: torch.Tensor | None,
    dtype: pa.DataType,
    what: str,
    out_of_range: torch.Tensor | None = None,
) -> None:
    """Raise FrameError with the rows where an integer result does not fit its type.

    Args:
        found: the results, as int64.
        valid: where they are not null.
        dtype: the type that they are to have.
        what: the operation, for the message.
        out_of_range: where int64 itself overflowed.
    """
    low, high = INTEGERS[dtype]
    wrong = out_of_range
    if (low, high) != INT64:
        narrow = (found < low) | (found > high)
        wrong = narrow if wrong is None else wrong | narrow
    if wrong is None:
        return
    hint = "use .astype('float64') first" if (low, high) == INT64 else "use .astype('int64') first"
    refuse(wrong, valid, f"{what}: the result is outside {low} to {high}; {hint}")


def refuse(wrong: torch.Tensor, valid: torch.Tensor | None, message: str) -> None:
    """Raise FrameError with the rows where `wrong` is True and the value is not null, if there are any."""
    if valid is not None:
        wrong = wrong & valid
    if bool(wrong.any()):
        rows: list[int] = wrong.nonzero().reshape(-1).tolist()
        raise FrameError(f"{message} ({rows_shown(rows)})", rows)


def number_for(value: object, dtype: pa.DataType, verb: str) -> int | float | bool:
    """A Python number that a column of this type can hold, unchanged.

    Raises:
        FrameError: it is of another kind, fractional or infinite for an integer, or out of range.
    """
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value  # type: ignore[union-attr]
    kind = kind_of(dtype)
    if kind == "bool" and isinstance(value, bool):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if kind == "float":
            if _overflows(value, dtype):
                raise FrameError(f"{verb}: {shown(value)} does not fit {name_of(dtype)}")
            return float(value)
        if kind == "int" and isinstance(value, int):
            low, high = INTEGERS[dtype]
            if low <= value <= high:
                return value
            raise FrameError(f"{verb}: {value} does not fit {name_of(dtype)}; use .astype('int64') first")
        if kind == "int":
            raise FrameError(
                f"{verb}: {shown(value)} is no integer and the column is {name_of(dtype)}; "
                "use .astype('float64') first"
            )
    raise FrameError(f"{verb}: {shown(value)} is no {name_of(dtype)}")


def _overflows(value: int | float, dtype: pa.DataType) -> bool:
    """Whether a finite number is an infinity in a type of floats."""
    try:
        found = float(value)
    except OverflowError:
        return True
    kind: Any = dtype.to_pandas_dtype()
    with np.errstate(over="ignore"):
        return math.isfinite(found) and not np.isfinite(np.array(found).astype(kind))


def text_for(value: object, verb: str) -> str:
    """A text that a column can hold.

    Raises:
        FrameError: it is no text, or has surrogates, which UTF-8 does not have.
    """
    if not isinstance(value, str):
        raise FrameError(f"{verb}: {shown(value)} is no text, and the column is text")
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise FrameError(f"{verb}: {shown(value)} is no Unicode text: {exc.reason}") from exc
    return value


def as_float(operand: Operand, verb: str) -> tuple[torch.Tensor, pa.DataType]:
    """The values as floats: integers as float64, floats as they are."""
    dtype = operand.dtype
    if dtype is None or kind_of(dtype) not in ("int", "float"):
        raise FrameError(_no_number(verb, dtype))
    tensor = _required(operand)
    return (tensor, dtype) if dtype in FLOATS else (tensor.to(torch.float64), pa.float64())


def function(name: str, operand: Operand) -> Result:
    """sqrt, exp, log, log1p of floats; integers become float64 first."""
    values, dtype = as_float(operand, name)
    return _same_bits_anywhere(_FUNCTIONS[name], values), operand.valid, dtype


def rounded(name: str, operand: Operand, decimals: int = 0) -> Result:
    """Round (ties to even), floor and ceil; integers stay what they are."""
    dtype = operand.dtype
    values = _required(operand)
    if dtype is None or kind_of(dtype) not in ("int", "float"):
        raise FrameError(_no_number(name, dtype))
    if dtype in INTEGERS:
        return values, operand.valid, dtype
    if name != "round":
        return (torch.floor if name == "floor" else torch.ceil)(values), operand.valid, dtype
    if decimals == 0:
        return torch.round(values), operand.valid, dtype
    factor = 10.0**decimals
    scaled = values * factor
    found = torch.round(scaled) / factor
    return torch.where(scaled.isfinite(), found, values), operand.valid, dtype


def absolute(operand: Operand) -> Result:
    """The distance from 0; of an integer without a positive counterpart it is an error."""
    if operand.dtype is None or kind_of(operand.dtype) not in ("int", "float"):
        raise FrameError(_no_number("abs", operand.dtype))
    values = _required(operand)
    found = values.abs()
    if operand.dtype in INTEGERS:
        check_range(found, operand.valid, operand.dtype, "abs", found < 0)
    return found, operand.valid, operand.dtype


def _same_bits_anywhere(
    function: Callable[[torch.Tensor], torch.Tensor], values: torch.Tensor
) -> torch.Tensor:
    """The function of each value, whatever its place: whole vectors only, as a tail may have its own code."""
    rows = len(values)
    if values.device.type != "cpu":
        return function(values)
    padded = torch.ones(-(-rows // 64) * 64, dtype=values.dtype)
    padded[:rows] = values
    return function(padded)[:rows]


def _common(symbol: str, left: Operand, right: Operand, *, divides: bool = False) -> pa.DataType:
    """The type in which an operation of two sides is done."""
    found: pa.DataType | None = None
    for side in (left, right):
        if side.dtype is None:
            if isinstance(side.number, bool):
                raise FrameError(f"{symbol}: {side.number} is no number; use 1 or 0")
            continue
        if kind_of(side.dtype) not in ("int", "float"):
            raise FrameError(_no_number(symbol, side.dtype))
        found = side.dtype if found is None else together(found, side.dtype)
    assert found is not None
    if found not in FLOATS and (divides or isinstance(left.number, float) or isinstance(right.number, float)):
        return pa.float64()
    return found


def _no_number(verb: str, dtype: pa.DataType | None) -> str:
    kind = "other" if dtype is None else kind_of(dtype)
    hint = {
        "bool": "use .astype('int64') to count with it, or & | ~ for logic",
        "time": "use .dt.epoch('s') for a number",
        "date": "use .dt.epoch('s') for a number",
        "text": "use .astype('float64') where it holds numbers, or .map(...)",
    }.get(kind, "use .astype('float64') where it can be one")
    return f"{verb}: a column of {'?' if dtype is None else name_of(dtype)} is no number; {hint}"


def _held(side: Operand, dtype: pa.DataType, symbol: str) -> Any:
    """The side as the tensor, or the Python number, that an operation in `dtype` takes."""
    if side.dtype is None:
        return number_for(side.number, dtype, symbol)
    return _required(side).to(held_as(dtype))


def _required(side: Operand) -> torch.Tensor:
    assert side.tensor is not None
    return side.tensor


def _as_tensor(value: Any, like: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, dtype=torch.int64, device=like.device)


def _rows(a: Any, b: Any) -> torch.Size:
    return a.shape if isinstance(a, torch.Tensor) else b.shape


def _add(a: Any, b: Any) -> tuple[torch.Tensor, torch.Tensor]:
    found = a + b
    return found, ((a ^ found) & (b ^ found)) < 0


def _subtract(a: Any, b: Any) -> tuple[torch.Tensor, torch.Tensor]:
    found = a - b
    return found, ((a ^ b) & (a ^ found)) < 0


def _multiply(a: Any, b: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    found = a * b
    if _small(a) and _small(b):
        return found, None
    a, b = torch.broadcast_tensors(_as_tensor(a, b), _as_tensor(b, a))
    trivial = (b == 0) | (b == -1)
    back = torch.div(found, torch.where(trivial, 1, b), rounding_mode="trunc")
    return found, torch.where(trivial, (b == -1) & (a == INT64[0]), back != a)


def _small(value: Any) -> bool:
    if not isinstance(value, torch.Tensor):
        return abs(value) <= _SAFE_FACTOR
    if value.numel() == 0:
        return True
    low, high = value.aminmax()
    return bool((low >= -_SAFE_FACTOR) & (high <= _SAFE_FACTOR))


def _floor_divide(a: Any, b: Any) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = torch.broadcast_tensors(_as_tensor(a, b), _as_tensor(b, a))
    special = (b == 0) | (b == -1)
    found = torch.div(a, torch.where(special, 1, b), rounding_mode="floor")
    overflows = (b == -1) & (a == INT64[0])
    return torch.where(b == -1, -a, found), overflows


def _remainder(a: Any, b: Any) -> tuple[torch.Tensor, None]:
    a, b = torch.broadcast_tensors(_as_tensor(a, b), _as_tensor(b, a))
    special = (b == 0) | (b == -1)
    found = torch.remainder(a, torch.where(special, 1, b))
    return torch.where(special, 0, found), None


_INTEGER: Final[dict[str, Callable[[Any, Any], tuple[torch.Tensor, torch.Tensor | None]]]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "//": _floor_divide,
    "%": _remainder,
}


def _float_tensors(function: Callable[[Any, Any], torch.Tensor]) -> Callable[[Any, Any], torch.Tensor]:
    """The function of two tensors: torch rounds a number beside a tensor in other ways for some types."""

    def apply(a: Any, b: Any) -> torch.Tensor:
        like = a if isinstance(a, torch.Tensor) else b
        sides = [side if isinstance(side, torch.Tensor) else torch.full_like(like, side) for side in (a, b)]
        return function(sides[0], sides[1])

    return apply


_FLOAT: Final[dict[str, Callable[[Any, Any], torch.Tensor]]] = {
    "+": _float_tensors(operator.add),
    "-": _float_tensors(operator.sub),
    "*": _float_tensors(operator.mul),
    "/": _float_tensors(torch.true_divide),
    "//": _float_tensors(torch.floor_divide),
    "%": _float_tensors(torch.remainder),
}

_COMPARE: Final[dict[str, Callable[[Any, Any], torch.Tensor]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_FUNCTIONS: Final[dict[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "sqrt": torch.sqrt,
    "exp": torch.exp,
    "log": torch.log,
    "log1p": torch.log1p,
}


def finite(value: float, verb: str, name: str) -> float:
    """The value as a float; raises FrameError when it is not finite."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise FrameError(f"{verb}: {name} {shown(value)} is no number that float64 holds") from None
    if not math.isfinite(found):
        raise FrameError(f"{verb}: {name} {value} is not finite")
    return found
