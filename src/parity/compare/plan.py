"""What is compared with what, decided from the two schemas and the tolerances before any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.types as pat

from parity.compare.comparison import Finding
from parity.compare.dtypes import FLOATS, leaf_dtypes, list_items, nullability_finding, type_findings
from parity.compare.floats import narrower
from parity.compare.rules import Bits, Close, Cosine, Exact, Label, Pixels, Rule, SetLike, Text, TopK
from parity.compare.tolerances import ERROR_COLUMN, Tolerances
from parity.errors import ConfigError, did_you_mean


@dataclass(frozen=True)
class ColumnPlan:
    """How one column that both sides have is compared.

    `rule` is the one declared for the column, `shown` the one to name in reports. `dtypes` names the dtype to
    measure each leaf in; `way` says whether values are compared, ignored, or are row errors, of which the
    kind is compared. `casts` is True where the types differ, and so may refuse to be compared.
    """

    name: str
    type: pa.DataType
    way: Literal["values", "ignored", "errors"]
    rule: Rule | None
    shown: Rule
    dtypes: Mapping[str, str]
    tolerances: Tolerances
    findings: tuple[Finding, ...] = ()
    casts: bool = False

    @property
    def dtype(self) -> str:
        """The dtype of a plain column, or the Arrow type of a nested one."""
        return self.dtypes[self.name] if list(self.dtypes) == [self.name] else str(self.type)

    @property
    def structure_fails(self) -> bool:
        """Whether the two declarations differ in a way that fails whatever the values are."""
        return any(finding.fails for finding in self.findings)

    def judges_lists(self) -> bool:
        """Whether the rule judges whole lists, after the walk has told which of them differ."""
        whole = isinstance(self.rule, Label | TopK | Cosine | SetLike | Pixels)
        return whole and list_items(self.type) is not None

    def companions(self) -> list[str]:
        """Other columns that the rule looks at."""
        return [self.rule.scores] if isinstance(self.rule, TopK) and self.rule.scores else []

    def rule_for(self, path: str, leaf: str) -> Rule:
        """The rule for a leaf of dtype `leaf`."""
        declared = self.tolerances.for_column(path)
        if declared is None or (isinstance(declared, Close) and leaf not in FLOATS):
            return self.tolerances.for_dtype(leaf)
        return declared


@dataclass(frozen=True)
class Plan:
    """The columns to compare, in the order of the expected table, and what the schemas differ in."""

    columns: tuple[ColumnPlan, ...]
    findings: tuple[Finding, ...]

    def column_findings(self) -> tuple[Finding, ...]:
        """What the declarations of columns differ in."""
        return tuple(finding for column in self.columns for finding in column.findings)


def make_plan(expected: pa.Schema, obtained: pa.Schema, tolerances: Tolerances) -> Plan:
    """The plan for two schemas free of views.

    Raises:
        ConfigError: a tolerance names no column or does not suit its type, or a name is there twice.
    """
    findings = _column_findings(expected, obtained)
    leaves = [{field.name: leaf_dtypes(field) for field in schema} for schema in (expected, obtained)]
    tolerances.check_names([path for side in leaves for name in side for path in (name, *side[name])])
    _check_companions(tolerances, expected)
    columns = [
        _column(field, obtained.field(name), tolerances, leaves[0][name], leaves[1][name])
        for name, field in zip(expected.names, expected, strict=True)
        if name in leaves[1]
    ]
    return Plan(tuple(columns), tuple(findings))


def _column(
    ours: pa.Field[Any],
    theirs: pa.Field[Any],
    tolerances: Tolerances,
    leaves: Mapping[str, str],
    others: Mapping[str, str],
) -> ColumnPlan:
    name, kind = ours.name, ours.type
    casts = kind != theirs.type
    found = list(type_findings(ours, theirs)) if casts or ours.metadata or theirs.metadata else []
    note = nullability_finding(ours, theirs)
    findings = (*found, *([note] if note else []))
    if name == ERROR_COLUMN and _holds_kinds(kind) and _holds_kinds(theirs.type):
        strings = {name: "string"}
        return ColumnPlan(name, pa.string(), "errors", None, Exact(), strings, Tolerances(), findings)
    rule = tolerances.for_column(name)
    dtypes = {path: _measured_in(dtype, others.get(path, dtype)) for path, dtype in leaves.items()}
    if rule is not None and rule.kind == "ignore":
        return ColumnPlan(name, kind, "ignored", rule, rule, dtypes, tolerances, findings)
    _check_rule(name, rule, kind, dtypes)
    for path in dtypes:
        inner = tolerances.for_column(path)
        if inner is not rule:
            _check_leaf_rule(path, inner, dtypes[path])
    floats = [leaf for leaf in dtypes.values() if leaf in FLOATS]
    shown = rule or (tolerances.for_dtype(floats[0]) if floats else Exact())
    return ColumnPlan(name, kind, "values", rule, shown, dtypes, tolerances, findings, casts)


def _measured_in(one: str, other: str) -> str:
    return narrower(one, other) if one in FLOATS and other in FLOATS else one


def _holds_kinds(kind: pa.DataType) -> bool:
    return pat.is_struct(kind) and "kind" in [kind.field(i).name for i in range(kind.num_fields)]


def _column_findings(expected: pa.Schema, obtained: pa.Schema) -> list[Finding]:
    ours, theirs = expected.names, obtained.names
    for side, names in (("expected", ours), ("obtained", theirs)):
        if len(set(names)) < len(names):
            twice = next(name for name in sorted(names) if names.count(name) > 1)
            raise ConfigError(
                f"the {side} table has several columns called {twice!r}; give each its own name"
            )
    found = [
        Finding(
            "missing_column",
            f"column {field.name!r} is missing from obtained",
            field.name,
            expected=str(field.type),
        )
        for field in expected
        if field.name not in theirs
    ]
    found += [
        Finding(
            "extra_column", f"column {field.name!r} is in obtained only", field.name, obtained=str(field.type)
        )
        for field in obtained
        if field.name not in ours
    ]
    if not found and ours != theirs:
        order = ", ".join(ours), ", ".join(theirs)
        message = f"columns come in another order: {order[0]}; obtained {order[1]}"
        found.append(Finding("column_order", message, "", *order, fails=False))
    return found


def _check_companions(tolerances: Tolerances, expected: pa.Schema) -> None:
    for name, rule in tolerances.columns.items():
        if isinstance(rule, TopK) and rule.scores and rule.scores not in expected.names:
            near = did_you_mean(rule.scores, expected.names)
            raise ConfigError(f"[tolerance.{name}]: scores names an unknown column {rule.scores!r}; {near}")
        if isinstance(rule, TopK) and rule.scores:
            kind = expected.field(rule.scores).type
            items = list_items(kind)
            if items is None or not pat.is_floating(items):
                raise ConfigError(
                    f"[tolerance.{name}]: scores {rule.scores!r} is {kind}; it takes lists of floats"
                )


def _check_rule(name: str, rule: Rule | None, kind: pa.DataType, dtypes: Mapping[str, str]) -> None:
    if rule is None:
        return
    items = list_items(kind)
    floats = set(dtypes.values()) & set(FLOATS)

    def refuse(why: str) -> ConfigError:
        return ConfigError(f"[tolerance.{name}]: kind = {rule.kind!r} on {kind}; {why}")

    if isinstance(rule, Close) and not floats:
        raise refuse("only floats may differ, use 'exact'")
    if isinstance(rule, Exact) and rule.nulls == "nan" and not floats:
        raise refuse("nulls = 'nan' means something for floats only, remove it")
    if isinstance(rule, Text) and "string" not in dtypes.values():
        raise refuse("it compares strings")
    if isinstance(rule, TopK | SetLike) and items is None:
        raise refuse("it compares lists and tensors")
    if isinstance(rule, Cosine) and not (items is not None and pat.is_floating(items)):
        raise refuse("it compares lists and tensors of floats")
    if isinstance(rule, Pixels) and not (items is not None and pat.is_uint8(items)):
        raise refuse("it compares lists and tensors of uint8")
    if isinstance(rule, Label):
        if items is not None and not pat.is_floating(items):
            raise refuse("it takes the largest of float scores")
        if items is None and floats:
            raise refuse("a float is no class, use 'close'")


def _check_leaf_rule(path: str, rule: Rule | None, dtype: str) -> None:
    if rule is None:
        return
    if isinstance(rule, Close) and dtype not in FLOATS:
        raise ConfigError(f"[tolerance.{path!r}]: kind = 'close' on {dtype}; only floats may differ")
    if isinstance(rule, Text) and dtype != "string":
        raise ConfigError(f"[tolerance.{path!r}]: kind = 'text' on {dtype}; it compares strings")
    if rule.rows:
        raise ConfigError(
            f"[tolerance.{path!r}]: a row budget belongs to the column, not to a field of a struct"
        )
    if not isinstance(rule, Close | Exact | Bits | Text):
        raise ConfigError(
            f"[tolerance.{path!r}]: kind = {rule.kind!r} judges whole columns, not fields of a struct"
        )
