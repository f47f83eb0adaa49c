"""Hypothesis strategies for the fields of a schema, and rows drawn from them, the same in every process.

They complement `parity.examples`: those are ordinary, or at an edge in every column at once; these mix
ordinary and edge values freely.
"""

from __future__ import annotations

import datetime
import decimal
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import pyarrow as pa

from parity.batch import Batch
from parity.column import Column
from parity.examples import float_value, image_value, tensor_value
from parity.schema import (
    BFLOAT16,
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
from parity.stages import row_digests

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_LARGEST: Final = 1e6
"""Unbounded numbers stay below, so that sums neither overflow nor cancel, which is no handler's fault."""

_SPECIAL: Final = (0.0, -0.0, 1.0, -1.0, 0.5, 0.1, 1e-6, float("nan"), float("inf"), -float("inf"))
_CHARACTERS: Final = "abcABCxyz 0123456789-_.,;:/'\"é\u0301\u00a0İßñ漢\U0001f600\t\n\x00"
_TEXTS: Final = ("", " ", "a", "A", "NaN", "null", "0", "1.0", "true", "a b", "İ", "straße", "long " * 40)
_TICKS_A_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def generated_batch(schema: Schema, rows: int, seed: int = 0) -> Batch:
    """At most `rows` rows that fit the schema, none of them twice: fewer where there are no more.

    Args:
        schema: what they fit.
        rows: how many.
        seed: the same seed gives the same rows, in every process.
    """
    drawn = draw(rows_of(schema), rows, seed)
    columns = {
        name: Column(field, arrow=pa.array([row[name] for row in drawn], type=field.arrow_type))
        for name, field in schema.items()
    }
    batch = Batch(schema, columns, len(drawn))
    first: dict[bytes, int] = {}
    for row, digest in enumerate(row_digests(batch.to_table())):
        first.setdefault(digest, row)
    return batch if len(first) == len(drawn) else batch.take(list(first.values()))


def draw(strategy: SearchStrategy[Any], count: int, seed: int = 0) -> list[Any]:
    """At most `count` values of a strategy, the simplest first; a pure function of strategy and seed."""
    import hypothesis as hy

    drawn: list[Any] = []

    @hy.seed(seed)
    @hy.settings(
        database=None,
        deadline=None,
        max_examples=count,
        phases=[hy.Phase.generate],
        suppress_health_check=_all_of(hy.HealthCheck),
        verbosity=hy.Verbosity.quiet,
    )
    @hy.given(strategy)
    def collect(value: Any) -> None:
        drawn.append(value)

    with _nothing_from_outside():
        collect()
    return drawn


def _all_of(members: Any) -> Any:
    return list(members)


def rows_of(schema: Schema) -> SearchStrategy[dict[str, Any]]:
    """Rows of a schema, as values in the form that `pa.array` takes for the canonical types."""
    from hypothesis import strategies as st

    return st.fixed_dictionaries({name: values(field) for name, field in schema.items()})


def values(field: Field) -> SearchStrategy[Any]:
    """Values of a field, null among them where it may be."""
    from hypothesis import strategies as st

    found = _required(field)
    # Null in one value of four: a batch with a null in it and one without should both be common.
    return st.one_of(found, found, found, st.none()) if field.nullable else found


def _required(field: Field) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    match field:
        case Bool():
            return st.booleans()
        case Integer():
            return _integers(field)
        case Floating():
            return _floats(field)
        case String():
            return _texts(field)
        case Bytes():
            return st.binary(max_size=min(8, 8 if field.max_length is None else field.max_length))
        case Timestamp():
            ticks = _TICKS_A_SECOND[field.unit]
            return st.integers(-631_152_000 * ticks, 2_524_608_000 * ticks)  # 1950 to 2050
        case Date():
            return st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 12, 31))
        case Decimal():
            most = 10 ** min(field.precision, 9) - 1
            return st.integers(-most, most).map(lambda number: _scaled(number, field.scale))
        case Image():
            return st.integers(0, 2**16).map(lambda number: _picture(field, number))
        case Tensor():
            return st.integers(0, 2**16).map(lambda number: _array(field, number))
        case List():
            return st.lists(values(field.of), max_size=6)
        case Struct():
            return st.fixed_dictionaries({name: values(member) for name, member in field.members.items()})
        case _:
            raise TypeError(f"no strategy is known for {field.describe()}")


