"""A pool of actors leaves a CPU to Ray, or is refused with what would fit."""

from __future__ import annotations

import pytest

from parity.errors import ConfigError
from parity_ray.pool import plan_pool


@pytest.mark.parametrize(
    ("actors", "num_cpus", "num_gpus", "cpus", "gpus", "expected"),
    [
        (None, 1, 0, 8, 0, (7, 7)),
        (None, 2, 0, 8, 0, (3, 3)),
        (None, 0.5, 0, 2, 0, (2, 2)),
        (3, 1, 0, 4, 0, (3, 3)),
        ((1, 3), 1, 0, 4, 0, (1, 3)),
        (None, 1, 1, 16, 2, (2, 2)),
        (None, 1, 0.5, 16, 2, (4, 4)),
        (4, 0, 1, 1, 4, (4, 4)),
        (None, 0.1, 0, 1.3, 0, (3, 3)),
    ],
)
def test_a_pool_that_leaves_a_cpu(actors, num_cpus, num_gpus, cpus, gpus, expected) -> None:
    pool = plan_pool(actors, num_cpus=num_cpus, num_gpus=num_gpus, cpus=cpus, gpus=gpus)
    assert (pool.least, pool.most) == expected
    assert cpus - pool.most * num_cpus >= 1 - 1e-9


@pytest.mark.parametrize(
    ("actors", "num_cpus", "num_gpus", "cpus", "gpus", "message"),
    [
        (
            4,
            1,
            0,
            4,
            0,
            "4 actors with 1 CPUs each would leave 0 of this Ray cluster's 4.*at most 3 actors fit",
        ),
        ((1, 4), 1, 0, 4, 0, "at most 3 actors fit"),
        (None, 1, 0, 1, 0, "start Ray with 2 CPUs or more"),
        (None, 1, 0, 0, 0, "start Ray with 2 CPUs or more"),
        (None, 0.5, 0, 1, 0, r"start Ray with 1\.5 CPUs or more \(or a smaller num_cpus\)"),
        (3, 1, 1, 16, 2, "3 actors with 1 GPUs each need 3, and this Ray cluster has 2"),
        (None, 1, 1, 16, 0, "1 actors with 1 GPUs each need 1, and this Ray cluster has 0"),
        (0, 1, 0, 4, 0, "actors = 0 is neither"),
        ((3, 2), 1, 0, 4, 0, "is neither"),
        (1, -1, 0, 4, 0, "num_cpus = -1 must not be negative"),
    ],
)
def test_a_pool_that_would_hang_or_not_fit_is_refused(
    actors, num_cpus, num_gpus, cpus, gpus, message
) -> None:
    with pytest.raises(ConfigError, match=message):
        plan_pool(actors, num_cpus=num_cpus, num_gpus=num_gpus, cpus=cpus, gpus=gpus)
