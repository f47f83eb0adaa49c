"""Numbers and dates that are spelled, packed or stored in another way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow.types as pat

from parity.stages import Value
from parity.triage.case import Case, Change, Explained, Finding, Refuted, Suspect, numbers
from parity.triage.causes.texts import with_texts

_DATE: Final = re.compile(r"(?<!\d)(\d{1,2})([/.-])(\d{1,2})(?=[/.-])")


# Numbers in texts.

_SPELLINGS: Final[dict[str, Callable[[str], str]]] = {
    "the comma read as the decimal point": lambda text: text.replace(".", "").replace(",", "."),
    "points left out": lambda text: text.replace(".", ""),
    "commas left out": lambda text: text.replace(",", ""),
    "points and commas swapped": lambda text: text.translate({ord("."): ",", ord(","): "."}),
    "blanks left out": lambda text: "".join(text.split()),
}


def number_format(case: Case) -> Finding:
    """Texts with points and commas, spelled in another way and asked again."""
    columns = [
        name
        for name in _text_columns(case)
        if any(re.search(r"\d[.,\s]\d", text or "") for text in _texts(case, name))
    ]
    if not columns:
        return None
    for name in columns:
        texts = _texts(case, name)
        for words, spelled in _SPELLINGS.items():
            changed = {row for row, text in enumerate(texts) if text is not None and spelled(text) != text}
            if not set(case.failing) <= changed:
                continue
            count = case.given(lambda rows, name=name, spelled=spelled: with_texts(rows, name, spelled))
            if count is not None:
                return Explained(
                    f"with {words} in {name!r}, this handler gives the other side's values on all {count} "
                    "differing rows"
                )
        if _thousandfold(case, texts):
            return Explained(
                f"the numbers of the two sides are a power of a thousand apart wherever {name!r} holds a "
                "point or comma"
            )
    return Refuted("no other reading of points and commas gives the other side")


def _thousandfold(case: Case, texts: list[str | None]) -> bool:
    rows = list(case.failing)
    if not rows or any(re.search(r"\d[.,]\d", texts[row] or "") is None for row in rows):
        return False
    for item in case.values:
        one, other = numbers(item.expected, rows), numbers(item.obtained, rows)
        if one is None or other is None or one.shape != other.shape or (one == 0).any():
            continue
        with np.errstate(all="ignore"):
            power = np.log10(np.abs(other / one)) / 3
        if np.isfinite(power).all() and np.allclose(power, np.round(power), atol=1e-6) and (power != 0).all():
            return True
    return False


# Dates in texts.


def date_order(case: Case) -> Finding:
    """Texts that hold dates whose day and month can be swapped; these swapped and asked again."""
    for name in _text_columns(case):
        texts = _texts(case, name)
        ambiguous = {row for row, text in enumerate(texts) if text is not None and _ambiguous(text)}
        if not ambiguous or not set(case.failing) <= ambiguous:
            continue
        count = case.given(lambda rows, name=name: with_texts(rows, name, _day_and_month_swapped))
        if count is not None:
            return Explained(
                f"only rows differ whose {name!r} can be read with the day or the month first; with these "
                f"swapped, this handler gives the other side's values on all {count} of them"
            )
        if set(case.failing) == ambiguous and len(texts) - len(ambiguous) >= 3:
            return Explained(
                f"exactly the {len(ambiguous)} rows differ whose {name!r} can be read with the day or the "
                "month first"
            )
        return Refuted("with day and month swapped this handler does not give the other side")
    return None


def _ambiguous(text: str) -> bool:
    found = _DATE.search(text)
    return found is not None and found[1] != found[3] and max(int(found[1]), int(found[3])) <= 12


def _day_and_month_swapped(text: str) -> str:
    return _DATE.sub(lambda found: f"{found[3]}{found[2]}{found[1]}", text) if _ambiguous(text) else text


# Bytes.

_PACKED: Final = ("u2", "i2", "u4", "i4", "f4", "u8", "i8", "f8")


def byte_order(case: Case) -> Finding:
    """One side's numbers with their bytes turned round."""
    if not case.values:
        return None
    for dtype in _PACKED:
        found = case.removed_by(_swapped(dtype))
        if found is not None:
            return Explained(
                f"with the bytes of each {np.dtype(dtype)} turned round, the values {found.words}"
            )
    binary = any(
        pat.is_binary(field.type) or pat.is_large_binary(field.type) for field in case.divergence.rows.schema
    )
    return Refuted("turned round, the bytes of one side are not the other's") if binary else None


