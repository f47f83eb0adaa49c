"""What a model backend is, and finding one by the name that a profile gives."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from parity.errors import ConfigError
from parity.profile import Profile

if TYPE_CHECKING:
    from parity.models.program import Program

Run = Callable[[Sequence[Any]], Sequence[Any]]
"""A loaded model: from its input tensors in order to its output tensors in order, on the profile's device."""


@dataclass(frozen=True)
class Job:
    """What a backend is to run.

    Attributes:
        program: the module, and how it is called.
        profile: device, precision, threads.
        folder: for the files of backends that build some.
    """

    program: Program
    profile: Profile
    folder: Path


class Backend(Protocol):
    """Something that runs an exported torch module.

    Attributes:
        name: as `Profile.backend` names it.
        devices: the kinds of device that it runs on, "cpu" or "cuda".
        precisions: the precisions that it runs a module in.
        packages: the distributions whose versions decide what it makes.
        builds: whether it makes files that are worth keeping.
    """

    name: str
    devices: tuple[str, ...]
    precisions: tuple[str, ...]
    packages: tuple[str, ...]
    builds: bool

    def why_off(self) -> str | None:
        """What keeps it from running here, with how to mend it; None when nothing does."""
        ...

    def build(self, job: Job) -> None:
        """Compile the program into files in the job's folder, which is empty."""
        ...

    def open(self, job: Job) -> Run:
        """Load what `build` made; where nothing is built, make it now."""
        ...


class InProcess:
    """What backends have in common that make what they run when it is opened, and keep no files."""

    packages: tuple[str, ...] = ()
    builds = False

    def why_off(self) -> str | None:
        """Nothing but the lack of a device, which the profile tells."""
        return None

    def build(self, job: Job) -> None:
        """Nothing."""


BACKENDS: Final[Mapping[str, str]] = {
    "export": "parity.models.exported:Exported",
    "compile": "parity.models.inductor:Compile",
    "aot_inductor": "parity.models.inductor:AotInductor",
    "onnxruntime": "parity.models.onnx:OnnxRuntime",
    "openvino": "parity.models.openvino:OpenVino",
    "cuda_graphs": "parity.models.cuda:CudaGraphs",
    "tensorrt": "parity.models.cuda:TensorRT",
}
"""Every backend but "eager", which is the module itself, and where it lives."""

FLOATS: Final = ("float64", "float32", "bfloat16", "float16")


def find_backend(name: str) -> Backend:
    """The backend called `name`; `Profile` has made sure that there is one."""
    module, _, attribute = BACKENDS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)()


def why_off(profile: Profile) -> str | None:
    """Why a model cannot be run as the profile says, with how to mend it; None when it can."""
    if profile.precision == "int8":
        from parity.models.quantized import why_off as why_no_int8

        reason = why_no_int8()
        if reason:
            return reason
    if profile.backend == "eager":
        return None
    backend = find_backend(profile.backend)
    kind = profile.device.partition(":")[0]
    if kind not in backend.devices:
        return f"it runs on {' and '.join(backend.devices)}, and the device is {profile.device}"
    if profile.precision not in backend.precisions:
        return f"it runs {', '.join(backend.precisions)}, and the precision is {profile.precision}"
    return backend.why_off()


def require(profile: Profile) -> None:
    """Raise ConfigError, with how to mend it, where a model cannot be run as the profile says."""
    reason = why_off(profile)
    if reason is not None:
        raise ConfigError(f"profile {profile.name!r}: backend {profile.backend!r} cannot be used: {reason}")


def missing(*modules: str, extra: str) -> str | None:
    """That modules are not installed, and the extra that brings them; None when all are there."""
    absent = [name for name in modules if importlib.util.find_spec(name) is None]
    return f"{' and '.join(absent)} not installed; pip install 'parity[{extra}]'" if absent else None
