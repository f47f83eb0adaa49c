"""Texts against texts: the declared normalisations, how many edits apart, and where they part."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

CONTEXT = 12
"""Characters shown before and after the place where two texts part."""

MAX_COUNTED = 2_000
"""Characters of a text up to which a report counts the edits."""


def normal_texts(values: pa.Array[Any], forms: Sequence[str]) -> pa.Array[Any]:
    """The strings after the normalisations `forms`, in the order given."""
    for form in forms:
        if form in ("NFC", "NFKC"):
            values = cast("Any", pc).utf8_normalize(values, form=form)
        elif form == "strip":
            values = cast("Any", pc.utf8_trim_whitespace(values))
        elif form == "newlines":
            values = cast("Any", pc.replace_substring_regex(values, pattern="\r\n?", replacement="\n"))
        else:
            values = pa.array([_normal(str(text), form) for text in values.to_pylist()], values.type)
    return values


def edits_apart(one: str, other: str) -> int:
    """The least number of characters to insert, delete or replace that turns one text into the other.

    Levenshtein's distance by the bit-parallel algorithm of Hyyrö (2003), one step for each character.
    """
    start = _shared(one, other)
    one, other = one[start:], other[start:]
    end = _shared(one[::-1], other[::-1])
    one, other = (text[: len(text) - end] for text in (one, other))
    if not one or not other:
        return len(one) + len(other)
    places: dict[str, int] = {}
    for place, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << place
    last, everything = 1 << (len(one) - 1), (1 << len(one)) - 1
    more, less, distance = everything, 0, len(one)
    for character in other:
        equal = places.get(character, 0)
        diagonal = (((equal & more) + more) ^ more) | equal | less
        up, down = less | ~(diagonal | more) & everything, more & diagonal
        distance += bool(up & last) - bool(down & last)
        up = up << 1 | 1
        more, less = (down << 1 | ~(diagonal | up)) & everything, up & diagonal & everything
    return distance


def edits_between(expected: pa.Array[Any], obtained: pa.Array[Any]) -> npt.NDArray[np.float64]:
    """How many edits each pair of strings is apart."""
    known: dict[tuple[str, str], int] = {}
    found = np.empty(len(expected))
    for place, sides in enumerate(zip(expected.to_pylist(), obtained.to_pylist(), strict=True)):
        pair = str(sides[0]), str(sides[1])
        if pair not in known:
            known[pair] = edits_apart(*pair)
        found[place] = known[pair]
    return found


def place_of_difference(expected: object, obtained: object, forms: Sequence[str] = ()) -> str:
    """Where two texts part, with the text around it and the number of edits; empty for other values.

    Where both are still unlike after the normalisations `forms`, the place is the first in what they made.
    """
    if not (isinstance(expected, str) and isinstance(obtained, str)) or expected == obtained:
        return ""
    after = ""
    if forms:
        one, other = (
            str(normal_texts(pa.array([text], pa.large_string()), forms)[0].as_py())
            for text in (expected, obtained)
        )
        if one != other:
            expected, obtained, after = one, other, f" after {', '.join(forms)}"
    at = _shared(expected, obtained)
    edits = ""
    if max(len(expected), len(obtained)) <= MAX_COUNTED:
        count = edits_apart(expected, obtained)
        edits = f"; {count} edit{'s' if count > 1 else ''} apart"
    characters = f"{_character(expected, at)}, obtained {_character(obtained, at)}"
    return f"{after} at character {at} ({characters}) in {_around(expected, at)}{edits}"


def _shared(one: str, other: str) -> int:
    """The length of the longest common beginning."""
    if one == other:
        return len(one)
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _around(text: str, at: int) -> str:
    before, after = text[max(0, at - CONTEXT) : at], text[at : at + CONTEXT]
    dots = "…" if at > CONTEXT else "", "…" if len(text) > at + CONTEXT else ""
    return repr(f"{dots[0]}{before}|{after}{dots[1]}")


def _character(text: str, at: int) -> str:
    if at >= len(text):
        return "the end"
    name = unicodedata.name(text[at], "unnamed")
    return f"{text[at]!r} U+{ord(text[at]):04X} {name}"


def _normal(text: str, form: str) -> str:
    return text.casefold() if form == "casefold" else " ".join(text.split())
