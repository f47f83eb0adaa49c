"""What a worker process must have in common with the driver, and what may differ all the same."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping

from parity import numerics
from parity.profile import Profile

LENIENT_VARIABLE = "PARITY_WORKER_ENVIRONMENT"
"""Set to "warn" where a job is started, it makes workers go on with other versions of libraries."""

_DOUBTS = ("os", "machine", "cpu")
_CHOOSE_KERNELS = ("env.MKL_CBWR", "env.ATEN_CPU_CAPABILITY", "env.OPENBLAS_CORETYPE")


def environment() -> dict[str, str]:
    """The versions, the machine and the variables of this process that choose how numbers are computed."""
    found = numerics.fingerprint(Profile())
    kept = ("python", *_DOUBTS, *_CHOOSE_KERNELS)
    found = {key: value for key, value in found.items() if key in kept or key.startswith("package.")}
    found["package.parity"] = importlib.metadata.version("parity")
    return found


def lenient() -> bool:
    """Whether this process lets workers have other versions of libraries."""
    return os.environ.get(LENIENT_VARIABLE) == "warn"


def differences(driver: Mapping[str, str], worker: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """What differs between two environments, a few words each: what to refuse, and what to tell.

    Refused are another Python 3.x and another version of a library that both have. Told are another
    processor, system or release of the same Python, variables that choose kernels, and libraries that the
    worker lacks: it fails by itself if the handler needs one.
    """
    refused: list[str] = []
    told: list[str] = []
    for key in sorted(driver.keys() | worker.keys()):
        here, there = driver.get(key), worker.get(key)
        if here == there or (key.startswith("package.") and here is None):
            continue
        name = key.partition(".")[2] or key
        text = f"{name} {there or 'is not there'} in place of {here or 'none'}"
        series = [(value or "").split(".")[:2] for value in (here, there)]
        other_library = key.startswith("package.") and there is not None
        other_python = key == "python" and series[0] != series[1]
        (refused if other_library or other_python else told).append(text)
    return refused, told
