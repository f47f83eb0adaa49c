"""Normal forms, lengths and encodings of texts."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from parity.stages import Value
from parity.triage.case import Case, Explained, Finding, Refuted, Suspect, Values
from parity.triage.values import Pair

TextChange = Callable[[str], str]


def _spaces(text: str) -> str:
    """Any white space, non-breaking too, as one blank between words."""
    return " ".join(text.split())


def _breaking(text: str) -> str:
    return text.replace("\u00a0", " ").replace("\u202f", " ")


def _form(form: str) -> TextChange:
    return lambda text: unicodedata.normalize(cast("Any", form), text)


def _without_accents(text: str) -> str:
    return "".join(
        letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter)
    )


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _without_marks(text: str) -> str:
    return "".join(letter for letter in text if letter not in "\ufeff\u200b\u200c\u200d\u00ad")


FORMS: Final[dict[str, TextChange]] = {
    "strip()": str.strip,
    "non-breaking spaces as blanks": _breaking,
    "lower()": str.lower,
    "casefold()": str.casefold,
    "NFC": _form("NFC"),
    "NFKC": _form("NFKC"),
    "line ends as \\n": _newlines,
    "without invisible characters": _without_marks,
    "white space as single blanks": _spaces,
    "without accents": _without_accents,
}
"""Normal forms by name, mild ones first."""

_UNCHANGED: Final = 3
"""Rows that a form must leave alone, for the others to tell."""

_CASES: Final = ("lower()", "casefold()")


def _all_forms(text: str) -> str:
    return _spaces(_form("NFKC")(_without_marks(text)).casefold())


def texts_of(value: Value | None) -> list[str] | None:
    """The texts in a value, one for a text, several for a list; None where it holds no text."""
    if value is None or value.dtype.kind not in "US":
        return None
    if value.ndim:
        return [str(item) for item in value.ravel().tolist()]
    text = str(value[()])
    if text[:1] in "[{":
        try:
            return _strings(json.loads(text))
        except ValueError:
            pass
    return [text]


def _strings(data: object) -> list[str]:
    if isinstance(data, dict):
        data = list(cast("dict[str, object]", data).values())
    if isinstance(data, list):
        return [text for item in cast("list[object]", data) for text in _strings(item)]
    return [str(data)]


def _text_pairs(case: Case) -> list[Pair]:
    return [
        item
        for item in case.values
        if case.covers(item)
        and all(
            texts_of(side[row]) is not None
            for row in case.rows_of(item)[:1]
            for side in (item.expected, item.obtained)
        )
    ]


def _pairs_of_texts(case: Case, item: Pair) -> list[tuple[list[str], list[str]]]:
    return [
        (texts_of(item.expected[row]) or [], texts_of(item.obtained[row]) or []) for row in case.rows_of(item)
    ]


def text_normalisation(case: Case) -> Finding:
    """Texts equal in a normal form; or only rows differ whose texts such a form changes."""
    pairs = _text_pairs(case)
    for item in pairs:
        both = _pairs_of_texts(case, item)
        for name, form in {**FORMS, "all of these together": _all_forms}.items():
            lists = all(
                _is_list(item.expected[row]) and _is_list(item.obtained[row]) for row in case.rows_of(item)
            )
            if both and all(_equal(one, other, form, lists=lists) for one, other in both):
                return Explained(
                    f"after {name}, {item.place} is equal on {len(both)} of {len(both)} differing rows",
                    _sentence(name),
                )
    found = _by_input(case)
    if found is not None:
        return found
    return Refuted("the texts differ in every normal form") if pairs or _text_columns(case) else None


def _sentence(name: str) -> str:
    what = "letters" if name in _CASES else "texts"
    return f"one side normalises {what} ({name}), the other does not or in another way"


def _is_list(value: Value | None) -> bool:
    return value is not None and (value.ndim > 0 or str(value[()]).startswith("["))


def _equal(one: list[str], other: list[str], form: TextChange, *, lists: bool) -> bool:
    """Whether two texts are one after a form; white space may have cut lists of words differently."""
    if len(one) == len(other):
        return [form(text) for text in one] == [form(text) for text in other]
    return lists and _spaces(form(" ".join(one))) == _spaces(form(" ".join(other)))


def _text_columns(case: Case) -> list[str]:
    schema = case.divergence.rows.schema
    return [field.name for field in schema if pat.is_string(field.type) or pat.is_large_string(field.type)]


def _column_texts(case: Case, name: str) -> list[str | None]:
    return cast("list[str | None]", case.divergence.rows.column(name).to_pylist())


def _by_input(case: Case) -> Explained | None:
    """Only rows differ that a form changes, and asked in that form the handler tells on which side it is."""
    failing = set(case.failing)
    tried: list[tuple[str, str, TextChange, set[int], int]] = []
    for column in _text_columns(case):
        texts = _column_texts(case, column)
        for name, form in FORMS.items():
            changed = {row for row, text in enumerate(texts) if text is not None and form(text) != text}
            if failing <= changed:
                tried.append((column, name, form, changed, len(texts)))
    for column, name, form, _, _ in tried:
        count = case.given(lambda rows, column=column, form=form: with_texts(rows, column, form))
        if count is not None:
            return Explained(
                f"only rows differ whose {column!r} changes under {name}; given the text so normalised, this "
                f"handler gives the other side's values on all {count} of them",
                _sentence(name),
            )
    for column, name, form, changed, total in tried:
        if failing != changed or total - len(changed) < _UNCHANGED:
            continue
        same = case.indifferent(lambda rows, column=column, form=form: with_texts(rows, column, form))
        if same is not None or case.trials is None:
            apart = "" if same is None else "; this handler does not tell them from the text so normalised"
            return Explained(
                f"exactly the {len(changed)} rows differ whose {column!r} changes under {name}{apart}",
                _sentence(name),
            )
    return None


def with_texts(rows: pa.Table, column: str, form: TextChange) -> pa.Table:
    """The rows with a function applied to the texts of a column."""
    place = rows.schema.get_field_index(column)
    field = rows.schema.field(place)
    values = [None if text is None else form(text) for text in rows.column(column).to_pylist()]
    return rows.set_column(place, field, pa.array(values, field.type))


# Lengths.


def truncation(case: Case) -> Finding:
    """One side's texts or sequences are the beginnings of the other's, all of one length."""
    tried = False
    for item in case.values:
        if not case.covers(item):
            continue
        rows = case.rows_of(item)
        both = [_sequences(item.expected[row], item.obtained[row]) for row in rows]
        if not both or any(pair is None for pair in both):
            continue
        tried = True
        for name, sides in {"expected": (0, 1), "obtained": (1, 0)}.items():
            pairs = [(pair[sides[0]], pair[sides[1]]) for pair in both if pair is not None]
            found = _cut(pairs)
            if found is not None:
                length, ending = found
                return Explained(
                    f"{item.place} on the {name} side is the {ending} of the other side's, cut at {length}, "
                    f"on {len(pairs)} of {len(pairs)} differing rows",
                    f"the {name} side keeps {length} only",
                )
    return Refuted("neither side is the beginning or end of the other") if tried else None


def _sequences(one: Value | None, other: Value | None) -> tuple[Sequence[Any], Sequence[Any]] | None:
    if one is None or other is None:
        return None
    if one.ndim == other.ndim == 0 and one.dtype.kind == other.dtype.kind == "U":
        lists = _lists(str(one[()])), _lists(str(other[()]))
        return lists if lists[0] is not None and lists[1] is not None else (str(one[()]), str(other[()]))  # pyright: ignore
    if one.ndim >= 1 and one.ndim == other.ndim and one.shape[1:] == other.shape[1:]:
        return one.tolist(), other.tolist()
    return None


def _lists(text: str) -> list[Any] | None:
    if not text.startswith("["):
        return None
    try:
        data = json.loads(text)
    except ValueError:
        return None
    return cast("list[Any]", data) if isinstance(data, list) else None


def _cut(pairs: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> tuple[str, str] | None:
    """How the first of each pair is cut from the second; None where it is not, always at one length."""
    for ending in ("beginning", "end"):
        if all(
            len(short) < len(long)
            and (
                long[: len(short)] == short
                if ending == "beginning"
                else long[len(long) - len(short) :] == short
            )
            and _tells(short)
            for short, long in pairs
        ):
            unit = "characters" if isinstance(pairs[0][0], str) else "items"
            lengths = {len(short) for short, _ in pairs}
            if len(lengths) == 1:
                return f"{lengths.pop()} {unit}", ending
            words = {len(short.split()) for short, _ in pairs if isinstance(short, str)}
            if len(words) == 1 and all(_at_a_blank(short, long, ending) for short, long in pairs):
                count = words.pop()
                return f"{count} word{'s' if count > 1 else ''}", ending
            texts = [
                (short, long) for short, long in pairs if isinstance(short, str) and isinstance(long, str)
            ]
            if texts and all(_fills(short, long, max(lengths), ending) for short, long in texts):
                return f"{max(lengths)} characters", ending
            size = max((len(short.encode()) for short, _ in texts), default=0)
            if texts and all(_fills_bytes(short, long, size) for short, long in texts):
                return f"{size} bytes", ending
    return _padded(pairs)


def _fills(short: str, long: str, length: int, ending: str) -> bool:
    """Whether a text is as long as others that were cut, but for the blanks at the cut."""
    missing = length - len(short)
    gone = (
        long[len(short) :][:missing] if ending == "beginning" else long[: len(long) - len(short)][-missing:]
    )
    return missing == 0 or (len(gone) == missing and gone.isspace())


def _fills_bytes(short: str, long: str, size: int) -> bool:
    """Whether one letter more would be more bytes than others have that were cut."""
    length = len(short.encode())
    return length == size or length + len(long[len(short)].encode()) > size


def _tells(kept: Sequence[Any]) -> bool:
    """Whether a beginning says more than that it is one: a single zero or one is the beginning of much."""
    return len(kept) > 2 or any(item not in (0, 1, -1, False, True) for item in kept)


def _at_a_blank(short: Sequence[Any], long: Sequence[Any], ending: str) -> bool:
    edge = long[len(short)] if ending == "beginning" else long[len(long) - len(short) - 1]
    return isinstance(edge, str) and edge.isspace()


def _padded(pairs: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> tuple[str, str] | None:
    """Sequences of one length, of which the first holds filling from one place on."""
    lengths = {len(part) for pair in pairs for part in pair}
    if len(lengths) != 1 or any(isinstance(part, str) for pair in pairs for part in pair):
        return None
    places: set[int] = set()
    for short, long in pairs:
        equal = next((place for place in range(len(short)) if short[place] != long[place]), len(short))
        filling = short[equal:]
        if (
            len(filling) < 1
            or any(item != filling[0] for item in filling)
            or filling[0] not in (0, 0.0, "", 1, -1)
        ):
            return None
        if len(filling) == 1 and len(pairs) < 2:
            return None
        places.add(equal)
    if len(places) != 1 or places == {0}:
        return None
    return f"{places.pop()} items", "beginning"


# Encodings.


_ENCODINGS: Final = (("latin-1", "utf-8"), ("cp1252", "utf-8"), ("cp437", "utf-8"), ("cp1252", "latin-1"))


def text_encoding(case: Case) -> Finding:
    """One side's texts, encoded again in another encoding, are the other's."""
    pairs = _text_pairs(case)
    for item in pairs:
        both = _pairs_of_texts(case, item)
        for wrong, right in _ENCODINGS:
            for name, (first, second) in {"obtained": (1, 0), "expected": (0, 1)}.items():
                if both and all(
                    [_reread(text, wrong, right) for text in pair[first]] == pair[second] for pair in both
                ):
                    return Explained(
                        f"{item.place} on the {name} side, written as {wrong} and read as {right}, equals "
                        f"the other side on {len(both)} of {len(both)} differing rows",
                        f"the {name} side reads bytes as {wrong} that are {right}",
                    )
    return Refuted("no change of encoding takes one side's texts to the other's") if pairs else None


def _reread(text: str, wrong: str, right: str) -> str | None:
    try:
        return text.encode(wrong).decode(right, "replace")
    except UnicodeError:
        return None


def text_values(values: Values, rows: Sequence[int]) -> list[str] | None:
    """The single texts of some rows; None where one has none."""
    found: list[str] = []
    for row in rows:
        value = values[row]
        if value is None or value.ndim or value.dtype.kind not in "US":
            return None
        found.append(str(value[()]))
    return found


def floats_of(texts: Sequence[str]) -> np.ndarray[Any, Any] | None:
    """The numbers that the texts spell; None where one spells none."""
    try:
        return np.asarray([float(text) for text in texts])
    except ValueError:
        return None


def _suspects() -> Iterator[Suspect]:
    yield Suspect(
        "text-normalisation",
        "texts are brought to another normal form on one side: case, accents, white space",
        "both sides after strip, lower, casefold, NFC, NFKC, single blanks and others; whether only rows "
        "differ that such a form changes; these in that form, asked again",
        "normalise in preprocess, once: unicodedata.normalize('NFC', text).casefold(), and ' "
        "'.join(text.split())",
        text_normalisation,
        ("path", "process"),
    )
    yield Suspect(
        "truncation",
        "one side keeps the beginning of texts or sequences only",
        "whether one side is the beginning or end of the other, at one length on all rows",
        "declare max_length in the schema, and cut in preprocess only",
        truncation,
        ("path", "company"),
    )
    yield Suspect(
        "text-encoding",
        "bytes are read in another encoding on one side",
        "one side encoded again as latin-1, cp1252 and cp437, and read as UTF-8",
        "name the encoding where bytes become texts: data.decode('utf-8')",
        text_encoding,
        ("path", "process"),
    )


SUSPECTS: Final = tuple(_suspects())
