"""Which rule judges which column: by default, dtype and name, overridable for a pair of profiles.

The order, weakest first: built-in default of the dtype, `[default]`, `[dtype.<float>]` and
`[tolerance.<column>]`; each as overridden for a pair of profiles. Everything that is not a float is exact
unless a rule made for it (label, topk, text, set, pixels, ignore) says otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import cast

from parity.compare.rules import Bits, Close, Exact, Ignore, Rule, rule_from_mapping
from parity.errors import ConfigError, did_you_mean, shown

ERROR_COLUMN = "_error"

FLOAT_DEFAULTS: Mapping[str, Rule] = MappingProxyType(
    {
        "float16": Close(ulp=8),
        "bfloat16": Close(ulp=8),
        "float32": Close(ulp=64),
        "float64": Close(ulp=64),
    }
)

_HOST_AGAINST_DEVICE: Mapping[str, Rule] = MappingProxyType(
    {
        "float16": Close(rtol=2e-3),
        "bfloat16": Close(rtol=1.6e-2),
        "float32": Close(rtol=1.1e-4),
        "float64": Close(rtol=1e-9),
    }
)


def _no_rules() -> Mapping[str, Rule]:
    return MappingProxyType({})


@dataclass(frozen=True)
class PairRules:
    """What changes when one profile's answers are compared with another's."""

    columns: Mapping[str, Rule] = field(default_factory=_no_rules)
    dtypes: Mapping[str, Rule] = field(default_factory=_no_rules)
    default: Rule | None = None


def _no_pairs() -> Mapping[str, PairRules]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Tolerances:
    """The rules for one comparison.

    `columns` is keyed by column, or by the dotted path of a struct's field (`box.x`; lists add nothing to a
    path). `dtypes` is keyed by float16, bfloat16, float32, float64. `default` is for floats of the dtypes
    that have no rule of their own. `pairs` is keyed by two patterns of `device:precision` joined by `|`;
    either order matches, and a later entry wins. `builtin` is what a float is judged by when nothing is
    declared.
    """

    columns: Mapping[str, Rule] = field(default_factory=_no_rules)
    dtypes: Mapping[str, Rule] = field(default_factory=_no_rules)
    pairs: Mapping[str, PairRules] = field(default_factory=_no_pairs)
    default: Rule | None = None
    builtin: Mapping[str, Rule] = field(default_factory=lambda: FLOAT_DEFAULTS, repr=False)

    def __post_init__(self) -> None:
        _check_dtypes(self.dtypes, "tolerance by dtype")
        _check_default(self.default, "default tolerance")
        for name in self.columns:
            if name == ERROR_COLUMN or name.startswith(f"{ERROR_COLUMN}."):
                raise ConfigError(
                    f"column {name!r} holds the row errors, whose kind is always compared exactly"
                )
        for pair, rules in self.pairs.items():
            if pair.count("|") != 1:
                raise ConfigError(
                    f'pair {pair!r} does not name two profiles; expected such as "cpu:*|cuda:*"'
                )
            _check_dtypes(rules.dtypes, f"pair {pair!r}")
            _check_default(rules.default, f"pair {pair!r}, default")

    @classmethod
    def from_mapping(
        cls,
        columns: Mapping[str, object],
        *,
        dtypes: Mapping[str, object] | None = None,
        pairs: Mapping[str, object] | None = None,
        default: Mapping[str, object] | None = None,
        known: Iterable[str] | None = None,
    ) -> Tolerances:
        """Rules from TOML tables.

        `columns` is `[tolerance.<column>]`, `dtypes` is `[dtype.<float>]`, `default` is `[default]` and
        `pairs` is `[pair."a|b"]` with tables `tolerance`, `dtype` and `default` in it.

        `known` are the column names there are; without it an unknown column is found by `compare`.
        Raises ConfigError for an unknown column, kind or key, with near names.
        """
        by_pair = {pair: _pair_rules(pair, table) for pair, table in (pairs or {}).items()}
        rules = cls(
            _rules(columns, "tolerance"),
            _rules(dtypes or {}, "dtype"),
            MappingProxyType(by_pair),
            rule_from_mapping(default, "[default]") if default is not None else None,
        )
        if known is not None:
            rules.check_names(list(known))
        return rules

    def for_pair(self, expected: str, obtained: str) -> Tolerances:
        """The rules for answers of profile `expected` against `obtained`, each as `device:precision`.

        A host against a device has wider built-in defaults; whatever is declared beats them.
        """
        dtypes, columns, default = dict(self.dtypes), dict(self.columns), self.default
        for pair, rules in self.pairs.items():
            if _matches(pair, expected, obtained):
                dtypes.update(rules.dtypes)
                columns.update(rules.columns)
                default = rules.default or default
        apart = _matches(_HOST_AND_DEVICE, expected, obtained)
        builtin = {**self.builtin, **_HOST_AGAINST_DEVICE} if apart else self.builtin
        return Tolerances(
            MappingProxyType(columns),
            MappingProxyType(dtypes),
            default=default,
            builtin=MappingProxyType(dict(builtin)),
        )

    def only(self, columns: Collection[str]) -> Tolerances:
        """The same rules but for other columns than these."""
        kept = {path: rule for path, rule in self.columns.items() if _head(path, columns) in columns}
        return replace(self, columns=MappingProxyType(kept))

    def check_used(self, leaves: Mapping[str, str]) -> None:
        """Raise ConfigError when a declared rule can never decide anything.

        `leaves` are the dtypes of all values that are compared, by the path of their leaf. The built-in rules
        may go unused, and so may the rules of pairs that are not compared now.
        """
        self.check_names(list(dict.fromkeys([path.partition(".")[0] for path in leaves] + list(leaves))))
        present = sorted({dtype for dtype in leaves.values() if dtype in FLOAT_DEFAULTS})
        for dtype in self.dtypes:
            if dtype not in present:
                there = f"the floats there are: {', '.join(present)}" if present else "there are no floats"
                raise ConfigError(f"[dtype.{dtype}] is never used: no column holds {dtype}; {there}")
        if self.default is not None and not present:
            raise ConfigError("[default] is never used: it is for floats, and no column holds any")
        for path in self.columns:
            outer = path.rpartition(".")[0]
            enclosing = self.for_column(outer) if outer else None
            if isinstance(enclosing, Ignore):
                raise ConfigError(f"[tolerance.{path!r}] is never used: {outer!r} is ignored")

    def check_names(self, known: list[str]) -> None:
        """Raise ConfigError when a rule names a column or field path that is not in `known`."""
        nested = {name.partition(".")[0] for name in known if "." in name}
        for name in [*self.columns, *(name for rules in self.pairs.values() for name in rules.columns)]:
            head = name.partition(".")[0]
            if name not in known and (head not in known or head in nested or "." not in name):
                raise ConfigError(f"tolerance for unknown column {name!r}; {did_you_mean(name, known)}")

    def for_column(self, path: str) -> Rule | None:
        """The rule declared for `path` or the nearest enclosing field, or None."""
        while path:
            if path in self.columns:
                return self.columns[path]
            path = path.rpartition(".")[0]
        return None

    def for_dtype(self, dtype: str) -> Rule:
        """The rule for a value of `dtype` that no column rule covers: a float's, or exact."""
        if dtype not in FLOAT_DEFAULTS:
            return Exact()
        return self.dtypes.get(dtype) or self.default or self.builtin[dtype]

    def to_dict(self) -> dict[str, object]:
        """The declared rules as tables, for reports and case files."""
        return {
            "columns": {name: rule.to_dict() for name, rule in self.columns.items()},
            "dtypes": {name: rule.to_dict() for name, rule in self.dtypes.items()},
            **({"default": self.default.to_dict()} if self.default else {}),
        }


