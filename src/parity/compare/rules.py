"""The rules a column may be judged by, as frozen data.

A rule says when two values count as the same; the code that applies it is in `floats`, `texts` and `lists`.
Every rule but `Ignore` may carry a row budget: `rows` is the fraction of rows that may fail, and needs a
`reason`. No rule passes by an average: the worst element of a row decides for the row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import ClassVar, Literal, cast

from parity.errors import ConfigError, did_you_mean, shown

TextForm = Literal["NFC", "NFKC", "strip", "spaces", "newlines", "casefold"]
TEXT_FORMS: tuple[TextForm, ...] = ("NFC", "NFKC", "strip", "spaces", "newlines", "casefold")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What all rules share: the fraction of rows that may fail, and why."""

    kind: ClassVar[str] = ""
    rows: float = 0.0
    reason: str = ""

    def __post_init__(self) -> None:
        _number(self, "rows")
        if self.rows >= 1:
            raise ConfigError(
                f"rows = {self.rows} lets every row fail; give a fraction below 1, such as 0.0001"
            )
        if self.rows and not self.reason.strip():
            raise ConfigError(f'rows = {self.rows} lets rows fail without saying why; add reason = "..."')

    def to_dict(self) -> dict[str, object]:
        """The rule as a tolerance table would spell it: its kind, and what is not the default."""
        given: dict[str, object] = {"kind": self.kind}
        for option in fields(self):
            value = getattr(self, option.name)
            if value != option.default:
                given[option.name] = (
                    list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
                )
        return given

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, kw_only=True)
class Bits(Rule):
    """The same bits: unlike `Exact`, -0.0 is not 0.0, and a NaN has a payload."""

    kind: ClassVar[str] = "bits"


@dataclass(frozen=True, kw_only=True)
class Exact(Rule):
    """Equal values; -0.0 equals 0.0, NaN equals NaN.

    Null equals null only, unless `nulls="nan"` says that it also equals NaN, as where one side has been a
    frame that has no null.
    """

    kind: ClassVar[str] = "exact"
    nulls: Literal["distinct", "nan"] = "distinct"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_nulls(self.nulls)


@dataclass(frozen=True, kw_only=True)
class Close(Rule):
    """Floats no further apart than `ulp` units in the last place, or than `atol + rtol * scale`.

    The scale of an element is max(|expected|, median |expected| of the column), or |expected| alone with
    `scale="element"`. An element passes when either bound holds. Infinities must match in sign, NaN in place;
    `nulls` as in `Exact`.
    """

    kind: ClassVar[str] = "close"
    rtol: float = 0.0
    atol: float = 0.0
    ulp: float = 0.0
    scale: Literal["column", "element"] = "column"
    nulls: Literal["distinct", "nan"] = "distinct"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_nulls(self.nulls)
        for name in ("rtol", "atol", "ulp"):
            _number(self, name)
        if self.scale not in ("column", "element"):
            raise ConfigError(f"scale = {self.scale!r} is not a scale; expected 'column' or 'element'")
        if not (self.rtol or self.atol or self.ulp):
            raise ConfigError(
                "kind = 'close' without rtol, atol or ulp allows nothing; give one, or use kind = 'exact'"
            )

    def __str__(self) -> str:
        bounds = [f"{self.ulp:g} ulp"] if self.ulp else []
        if self.rtol or self.atol:
            bounds.append(" + ".join(f"{name} {value:g}" for name, value in self._tolerances() if value))
        return f"{' or '.join(bounds)} at {self.scale} scale"

    def _tolerances(self) -> list[tuple[str, float]]:
        return [("rtol", self.rtol), ("atol", self.atol)]


@dataclass(frozen=True, kw_only=True)
class Label(Rule):
    """The same class: equal scalars, or for a list or tensor of scores the same position of the largest.

    A flip passes, and is counted, where the two contenders' expected scores lie within `tie`.
    """

    kind: ClassVar[str] = "label"
    tie: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _number(self, "tie")

    def __str__(self) -> str:
        return f"label, ties within {self.tie:g}" if self.tie else "label"


@dataclass(frozen=True, kw_only=True)
class TopK(Rule):
    """The same first `k` entries; entries whose expected scores lie within `tie` may swap.

    A list or tensor of floats is ranked by its own values. A list of labels is taken as already ranked;
    `scores` names the column that holds its scores, without which nothing counts as tied.
    """

    kind: ClassVar[str] = "topk"
    k: int = 5
    tie: float = 0.0
    scores: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        _number(self, "tie")
        _count(self, "k", 1)

    def __str__(self) -> str:
        return f"top {self.k}, ties within {self.tie:g}"


