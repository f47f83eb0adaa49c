"""NVIDIA GPUs: CUDA graphs of the eager module, and Torch-TensorRT."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Sequence
from typing import Any

from parity.errors import ConfigError
from parity.models.backend import FLOATS, InProcess, Job, Run, missing
from parity.models.program import flat

_ENGINE = "model.ep"
_WARM_UP = 3
_recording = threading.Lock()
"""One graph is recorded at a time in a process."""


class CudaGraphs(InProcess):
    """The eager kernels of one bucket recorded as a CUDA graph, and replayed with one launch."""

    name = "cuda_graphs"
    devices = ("cuda",)
    precisions = FLOATS

    def open(self, job: Job) -> Run:
        """Record a graph for each shape that comes; raises ConfigError where the profile has no buckets."""
        import torch

        if not job.profile.buckets:
            raise ConfigError(
                f"profile {job.profile.name!r}: cuda_graphs records a graph a bucket; give buckets = [1, 8]"
            )
        graphs: dict[tuple[Any, ...], tuple[Any, list[Any], list[Any]]] = {}
        one_at_a_time = threading.Lock()

        def recorded(tensors: Sequence[Any]) -> tuple[Any, list[Any], list[Any]]:
            inputs = [tensor.clone() for tensor in tensors]
            args, kwargs = job.program.arguments(inputs)
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(_WARM_UP):
                    job.program.module(*args, **kwargs)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                outputs = flat(job.program.module(*args, **kwargs))
            return graph, inputs, outputs

        def run(tensors: Sequence[Any]) -> Sequence[Any]:
            shapes = tuple(tuple(tensor.shape) for tensor in tensors)
            with one_at_a_time:
                if shapes not in graphs:
                    with _recording:
                        graphs[shapes] = recorded(tensors)
                graph, inputs, outputs = graphs[shapes]
                for place, tensor in zip(inputs, tensors, strict=True):
                    place.copy_(tensor)
                graph.replay()
                answers = [output.clone() for output in outputs]
                torch.cuda.current_stream().synchronize()  # the graph's memory is free for the next call
                return answers

        return run


class TensorRT:
    """Torch-TensorRT through its dynamo API. Typing is strong: the module's dtype is the precision."""

    name = "tensorrt"
    devices = ("cuda",)
    precisions = ("float32", "float16", "bfloat16")
    packages = ("torch_tensorrt", "tensorrt")
    builds = True

    def why_off(self) -> str | None:
        """Why not: torch-tensorrt is missing; it comes from NVIDIA's package index."""
        return missing("torch_tensorrt", extra="tensorrt")

    def build(self, job: Job) -> None:
        """Compile for one row up to the largest bucket, the optimum there.

        Raises:
            ConfigError: dimensions beside the rows vary, for which no range is known.
        """
        torch_tensorrt: Any = importlib.import_module("torch_tensorrt")
        program, profile = job.program, job.profile
        if any(None in taken.shape for taken in program.taken):
            raise ConfigError(
                "tensorrt: only the number of rows may vary; pad to one length, or use cuda_graphs"
            )
        most = program.max_rows or max(len(tensor) for tensor in program.tensors)
        shapes = [(tensor, tuple(tensor.shape[1:])) for tensor in program.tensors]
        inputs = [
            torch_tensorrt.Input(
                min_shape=(1, *shape), opt_shape=(most, *shape), max_shape=(most, *shape), dtype=tensor.dtype
            )
            for tensor, shape in shapes
        ]
        args, kwargs = program.arguments(inputs)
        compiled = torch_tensorrt.dynamo.compile(
            program.exported,
            arg_inputs=args,
            kwarg_inputs=kwargs,
            disable_tf32=not profile.tf32,
            use_fp32_acc=profile.precision != "float32",
            device=torch_tensorrt.Device(f"cuda:{profile.device.partition(':')[2] or 0}"),
        )
        args, kwargs = program.example
        torch_tensorrt.save(compiled, str(job.folder / _ENGINE), arg_inputs=args, kwarg_inputs=kwargs)

    def open(self, job: Job) -> Run:
        """Load the engine; it is not thread-safe, so that one call at a time goes through it."""
        torch_tensorrt: Any = importlib.import_module("torch_tensorrt")
        module = torch_tensorrt.load(str(job.folder / _ENGINE)).module()
        one_at_a_time = threading.Lock()

        def run(tensors: Sequence[Any]) -> Sequence[Any]:
            args, kwargs = job.program.arguments(tensors)
            with one_at_a_time:
                return flat(module(*args, **kwargs))

        return run
