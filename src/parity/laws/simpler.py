"""Simpler values of a field: 0, 1, "", the empty list, black, shorter texts, smaller numbers.

Every value made here fits its field. Values are in the form that `pa.array` takes for the canonical type.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from parity.batch import Batch
from parity.examples import float_value, image_value, tensor_value
from parity.laws.shrink import Budget, shrink
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
    Schema,
    String,
    Struct,
    Tensor,
    Timestamp,
)

Fails = Callable[[Any], bool]
"""Whether the law is still broken with this value."""

_SEARCH = 24
_BLANKS = frozenset(" \t\n")


def simplest(field: Field) -> Any:
    """The simplest value of a field, which need not break anything."""
    return next(iter(simple(field)))


def simple(field: Field) -> Iterator[Any]:
    """Values that people take for simple, the simplest first; at least one."""
    match field:
        case Bool():
            yield False
        case Integer():
            yield from _integers(field)
        case Floating():
            yield from _floats(field)
        case String():
            yield from field.choices or [text[: field.max_length] for text in ("", "a")]
        case Bytes():
            yield b""
        case Timestamp():
            yield 0
        case Date():
            yield datetime.date(1970, 1, 1)
        case Decimal():
            yield decimal.Decimal((0, (0,), -field.scale))
        case Image():
            for side in (1, 8, 32):
                yield image_value(field, np.zeros((side, side, field.channels or 3), np.uint8))
        case Tensor():
            sizes = [1 if size is None else size for size in field.shape]
            yield tensor_value(field, np.zeros(sizes, field.numpy_dtype))
        case List():
            yield []
        case Struct():
            yield {name: simplest(member) for name, member in field.members.items()}
        case _:
            raise TypeError(f"no simple value is known for {field.describe()}")


def value_of(batch: Batch, name: str, row: int) -> Any:
    """One value of a batch, as `simplify` takes it: numpy for tensors and image arrays."""
    column = batch[name].slice(row, row + 1)
    field = column.field
    if isinstance(field, Tensor) or (isinstance(field, Image) and field.form == "array"):
        return column.arrays()[0]
    if isinstance(field, Timestamp | Date):
        return None  # as_py knows neither nanoseconds nor all years; there is no search among times
    try:
        return column.arrow[0].as_py()
    except (OverflowError, ValueError):  # a list or struct holds a time that Python's calendar does not know
        return None


def simplify(field: Field, value: Any, fails: Fails, budget: Budget) -> Any | None:
    """A simpler value with which the law is still broken, in stored form; None when none was found.

    Args:
        field: what the value must fit.
        value: the value, as `value_of` gives it.
        fails: whether the law is still broken with another value; called while the budget lasts.
        budget: how often.
    """
    found: list[Any] = []

    def tried(candidate: Any) -> bool:
        if not budget.take() or not fails(candidate):
            return False
        found.append(candidate)
        return True

    for candidate in simple(field):
        if _same(candidate, value):
            return None
        if tried(candidate):
            return candidate
    if value is not None:
        _search(field, value, tried, budget)
    return found[-1] if found else None


def simplest_row(schema: Schema) -> dict[str, Any]:
    """A row of the simplest values."""
    return {name: simplest(field) for name, field in schema.items()}


def _integers(field: Integer) -> Iterator[int]:
    if field.choices is not None:
        yield from sorted(field.choices, key=lambda choice: (abs(choice), choice < 0))
        return
    low, high = field.limits
    near = min(max(low, 0), high)
    yield near
    if near + 1 <= high:
        yield near + 1


def _floats(field: Floating) -> Iterator[Any]:
    inside = [
        number
        for number in (0.0, 1.0, 2.0, -1.0)
        if (field.ge is None or number >= field.ge) and (field.le is None or number <= field.le)
    ]
    bound = field.ge if field.ge is not None else field.le
    for number in inside or [0.0 if bound is None else float(bound)]:
        yield float_value(field, number)


def _search(field: Field, value: Any, fails: Fails, budget: Budget) -> None:
    match field:
        case Integer() if field.choices is None:
            _toward(simplest(field), value, fails)
        case Floating() if np.isfinite(value):
            _fewer_digits(field, float(value), fails)
        case String() if field.choices is None:
            _shorter(value, fails, budget)
        case List():
            _fewer_items(field, value, fails, budget)
        case Struct():
            _simpler_members(field, value, fails, budget)
        case Tensor():
            _emptier(field, _as_array(field, value), fails, budget)
        case Image() if field.form == "array":
            _emptier(field.as_tensor, _as_array(field.as_tensor, value), fails, budget)
        case _:
            pass


def _toward(good: int, bad: int, fails: Fails) -> None:
    """Bisect between a value that breaks nothing and one that does."""
    for _ in range(2 * _SEARCH):
        middle = (good + bad) // 2 if good < bad else -((-good - bad) // 2)
        if middle in (good, bad):
            return
        if fails(middle):
            bad = middle
        else:
            good = middle


def _fewer_digits(field: Floating, value: float, fails: Fails) -> None:
    for digits in (0, 1, 2, 3, 6):
        rounded = round(value, digits)
        fits = (field.ge is None or rounded >= field.ge) and (field.le is None or rounded <= field.le)
        if rounded != value and fits and fails(float_value(field, rounded)):
            if digits == 0 and abs(rounded) > 2:
                good = 0 if field.ge is None or field.ge <= 0 else int(np.ceil(field.ge))
                _toward(good, int(rounded), lambda number: fails(float_value(field, float(number))))
            return
    if value == round(value) and abs(value) > 2:
        good = 0 if field.ge is None or field.ge <= 0 else int(np.ceil(field.ge))
        _toward(good, int(value), lambda number: fails(float_value(field, float(number))))


def _shorter(text: str, fails: Fails, budget: Budget) -> None:
    kept = shrink(list(text), lambda characters: fails("".join(characters)), _part(budget))
    for place, character in enumerate(kept):
        if character != "a" and character not in _BLANKS:
            plain = [*kept[:place], "a", *kept[place + 1 :]]
            if fails("".join(plain)):
                kept = plain


def _fewer_items(field: List, items: Sequence[Any], fails: Fails, budget: Budget) -> None:
    kept = shrink(list(items), fails, _part(budget)) if items else []
    for place, item in enumerate(kept):
        for candidate in simple(field.of):
            if _same(candidate, item):
                break
            plain = [*kept[:place], candidate, *kept[place + 1 :]]
            if fails(plain):
                kept = plain
                break


def _simpler_members(field: Struct, members: dict[str, Any], fails: Fails, budget: Budget) -> None:
    kept = dict(members)
    for name, member in field.members.items():
        simpler = simplify(member, kept[name], lambda value, n=name: fails({**kept, n: value}), _part(budget))
        if simpler is not None:
            kept[name] = simpler


def _emptier(field: Tensor, array: np.ndarray[Any, Any], fails: Fails, budget: Budget) -> None:
    """Zeros in place of as many elements as can be; then ones in place of the others."""
    zeros = np.zeros_like(array)
    if fails(tensor_value(field, zeros)):
        return
    set_places = np.flatnonzero(array.reshape(-1) != 0).tolist()

    def with_only(places: list[int], values: np.ndarray[Any, Any]) -> Any:
        kept = zeros.reshape(-1).copy()
        kept[places] = values.reshape(-1)[places]
        return tensor_value(field, kept.reshape(array.shape))

    if not set_places:
        return
    places = shrink(set_places, lambda chosen: fails(with_only(chosen, array)), _part(budget))
    ones = np.ones_like(array)
    if not (array.reshape(-1)[places] == 1).all():
        fails(with_only(places, ones))


def _as_array(field: Tensor, value: Any) -> np.ndarray[Any, Any]:
    """A tensor as an array; inside a list or a struct it comes flat, or as its data and shape."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, dict):
        told = cast("dict[str, Any]", value)
        return np.asarray(told["data"], field.numpy_dtype).reshape(told["shape"])
    return np.asarray(value, field.numpy_dtype).reshape(
        [-1 if size is None else size for size in field.shape]
    )


def _part(budget: Budget) -> Budget:
    """A share of what is left, so that one value does not spend it all; the trials count in `budget` too."""
    return Budget(max(8, budget.trials // 4))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)
    try:
        return type(one) is type(other) and bool(one == other)
    except ValueError:  # containers of arrays
        return False
