"""Model backends: one torch module, run as the profile says, compiled at its first batch and kept on disk.

compiled    `prepare`, and the object that stands for a compiled module
program     a module with example inputs: what it is called with, and its exported graph
backend     what a backend is, and finding one by name
exported    torch.export, without a compiler
inductor    torch.compile, and AOTInductor
onnx        ONNX Runtime
openvino    OpenVINO
cuda        CUDA graphs, and Torch-TensorRT
quantized   int8
cache       compiled artifacts on disk

Backends are imported when they are asked for, and their libraries when a model is compiled.
"""

from parity.models.backend import BACKENDS, Backend, find_backend, why_off
from parity.models.compiled import CompiledModel, prepare

__all__ = ["BACKENDS", "Backend", "CompiledModel", "find_backend", "prepare", "why_off"]
