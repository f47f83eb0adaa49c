"""A torch module with example inputs: what it is called with, and the graph that torch.export makes of it."""

from __future__ import annotations

import hashlib
import importlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from parity.errors import CompileError, ConfigError

logger = logging.getLogger(__name__)

_SHOWN: Final = 300
_LEAST_ROWS: Final = 2
"""An example of one row would make torch.export take the one for a constant."""


@dataclass(frozen=True)
class Taken:
    """One tensor argument: its dtype, and its shape without the rows; None for a dimension that varies."""

    name: str
    dtype: Any
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        sizes = ", ".join(["rows", *("any" if size is None else str(size) for size in self.shape)])
        return f"{str(self.dtype).removeprefix('torch.')} ({sizes})"


class Program:
    """A module and how it is called: the structure of its arguments, and an example of each tensor.

    Every tensor argument has the rows in its first dimension. Other dimensions keep the size that they have
    in the example, but for those named as varying. What is no tensor is part of the program.

    Args:
        module: in eval mode, on its device.
        args: positional arguments of one call.
        kwargs: keyword arguments of that call.
        varying: for an argument, by position or name, the dimensions beside the rows that vary.
        max_rows: the most rows of a call; None for any number.

    Raises:
        ConfigError: there is no tensor among the arguments, or their numbers of rows differ.
    """

    def __init__(
        self,
        module: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        varying: Mapping[int | str, Sequence[int]] | None = None,
        max_rows: int | None = None,
    ) -> None:
        import torch

        pytree = _pytree()
        self.module = module
        self.max_rows = max_rows
        self._varying = {str(key): frozenset(dims) for key, dims in (varying or {}).items()}
        paths, self._spec = pytree.tree_flatten_with_path((args, dict(kwargs)))
        self.leaves = [leaf for _, leaf in paths]
        self._names = [_name(path) for path, _ in paths]
        self.taken = tuple(
            Taken(name, leaf.dtype, tuple(self._size(name, leaf, dim) for dim in range(1, leaf.dim())))
            for name, leaf in zip(self._names, self.leaves, strict=True)
            if isinstance(leaf, torch.Tensor)
        )
        unknown = set(self._varying) - {name.partition("[")[0] for name in self._names}
        if unknown:
            raise ConfigError(
                f"{type(module).__name__} is not called with {', '.join(sorted(unknown))}, which is said to "
                f"vary; it is called with {', '.join(self._names)}"
            )
        self.rows(self.leaves)

    def flattened(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """The tensors of a call, in order.

        Raises:
            ConfigError: the call is not of the program's form, or a tensor has another dtype or shape.
        """
        import torch

        leaves, spec = _pytree().tree_flatten((args, dict(kwargs)))
        name = type(self.module).__name__
        if spec != self._spec:
            raise ConfigError(f"{name} is called in another way than at first, when it was compiled")
        tensors: list[Any] = []
        for leaf, first, place in zip(leaves, self.leaves, self._names, strict=True):
            if not isinstance(first, torch.Tensor):
                if leaf != first:
                    raise ConfigError(
                        f"{name}: argument {place} is {leaf!r}, and was {first!r} when it was compiled"
                    )
                continue
            self._check(leaf, self.taken[len(tensors)])
            tensors.append(leaf)
        self.rows(leaves)
        return tensors

    def arguments(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Tensors, in order, as the arguments of a call; what is no tensor is as in the example."""
        import torch

        given = iter(tensors)
        leaves = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        return _pytree().tree_unflatten(leaves, self._spec)

    def rows(self, leaves: Sequence[Any]) -> int:
        """The rows of a call; raises ConfigError where its tensors do not agree on them, or there is none."""
        import torch

        name = type(self.module).__name__
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if not tensors or any(tensor.dim() == 0 for tensor in tensors):
            raise ConfigError(
                f"{name}: a compiled model takes tensors whose first dimension is the rows; use backend eager"
            )
        counts = {len(tensor) for tensor in tensors}
        if len(counts) > 1:
            raise ConfigError(f"{name}: its arguments have {', '.join(map(str, sorted(counts)))} rows")
        return counts.pop()

    def restored(self, outputs: Sequence[Any]) -> Any:
        """Output tensors in the structure that the module returns."""
        return _pytree().tree_unflatten(list(outputs), self.out_spec)

    @cached_property
    def example(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the example, of at least two rows, in memory of their own."""
        import torch

        with torch.inference_mode(mode=False):
            leaves = [_at_least(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        return _pytree().tree_unflatten(leaves, self._spec)

    @cached_property
    def tensors(self) -> list[Any]:
        """The tensors of the example, in order."""
        import torch

        leaves = _pytree().tree_leaves(self.example)
        return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    @cached_property
    def out_spec(self) -> Any:
        """How the module's outputs are nested; raises CompileError where not all of them are tensors."""
        import torch

        args, kwargs = self.example
        with torch.no_grad():
            leaves, spec = _pytree().tree_flatten(self.module(*args, **kwargs))
        if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise CompileError(
                f"{type(self.module).__name__} returns what is no tensor; use backend eager, or tensors only"
            )
        return spec

    @cached_property
    def exported(self) -> Any:
        """The torch.export.ExportedProgram, its number of rows dynamic.

        Raises:
            CompileError: the module cannot be exported.
        """
        import torch

        args, kwargs = self.example
        shapes = _pytree().tree_unflatten(self._dynamic(), self._spec)
        try:
            with torch.inference_mode(mode=False), torch.no_grad():
                return torch.export.export(self.module, args, kwargs, dynamic_shapes=_by_argument(shapes))
        except Exception as exc:  # every kind that a tracer of Python may raise
            logger.debug("event=export_failed", exc_info=True)
            raise CompileError(
                f"{type(self.module).__name__} cannot be exported; use backend eager, or write its forward "
                f"without what depends on values or on the number of rows ({in_short(exc)})"
            ) from None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the exported graph, its constants and its weights."""
        import torch

        found = hashlib.sha256()
        graph = self.exported
        for name, inner in graph.graph_module.named_modules():  # branches and loops are graphs of their own
            if isinstance(inner, torch.fx.GraphModule):
                found.update(f"{name}\0{inner.graph}\0".encode())
        found.update(repr([str(item) for item in self.taken]).encode())
        for kind in (graph.state_dict, graph.constants):
            for name, value in sorted(kind.items()):
                found.update(f"{name}\0".encode())
                if isinstance(value, torch.Tensor):
                    found.update(f"{value.dtype}{tuple(value.shape)}".encode())
                    found.update(_bytes(value))
                else:
                    found.update(repr(value).encode())
        return found.hexdigest()

    def forget(self) -> None:
        """Let go of what was needed to compile: the example and the exported program."""
        import torch

        _ = self.out_spec
        self.leaves = [leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        for name in ("example", "tensors", "exported"):
            self.__dict__.pop(name, None)

    def _size(self, name: str, leaf: Any, dim: int) -> int | None:
        varies = dim in self._varying.get(name, ()) or dim in self._varying.get(name.partition("[")[0], ())
        return None if varies else int(leaf.shape[dim])

    def _dynamic(self) -> list[Any]:
        """For each leaf the dimensions that vary, as torch.export wants them."""
        import torch

        dynamic = torch.export.Dim.DYNAMIC
        found: list[Any] = []
        taken = iter(self.taken)
        for leaf in self.leaves:
            if not isinstance(leaf, torch.Tensor):
                found.append(None)
                continue
            sizes = next(taken).shape
            rows = dynamic if self.max_rows is None else dynamic(min=1, max=max(self.max_rows, _LEAST_ROWS))
            found.append({0: rows, **{dim: dynamic for dim, size in enumerate(sizes, 1) if size is None}})
        return found

    def _check(self, leaf: Any, taken: Taken) -> None:
        import torch

        name = f"{type(self.module).__name__}: argument {taken.name}"
        if not isinstance(leaf, torch.Tensor):
            raise ConfigError(f"{name} is {type(leaf).__name__}, and was a tensor when it was compiled")
        sizes = tuple(leaf.shape[1:])
        fits = len(sizes) == len(taken.shape) and all(
            expected in (None, size) for size, expected in zip(sizes, taken.shape, strict=True)
        )
        if leaf.dtype != taken.dtype or not fits:
            got = Taken(taken.name, leaf.dtype, sizes)
            raise ConfigError(
                f"{name} is {got}, and the model is compiled for {taken}; a dimension that varies is named "
                f"in load_model(..., varying={{{taken.name!r}: [1]}})"
            )


def in_short(exc: Exception) -> str:
    """The first line of what a compiler says; the whole may be hundreds of lines."""
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    return f"{type(exc).__name__}: {text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}"


def flat(value: Any) -> list[Any]:
    """The tensors in what a module returned, in order."""
    return _pytree().tree_leaves(value)


def _pytree() -> Any:
    """Torch's own functions for nested arguments, which its exporter uses, too."""
    return importlib.import_module("torch.utils._pytree")


def _name(path: Sequence[Any]) -> str:
    """A leaf's place: an argument's position or name, and the steps below it."""
    steps = [str(getattr(step, "idx", getattr(step, "key", step))) for step in path[1:]]
    return steps[0] + "".join(f"[{step}]" for step in steps[1:])


def _by_argument(shapes: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    """Dynamic shapes as torch.export takes them with keyword arguments: positional ones first, in a tuple."""
    positional, named = shapes
    return (*positional, *named.values()) if named else tuple(positional)


def _at_least(tensor: Any) -> Any:
    import torch

    rows = len(tensor)
    if rows == 0:
        raise ConfigError("a model cannot be compiled for a batch of no rows")
    repeats = -(-_LEAST_ROWS // rows)
    return (torch.cat([tensor] * repeats) if repeats > 1 else tensor.clone()).contiguous()


def _bytes(tensor: Any) -> bytes:
    import torch

    plain = tensor.detach().cpu().contiguous()
    if type(plain) is not torch.Tensor and not isinstance(plain, torch.nn.Parameter):
        return repr(plain).encode() + b"".join(
            _bytes(getattr(plain, name)) for name in plain.__tensor_flatten__()[0]
        )
    return plain.flatten().view(torch.uint8).numpy().tobytes()