_HOST_AND_DEVICE = "cpu:*|cuda:*"


def _matches(pair: str, expected: str, obtained: str) -> bool:
    one, other = pair.split("|")
    straight = fnmatchcase(expected, one) and fnmatchcase(obtained, other)
    return straight or (fnmatchcase(expected, other) and fnmatchcase(obtained, one))


def _head(path: str, columns: Collection[str]) -> str:
    """The column that a path is in: itself, or what is before a dot."""
    while path not in columns and "." in path:
        path = path.rpartition(".")[0]
    return path


def _rules(tables: Mapping[str, object], where: str) -> Mapping[str, Rule]:
    return MappingProxyType(
        {name: rule_from_mapping(table, f"[{where}.{name}]") for name, table in tables.items()}
    )


def _pair_rules(pair: str, table: object) -> PairRules:
    if not isinstance(table, Mapping):
        raise ConfigError(
            f"[pair.{pair!r}] is {shown(table)}; expected tables named {', '.join(_PARTS)} in it"
        )
    parts = cast("Mapping[str, Mapping[str, object]]", table)
    for name in parts:
        if name not in _PARTS:
            raise ConfigError(f"[pair.{pair!r}]: key {name!r} is unknown; {did_you_mean(name, _PARTS)}")
    where = f"pair.{pair!r}"
    return PairRules(
        _rules(parts.get("tolerance", {}), f"{where}.tolerance"),
        _rules(parts.get("dtype", {}), f"{where}.dtype"),
        rule_from_mapping(parts["default"], f"[{where}.default]") if "default" in parts else None,
    )


_PARTS = ("tolerance", "dtype", "default")


def _check_dtypes(rules: Mapping[str, Rule], where: str) -> None:
    for dtype, rule in rules.items():
        if dtype not in FLOAT_DEFAULTS:
            raise ConfigError(
                f"{where}: {dtype!r} never gets a tolerance, only floats do; "
                f"{did_you_mean(dtype, FLOAT_DEFAULTS)}"
            )
        _check_default(rule, f"{where}: {dtype}")


def _check_default(rule: Rule | None, where: str) -> None:
    if rule is not None and not isinstance(rule, Close | Exact | Bits):
        raise ConfigError(
            f"{where} has kind = {rule.kind!r}; floats as such are judged by 'close', 'exact' or 'bits'"
        )