def _integers(field: Integer) -> SearchStrategy[int]:
    from hypothesis import strategies as st

    if field.choices is not None:
        return st.sampled_from(field.choices)
    low, high = field.limits
    low, high = max(low, -(2**53)), min(high, 2**53)
    if low > high:
        return st.integers(*field.limits)
    near = [
        number for number in (0, 1, -1, 2, 7, 10, 100, 255, 256, 1000, 1900, 2024) if low <= number <= high
    ]
    ordinary = (
        st.integers(max(low, -1000), min(high, 1000)) if low <= 1000 and high >= -1000 else st.just(low)
    )
    return st.one_of(ordinary, st.sampled_from([low, high, *near]), st.integers(low, high))


def _floats(field: Floating) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    largest = min(_LARGEST, 6e4) if field.numpy_dtype.itemsize == 2 else _LARGEST
    low = -largest if field.ge is None else float(field.ge)
    high = largest if field.le is None else float(field.le)
    if low > high:  # a bound beyond what is large
        low, high = (low, low) if field.le is None else (high, high)
    bounded = field.ge is not None or field.le is not None
    special = [number for number in _SPECIAL if low <= number <= high or not (bounded or np.isfinite(number))]
    ordinary = st.floats(low, high, allow_nan=False, allow_infinity=False)
    found = st.one_of(ordinary, st.sampled_from(special)) if special else ordinary
    return found.map(lambda number: float_value(field, number))


def _texts(field: String) -> SearchStrategy[str]:
    from hypothesis import strategies as st

    if field.choices is not None:
        return st.sampled_from(field.choices)
    # Not st.text(), which takes seconds to learn all of Unicode and keeps it on disk.
    some = st.lists(st.sampled_from(_CHARACTERS), max_size=12).map("".join)
    return st.one_of(some, st.sampled_from(_TEXTS)).map(lambda text: text[: field.max_length])


def _picture(field: Image, number: int) -> Any:
    rng = np.random.default_rng(number)
    height, width = (int(size) for size in rng.integers(1, 40, 2))
    pixels = rng.integers(0, 256, (height, width, field.channels or 3), np.uint8)
    if number % 3 == 0:  # grey, flat: what hides a swap of channels or axes
        pixels[:] = pixels[0, 0, 0]
    return image_value(field, pixels)


def _array(field: Tensor, number: int) -> Any:
    rng = np.random.default_rng(number)
    sizes = [
        int(rng.integers(0 if number % 5 == 0 else 1, 12)) if size is None else size for size in field.shape
    ]
    dtype = field.numpy_dtype
    if dtype == BFLOAT16 or dtype.kind == "f":
        found = (rng.normal(size=sizes) * 10.0 ** rng.integers(-2, 3)).astype(dtype)
        if number % 4 == 0 and found.size:
            found.reshape(-1)[int(rng.integers(found.size))] = _SPECIAL[int(rng.integers(len(_SPECIAL)))]
    elif dtype.kind == "b":
        found = rng.integers(0, 2, sizes).astype(dtype)
    else:
        found = rng.integers(0, 256 if dtype == np.uint8 else 100, sizes).astype(dtype)
    return tensor_value(field, found)


def _scaled(number: int, scale: int) -> decimal.Decimal:
    return decimal.Decimal((int(number < 0), tuple(int(digit) for digit in str(abs(number))), -scale))


@contextmanager
def _nothing_from_outside() -> Generator[None]:
    """Keep Hypothesis from reading and writing what differs from place to place.

    It takes constants from the modules that happen to be imported, and keeps a folder `.hypothesis` where the
    user works.
    """
    from hypothesis import configuration
    from hypothesis.internal.conjecture import providers

    inner = cast("Any", providers)
    read = getattr(inner, "_get_local_constants", None)
    home = configuration.storage_directory(intent_to_write=False).path
    with tempfile.TemporaryDirectory(prefix="parity-hypothesis-") as folder:
        configuration.set_hypothesis_home_dir(folder)
        if read is not None:
            none_known = type(inner._local_constants)()
            inner._get_local_constants = lambda: none_known
            inner.CONSTANTS_CACHE.cache.clear()
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(home)
            if read is not None:
                inner._get_local_constants = read
                inner.CONSTANTS_CACHE.cache.clear()