def _swapped(dtype: str) -> Change:
    def change(value: Value) -> Value | None:
        if value.dtype.kind not in "iuf" or (np.dtype(dtype).kind == "f") != (value.dtype.kind == "f"):
            return None
        with np.errstate(all="ignore"):
            narrow = value.astype(dtype)
            if not np.array_equal(narrow.astype(value.dtype), value, equal_nan=value.dtype.kind == "f"):
                return None
            return narrow.byteswap()

    return change


def denormals(case: Case) -> Finding:
    """Numbers too small for the normal range on one side, zero on the other."""
    tried = False
    for item in case.values:
        rows = case.rows_of(item)
        first = item.expected[rows[0]] if rows else None
        if first is None or first.dtype.kind != "f" or not case.covers(item):
            continue
        one, other = numbers(item.expected, rows), numbers(item.obtained, rows)
        if one is None or other is None or one.shape != other.shape:
            continue
        tried = True
        differs = one != other
        for name, small, flushed in (("obtained", one, other), ("expected", other, one)):
            for dtype in (str(first.dtype), "float32", "float16"):
                least = float(np.finfo(dtype).tiny)
                tiny = np.abs(small[differs]) < least
                if differs.any() and (flushed[differs] == 0).all() and tiny.all():
                    return Explained(
                        f"wherever {item.place} differs, on {len(rows)} rows, it is 0 on the {name} side and "
                        f"smaller than {least:.3g}, the least normal {dtype}, on the other"
                    )
    return (
        Refuted("the differing values are not all smaller than the least normal number")
        if (tried and _has_tiny_inputs(case))
        else None
    )


def _has_tiny_inputs(case: Case) -> bool:
    least = float(np.finfo(np.float32).tiny)
    for values in case.inputs.values():
        for value in values:
            if value is not None and value.dtype.kind == "f":
                sizes = np.abs(value.astype(np.float64))
                if ((sizes > 0) & (sizes < least)).any():
                    return True
    return False


def _text_columns(case: Case) -> list[str]:
    return [field.name for field in case.divergence.rows.schema if pat.is_string(field.type)]


def _texts(case: Case, name: str) -> list[str | None]:
    values: list[Any] = case.divergence.rows.column(name).to_pylist()
    return values


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "number-format",
        "points and commas in numbers are read in another way on one side",
        "texts with the comma as the decimal point, without points, without commas, with both swapped, "
        "asked again",
        "declare numbers as numbers; parse texts by one written rule, never by the locale",
        number_format,
        ("path", "process"),
    )
    yield Suspect(
        "date-order",
        "dates are read with the day first on one side and with the month first on the other",
        "whether only rows differ whose dates can be read both ways; these swapped, asked again",
        "declare Date or Timestamp, or parse by one format: datetime.strptime(text, '%d/%m/%Y')",
        date_order,
        ("path", "process"),
    )
    yield Suspect(
        "byte-order",
        "packed numbers are read with the other byte order",
        "one side's numbers with their bytes turned round, for every width",
        "write the order into the dtype: np.frombuffer(data, '<f4')",
        byte_order,
    )
    yield Suspect(
        "denormals",
        "numbers below the normal range are flushed to zero on one side",
        "whether every differing value is zero on one side and below the least normal number on the other",
        "torch.set_flush_denormal as on the other side; add a floor before logarithms",
        denormals,
    )


SUSPECTS: Final = tuple(_suspects())
