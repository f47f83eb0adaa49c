"""torch.export: the module's graph, without its Python, run by torch's own kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parity.models.backend import FLOATS, InProcess, Job, Run
from parity.models.program import flat


class Exported(InProcess):
    """The exported graph as a module; bit-identical to eager, since the kernels are the same."""

    name = "export"
    devices = ("cpu", "cuda")
    precisions = (*FLOATS, "int8")

    def open(self, job: Job) -> Run:
        """Export, and take the module of the graph."""
        # Without guards: the program checks dtypes and shapes itself.
        module = job.program.exported.module(check_guards=False)
        call = module.forward

        def run(tensors: Sequence[Any]) -> Sequence[Any]:
            args, kwargs = job.program.arguments(tensors)
            return flat(call(*args, **kwargs))

        return run
