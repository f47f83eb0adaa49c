"""ONNX Runtime on the CPU."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parity.models.backend import Job, Run, missing
from parity.models.program import Program

MODEL = "model.onnx"


class OnnxRuntime:
    """The exported program as ONNX, run by ONNX Runtime's CPU kernels."""

    name = "onnxruntime"
    devices = ("cpu",)
    precisions = ("float64", "float32", "float16")
    packages = ("onnx", "onnxscript", "onnxruntime")
    builds = True

    def why_off(self) -> str | None:
        """Why not: a package is missing."""
        return missing("onnx", "onnxscript", "onnxruntime", extra="onnx")

    def build(self, job: Job) -> None:
        """Export to ONNX."""
        export_onnx(job.program, job.folder / MODEL)

    def open(self, job: Job) -> Run:
        """Load a session with the profile's number of threads."""
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read as it is imported: it would call home
        import onnxruntime
        import torch

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = job.profile.threads
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = job.profile.deterministic
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(
            str(job.folder / MODEL), options, providers=["CPUExecutionProvider"]
        )
        names = [item.name for item in session.get_inputs()]

        def run(tensors: Sequence[Any]) -> Sequence[Any]:
            feed = {name: tensor.contiguous().numpy() for name, tensor in zip(names, tensors, strict=True)}
            return [torch.from_numpy(output) for output in session.run(None, feed)]

        return run


def export_onnx(program: Program, path: Path) -> None:
    """Write the program as an ONNX file; its inputs and outputs are the program's tensors, in order."""
    import torch

    args, kwargs = program.example
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns of each library that is not there
    found = torch.onnx.export(program.exported, args, kwargs=kwargs, dynamo=True, verbose=False)
    assert found is not None, "with dynamo a program comes back"
    found.save(str(path))