@dataclass(frozen=True, kw_only=True)
class Cosine(Rule):
    """Vectors of one direction (cosine at least `least`) and length (norms within `norm_rtol`)."""

    kind: ClassVar[str] = "cosine"
    least: float = 0.9999
    norm_rtol: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        _number(self, "norm_rtol")
        _number(self, "least")
        if self.least > 1:
            raise ConfigError(f"least = {self.least} is no cosine; expected 0 to 1")

    def __str__(self) -> str:
        return f"cosine >= {self.least:g}, norm within {self.norm_rtol:g}"


@dataclass(frozen=True, kw_only=True)
class Text(Rule):
    """Equal strings after the named normalisations, applied in the order given.

    With `edits`, strings that so many insertions, deletions and replacements of a character turn into one
    another pass too.
    """

    kind: ClassVar[str] = "text"
    normalize: tuple[TextForm, ...] = ("NFC", "strip")
    edits: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "normalize", tuple(self.normalize))
        _count(self, "edits", 0)
        for form in self.normalize:
            if form not in TEXT_FORMS:
                raise ConfigError(f"normalize = {form!r} is unknown; {did_you_mean(str(form), TEXT_FORMS)}")

    def __str__(self) -> str:
        apart = f", {self.edits} edits" if self.edits else ""
        return f"text after {', '.join(self.normalize)}{apart}" if self.normalize else f"text{apart}"


@dataclass(frozen=True, kw_only=True)
class SetLike(Rule):
    """Lists with the same members in any order; with `multiset`, as often."""

    kind: ClassVar[str] = "set"
    multiset: bool = False

    def __str__(self) -> str:
        return "multiset" if self.multiset else "set"


@dataclass(frozen=True, kw_only=True)
class Pixels(Rule):
    """Images of uint8 of which no value is further apart than `lsb`, at `psnr` decibels or more.

    A list or tensor of uint8 is one image. The peak signal-to-noise ratio decides only beside `lsb`.
    """

    kind: ClassVar[str] = "pixels"
    lsb: int = 1
    psnr: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _count(self, "lsb", 0)
        _number(self, "psnr")

    def __str__(self) -> str:
        return f"pixels within {self.lsb}" + (f", PSNR >= {self.psnr:g} dB" if self.psnr else "")


@dataclass(frozen=True, kw_only=True)
class Ignore(Rule):
    """Values not compared, for a reason that reports show; name and type still are."""

    kind: ClassVar[str] = "ignore"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.reason.strip():
            raise ConfigError("kind = 'ignore' needs a reason, which reports show; add reason = \"...\"")
        if self.rows:
            raise ConfigError("kind = 'ignore' compares no rows, so rows has no meaning; remove it")

    def __str__(self) -> str:
        return f"ignored: {self.reason}"


KINDS: Mapping[str, type[Rule]] = {
    kind.kind: kind for kind in (Bits, Exact, Close, Label, TopK, Cosine, Text, SetLike, Pixels, Ignore)
}


def rule_from_mapping(table: object, where: str) -> Rule:
    """The rule a tolerance table spells, such as {"kind": "close", "ulp": 64}.

    Raises ConfigError naming `where` for an unknown kind or key, or a value the rule refuses.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f'{where} is {shown(table)}; expected a table such as {{kind = "close", ulp = 64}}')
    given = {str(name): value for name, value in cast("Mapping[object, object]", table).items()}
    kind = given.pop("kind", None)
    if not isinstance(kind, str):
        raise ConfigError(f"{where} has no kind; expected one of {', '.join(KINDS)}")
    if kind not in KINDS:
        raise ConfigError(f"{where}: kind = {kind!r} is unknown; {did_you_mean(kind, KINDS)}")
    known = {option.name: option.default for option in fields(KINDS[kind])}
    for name, value in given.items():
        if name not in known:
            raise ConfigError(
                f"{where}: key {name!r} is unknown for kind = {kind!r}; {did_you_mean(name, known)}"
            )
        given[name] = _typed(name, value, known[name], where)
    try:
        return KINDS[kind](**given)  # pyright: ignore[reportArgumentType]
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc}") from exc


def _typed(name: str, value: object, default: object, where: str) -> object:
    """`value` as the option's type; TOML gives lists for tuples and whole numbers for floats."""
    if default is MISSING:
        return value
    if isinstance(default, tuple) and isinstance(value, list):
        return tuple(cast("list[object]", value))
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        raise ConfigError(
            f"{where}: {name} = {value!r} is {type(value).__name__}; expected {type(default).__name__}"
        )
    return value


def _number(rule: Rule, name: str) -> None:
    value = getattr(rule, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ConfigError(f"{name} = {value!r} is not a tolerance; expected a finite number, 0 or more")


def _count(rule: Rule, name: str, least: int) -> None:
    value = getattr(rule, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} = {value!r} is not a count; expected a whole number, {least} or more")


def _check_nulls(nulls: str) -> None:
    if nulls not in ("distinct", "nan"):
        raise ConfigError(f"nulls = {nulls!r} is not a policy; expected 'distinct' or 'nan'")
