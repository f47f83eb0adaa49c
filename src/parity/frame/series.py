"""Series: one column of a frame, immutable, with the verbs of a single column."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
import pyarrow as pa
import torch

from parity.errors import shown
from parity.frame import buckets, lookups, numeric
from parity.frame.casting import cast_to
from parity.frame.dtypes import dtype_named, held_as, kind_of, name_of
from parity.frame.engine import engine_for
from parity.frame.errors import FrameError
from parity.frame.lists import Lists
from parity.frame.numeric import Operand, both_valid
from parity.frame.reductions import reduced
from parity.frame.storage import to_arrow, to_tensor
from parity.frame.texts import Texts
from parity.frame.times import Times, ticks_held, ticks_of
from parity.frame.verbs import unknown_verb

_Text = str  # `Series.str` hides the name inside the class


class Series:
    """One column: values of an Arrow type, each of which may be null. Every verb gives a new series.

    Unless a verb says otherwise, null in is null out, and NaN is a value like another.

    Attributes:
        dtype: the Arrow type.
        of_batch: whether the rows are those of a batch; then verbs that mix rows are refused.
    """

    __slots__ = ("_arrow", "_native", "_tensor", "device", "dtype", "of_batch", "valid")

    def __init__(
        self, values: pa.Array[Any], *, device: _Text | torch.device = "cpu", of_batch: bool = False
    ) -> None:
        array = cast("Any", values)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if pa.types.is_large_string(array.type):
            array = array.cast(pa.string())
        self.dtype: pa.DataType = array.type
        self.device = torch.device(device)
        self.of_batch = of_batch
        self._tensor: torch.Tensor | None = None
        self._native: Any = None
        self._arrow: Any = None
        self.valid: torch.Tensor | None = None
        kind = kind_of(array.type)
        if kind == "text":
            self._native = engine_for(self.device).from_arrow(array)
            self.valid = engine_for(self.device).valid(self._native)
        elif kind == "other":
            self._arrow = array
            if array.null_count:
                self.valid = torch.from_numpy(array.is_valid().to_numpy(zero_copy_only=False)).to(self.device)
        else:
            self._tensor, self.valid = to_tensor(array, self.device)

    @classmethod
    def of_tensor(
        cls, values: torch.Tensor, valid: torch.Tensor | None, dtype: pa.DataType, of_batch: bool
    ) -> Series:
        """A series over a tensor of the type that holds `dtype`; not copied."""
        found = cls.__new__(cls)
        found.dtype, found.device, found.of_batch, found.valid = dtype, values.device, of_batch, valid
        found._tensor, found._native, found._arrow = values, None, None
        return found

    def like(self, values: torch.Tensor, valid: torch.Tensor | None, dtype: pa.DataType) -> Series:
        """Other values for the same rows."""
        return Series.of_tensor(values, valid, dtype, self.of_batch)

    def like_arrow(self, values: pa.Array[Any]) -> Series:
        """Other values for the same rows, from the host."""
        return Series(values, device=self.device, of_batch=self.of_batch)

    def like_native(self, native: Any) -> Series:
        """Other texts for the same rows, as the engine holds them."""
        found = Series.__new__(Series)
        found.dtype, found.device, found.of_batch = pa.string(), self.device, self.of_batch
        found._tensor, found._native, found._arrow = None, native, None
        found.valid = engine_for(self.device).valid(native)
        return found

    # --- what it holds

    @property
    def kind(self) -> _Text:
        """What the values are: bool, int, float, time, date, text or other."""
        return kind_of(self.dtype)

    @property
    def is_text(self) -> bool:
        """Whether the values are text."""
        return self._native is not None

    @property
    def native(self) -> Any:
        """Text as the engine holds it."""
        return self._native

    @property
    def tensor(self) -> torch.Tensor:
        """The values as torch holds them: integers as int64, times as ticks; meaningless where null."""
        if self._tensor is None:
            raise FrameError(f"a column of {name_of(self.dtype)} has no numbers")
        return self._tensor

    @property
    def valid_mask(self) -> torch.Tensor:
        """Where the rows are not null, (rows,) bool."""
        if self.valid is None:
            return torch.ones(len(self), dtype=torch.bool, device=self.device)
        return self.valid

    def __len__(self) -> int:
        if self._tensor is not None:
            return len(self._tensor)
        return len(self._arrow if self._native is None else self._native)

    def __repr__(self) -> str:
        return f"Series({name_of(self.dtype)}, {len(self)} rows)"

    if not TYPE_CHECKING:  # a type checker is to report names that are not there

        def __getattr__(self, name: _Text) -> NoReturn:
            raise unknown_verb("Series", name)

    def __bool__(self) -> NoReturn:
        raise FrameError("a series is neither true nor false; use & | ~ instead of and, or, not, if")

    def __hash__(self) -> int:
        return id(self)

    # --- arithmetic and comparison

    def _operand(self) -> Operand:
        return Operand(self._tensor, self.valid, self.dtype)

    def _other(self, other: object, verb: _Text) -> Operand:
        if isinstance(other, Series):
            if len(other) != len(self):
                raise FrameError(f"{verb}: {len(self)} rows beside {len(other)}")
            return Operand(other._tensor, other.valid, other.dtype)
        value = other.item() if isinstance(other, np.generic) else other
        if not isinstance(value, bool | int | float):
            raise FrameError(f"{verb}: {shown(other)} is neither a number nor a series; {_none_hint(value)}")
        return Operand(None, None, None, value)

    def _arithmetic(self, symbol: _Text, other: object, *, reflected: bool = False) -> Series:
        mine, theirs = self._operand(), self._other(other, symbol)
        found = numeric.arithmetic(symbol, *((theirs, mine) if reflected else (mine, theirs)))
        return Series.of_tensor(*found, self.of_batch or getattr(other, "of_batch", False))

    def _compare(self, symbol: _Text, other: object) -> Series:
        batch = self.of_batch or (isinstance(other, Series) and other.of_batch)
        if self.is_text:
            return Series.of_tensor(*self._compare_text(symbol, other), pa.bool_(), batch)
        if self.kind in ("time", "date"):
            theirs = self._ticks(other, symbol)
            mine = Operand(self._tensor, self.valid, pa.int64())
            return Series.of_tensor(*numeric.compare(symbol, mine, theirs), batch)
        found = numeric.compare(symbol, self._operand(), self._other(other, symbol))
        return Series.of_tensor(*found, batch)

    def _compare_text(self, symbol: _Text, other: object) -> tuple[torch.Tensor, torch.Tensor | None]:
        if symbol not in ("==", "!="):
            raise FrameError(f"{symbol}: texts have no order that all languages share; use == != or .isin")
        engine = engine_for(self.device)
        if isinstance(other, str):
            equal, valid = engine.lookup(self._native, [numeric.text_for(other, symbol)]) == 0, self.valid
        elif isinstance(other, Series) and other.is_text:
            if len(other) != len(self):
                raise FrameError(f"{symbol}: {len(self)} rows beside {len(other)}")
            codes = engine.codes([self._native, other._native])
            equal = codes[: len(self)] == codes[len(self) :]
            valid = both_valid(self.valid, other.valid)
        else:
            raise FrameError(f"{symbol}: {shown(other)} is no text; {_none_hint(other)}")
        return (equal if symbol == "==" else ~equal), valid

    def _ticks(self, other: object, verb: _Text) -> Operand:
        """A time, or a series of the same type, as int64."""
        if isinstance(other, Series):
            if other.dtype != self.dtype or len(other) != len(self):
                raise FrameError(
                    f"{verb}: {name_of(self.dtype)} of {len(self)} rows beside {name_of(other.dtype)} of "
                    f"{len(other)}; use .astype to make the types equal"
                )
            return Operand(other._tensor, other.valid, pa.int64())
        return Operand(None, None, None, ticks_of(other, self.dtype, verb))

    def __add__(self, other: object) -> Series:
        return self._arithmetic("+", other)

    def __radd__(self, other: object) -> Series:
        return self._arithmetic("+", other, reflected=True)

    def __sub__(self, other: object) -> Series:
        return self._arithmetic("-", other)

    def __rsub__(self, other: object) -> Series:
        return self._arithmetic("-", other, reflected=True)

    def __mul__(self, other: object) -> Series:
        return self._arithmetic("*", other)

    def __rmul__(self, other: object) -> Series:
        return self._arithmetic("*", other, reflected=True)

    def __truediv__(self, other: object) -> Series:
        return self._arithmetic("/", other)

    def __rtruediv__(self, other: object) -> Series:
        return self._arithmetic("/", other, reflected=True)

    def __floordiv__(self, other: object) -> Series:
        return self._arithmetic("//", other)

    def __rfloordiv__(self, other: object) -> Series:
        return self._arithmetic("//", other, reflected=True)

    def __mod__(self, other: object) -> Series:
        return self._arithmetic("%", other)

    def __rmod__(self, other: object) -> Series:
        return self._arithmetic("%", other, reflected=True)

    def __neg__(self) -> Series:
        return self._arithmetic("*", -1)

    def __eq__(self, other: object) -> Series:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: object) -> Series:  # type: ignore[override]
        return self._compare("!=", other)

    def __lt__(self, other: object) -> Series:
        return self._compare("<", other)

    def __le__(self, other: object) -> Series:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Series:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Series:
        return self._compare(">=", other)

    # --- logic: null is "not known"

    def _logic(self, other: object, symbol: _Text) -> Series:
        if isinstance(other, bool):
            other = self.like(torch.full_like(self._flags(symbol), other), None, pa.bool_())
        if not isinstance(other, Series) or len(other) != len(self):
            raise FrameError(f"{symbol}: needs True, False or a bool series of {len(self)} rows")
        a, b = self._flags(symbol), other._flags(symbol)
        valid = both_valid(self.valid, other.valid)
        if valid is not None:
            decides = symbol == "|"  # False decides &, True decides |
            valid = valid | (self.valid_mask & (a == decides)) | (other.valid_mask & (b == decides))
            a, b = (torch.where(s.valid_mask, s.tensor, not decides) for s in (self, other))
        found = a | b if symbol == "|" else a & b
        return Series.of_tensor(found, valid, pa.bool_(), self.of_batch or other.of_batch)

    def _flags(self, verb: _Text) -> torch.Tensor:
        if self.kind != "bool":
            raise FrameError(
                f"{verb}: needs bool columns, this one is {name_of(self.dtype)}; compare it first"
            )
        return self.tensor

    def __and__(self, other: object) -> Series:
        return self._logic(other, "&")

    def __or__(self, other: object) -> Series:
        return self._logic(other, "|")

    def __rand__(self, other: object) -> Series:
        return self._logic(other, "&")

    def __ror__(self, other: object) -> Series:
        return self._logic(other, "|")

    def __invert__(self) -> Series:
        return self.like(~self._flags("~"), self.valid, pa.bool_())

    # --- null and NaN

    def isna(self) -> Series:
        """Where the rows are null; never null itself. NaN is not null: see `isnan`."""
        return self.like(~self.valid_mask, None, pa.bool_())

    def notna(self) -> Series:
        """Where the rows are not null; never null itself."""
        return self.like(self.valid_mask, None, pa.bool_())

    def isnan(self) -> Series:
        """Where the values are NaN; of a column without floats, nowhere."""
        if self.kind not in ("int", "float"):
            raise FrameError(f"isnan: a column of {name_of(self.dtype)} is no number")
        return self.like(self.tensor.isnan(), self.valid, pa.bool_())

    def fillna(self, value: object) -> Series:
        """Null replaced by a value of the column's type, or by another column's value; NaN stays."""
        if not isinstance(value, Series):
            self._fitting(value, "fillna")
            if self.valid is None:
                return self
        found = self._choose(self.valid_mask, value, "fillna")
        found.of_batch = self.of_batch or getattr(value, "of_batch", False)
        return found

    def where(self, condition: Any, other: object = None) -> Series:
        """The values where the condition is True, `other` (null by default) where it is False or null."""
        if not isinstance(condition, Series) or len(condition) != len(self):
            raise FrameError(f"where: needs a bool series of {len(self)} rows")
        keep = condition._flags("where")
        if condition.valid is not None:
            keep = keep & condition.valid
        found = self._choose(keep, other, "where")
        found.of_batch = self.of_batch or condition.of_batch or getattr(other, "of_batch", False)
        return found

    def _choose(self, keep: torch.Tensor, other: object, verb: _Text) -> Series:
        if self._arrow is not None:
            raise FrameError(f"{verb}: a column of {name_of(self.dtype)} is only carried along")
        if isinstance(other, Series) and (other.dtype != self.dtype or len(other) != len(self)):
            raise FrameError(
                f"{verb}: {name_of(self.dtype)} of {len(self)} rows beside {name_of(other.dtype)} of "
                f"{len(other)}; use .astype to make the types equal"
            )
        if self.is_text:
            return self._choose_text(keep, other, verb)
        if isinstance(other, Series):
            valid = both_valid(self.valid, other.valid)
            if valid is not None:
                valid = torch.where(keep, self.valid_mask, other.valid_mask)
            return self.like(torch.where(keep, self.tensor, other.tensor), valid, self.dtype)
        if other is None:
            return self.like(self.tensor, self.valid_mask & keep, self.dtype)
        stand_in = torch.tensor(self._fitting(other, verb), dtype=held_as(self.dtype), device=self.device)
        valid = None if self.valid is None else self.valid | ~keep
        if valid is not None and bool(valid.all()):
            valid = None
        return self.like(torch.where(keep, self.tensor, stand_in), valid, self.dtype)

    def _choose_text(self, keep: torch.Tensor, other: object, verb: _Text) -> Series:
        engine = engine_for(self.device)
        rows = torch.arange(len(self), device=self.device)
        if isinstance(other, Series):
            pool, elsewhere = [self._native, other._native], rows + len(self)
        elif other is None:
            pool, elsewhere = [self._native], torch.full_like(rows, -1)
        else:
            pool = [self._native, engine.from_arrow(pa.array([self._fitting(other, verb)], pa.string()))]
            elsewhere = torch.full_like(rows, len(self))
        return self.like_native(engine.take(engine.concat(pool), torch.where(keep, rows, elsewhere)))

    def _fitting(self, value: object, verb: _Text) -> Any:
        """A Python value that this column can hold unchanged."""
        if self.is_text:
            return numeric.text_for(value, verb)
        if self.kind in ("time", "date"):
            return ticks_held(value, self.dtype, verb)
        if self.kind == "other":
            raise FrameError(f"{verb}: a column of {name_of(self.dtype)} is only carried along")
        return numeric.number_for(value, self.dtype, verb)

    # --- numbers

    def abs(self) -> Series:
        """The distance from 0; an integer without a positive counterpart is an error."""
        return self.like(*numeric.absolute(self._operand()))

    def clip(self, lower: float | None = None, upper: float | None = None) -> Series:
        """The values, not below `lower` and not above `upper`; NaN stays NaN."""
        if self.kind not in ("int", "float"):
            raise FrameError(f"clip: a column of {name_of(self.dtype)} is no number")
        low, high = (None if bound is None else self._fitting(bound, "clip") for bound in (lower, upper))
        if (low is not None and low != low) or (high is not None and high != high):
            raise FrameError("clip: a bound is NaN")
        if low is not None and high is not None and low > high:
            raise FrameError(f"clip: lower {low} is above upper {high}")
        if low is None and high is None:
            return self
        return self.like(self.tensor.clamp(low, high), self.valid, self.dtype)

    def sqrt(self) -> Series:
        """The square root; NaN below 0."""
        return self.like(*numeric.function("sqrt", self._operand()))

    def exp(self) -> Series:
        """The exponential function."""
        return self.like(*numeric.function("exp", self._operand()))

    def log(self) -> Series:
        """The natural logarithm; -infinity of 0, NaN below."""
        return self.like(*numeric.function("log", self._operand()))

    def log1p(self) -> Series:
        """log(1 + x), exact near 0."""
        return self.like(*numeric.function("log1p", self._operand()))

    def round(self, decimals: int = 0) -> Series:
        """To the nearest with so many decimals, ties to the even neighbour; floats stay floats."""
        if not 0 <= decimals <= 15:
            raise FrameError(f"round: {decimals} decimals; expected 0 to 15")
        return self.like(*numeric.rounded("round", self._operand(), decimals))

    def floor(self) -> Series:
        """The greatest whole number not above; floats stay floats."""
        return self.like(*numeric.rounded("floor", self._operand()))

    def ceil(self) -> Series:
        """The least whole number not below; floats stay floats."""
        return self.like(*numeric.rounded("ceil", self._operand()))

    def normalize(self, mean: float, std: float) -> Series:
        """(x - mean) / std with constants that were computed once, offline; integers become float64."""
        mean, std = numeric.finite(mean, "normalize", "mean"), numeric.finite(std, "normalize", "std")
        if std == 0:
            raise FrameError("normalize: std is 0")
        return (self - mean) / std

    # --- categories

    def cut(
        self,
        bins: Sequence[float],
        *,
        right: bool = True,
        include_lowest: bool = False,
        labels: Sequence[_Text] | None = None,
    ) -> Series:
        """Which bin (bins[i], bins[i+1]] a value is in, from 0, or its label; null outside and for NaN."""
        return buckets.cut(self, bins, right, include_lowest, labels)

    def bucket(self, edges: Sequence[float], *, right: bool = False) -> Series:
        """How many edges are at most the value (`right=True`: below it), as numpy.digitize; null for NaN."""
        return buckets.bucket(self, edges, right)

    def isin(self, values: Sequence[object]) -> Series:
        """Whether a value is one of these; null for null."""
        return lookups.isin(self, values)

    def map(self, mapping: Mapping[Any, Any], *, default: object = None) -> Series:
        """What the mapping holds for each value, `default` (null) for others; null for null.

        The mapping is an artifact made once, offline. Its keys are all texts or all integers, its values all
        of one type.
        """
        return lookups.mapped(self, mapping, default)

    def astype(self, dtype: object) -> Series:
        """The values in another type, exactly or not at all, but for the rounding of floats."""
        return cast_to(self, dtype_named(dtype))

    @property
    def str(self) -> Texts:
        """The verbs of text."""
        if not self.is_text:
            raise FrameError(f".str is for text, this column is {name_of(self.dtype)}")
        return Texts(self)

    @property
    def dt(self) -> Times:
        """The verbs of times and dates."""
        if self.kind not in ("time", "date"):
            raise FrameError(f".dt is for times and dates, this column is {name_of(self.dtype)}")
        return Times(self)

    @property
    def list(self) -> Lists:
        """The verbs of lists: what is computed within each row."""
        if not (pa.types.is_list(self.dtype) or pa.types.is_fixed_size_list(self.dtype)):
            raise FrameError(f".list is for lists, this column is {name_of(self.dtype)}")
        return Lists(self)

    # --- over the rows: refused for the rows of a batch

    def sum(self) -> int | float:
        """The sum of what is not null, floats in float64; 0 of nothing. Mixes rows."""
        return reduced(self, "sum")

    def mean(self) -> float | None:
        """The mean of what is not null, in float64; None of nothing. Mixes rows."""
        return reduced(self, "mean")

    def min(self) -> Any:
        """The least of what is not null; NaN where one is NaN. Mixes rows."""
        return reduced(self, "min")

    def max(self) -> Any:
        """The greatest of what is not null; NaN where one is NaN. Mixes rows."""
        return reduced(self, "max")

    def count(self) -> int:
        """How many rows are not null. Mixes rows."""
        return int(cast("int", reduced(self, "count")))

    # --- out

    def take(self, positions: torch.Tensor) -> Series:
        """The rows at these positions; null for -1."""
        absent = positions < 0
        some_absent = bool(absent.any())
        if self.is_text:
            return self.like_native(engine_for(self.device).take(self._native, positions))
        if self._arrow is not None:
            places = positions.cpu().numpy()
            indices = pa.array(places, mask=places < 0)
            return self.like_arrow(self._arrow.take(indices))
        if len(self) == 0:
            values = torch.zeros(len(positions), dtype=held_as(self.dtype), device=self.device)
            return self.like(values, ~absent if some_absent else None, self.dtype)
        places = torch.where(absent, 0, positions) if some_absent else positions
        valid = None if self.valid is None else self.valid[places]
        if some_absent:
            valid = ~absent if valid is None else valid & ~absent
        return self.like(self.tensor[places], valid, self.dtype)

    def to(self, device: _Text | torch.device) -> Series:
        """The same rows on another device."""
        return Series(self.to_arrow(), device=device, of_batch=self.of_batch)

    def to_arrow(self) -> pa.Array[Any]:
        """The values as an Arrow array of `dtype`, on the host."""
        if self.is_text:
            return engine_for(self.device).to_arrow(self._native)
        if self._arrow is not None:
            return self._arrow
        return to_arrow(self.tensor, self.valid, self.dtype)

    def to_torch(self) -> torch.Tensor:
        """The values as a new tensor (rows,) of the column's own type, on the series' device.

        Raises:
            FrameError: a row is null, or the values are no numbers.
        """
        if self.kind not in ("bool", "int", "float"):
            raise FrameError(f"to_torch: a column of {name_of(self.dtype)} is no number; use .map or .dt")
        if self.valid is not None:
            numeric.refuse(~self.valid, None, "to_torch: null has no number; use .fillna(value) first")
        return self.tensor.to(getattr(torch, name_of(self.dtype)), copy=True)

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """The values as a new array (rows,) of the column's own type; see `to_torch`."""
        return self.to_torch().cpu().numpy()

    def to_pylist(self) -> Any:
        """The rows as Python values, None for null."""
        return self.to_arrow().to_pylist()


def marked(series: Series) -> Series:
    """The series as one of a batch's rows, whatever it was made of."""
    if series.of_batch:
        return series
    found = copy.copy(series)
    found.of_batch = True
    return found


def _none_hint(value: object) -> str:
    if value is None:
        return "use .isna() to find null, .fillna(value) to replace it"
    if isinstance(value, datetime.date):
        return "times are compared with columns of times"
    return "use .astype to make the types equal"
