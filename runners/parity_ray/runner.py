"""The Ray runner as `parity check` sees it: rows through a local Ray cluster that is started once."""

from __future__ import annotations

import pyarrow as pa

from parity.distributed.standing import Standing
from parity.errors import ConfigError
from parity.profile import Profile
from parity.registry import load_handler
from parity.result import Result

WIRE_FORM = "dataset"


class RayRunner:
    """The entry point `ray` of the group `parity.runners`.

    It has no command of its own: a dataset is scored by `parity_ray.score` in a job of the user's.
    """

    name = "ray"
    command_name = ""
    starts_slowly = True
    command: None = None
    wire_forms = (WIRE_FORM,)

    def __init__(self) -> None:
        self._standing = Standing("parity_ray.replay_process", "runner ray")

    def replay(
        self,
        handler_ref: str,
        rows: pa.Table,
        profile: Profile,
        *,
        app_dir: str | None = None,
        wire: str | None = None,
    ) -> Result:
        """The answers of `parity_ray.score` on a local cluster, from Parquet files to Parquet files.

        The cluster's process is kept for the next replay; see `parity.distributed.standing`.

        Raises:
            ConfigError: the wire form is not "dataset".
            FingerprintError: an actor refused to answer here.
            RunnerError: Ray failed or took too long, or its answers are not whole.
        """
        if wire not in (None, WIRE_FORM):
            raise ConfigError(f"the ray runner has no wire form {wire!r}; it has {WIRE_FORM!r} only")
        return self._standing.replay(load_handler(handler_ref, app_dir=app_dir), rows, profile)

    def close(self) -> None:
        """End the cluster's process; the next replay starts another."""
        self._standing.close()
