"""A small Ray cluster on this machine, for replays and tests: no dashboard, nothing sent anywhere."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Generator
from typing import Any

CPUS = 3
_OBJECT_STORE_BYTES = 128 * 1024 * 1024
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_AUTH_MODE": "disabled",  # loopback, and gone with this process
    "RAY_DEDUP_LOGS": "0",
}


@contextlib.contextmanager
def local_cluster(cpus: int = CPUS, **options: Any) -> Generator[None]:
    """Have this process connected to a Ray cluster of its own, of so many logical CPUs, meanwhile.

    An address that the environment names, of a cluster of other people's, is not used.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import ray

    ray.init(
        address="local",
        num_cpus=cpus,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.WARNING,
        object_store_memory=_OBJECT_STORE_BYTES,
        _system_config={
            "prestart_worker_first_driver": False,
            "idle_worker_killing_time_threshold_ms": 60_000,  # a worker takes seconds of CPU to start
        },
        **options,
    )
    try:
        import ray.data

        ray.data.DataContext.get_current().enable_progress_bars = False
        yield
    finally:
        ray.shutdown()
