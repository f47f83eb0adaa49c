"""Stands for cudf on the host: takes only the calls that its signatures allow, and lets pandas answer them.

It gives joined rows in an order of its own, as cuDF does, and knows no index of rows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

RECORDED: dict[str, Any] = json.loads(
    Path(__file__).with_name("cudf_signatures.json").read_text(encoding="utf-8")
)["calls"]

TEXT: Any = pd.ArrowDtype(pa.string())


def check(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    assert name in RECORDED, f"cudf has no {name}, or it is not recorded"
    allowed = RECORDED[name]
    assert not allowed.get("property"), f"{name} is a property"
    assert len(args) <= len(allowed["positional"]), f"{name}: too many positional arguments"
    assert set(kwargs) <= {*allowed["positional"][len(args) :], *allowed["named"]}, f"{name}: {kwargs}"


class Checked:
    """An object of pandas behind the names of a class of cudf."""

    owner = ""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __getattr__(self, name: str) -> Any:
        full = f"{self.owner}.{name}"
        assert full in RECORDED, f"cudf has no {full}, or it is not recorded"
        if RECORDED[full].get("property"):
            return wrapped(getattr(self.held, {"weekday": "day_of_week"}.get(name, name)))

        def call(*args: Any, **kwargs: Any) -> Any:
            check(full, args, kwargs)
            plain = [value.held if isinstance(value, Checked) else value for value in args]
            named = {
                key: value.held if isinstance(value, Checked) else value for key, value in kwargs.items()
            }
            return wrapped(getattr(self.held, name)(*plain, **named))

        return call


def wrapped(found: Any) -> Any:
    if isinstance(found, pd.Series):
        return Series.holding(found)
    return DataFrame.holding(found) if isinstance(found, pd.DataFrame) else found


class Strings(Checked):
    owner = "StringMethods"


class Times(Checked):
    owner = "DatetimeProperties"


class Series(Checked):
    owner = "Series"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        check("Series.__init__", args, kwargs)
        assert kwargs["nan_as_null"] is False, "NaN is a value"
        super().__init__(pd.Series(args[0].numpy()))

    @classmethod
    def holding(cls, held: pd.Series) -> Series:
        found = cls.__new__(cls)
        found.held = held
        return found

    @classmethod
    def from_arrow(cls, *args: Any, **kwargs: Any) -> Series:
        check("Series.from_arrow", args, kwargs)
        (array,) = args
        return cls.holding(pd.Series(pd.array(array.to_pylist(), dtype=TEXT)))

    def to_arrow(self, *args: Any, **kwargs: Any) -> pa.Array:
        check("Series.to_arrow", args, kwargs)
        return pa.array([None if pd.isna(value) else value for value in self.held], pa.large_string())

    def __len__(self) -> int:
        return len(self.held)

    @property
    def str(self) -> Strings:
        return Strings(self.held.str)

    @property
    def dt(self) -> Times:
        return Times(self.held.dt)

    @property
    def values(self) -> np.ndarray:
        assert not self.held.isna().any(), "cupy has no null"
        return np.array(self.held.tolist(), dtype=self.held.to_numpy().dtype if len(self.held) == 0 else None)


class DataFrame(Checked):
    owner = "DataFrame"

    def __init__(self, data: dict[str, Series]) -> None:
        super().__init__(pd.DataFrame({name: column.held for name, column in data.items()}))

    @classmethod
    def holding(cls, held: pd.DataFrame) -> DataFrame:
        found = cls.__new__(cls)
        found.held = held
        return found

    def __getitem__(self, name: str) -> Series:
        return Series.holding(self.held[name])

    def merge(self, *args: Any, **kwargs: Any) -> DataFrame:
        check("DataFrame.merge", args, kwargs)
        found = self.held.merge(args[0].held, **kwargs)
        return DataFrame.holding(found.iloc[::-1])


def concat(*args: Any, **kwargs: Any) -> Series:
    check("concat", args, kwargs)
    return Series.holding(pd.concat([series.held for series in args[0]], **kwargs))
