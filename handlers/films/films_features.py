"""Films as numbers: the one definition of the features, for training and for every runner.

Every value of a row is a function of that row and of constants computed once, offline, and kept in
``artifacts/features.json``: no statistics over the batch, no clock, no locale, no process time zone. The
arithmetic is element-wise float64, rounded once to float32; there is no exp and no log, whose last bit may
differ between machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["CURVES", "NUMBERS", "FilmFeatures"]

NUMBERS = ("year", "runtime_min", "metascore", "oscars")
"""Columns that become a scaled number each; the order is the features', whatever a file's order is."""

CURVES = ("reviews", "box_office_usd")
"""Columns with a long tail, which become a place between the training films' quantiles."""

_MICROSECONDS_PER_DAY = 86_400_000_000
_THURSDAY = 3
_SEQUEL = r"\b(?:[2-9]|II|III|IV|V|VI|Part|Returns?|Revenge|Chapter|Episode)\b"

_Numbers = NDArray[np.float64]
_Mask = NDArray[np.bool_]


class FilmFeatures:
    """Turns columns of films into a matrix of features.

    Args:
        constants: the content of ``artifacts/features.json``. ``numbers``: low, high, mean, std and the
            value of a missing one. ``curves``: knots and levels of a piecewise linear scale. ``categories``:
            the known values, in order. ``names``: what films of a known person or studio scored on average,
            relative to all films.
    """

    def __init__(self, constants: Mapping[str, Any]) -> None:
        self._numbers: dict[str, dict[str, float]] = constants["numbers"]
        self._curves: dict[str, tuple[_Numbers, _Numbers, float]] = {
            name: (np.array(curve["knots"]), np.array(curve["levels"]), float(curve["missing"]))
            for name, curve in constants["curves"].items()
        }
        self._categories: dict[str, list[str]] = constants["categories"]
        self._codes = {
            name: {value: code for code, value in enumerate(values)}
            for name, values in self._categories.items()
        }
        self._names: dict[str, dict[str, float]] = constants["names"]
        self.names: tuple[str, ...] = tuple(self._feature_names())
        """What each column of the matrix holds, in order."""

    def compute(self, columns: Mapping[str, pa.Array[Any]]) -> NDArray[np.float32]:
        """Return the features (rows, len(names)) of the films in ``columns``.

        The arrays are the handler's inputs in Arrow form, of one length; others are ignored. Missing values,
        NaN and infinities count as unknown; a category or a name that is not in the constants is "other".
        """
        found: list[_Numbers | _Mask] = []
        for name in NUMBERS:
            values, known = _read_numbers(columns[name])
            found += [self._scale(name, values, known), known]
        for name in CURVES:
            values, known = _read_numbers(columns[name])
            found += [self._bend(name, values, known), known]
        found += [_one_hot_dates(columns["released"])]
        found += [self._describe_title(columns["title"])]
        found += [self._one_hot("rating", columns["rating"])]
        for name in ("genres", "languages", "countries"):
            found += [self._many_hot(name, columns[name])]
        for name in ("directors", "cast"):
            found += [self._score_names(name, *_read_lists(columns[name]))]
        studio = columns["studio"]
        rows = np.flatnonzero(_valid(studio))
        found += [self._score_names("studio", studio.drop_null(), rows, len(studio))]
        return np.column_stack(found).astype(np.float32)

    def _feature_names(self) -> list[str]:
        """Return the names in the order in which ``compute`` builds the columns."""
        found: list[str] = []
        for name in (*NUMBERS, *CURVES):
            found += [name, f"{name} known"]
        found += [f"released in month {month}" for month in range(1, 13)]
        found += [f"released on {day}" for day in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")]
        found += ["title length", "title of a sequel"]
        found += [f"rating {value}" for value in (*self._categories["rating"], "other", "unknown")]
        for name in ("genres", "languages", "countries"):
            found += [f"{name} {value}" for value in (*self._categories[name], "other", "none")]
        for name in ("directors", "cast", "studio"):
            found += [f"{name} score", f"{name} known"]
        return found

    def _scale(self, name: str, values: _Numbers, known: _Mask) -> _Numbers:
        constants = self._numbers[name]
        clipped = np.clip(values, constants["low"], constants["high"])
        filled = np.where(known, clipped, constants["missing"])
        return (filled - constants["mean"]) / constants["std"]

    def _bend(self, name: str, values: _Numbers, known: _Mask) -> _Numbers:
        knots, levels, missing = self._curves[name]
        return np.where(known, np.interp(values, knots, levels), missing)

    def _describe_title(self, titles: pa.Array[Any]) -> _Numbers:
        length = pc.utf8_length(_compose(titles)).to_numpy(zero_copy_only=False)
        sequel = pc.match_substring_regex(titles, _SEQUEL).to_numpy(zero_copy_only=False)
        return np.stack([np.minimum(length, 60) / 60.0, sequel.astype(np.float64)], axis=1)

    def _one_hot(self, name: str, values: pa.Array[Any]) -> _Numbers:
        """Return one column for each known category, one for all others, one for null."""
        codes = self._codes[name]
        encoded = np.full(len(values), len(codes) + 1)
        encoded[_valid(values)] = _look_up(values.drop_null(), codes, len(codes), np.int64)
        return (encoded[:, None] == np.arange(len(codes) + 2)).astype(np.float64)

    def _many_hot(self, name: str, lists: pa.Array[Any]) -> _Numbers:
        """Return one column for each known category, one for any other, one for an empty or null list."""
        values, rows, count = _read_lists(lists)
        codes = self._codes[name]
        found = np.zeros((count, len(codes) + 2))
        found[:, -1] = 1.0
        found[rows, -1] = 0.0
        found[rows, _look_up(values, codes, len(codes), np.int64)] = 1.0
        return found

    def _score_names(self, name: str, values: pa.Array[Any], rows: NDArray[np.int64], count: int) -> _Numbers:
        """Return the mean score of each row's known names (0 without any), and whether there is one.

        Names are compared in Unicode form NFC: sources spell one name with composed and decomposed accents.
        """
        scores = _look_up(_compose(values), self._names[name], np.nan, np.float64)
        known = ~np.isnan(scores)
        many = np.bincount(rows[known], minlength=count)
        total = np.bincount(rows[known], weights=scores[known], minlength=count)
        return np.stack([total / np.maximum(many, 1), (many > 0).astype(np.float64)], axis=1)


def _valid(values: pa.Array[Any]) -> _Mask:
    """Return which values are not null."""
    return np.asarray(values.is_valid())


def _compose(texts: pa.Array[Any]) -> pa.StringArray:
    """Return the texts in Unicode form NFC: accents composed with their letters."""
    return pc.utf8_normalize(texts, form="NFC")  # pyright: ignore[reportAttributeAccessIssue] - stubs lack it


def _read_numbers(values: pa.Array[Any]) -> tuple[_Numbers, _Mask]:
    """Return the values as float64, 0 where unknown, and which ones are known: not null and finite."""
    numbers = np.asarray(values.fill_null(0)).astype(np.float64)
    known = _valid(values) & np.isfinite(numbers)
    return np.where(known, numbers, 0.0), known


def _read_lists(lists: pa.Array[Any]) -> tuple[pa.Array[Any], NDArray[np.int64], int]:
    """Return the items of all lists one after the other, the row of each, and the number of rows."""
    return pc.list_flatten(lists), np.asarray(pc.list_parent_indices(lists)).astype(np.int64), len(lists)


def _one_hot_dates(instants: pa.Array[Any]) -> _Numbers:
    """Return one column for each month and weekday in UTC, whatever zone the process is in; 0 for null.

    Days are counted by floor division: an instant before 1970 falls on its own day, not on the next.
    """
    known = _valid(instants)
    microseconds = np.asarray(instants.cast(pa.int64()).fill_null(0))
    days = microseconds // _MICROSECONDS_PER_DAY
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    weekdays = (days + _THURSDAY) % 7
    hot = [months[:, None] == np.arange(12), weekdays[:, None] == np.arange(7)]
    return np.concatenate(hot, axis=1).astype(np.float64) * known[:, None]


def _look_up(
    values: pa.Array[Any], table: Mapping[str, float], missing: float, dtype: type[np.generic]
) -> NDArray[Any]:
    """Return what ``table`` holds for each of the values, none of which is null."""
    encoded = values.dictionary_encode()
    distinct = cast("list[str]", encoded.dictionary.to_pylist())
    found = np.array([table.get(value, missing) for value in distinct], dtype=dtype)
    return found[np.asarray(encoded.indices)]
