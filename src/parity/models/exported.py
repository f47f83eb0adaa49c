"""torch.export: the module's graph, without its Python, run by torch's own kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parity.models.backend import FLOATS, Job, Run
from parity.models.program import flat


class Exported:
    """The exported graph as a module; bit-identical to eager, since the kernels are the same."""

    name = "export"
    devices = ("cpu", "cuda")
    precisions = (*FLOATS, "int8")
    packages: tuple[str, ...] = ()
    builds = False

    def why_off(self) -> str | None:
        """Nothing keeps it from running."""
        return None

    def build(self, job: Job) -> None:
        """Nothing: the graph is exported anew, to name what others keep, so that keeping it saves nothing."""

    def open(self, job: Job) -> Run:
        """Export, and take the module of the graph."""
        module = job.program.exported.module(
            check_guards=False
        )  # the program checks dtypes and shapes itself
        call = module.forward

        def run(tensors: Sequence[Any]) -> Sequence[Any]:
            args, kwargs = job.program.arguments(tensors)
            return flat(call(*args, **kwargs))

        return run
