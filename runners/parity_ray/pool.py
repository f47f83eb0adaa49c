"""How many actors score, such that they never own every CPU: Ray reads and writes on what is left, or hangs.

A pool of actors that holds all CPUs of a cluster makes a Ray Data job wait for ever, without a word (ray
issue 44687). So a pool leaves one CPU, or is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from parity.errors import ConfigError


@dataclass(frozen=True)
class Pool:
    """The actors of a job.

    Attributes:
        least: how many there are at least.
        most: how many there are at most.
        num_cpus: the CPUs that one holds.
        num_gpus: the GPUs that one holds.
    """

    least: int
    most: int
    num_cpus: float
    num_gpus: float


def plan_pool(
    actors: int | tuple[int, int] | None, *, num_cpus: float, num_gpus: float, cpus: float, gpus: float
) -> Pool:
    """The pool for a cluster of so many CPUs and GPUs.

    Args:
        actors: how many, or the least and the most; by default as many as fit, one CPU left.
        num_cpus: the CPUs for each.
        num_gpus: the GPUs for each.
        cpus: the cluster's CPUs.
        gpus: the cluster's GPUs.

    Raises:
        ConfigError: they do not fit, or would own every CPU; the message says what does fit.
    """
    for name, value in (("num_cpus", num_cpus), ("num_gpus", num_gpus)):
        if value < 0:
            raise ConfigError(f"{name} = {value} must not be negative")
    room = _room(num_cpus, num_gpus, cpus, gpus)
    filled = max(1, int(cpus)) if room == math.inf else int(room)
    least, most = (
        actors if isinstance(actors, tuple) else (filled, filled) if actors is None else (actors,) * 2
    )
    if actors is not None and not 1 <= least <= most:
        raise ConfigError(
            f"actors = {actors!r} is neither a number of at least 1 nor a (least, most) of such"
        )
    if num_gpus > 0 and gpus < max(1, most) * num_gpus:
        raise ConfigError(
            f"{most or 1} actors with {num_gpus:g} GPUs each need {(most or 1) * num_gpus:g}, and this Ray "
            f"cluster has {gpus:g}; ask for fewer actors, a smaller num_gpus such as 0.5 to share one, or a "
            "profile for the CPU"
        )
    if room < 1 or most > room:
        wanted = most if actors is not None else 1
        raise ConfigError(
            f"{wanted} actors with {num_cpus:g} CPUs each would leave {cpus - wanted * num_cpus:g} of this "
            f"Ray cluster's {cpus:g}, and reading and writing need 1, or the job waits for ever; "
            + (f"at most {filled} actors fit" if room else f"start Ray with {1 + num_cpus:g} CPUs or more")
            + (" (or a smaller num_cpus)" if num_cpus else "")
        )
    return Pool(least, most, num_cpus, num_gpus)


def cluster_resources() -> tuple[float, float]:
    """The CPUs and GPUs of the Ray cluster that this process is connected to; connects when it is not."""
    import ray

    if not ray.is_initialized():
        ray.init()
    found: dict[str, Any] = ray.cluster_resources()
    return float(found.get("CPU", 0)), float(found.get("GPU", 0))


def _room(num_cpus: float, num_gpus: float, cpus: float, gpus: float) -> float:
    """How many actors fit beside one CPU."""
    by_cpu = math.floor((cpus - 1) / num_cpus + 1e-9) if num_cpus else math.inf if cpus >= 1 else 0
    by_gpu = math.floor(gpus / num_gpus + 1e-9) if num_gpus else math.inf
    return max(0, min(by_cpu, by_gpu))
