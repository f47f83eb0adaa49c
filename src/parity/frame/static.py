"""Verbs that a frame does not have, found in a handler's source before any row comes.

What is followed is `batch.frame()` and what is built from it in the same function: names, chains of verbs,
columns and arithmetic; and arguments whose annotation is this package's class by the module's imports. What
cannot be followed is left alone; it fails when it runs. Nothing is executed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from parity.frame.verbs import VERBS, hint

_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare)


@dataclass(frozen=True)
class Finding:
    """A verb that is not there.

    Attributes:
        line: where it stands, from 1.
        owner: the class that was asked, as error messages call it.
        name: the verb.
        message: what is wrong and what to use.
    """

    line: int
    owner: str
    name: str
    message: str


def unknown_verbs(source: str) -> list[Finding]:
    """The verbs in a module's source that frames of batches do not have, in the order of their lines."""
    if ".frame(" not in source:
        return []
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    found: list[Finding] = []
    names = _Names(tree)
    stages = _stages(tree, names)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            _Function(node, names, id(node) in stages, found).run()
    return sorted(found, key=lambda finding: finding.line)


class _Function:
    """What the names of one function hold: a class of `VERBS`, or "" for what is not known."""

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        names: _Names,
        is_stage: bool,
        found: list[Finding],
    ) -> None:
        self._node = node
        self._found = found
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        classes = {argument.arg: names.class_of(argument.annotation) for argument in arguments}
        self._batches = {name for name, known in classes.items() if known == "Batch"}
        if is_stage:
            self._batches |= {a.arg for a in arguments if a.arg == "batch" and a.annotation is None}
        self._kinds: dict[str, str] = {
            name: known for name, known in classes.items() if known in ("Frame", "Series")
        }

    def run(self) -> None:
        """Learn what names hold until nothing is learnt, then look at every attribute."""
        nodes = _inside(self._node)
        bound: dict[str, list[ast.expr | None]] = {}
        for node in nodes:
            _bind(node, bound)
        self._batches -= set(bound)
        for _ in range(1 + len(bound)):
            learnt = {
                name: kind
                for name, values in bound.items()
                if (kind := self._one_kind(values)) and name not in self._kinds
            }
            if not learnt:
                break
            self._kinds |= learnt
        for name, values in bound.items():  # a parameter that is bound again to something else
            if name in self._kinds and self._one_kind(values) != self._kinds[name]:
                del self._kinds[name]
        for node in nodes:
            if isinstance(node, ast.Attribute):
                owner = self._kind(node.value)
                if owner and node.attr not in VERBS[owner] and not node.attr.startswith("__"):
                    message = f"{owner} has no verb {node.attr!r}; {hint(owner, node.attr)}"
                    self._found.append(Finding(node.lineno, owner, node.attr, message))

    def _one_kind(self, values: list[ast.expr | None]) -> str:
        kinds = {"" if value is None else self._kind(value) for value in values}
        return kinds.pop() if len(kinds) == 1 else ""

    def _kind(self, node: ast.expr) -> str:
        """The class of `VERBS` that an expression gives, "" where that is not known."""
        if isinstance(node, ast.Name):
            return self._kinds.get(node.id, "")
        if isinstance(node, ast.Call):
            function = node.func
            if not isinstance(function, ast.Attribute):
                return ""
            if function.attr == "frame" and isinstance(function.value, ast.Name):
                return "Frame" if function.value.id in self._batches else ""
            return self._gives(function)
        if isinstance(node, ast.Attribute):
            given = self._gives(node)
            owner = self._kind(node.value)
            return given if owner == "Series.dt" or given.startswith("Series.") else ""
        if isinstance(node, ast.Subscript) and self._kind(node.value) == "Frame":
            key = node.slice
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return "Series"
            return "Frame" if isinstance(key, ast.List) or self._kind(key) == "Series" else ""
        if isinstance(node, _OPERATORS):
            return "Series" if any(self._kind(side) == "Series" for side in _sides(node)) else ""
        return ""

    def _gives(self, node: ast.Attribute) -> str:
        owner = self._kind(node.value)
        verb = VERBS[owner].get(node.attr) if owner else None
        return verb.gives if verb is not None else ""


