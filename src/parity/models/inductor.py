"""torch's compiler: just in time by torch.compile, and ahead of time into a package by AOTInductor."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Sequence
from typing import Any

from parity.models.backend import FLOATS, InProcess, Job, Run
from parity.models.program import flat

_PACKAGE = "model.pt2"
_NO_COMPILER = "it needs a C++ compiler; install g++, or use backend onnxruntime or export"


class Compile(InProcess):
    """torch.compile with a dynamic number of rows. What it makes is kept by torch's own cache."""

    name = "compile"
    devices = ("cpu", "cuda")
    precisions = (*FLOATS, "int8")

    def why_off(self) -> str | None:
        """Why not: there is no C++ compiler."""
        return _no_compiler()

    def open(self, job: Job) -> Run:
        """Compile for the example, so that this is no request's time."""
        import torch

        dynamo: Any = importlib.import_module("torch._dynamo")
        _inductor().config.compile_threads = 1
        module = torch.compile(job.program.module)

        def run(tensors: Sequence[Any]) -> Sequence[Any]:
            for tensor, taken in zip(tensors, job.program.taken, strict=True):
                for dim in (0, *(dim for dim, size in enumerate(taken.shape, 1) if size is None)):
                    dynamo.maybe_mark_dynamic(tensor, dim)
            args, kwargs = job.program.arguments(tensors)
            return flat(module(*args, **kwargs))

        with torch.inference_mode():
            run([tensor.clone() for tensor in job.program.tensors])
        return run


class AotInductor:
    """AOTInductor: a shared object, kept on disk and loaded without compiling again."""

    name = "aot_inductor"
    devices = ("cpu", "cuda")
    precisions = (*FLOATS, "int8")
    packages: tuple[str, ...] = ()
    builds = True

    def why_off(self) -> str | None:
        """Why not: there is no C++ compiler."""
        return _no_compiler()

    def build(self, job: Job) -> None:
        """Compile the exported program into a package, apart from what other processes compile meanwhile."""
        inductor = _inductor()
        inductor.config.compile_threads = 1
        with importlib.import_module("torch._inductor.utils").fresh_cache():
            inductor.aoti_compile_and_package(job.program.exported, package_path=str(job.folder / _PACKAGE))

    def open(self, job: Job) -> Run:
        """Load the package."""
        index = (
            int(job.profile.device.partition(":")[2] or 0) if job.profile.device.startswith("cuda") else -1
        )
        package = _inductor().aoti_load_package(str(job.folder / _PACKAGE), device_index=index)

        def run(tensors: Sequence[Any]) -> Sequence[Any]:
            args, kwargs = job.program.arguments(tensors)
            return flat(package(*args, **kwargs))

        return run


def _inductor() -> Any:
    """Torch's compiler; its documented entry points for ahead-of-time packages lie in a private package."""
    importlib.import_module("torch._inductor.config")
    return importlib.import_module("torch._inductor")


def _no_compiler() -> str | None:
    return None if any(shutil.which(name) for name in ("g++", "clang++", "c++")) else _NO_COMPILER
