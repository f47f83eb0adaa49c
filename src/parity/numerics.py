"""Precision, TF32, determinism, seeds, threads, memory: set them as the profile says, and record them.

Torch is touched only when something else has imported it already.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import locale
import os
import platform
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from parity.profile import Profile

_RECORDED_PACKAGES = (
    "numpy pyarrow torch ml-dtypes safetensors pandas polars Pillow scikit-learn "
    "onnxruntime lightgbm xgboost tokenizers"
).split()
_BACKEND_PACKAGES = {
    "onnxruntime": ("onnx", "onnxscript"),
    "openvino": ("onnx", "onnxscript", "openvino"),
    "tensorrt": ("torch_tensorrt", "tensorrt"),
}
"""Recorded where a profile's models are run by them only: other profiles' certificates are older."""
_VISION_PACKAGES = {
    "cv2": (
        "opencv-python-headless",
        "opencv-python",
        "opencv-contrib-python-headless",
        "opencv-contrib-python",
    ),
    "simplejpeg": ("simplejpeg",),
}
"""The modules that do operations of `parity.vision` where they can be imported, and what installs them."""
OPERATION: Final = "operation."
"""What the entries of a fingerprint begin with that tell the version of an operation's meaning."""
PLAN: Final = "plan."
"""What the entries of a fingerprint begin with that tell the digests of plans."""
CV_CUDA: Final = ("cvcuda-cu13", "cvcuda-cu12")
"""What installs CV-CUDA; recorded where the profile's device is a GPU: it does operations there."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_here = threading.local()


def apply(profile: Profile) -> None:
    """Set this process's numerics as the profile says: seeds, torch's threads, TF32 and determinism.

    Also raises glibc's mmap and trim thresholds, so that large activations are not given back to the kernel
    and faulted in again for every batch (measured: 1.7 to 2.7 times faster on a small CNN, same bits).
    """
    random.seed(profile.seed)
    np.random.seed(profile.seed % 2**32)  # noqa: NPY002 - the global generator is what user code reads
    _keep_memory()
    torch = cast("Any", sys.modules.get("torch"))
    if torch is None:
        return
    torch.manual_seed(profile.seed)
    apply_to_thread(profile)
    # The flags of use_deterministic_algorithms(..., warn_only=True), which would import the compiler too.
    torch.set_deterministic_debug_mode("warn" if profile.deterministic else "default")
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.set_float32_matmul_precision("high" if profile.tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = profile.tf32
    torch.backends.cudnn.benchmark = not profile.deterministic
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def apply_to_thread(profile: Profile, *, again: bool = False) -> None:
    """Give the calling thread the profile's number of intra-op threads; cheap when it has it already.

    OpenMP keeps that number for each thread. A thread that was never told would run matrix products on all
    cores, which is slow beside other busy threads and can change bits. With `again` it is set even so, since
    what ran in between may have changed it.
    """
    _here.device = profile.device
    if getattr(_here, "threads", None) == profile.threads and not again:
        return
    torch = cast("Any", sys.modules.get("torch"))
    if torch is not None and hasattr(torch, "set_num_threads"):
        torch.set_num_threads(profile.threads)
        _here.threads = profile.threads


def current_device() -> str:
    """The device of the profile under which the calling thread runs a stage; "cpu" outside of stages."""
    return getattr(_here, "device", "cpu")


def leave_to(device: str) -> None:
    """Let the calling thread have the device again that it had before a stage."""
    _here.device = device


def fingerprint(profile: Profile) -> dict[str, str]:
    """What decides the bits of an answer beside code and artifacts, as flat texts that can be compared.

    Keys: python, os, machine, cpu, package.NAME, threads, torch.*, gpu.*, env.*, timezone, locale and every
    setting of the profile as profile.NAME; vision.OPERATION for each operation of `parity.vision` that was
    tried in this process with a library that is there, and is left to torch all the same; operation.NAME, the
    version of what the operation means, for each that was used in this process; plan.NAME, the digests of the
    plans of that name that were used.
    """
    found = {
        "python": platform.python_version(),
        "os": platform.system(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "timezone": os.environ.get("TZ") or time.tzname[0],
        "locale": locale.setlocale(locale.LC_CTYPE),
    }
    packages = [*_RECORDED_PACKAGES, *_BACKEND_PACKAGES.get(profile.backend, ())]
    packages += ["torchao"] if profile.precision == "int8" else []
    packages += CV_CUDA if profile.device != "cpu" else ()
    for package in packages:
        version = _version(package)
        if version is not None:
            found[f"package.{package}"] = version
    found |= _vision("host" if profile.device == "cpu" else "device")
    for variable in (
        "PYTHONHASHSEED",
        "OMP_NUM_THREADS",
        "MKL_CBWR",
        "ATEN_CPU_CAPABILITY",
        "OPENBLAS_CORETYPE",
    ):
        if variable in os.environ:
            found[f"env.{variable}"] = os.environ[variable]
    for setting in profile.to_settings():
        key, _, value = setting.partition("=")
        found[f"profile.{key}"] = value
    torch = cast("Any", sys.modules.get("torch"))
    if torch is not None:
        found["torch.cpu_capability"] = str(torch.backends.cpu.get_cpu_capability())
        found["torch.threads"] = str(torch.get_num_threads())
        found["torch.mkldnn"] = str(bool(torch.backends.mkldnn.is_available()))
        if torch.cuda.is_available() and profile.device != "cpu":
            properties = torch.cuda.get_device_properties(torch.device(profile.device))
            found["gpu.name"] = str(properties.name)
            found["gpu.sm_count"] = str(properties.multi_processor_count)
            found["gpu.cuda"] = str(torch.version.cuda)
            found["gpu.cudnn"] = str(torch.backends.cudnn.version())
    return found


def _vision(place: str) -> dict[str, str]:
    """The libraries that may do image operations, and those of a place that they turned out not to do."""
    found: dict[str, str] = {}
    for module, distributions in _VISION_PACKAGES.items():
        if not _importable(module):
            continue
        versions = {f"package.{name}": version for name in distributions if (version := _version(name))}
        found |= versions or {f"package.{module}": _own_version(module)}
    fastpaths = cast("Any", sys.modules.get("parity.vision.fastpaths"))
    if found and fastpaths is not None:
        for backend in fastpaths.settled():
            module = _MODULE_OF.get(backend.library, "")
            if backend.place == place and not backend.used and module and _importable(module):
                found[f"vision.{backend.operation}"] = f"torch: {backend.reason}"
    meanings = cast("Any", sys.modules.get("parity.vision.meanings"))
    if meanings is not None:
        found |= {f"{OPERATION}{name}": str(version) for name, version in meanings.used().items()}
        found |= {f"{PLAN}{name}": digests for name, digests in meanings.plans().items()}
    return found


def tells_change(name: str, one: str | None, other: str | None) -> bool:
    """Whether what two fingerprints have under a name (None for nothing) says that it is not the same there.

    An operation or a plan that only one of them used tells nothing: its entry stands for a use. Nor does a
    plan that was used beside another one of its name: each side has to have a digest that the other lacks.
    """
    if name.startswith((OPERATION, PLAN)) and (one is None or other is None):
        return False
    if name.startswith(PLAN):
        ours, theirs = set((one or "").split()), set((other or "").split())
        return bool(ours - theirs) and bool(theirs - ours)
    return one != other


_MODULE_OF = {"OpenCV": "cv2", "simplejpeg": "simplejpeg", "CV-CUDA": "cvcuda"}


def _importable(module: str) -> bool:
    if module in sys.modules:
        return cast("Any", sys.modules[module]) is not None
    return importlib.util.find_spec(module) is not None


def _own_version(module: str) -> str:
    """The version of a module that no known distribution installed, as by a system's packages."""
    try:
        return str(getattr(importlib.import_module(module), "__version__", "unknown"))
    except Exception as exc:  # noqa: BLE001 - whatever it raises, it is not used
        return f"cannot be imported: {type(exc).__name__}"


def _keep_memory() -> None:
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, 2_000_000_000)
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
