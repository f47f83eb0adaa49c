"""OpenVINO on the CPU."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Sequence
from typing import Any, cast

from parity.models.backend import Job, Run, missing
from parity.models.onnx import MODEL, export_onnx


class OpenVino:
    """The exported program as ONNX, compiled by OpenVINO for this CPU."""

    name = "openvino"
    devices = ("cpu",)
    precisions = ("float32",)
    packages = ("onnx", "onnxscript", "openvino")
    builds = True

    def why_off(self) -> str | None:
        """Why not: a package is missing."""
        return missing("onnx", "onnxscript", "openvino", extra="openvino")

    def build(self, job: Job) -> None:
        """Export to ONNX, which OpenVINO reads."""
        export_onnx(job.program, job.folder / MODEL)

    def open(self, job: Job) -> Run:
        """Compile with the profile's number of threads, in float32 whatever the CPU prefers."""
        import torch

        openvino = _openvino()

        core = openvino.Core()
        settings = {
            "INFERENCE_NUM_THREADS": job.profile.threads,
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32",
            "EXECUTION_MODE_HINT": "ACCURACY",
        }
        model = core.compile_model(core.read_model(str(job.folder / MODEL)), "CPU", settings)
        own = threading.local()

        def run(tensors: Sequence[Any]) -> Sequence[Any]:
            if not hasattr(own, "request"):
                own.request = model.create_infer_request()
            request = own.request
            request.infer([tensor.contiguous().numpy() for tensor in tensors], share_inputs=True)
            # The request's memory is written anew by the next call.
            return [torch.from_numpy(output.data.copy()) for output in request.output_tensors]

        return run


def _openvino() -> Any:
    """The package, kept from calling home: it would fork this process to do so."""
    name = "openvino_telemetry"
    known = sys.modules.get(name)
    sys.modules[name] = cast("Any", None)  # the package does without, where it cannot be imported
    try:
        return importlib.import_module("openvino")
    finally:
        del sys.modules[name]
        if known is not None:
            sys.modules[name] = known
