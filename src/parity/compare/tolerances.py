"""Which rule judges which column: by default, dtype and name, overridable for a pair of profiles.

The order, weakest first: built-in dtype default, declared dtype, pair's dtype, declared column, pair's
column. Everything that is not a float is exact unless a rule made for it (label, topk, text, set, ignore)
says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import cast

from parity.compare.rules import Close, Exact, Rule, rule_from_mapping
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


def _default_pairs() -> Mapping[str, PairRules]:
    return MappingProxyType({"cpu:*|cuda:*": PairRules(dtypes=_HOST_AGAINST_DEVICE)})


@dataclass(frozen=True)
class Tolerances:
    """The rules for one comparison.

    `columns` is keyed by column, or by the dotted path of a struct's field (`box.x`; lists add nothing to a
    path). `dtypes` is keyed by float16, bfloat16, float32, float64. `pairs` is keyed by two patterns of
    `device:precision` joined by `|`; either order matches, and a later entry wins.
    """

    columns: Mapping[str, Rule] = field(default_factory=_no_rules)
    dtypes: Mapping[str, Rule] = field(default_factory=_no_rules)
    pairs: Mapping[str, PairRules] = field(default_factory=_default_pairs)

    def __post_init__(self) -> None:
        _check_dtypes(self.dtypes, "tolerance by dtype")
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

    @classmethod
    def from_mapping(
        cls,
        columns: Mapping[str, object],
        *,
        dtypes: Mapping[str, object] | None = None,
        pairs: Mapping[str, object] | None = None,
        known: Iterable[str] | None = None,
    ) -> Tolerances:
        """Rules from TOML tables.

        `columns` is `[tolerance.<column>]`, `dtypes` is `[dtype.<float>]` and `pairs` is `[pair."a|b"]` with
        tables `tolerance` and `dtype` in it.

        `known` are the column names there are; without it an unknown column is found by `compare`.
        Raises ConfigError for an unknown column, kind or key, with near names.
        """
        by_pair = dict(_default_pairs())
        for pair, table in (pairs or {}).items():
            by_pair[pair] = _pair_rules(pair, table)
        rules = cls(_rules(columns, "tolerance"), _rules(dtypes or {}, "dtype"), MappingProxyType(by_pair))
        if known is not None:
            rules.check_names(list(known))
        return rules

    def for_pair(self, expected: str, obtained: str) -> Tolerances:
        """The rules for answers of profile `expected` against `obtained`, each as `device:precision`."""
        dtypes, columns = dict(self.dtypes), dict(self.columns)
        for pair, rules in self.pairs.items():
            one, other = pair.split("|")
            straight = fnmatchcase(expected, one) and fnmatchcase(obtained, other)
            if straight or (fnmatchcase(expected, other) and fnmatchcase(obtained, one)):
                dtypes.update(rules.dtypes)
                columns.update(rules.columns)
        return Tolerances(MappingProxyType(columns), MappingProxyType(dtypes), MappingProxyType({}))

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
        return self.dtypes.get(dtype) or FLOAT_DEFAULTS.get(dtype) or Exact()

    def to_dict(self) -> dict[str, object]:
        """The declared rules as tables, for reports and case files."""
        return {
            "columns": {name: rule.to_dict() for name, rule in self.columns.items()},
            "dtypes": {name: rule.to_dict() for name, rule in self.dtypes.items()},
        }


def _rules(tables: Mapping[str, object], where: str) -> Mapping[str, Rule]:
    return MappingProxyType(
        {name: rule_from_mapping(table, f"[{where}.{name}]") for name, table in tables.items()}
    )


def _pair_rules(pair: str, table: object) -> PairRules:
    if not isinstance(table, Mapping):
        raise ConfigError(f"[pair.{pair!r}] is {shown(table)}; expected tables named tolerance and dtype")
    parts = cast("Mapping[str, Mapping[str, object]]", table)
    for name in parts:
        if name not in ("tolerance", "dtype"):
            raise ConfigError(
                f"[pair.{pair!r}]: key {name!r} is unknown; {did_you_mean(name, ('tolerance', 'dtype'))}"
            )
    where = f"pair.{pair!r}"
    return PairRules(
        _rules(parts.get("tolerance", {}), f"{where}.tolerance"),
        _rules(parts.get("dtype", {}), f"{where}.dtype"),
    )


def _check_dtypes(rules: Mapping[str, Rule], where: str) -> None:
    for dtype, rule in rules.items():
        if dtype not in FLOAT_DEFAULTS:
            raise ConfigError(
                f"{where}: {dtype!r} never gets a tolerance, only floats do; "
                f"{did_you_mean(dtype, FLOAT_DEFAULTS)}"
            )
        if not isinstance(rule, Close | Exact):
            raise ConfigError(
                f"{where}: {dtype} has kind = {rule.kind!r}; a dtype is judged by 'close' or 'exact'"
            )
