"""Frame: named columns of one length, immutable, without an index; and `concat`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast, overload

import numpy as np
import pyarrow as pa
import torch

from parity.errors import did_you_mean, shown
from parity.frame.dtypes import kind_of, name_of
from parity.frame.errors import FrameError, rows_shown
from parity.frame.grouping import GroupBy
from parity.frame.keys import group_codes, sorting_order
from parity.frame.numeric import refuse
from parity.frame.reductions import refuse_mixing
from parity.frame.series import Series, marked
from parity.frame.verbs import unknown_verb

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Frame:
    """Rows as typed columns. Every verb gives a new frame; rows keep their order, which nothing numbers.

    Args:
        columns: the columns by name, each of `Series`, an Arrow array, a numpy array or a list.
        device: where numbers are held; torch's spelling.
        of_batch: whether the rows are those of a batch; then verbs that mix rows are refused. They are, too,
            where one of the columns is a series of a batch.

    Raises:
        FrameError: the columns differ in length, or a list has no one type.
    """

    __slots__ = ("_columns", "device", "num_rows", "of_batch")

    def __init__(
        self,
        columns: Mapping[str, Series | pa.Array[Any] | np.ndarray[Any, Any] | Sequence[Any]],
        *,
        device: str | torch.device = "cpu",
        of_batch: bool = False,
    ) -> None:
        self.device = torch.device(device)
        self.of_batch = of_batch or any(
            isinstance(values, Series) and values.of_batch for values in columns.values()
        )
        # A column of a batch stays Arrow until a verb wants it: a handler seldom uses all.
        self._columns: dict[str, Any] = {
            name: values if isinstance(values, Series) else _as_arrow(name, values)
            for name, values in columns.items()
        }
        lengths = {name: len(values) for name, values in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise FrameError(f"columns differ in length: {lengths}")
        self.num_rows = next(iter(lengths.values()), 0)

    @classmethod
    def from_arrow(cls, table: pa.Table | pa.RecordBatch, *, device: str | torch.device = "cpu") -> Frame:
        """The columns of a table: constants or history, whose rows may be mixed, not rows to be answered."""
        columns = {name: cast("Any", table.column(name)) for name in table.schema.names}
        return cls(
            {
                name: column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
                for name, column in columns.items()
            },
            device=device,
        )

    def of_columns(self, columns: Mapping[str, Series], num_rows: int | None = None) -> Frame:
        """Other columns on the same device, of the same origin."""
        found = Frame.__new__(Frame)
        found.device, found.of_batch, found._columns = self.device, self.of_batch, dict(columns)
        found.num_rows = self.num_rows if num_rows is None else num_rows
        return found

    # --- what it holds

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._columns)

    @property
    def dtypes(self) -> dict[str, pa.DataType]:
        """The Arrow type of each column."""
        return {
            name: cast("Any", column).dtype if isinstance(column, Series) else column.type
            for name, column in self._columns.items()
        }

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __repr__(self) -> str:
        told = ", ".join(f"{name}: {name_of(dtype)}" for name, dtype in self.dtypes.items())
        return f"Frame({self.num_rows} rows; {told})"

    if not TYPE_CHECKING:  # a type checker is to report names that are not there

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_verb("Frame", name)

    @overload
    def __getitem__(self, key: str) -> Series: ...

    @overload
    def __getitem__(self, key: list[str] | Series) -> Frame: ...

    def __getitem__(self, key: Any) -> Any:
        """A column by name, some columns by a list of names, or the rows where a bool series is True."""
        if isinstance(key, str):
            return self._column(key)
        if isinstance(key, list):
            return self.select(key)
        if isinstance(key, Series):
            return self.filter(key)
        raise FrameError(f"frame[{shown(key)}]: expected a name, a list of names or a bool series")

    def _column(self, name: str) -> Series:
        found = self._columns.get(name)
        if found is None:
            raise FrameError(f"no column {name!r} in this frame; {did_you_mean(name, self._columns)}")
        if not isinstance(found, Series):
            found = Series(found, device=self.device, of_batch=self.of_batch)
            self._columns[name] = found
        elif self.of_batch and not found.of_batch:
            self._columns[name] = found = marked(found)
        return found

    # --- columns

    def select(self, names: Sequence[str]) -> Frame:
        """These columns, in this order."""
        repeated = {name for name in names if list(names).count(name) > 1}
        if repeated:
            raise FrameError(f"select: {sorted(repeated)} more than once")
        return self.of_columns({name: self._column(name) for name in names})

    def assign(self, **columns: Series | Callable[[Frame], Series] | object) -> Frame:
        """With columns added or replaced: series, functions of the frame so far, or one value for all."""
        found: Frame = self.of_columns(self._columns)
        for name, given in columns.items():
            value: Any = given
            if not isinstance(value, Series) and callable(value):
                value = value(found)
            if not isinstance(value, Series):
                value = self._constant(name, value)
            if len(value) != self.num_rows:
                raise FrameError(f"assign: {name!r} has {len(value)} rows, the frame {self.num_rows}")
            found._columns[name] = value
            found.of_batch = found.of_batch or value.of_batch
        return found

    def _constant(self, name: str, value: object) -> Series:
        if not isinstance(value, bool | int | float | str):
            raise FrameError(f"assign: {name}={shown(value)}; expected a series, a function or one value")
        try:
            array = pa.array(cast("Any", [value]))
        except (pa.ArrowException, ValueError, OverflowError) as exc:
            raise FrameError(f"assign: {name}={shown(value)} is no int64 and no text: {exc}") from exc
        return Series(array, device=self.device, of_batch=self.of_batch).take(
            torch.zeros(self.num_rows, dtype=torch.int64, device=self.device)
        )

    def rename(self, columns: Mapping[str, str]) -> Frame:
        """With columns called otherwise, {old: new}."""
        for name in columns:
            self._known(name, "rename")
        names = [columns.get(name, name) for name in self._columns]
        if len(set(names)) < len(names):
            raise FrameError(f"rename: two columns would be called the same: {names}")
        return self.of_columns(dict(zip(names, self._columns.values(), strict=True)))

    def drop(self, columns: str | Sequence[str]) -> Frame:
        """Without these columns."""
        away = [columns] if isinstance(columns, str) else list(columns)
        for name in away:
            self._known(name, "drop")
        return self.of_columns({name: column for name, column in self._columns.items() if name not in away})

    def fillna(self, values: Mapping[str, object]) -> Frame:
        """Null replaced in each named column; see `Series.fillna`."""
        return self._each(values, "fillna", lambda series, value: series.fillna(value))

    def astype(self, dtypes: Mapping[str, object]) -> Frame:
        """Each named column in another type; see `Series.astype`."""
        return self._each(dtypes, "astype", lambda series, dtype: series.astype(dtype))

    def normalize(self, constants: Mapping[str, tuple[float, float]]) -> Frame:
        """Each named column by its constants {name: (mean, std)}; see `Series.normalize`."""
        return self._each(constants, "normalize", lambda series, pair: series.normalize(*pair))

    def _each(self, values: Any, verb: str, change: Callable[[Series, Any], Series]) -> Frame:
        if not isinstance(values, Mapping):
            raise FrameError(f"{verb}: expected {{column: ...}}, got {shown(values)}")
        for name in values:
            self._known(name, verb)
        return self.assign(**{name: change(self._column(name), value) for name, value in values.items()})

    def _known(self, name: str, verb: str) -> None:
        if name not in self._columns:
            raise FrameError(f"{verb}: no column {name!r}; {did_you_mean(name, self._columns)}")

    # --- rows

    def filter(self, mask: Any) -> Frame:
        """The rows where the mask is True, in their order; where it is False or null they go."""
        if not isinstance(mask, Series) or mask.kind != "bool" or len(mask) != self.num_rows:
            raise FrameError(f"filter: needs a bool series of {self.num_rows} rows, got {shown(mask)}")
        keep = mask.tensor if mask.valid is None else mask.tensor & mask.valid
        found = self._take(keep.nonzero().reshape(-1))
        found.of_batch = self.of_batch or mask.of_batch
        return found

    def to(self, device: str | torch.device) -> Frame:
        """The same rows on another device."""
        if torch.device(device) == self.device:
            return self
        found = self.of_columns({name: self._column(name).to(device) for name in self._columns})
        found.device = torch.device(device)
        return found

    def _take(self, positions: torch.Tensor) -> Frame:
        return self.of_columns(
            {name: self._column(name).take(positions) for name in self._columns}, len(positions)
        )

    def merge(self, right: Frame, *, on: str | Sequence[str], how: str = "left") -> Frame:
        """Each row with the columns of the row of `right` that has its keys; null where there is none.

        The rows stay what they are, in number and order, so that no row depends on another: `right` is a
        table of constants whose keys occur once. Null keys match nothing.

        Raises:
            FrameError: `right` holds rows of a batch, a key occurs twice in it, key types differ, or both
                frames have another column of one name.
        """
        if how != "left":
            raise FrameError(f"merge: how={how!r}; only 'left' keeps every row of a batch")
        refuse_mixing(right.of_batch, "merge")
        right = right.to(self.device)
        keys = [on] if isinstance(on, str) else list(on)
        both = [name for name in right.columns if name in self._columns and name not in keys]
        if both:
            raise FrameError(f"merge: {both} are in both frames; rename them first")
        mine, theirs = [self._column(key) for key in keys], [right._column(key) for key in keys]
        for key, left_key, right_key in zip(keys, mine, theirs, strict=True):
            if left_key.dtype != right_key.dtype or kind_of(left_key.dtype) == "other":
                raise FrameError(
                    f"merge: key {key!r} is {name_of(left_key.dtype)} here and {name_of(right_key.dtype)} "
                    "there; use .astype to make them equal"
                )
        codes, first = group_codes([theirs, mine])
        there, here = codes[: len(right)], codes[len(right) :]
        if len(there.unique()) < len(right):
            twice = [row for row in range(len(right)) if int(first[there[row]]) != row]
            raise FrameError(f"merge: keys occur more than once in the right frame ({rows_shown(twice)})")
        places = torch.full((len(first),), -1, dtype=torch.int64, device=self.device)
        places[there] = torch.arange(len(right), device=self.device)
        found = places[here]
        for key in mine:
            if key.valid is not None:
                found = torch.where(key.valid, found, -1)
        columns = dict(self._columns)
        for name in right.columns:
            if name not in keys:
                columns[name] = right._column(name).take(found)
                columns[name].of_batch = self.of_batch
        return self.of_columns(columns)

    def across_rows(self) -> Frame:
        """The same rows as one table whose verbs may mix them: what follows depends on a row's neighbours."""
        found = self.of_columns({name: self._column(name) for name in self._columns})
        found.of_batch = False
        for name, column in found._columns.items():
            free = column.take(torch.arange(self.num_rows, device=self.device))
            free.of_batch = False
            found._columns[name] = free
        return found

    # --- rows that mix: refused for the rows of a batch

    def head(self, n: int = 5) -> Frame:
        """The first rows. Mixes rows."""
        refuse_mixing(self.of_batch, "head")
        return self._take(torch.arange(min(max(n, 0), self.num_rows), device=self.device))

    def sort_values(self, by: str | Sequence[str], *, ascending: bool | Sequence[bool] = True) -> Frame:
        """The rows ordered by columns, the first one first; ties keep their order. Mixes rows.

        Text is ordered by code points. NaN comes after all numbers and null last, whether ascending or not.
        """
        refuse_mixing(self.of_batch, "sort_values")
        names = [by] if isinstance(by, str) else list(by)
        ways = [ascending] * len(names) if isinstance(ascending, bool) else list(ascending)
        if not names or len(ways) != len(names):
            raise FrameError(f"sort_values: {len(names)} columns and {len(ways)} directions")
        return self._take(
            sorting_order(
                [(self._key(name, "sort_values"), up) for name, up in zip(names, ways, strict=True)]
            )
        )

    def drop_duplicates(self, subset: str | Sequence[str]) -> Frame:
        """The first row of each group of rows with equal keys. Mixes rows."""
        refuse_mixing(self.of_batch, "drop_duplicates")
        names = [subset] if isinstance(subset, str) else list(subset)
        return self._take(group_codes([[self._key(name, "drop_duplicates") for name in names]])[1])

    def groupby(self, by: str | Sequence[str]) -> GroupBy:
        """The rows in groups of equal keys, in order of first appearance; null is a key. Mixes rows."""
        refuse_mixing(self.of_batch, "groupby")
        names = (by,) if isinstance(by, str) else tuple(by)
        if not names:
            raise FrameError("groupby: name at least one column")
        for name in names:
            self._key(name, "groupby")
        return GroupBy(self, names)

    def _key(self, name: str, verb: str) -> Series:
        found = self._column(name)
        if found.kind == "other":
            raise FrameError(f"{verb}: a column of {name_of(found.dtype)} has no order and no equality here")
        return found

    # --- out

    def to_torch(self, dtype: str = "float32", *, columns: Sequence[str] | None = None) -> torch.Tensor:
        """The columns side by side as a new tensor (rows, columns) of one dtype, on the frame's device.

        Numbers become the dtype by `astype`: floats are rounded to the nearest, integers must fit.

        Raises:
            FrameError: a column is no number, or holds null or a value that does not fit; it names the rows.
        """
        names = self.columns if columns is None else list(columns)
        found: list[torch.Tensor] = []
        for name in names:
            series = self._column(name)
            if series.kind not in ("bool", "int", "float"):
                raise FrameError(f"to_torch: {name!r} is {name_of(series.dtype)}, no number; use .map or .dt")
            if series.valid is not None:
                refuse(
                    ~series.valid, None, f"to_torch: {name!r} is null, which no number is; use .fillna(value)"
                )
            found.append(series.astype(dtype).to_torch())
        if not found:
            return torch.empty((self.num_rows, 0), dtype=getattr(torch, dtype), device=self.device)
        return torch.stack(found, dim=1)

    def to_numpy(
        self, dtype: str = "float32", *, columns: Sequence[str] | None = None
    ) -> np.ndarray[Any, Any]:
        """The columns side by side as a new array (rows, columns); see `to_torch`."""
        return self.to_torch(dtype, columns=columns).cpu().numpy()

    def to_arrow(self) -> pa.Table:
        """The columns as an Arrow table, on the host."""
        return pa.table({name: self._column(name).to_arrow() for name in self._columns})

    def to_pandas(self) -> pd.DataFrame:
        """An escape hatch: a pandas frame of Arrow-backed columns, on the host.

        What is done with it is not the frame's any more: not written once for two devices, and nothing keeps
        it from mixing rows. `parity check` compares the answers all the same.
        """
        import pandas as pd

        return cast("Any", self.to_arrow()).to_pandas(types_mapper=pd.ArrowDtype)

    def to_polars(self) -> pl.DataFrame:
        """An escape hatch: a Polars frame, on the host; see `to_pandas`."""
        import polars as pl

        return cast("pl.DataFrame", pl.from_arrow(self.to_arrow()))


def concat(frames: Sequence[Frame]) -> Frame:
    """The rows of several frames with the same columns and types, one after the other.

    Raises:
        FrameError: there is no frame, or columns or types differ.
    """
    if not frames:
        raise FrameError("concat: give at least one frame")
    first = frames[0]
    for frame in frames[1:]:
        if frame.dtypes != first.dtypes:
            raise FrameError(f"concat: {frame.dtypes} beside {first.dtypes}; use .select and .astype first")
    tables = [frame.to_arrow() for frame in frames]
    found = Frame.from_arrow(pa.concat_tables(tables), device=first.device)
    found.of_batch = any(frame.of_batch for frame in frames)
    return found


def _as_arrow(name: str, values: Any) -> pa.Array[Any]:
    if isinstance(values, pa.ChunkedArray):
        return cast("Any", values.combine_chunks())
    if isinstance(values, pa.Array):
        return values
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
        raise FrameError(f"column {name!r}: {exc}; give an Arrow array of the type that is meant") from exc
