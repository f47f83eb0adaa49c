"""Conditions of `--where`: which rows of the input are scored.

    day >= '2024-07-01' and (shop in (3, 5) or country == 'ES') and note is not None

Comparisons of columns with values, `in`, `is None`, `and`, `or`, `not`; written as in Python, and nothing
of it is run as Python. A text is read as the column's type, so that days and times compare as such; a number
is for columns of numbers only. A row for which the condition is null is left out, as in SQL.
"""

from __future__ import annotations

import ast
import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from parity.errors import ConfigError

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda column, value: column == value,
    ast.NotEq: lambda column, value: column != value,
    ast.Lt: lambda column, value: column < value,
    ast.LtE: lambda column, value: column <= value,
    ast.Gt: lambda column, value: column > value,
    ast.GtE: lambda column, value: column >= value,
}
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
}


@dataclass(frozen=True)
class Where:
    """A condition.

    Attributes:
        text: as the user wrote it.
    """

    text: str

    def __post_init__(self) -> None:
        self.bind(None)

    @property
    def columns(self) -> list[str]:
        """The columns that it reads, each once."""
        nodes = ast.walk(self._tree())
        return list(dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name)))

    def bind(self, schema: pa.Schema | None) -> pc.Expression:
        """The condition for a table of a schema; without one, its form is checked only.

        Raises:
            ConfigError: it is none, or a value does not fit its column.
        """
        return self._expression(self._tree(), schema)

    def bind_for_statistics(self, schema: pa.Schema) -> pc.Expression | None:
        """What of the condition least and greatest values may be held against; None where nothing may be.

        Parquet's leave NaN out, and NaN is unequal to all values and not below any: what says `!=` or `not`
        of a float may hold for a row of a group whose least and greatest values tell otherwise.

        Raises:
            ConfigError: a value does not fit its column.
        """
        tree = self._tree()
        joined = isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And)
        parts = tree.values if joined and isinstance(tree, ast.BoolOp) else [tree]
        safe = [self._expression(part, schema) for part in parts if not _nan_may_pass(part, schema)]
        whole = safe[0] if safe else None
        for part in safe[1:]:
            whole = whole & part
        return whole

    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
            hint = "; compare with ==" if "=" in self.text and "==" not in self.text else ""
            raise ConfigError(f"--where {self.text!r} is no condition: {exc}{hint}") from None

    def _expression(self, node: ast.expr, schema: pa.Schema | None) -> Any:
        if isinstance(node, ast.BoolOp):
            parts = [self._expression(item, schema) for item in node.values]
            whole = parts[0]
            for part in parts[1:]:
                whole = (whole & part) if isinstance(node.op, ast.And) else (whole | part)
            return whole
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self._expression(node.operand, schema)
        if isinstance(node, ast.Name):
            return pc.field(node.id)
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            pairs = zip(operands, node.ops, operands[1:], strict=False)
            parts = [self._comparison(left, op, right, schema) for left, op, right in pairs]
            whole = parts[0]
            for part in parts[1:]:
                whole = whole & part
            return whole
        raise self._wrong(node)

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr, schema: pa.Schema | None) -> Any:
        if not isinstance(left, ast.Name):
            if isinstance(right, ast.Name) and type(op) in _TURNED:
                return self._comparison(right, _TURNED[type(op)](), left, schema)
            raise self._wrong(left)
        column = pc.field(left.id)
        if isinstance(op, ast.Is | ast.IsNot):
            if not (isinstance(right, ast.Constant) and right.value is None):
                raise self._wrong(right)
            return column.is_valid() if isinstance(op, ast.IsNot) else column.is_null()
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List) or not right.elts:
                raise self._wrong(right)
            values = [self._value(item, left.id, schema) for item in right.elts]
            whole = column == values[0]
            for value in values[1:]:
                whole = whole | (column == value)
            return ~whole if isinstance(op, ast.NotIn) else whole
        compare = _COMPARISONS[type(op)]
        if isinstance(right, ast.Name):
            return compare(column, pc.field(right.id))
        return compare(column, self._value(right, left.id, schema))

    def _value(self, node: ast.expr, column: str, schema: pa.Schema | None) -> Any:
        try:
            value: Any = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            raise self._wrong(node) from None
        if value is None:
            raise ConfigError(f"--where {self.text!r}: nothing equals None; write `{column} is None`")
        if not isinstance(value, bool | int | float | str | bytes):
            raise self._wrong(node)
        if schema is None:
            return pc.scalar(True)
        kind = _plain(schema.field(column).type)
        try:
            if (advice := _unlike(value, kind)) is not None:
                raise TypeError(advice)
            return pc.scalar(_read_as(value, kind))
        except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as exc:
            reason = " ".join(str(exc).split())
            raise ConfigError(
                f"--where {self.text!r}: {value!r} cannot be compared with column {column!r} ({kind}): "
                f"{reason}"
            ) from None

    def _wrong(self, node: ast.AST) -> ConfigError:
        part = ast.unparse(node)
        return ConfigError(
            f"--where {self.text!r}: {part!r} is not understood; write comparisons of columns with values, "
            "`in (..)`, `is None`, joined by and, or, not"
        )


def _nan_may_pass(node: ast.expr, schema: pa.Schema) -> bool:
    nodes = list(ast.walk(node))
    turned = any(isinstance(item, ast.Not | ast.NotEq | ast.NotIn) for item in nodes)
    names = {item.id for item in nodes if isinstance(item, ast.Name)}
    return turned and any(pa.types.is_floating(_plain(schema.field(name).type)) for name in names)


def _plain(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _unlike(value: bool | float | str | bytes, kind: Any) -> str | None:
    """What to write in place of a value that is of another sort than a column's, and would be misread."""
    if isinstance(value, str | bytes):
        return "write True or False" if pa.types.is_boolean(kind) else None
    if pa.types.is_boolean(kind):
        return None if isinstance(value, bool) else "write True or False"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return f"the column holds text, which is ordered letter by letter; write '{value}', as its values are"
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        return "write a date or time as text, such as '2024-07-01' or '2024-07-01T08:00:00'"
    if isinstance(value, bool) and (pa.types.is_integer(kind) or _is_fraction(kind)):
        return f"the column holds numbers; write {int(value)}"
    return None


def _read_as(value: bool | float | str | bytes, kind: Any) -> Any:
    """A value as a column's type.

    Raises:
        ArrowException, ValueError, ArithmeticError: the type does not hold it.
    """
    if isinstance(value, float) and pa.types.is_integer(kind):
        return pa.scalar(value)
    if pa.types.is_decimal(kind) and not isinstance(value, bytes):
        exact = decimal.Decimal(str(value))
        try:
            return pa.scalar(exact, kind)
        except pa.ArrowException:
            raise ValueError(
                f"the column holds {kind.precision} digits, {kind.scale} of them after the point; write a "
                "value of no more"
            ) from None
    if isinstance(value, int) and pa.types.is_integer(kind):
        return pa.scalar(value, kind)
    return cast("Any", pa.scalar(value)).cast(kind)


def _is_fraction(kind: Any) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_decimal(kind)