_ORDERS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _sides(node: ast.BinOp | ast.UnaryOp | ast.Compare) -> list[ast.expr]:
    """The operands one of which, being a series, makes the whole a series."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [] if isinstance(node.op, ast.Not) else [node.operand]
    return [node.left] if len(node.ops) == 1 and isinstance(node.ops[0], _ORDERS) else []


_CLASSES = ("Batch", "Frame", "Handler", "Series")


class _Names:
    """Which of a module's names are the classes of this package, by its imports."""

    def __init__(self, tree: ast.Module) -> None:
        self._full: dict[str, str] = {}
        bound: list[str] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    bound.append(name)
                    self._full[name] = alias.name if alias.asname else name
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    name = alias.asname or alias.name
                    module = "" if node.level else node.module or ""
                    bound += _CLASSES if name == "*" and module.partition(".")[0] != "parity" else [name]
                    if name == "*" and module in _MODULES:
                        bound += _MODULES[module]
                        self._full |= {given: f"{module}.{given}" for given in _MODULES[module]}
                    self._full[name] = f"{module}.{alias.name}"
            elif isinstance(node, ast.ClassDef):
                bound.append(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.append(node.id)
        for name in {name for name in bound if bound.count(name) > 1}:
            self._full.pop(name, None)  # which one is meant is not known

    def class_of(self, expression: ast.expr | None) -> str:
        """Batch, Frame, Handler or Series where an expression is that class of this package, "" otherwise."""
        node = expression
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError):
                return ""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        full = ".".join([self._full.get(node.id, ""), *reversed(parts)])
        module, _, name = full.rpartition(".")
        return name if name in _CLASSES and (module == "parity" or module.startswith("parity.")) else ""


_MODULES = {
    "parity": ("Batch", "Handler"),
    "parity.batch": ("Batch",),
    "parity.handler": ("Handler",),
    "parity.frame": ("Frame", "Series"),
}
"""What `from module import *` gives of the classes."""


_STAGES = ("preprocess", "postprocess")


def _stages(tree: ast.Module, names: _Names) -> set[int]:
    """The stages, by identity, of the module's handlers: an argument `batch` of theirs is a Batch."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    handlers: set[str] = set()
    for _ in classes:  # as often as one can inherit from another
        handlers |= {
            node.name
            for node in classes
            for base in node.bases
            if names.class_of(base) == "Handler" or (isinstance(base, ast.Name) and base.id in handlers)
        }
    return {
        id(node)
        for owner in classes
        if owner.name in handlers
        for node in owner.body
        if isinstance(node, ast.FunctionDef) and node.name in _STAGES
    }


def _inside(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
    """The nodes of a function, without those of functions, classes and lambdas within it."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        found.append(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        waiting.extend(ast.iter_child_nodes(node))
    return found


def _bind(node: ast.AST, bound: dict[str, list[ast.expr | None]]) -> None:
    """Note what a statement binds names to; None where that is not one expression."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                bound.setdefault(target.id, []).append(node.value)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
        bound.setdefault(node.target.id, []).append(node.value)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        bound.setdefault(node.id, [])
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        bound.setdefault(node.name, []).append(None)
    else:
        for name in _bound_otherwise(node):
            bound.setdefault(name, []).append(None)


def _bound_otherwise(node: ast.AST) -> list[str]:
    """The names that loops, `with`, unpacking, `+=`, imports and handlers bind."""
    targets: list[ast.AST] = []
    if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension | ast.AugAssign):
        targets = [node.target]
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        targets = [node.optional_vars]
    elif isinstance(node, ast.Tuple | ast.List | ast.Starred) and isinstance(node.ctx, ast.Store):
        targets = [node]
    elif isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    elif isinstance(node, ast.Global | ast.Nonlocal):
        return node.names
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return [node.name] if node.name else []
    return [inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)]
